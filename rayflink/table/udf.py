"""Functions of the user's own in queries, with PyFlink's names."""

from __future__ import annotations

import datetime
import importlib.util
import inspect
import typing
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeVar

from rayflink.common.errors import InvalidTypesError
from rayflink.user_types import UserValue

from .errors import SqlError
from .plan.typed import Expr, Function
from .types import DataType, DataTypes, Root, stored_type, to_arrow_type
from .user_functions.aggregate_classes import (
    AggregateFunction,
    ImperativeAggregateFunction,
    TableAggregateFunction,
)
from .user_functions.aggregate_kernels import AggregateKernel
from .user_functions.async_kernels import AsyncKernel, AsyncRowsKernel, is_async
from .user_functions.function_classes import (
    AsyncScalarFunction,
    AsyncTableFunction,
    FunctionContext,
    ScalarFunction,
    TableFunction,
    UserDefinedFunction,
)
from .user_functions.process.contexts import (
    ProcessTableFunctionContext,
    ProcessTableFunctionTableSemantics,
    ProcessTableFunctionTimeContext,
)
from .user_functions.process.declarations import (
    ProcessTableFunctionArgument,
    ProcessTableFunctionArgumentTrait,
    ProcessTableFunctionState,
    list_view,
    map_view,
    table_arg,
    value_state,
)
from .user_functions.process.function_classes import (
    ArgumentDeclarations,
    ChangelogContext,
    ChangelogFunction,
    PlainFunction,
    ProcessTableFunction,
    StateDeclarations,
)
from .user_functions.process.kernels import ProcessKernel, declaration_of
from .user_functions.user_kernels import KINDS, RowsKernel, UserKernel, body_of

__all__ = [
    "AggregateFunction", "AsyncScalarFunction", "AsyncTableFunction", "ChangelogContext", "ChangelogFunction",
    "FunctionContext", "ImperativeAggregateFunction", "ProcessTableFunction", "ProcessTableFunctionArgument",
    "ProcessTableFunctionArgumentTrait", "ProcessTableFunctionContext", "ProcessTableFunctionState",
    "ProcessTableFunctionTableSemantics", "ProcessTableFunctionTimeContext", "ScalarFunction", "TableAggregateFunction",
    "TableFunction", "UserAggregate", "UserFunction", "UserProcess", "UserScalar", "UserTable", "list_view", "map_view",
    "table_arg", "udaf", "udf", "udptf", "udtaf", "udtf", "value_state",
]  # fmt: skip

SomeFunction = TypeVar("SomeFunction", bound="UserFunction")
_ANNOTATED: dict[Any, DataType] = {
    int: DataTypes.BIGINT(),
    str: DataTypes.STRING(),
    float: DataTypes.DOUBLE(),
    bool: DataTypes.BOOLEAN(),
    bytes: DataTypes.BYTES(),
    datetime.date: DataTypes.DATE(),
    datetime.datetime: DataTypes.TIMESTAMP(6),
    datetime.time: DataTypes.TIME(6),
    Decimal: DataTypes.DECIMAL(38, 18),
}


class UserFunction:
    """A function of the user's own, made by `udf`, `udtf`, `udaf` or `udtaf`.

    It can be called in Python as before, but for an aggregate function.

    Args:
        function: a UserDefinedFunction or a callable.
        result_type: what a call of it is in a query.
        kind: what it is given.
        name: shown in plans.
        deterministic: whether it gives the same for the same arguments.
    """

    kernel: type[UserKernel] = UserKernel
    async_kernel: type[UserKernel] = AsyncKernel
    gives_rows = False
    aggregates = False
    input_types: tuple[DataType | None, ...] = ()

    def __init__(self, function: Any, result_type: DataType, kind: str, name: str, deterministic: bool) -> None:
        self.function, self.result_type, self.kind = function, result_type, kind
        self.name, self.deterministic = name, deterministic

    def __call__(self, *args: Any) -> Any:
        from .expression import Expression  # slow: it loads sqlglot

        if any(isinstance(arg, Expression) for arg in args):
            return self._of_expressions(args)
        return body_of(self.function)(*args)

    def _of_expressions(self, args: Sequence[UserValue]) -> UserValue:
        from .expressions import call  # which imports this module

        return call(self, *args)

    def registered(self, name: str) -> Function:
        """Return the function for queries, under a name."""
        low, high = _arity(self.function)

        def infer(args: Sequence[Expr]) -> DataType | str:
            if not low <= len(args) <= high:
                return f"{low} arguments" if low == high else f"{low} or more arguments"
            return self._refusal(args) or stored_type(self.result_type)

        awaited = is_async(self.function)
        kernel = (self.async_kernel if awaited else self.kernel)(self.function, self.kind, name)
        self._declare(kernel)
        return Function(name, infer, kernel, "User", is_deterministic=self.deterministic, raises=True,
                        gives_rows=self.gives_rows, aggregates=self.aggregates, is_async=awaited)  # fmt: skip


    def _declare(self, kernel: UserKernel) -> None:
        """Let a kernel convert objects of user-defined types."""
        kernel.input_types = self.input_types
        kernel.result_type = None if stored_type(self.result_type) == self.result_type else self.result_type

    def _refusal(self, args: Sequence[Expr]) -> str:
        """Return what is wanted where an argument is not stored as its user-defined type is; "": nothing else."""
        for arg, wanted in zip(args, self.input_types, strict=False):
            if wanted is not None and to_arrow_type(wanted) != arg.type.to_arrow():
                return f"{stored_type(wanted)}, as {wanted} is stored"
        return ""


class UserScalar(UserFunction):
    """A scalar function: a value for the values of a row."""


class UserTable(UserFunction):
    """A table function: rows for the values of a row, an ARRAY of ROW where it is called."""

    kernel = RowsKernel
    async_kernel = AsyncRowsKernel
    gives_rows = True
    names: tuple[str, ...] = ()

    def alias(self, *alias_names: str) -> UserTable:
        """Return the same, with names for its columns where `Table.join_lateral` calls it with the row."""
        renamed = UserTable(self.function, self.result_type, self.kind, self.name, self.deterministic)
        renamed.names, renamed.input_types = alias_names, self.input_types
        return renamed


class UserAggregate(UserFunction):
    """An aggregate function, a value for the rows of a group; or a table aggregate function, an ARRAY of ROW for them.

    Called with expressions it is an aggregate of them.
    """

    kernel = AggregateKernel
    aggregates = True
    names: tuple[str, ...] = ()

    def __init__(self, function: UserValue, result_type: DataType, kind: str, name: str, deterministic: bool) -> None:
        super().__init__(function, result_type, kind, name, deterministic)
        self.gives_rows = isinstance(function, TableAggregateFunction)

    def __call__(self, *args: UserValue) -> UserValue:
        return self._of_expressions(args)

    def of_rows(self, names: Sequence[str]) -> Function:
        """Return the function for queries that is given a row with these columns; over columns a table of them."""
        kernel = AggregateKernel(self.function, self.kind, self.name, tuple(names))
        self._declare(kernel)
        result_type = stored_type(self.result_type)
        return Function(self.name, lambda args: result_type, kernel, "User", is_deterministic=self.deterministic,
                        raises=True, gives_rows=self.gives_rows, aggregates=True)  # fmt: skip

    def alias(self, *alias_names: str) -> UserAggregate:
        """Return the same, with names for its columns where `aggregate` or `flat_aggregate` calls it with the row."""
        renamed = UserAggregate(self.function, self.result_type, self.kind, self.name, self.deterministic)
        renamed.names, renamed.input_types = alias_names, self.input_types
        return renamed


class UserProcess(UserFunction):
    """A process table function, made by `udptf`; it is called in FROM, by `process` of a Table, or by `from_call`.

    Args:
        function: what it calls.
        arguments, states, result_type: as of `udptf`.
        name: shown in plans.
        deterministic: whether it gives the same for the same rows.
    """

    def __init__(
        self, function: ProcessTableFunction, arguments: ArgumentDeclarations | None, states: StateDeclarations | None,
        result_type: DataType | str | None, name: str, deterministic: bool,
    ) -> None:  # fmt: skip
        self._parts = arguments, states, result_type
        self.declaration = declaration_of(function, arguments, states, result_type, _typed)
        super().__init__(function, self.declaration.result, "process", name, deterministic)

    def on_timer(self, timer_body: Callable[..., UserValue]) -> Callable[..., UserValue]:
        """Let a function work the timers that this one sets; a decorator.

        Raises:
            ValueError: its parameters are not the context and the states, or the tables have row semantics.
        """
        body = self.function.body if isinstance(self.function, PlainFunction) else self.function.eval
        function = PlainFunction(body, timer_body)
        self.declaration = declaration_of(function, *self._parts, _typed)
        self.function = function
        return timer_body

    def __call__(self, *args: UserValue) -> UserValue:
        """Call it in Python: with a context, the states and the arguments."""
        return self.function.eval(*args)

    def registered(self, name: str) -> Function:
        """Return the function for queries, under a name."""
        usage = f"a place in FROM: SELECT * FROM {name}(TABLE t PARTITION BY k)"
        return Function(name, lambda args: usage, ProcessKernel(self.declaration, name), "User",
                        is_deterministic=self.deterministic, raises=True)  # fmt: skip


def udf(
    f: Any = None, input_types: Any = None, result_type: DataType | str | None = None,
    deterministic: bool | None = None, name: str | None = None, func_type: str = "general",
) -> Any:  # fmt: skip
    """Return a scalar function for queries; also a decorator.

    >>> @udf(result_type=DataTypes.BIGINT())
    ... def twice(n):
    ...     return None if n is None else 2 * n
    >>> from rayflink.table import EnvironmentSettings, TableEnvironment
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> _ = t_env.get_config().set_string("execution.target", "local")
    >>> t_env.create_temporary_function("twice", twice)
    >>> list(t_env.execute_sql("SELECT twice(n) FROM (VALUES (1), (4)) AS t(n)").collect())
    [<Row(2)>, <Row(8)>]

    Args:
        f: a function, a callable object, or a ScalarFunction; by `async def`, or as an AsyncScalarFunction, its results
            are awaited.
        input_types: of the arguments; user-defined types alone are used, others are those that arguments have.
        result_type: of its values, also as text such as "BIGINT"; None: by its annotation.
        deterministic: None: True, or what the ScalarFunction says.
        name: None: that of the function.
        func_type: what it is given: "general": the values of a row, None for NULL; "pandas", "arrow" or "polars":
            columns, for which it gives a column.

    Raises:
        InvalidTypesError: its result has no type.
        ValueError: `func_type` is unknown, or the function says another thing than `deterministic`.
        SqlError: the package of `func_type` is not installed.
    """
    if f is None:
        return lambda function: udf(function, input_types, result_type, deterministic, name, func_type)
    called, own = _facts(f, name, func_type, deterministic)
    kind = _typed(result_type) if result_type is not None else _annotated(f, called)
    return _with_inputs(UserScalar(f, kind, func_type, called, own), input_types)


def udtf(
    f: Any = None, input_types: Any = None, result_types: Any = None, deterministic: bool | None = None,
    name: str | None = None, func_type: str = "general",
) -> Any:  # fmt: skip
    """Return a table function for queries, called by LATERAL TABLE; also a decorator.

    >>> @udtf(result_types=[DataTypes.STRING(), DataTypes.INT()])
    ... def words(text):
    ...     for word in text.split():
    ...         yield word, len(word)
    >>> from rayflink.table import EnvironmentSettings, TableEnvironment
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> _ = t_env.get_config().set_string("execution.target", "local")
    >>> t_env.create_temporary_function("words", words)
    >>> lines = "(VALUES (1, 'to be')) AS t(id, line)"
    >>> query = f"SELECT id, word, size FROM {lines}, LATERAL TABLE(words(line)) AS w(word, size)"
    >>> list(t_env.execute_sql(query).collect())
    [<Row(1, 'to', 2)>, <Row(1, 'be', 2)>]

    Args:
        f: a function, a callable object, or a TableFunction; gives None for no row, a list, a range or an iterator of
            rows, or one row: a tuple, a Row, or a value where there is one column. By `async def`, or as an
            AsyncTableFunction, its rows are awaited.
        input_types: of the arguments; user-defined types alone are used, others are those that arguments have.
        result_types: of its columns: a list, one type, a DataTypes.ROW with their names, or text such as
            "ROW<word STRING, size INT>".
        deterministic: None: True, or what the TableFunction says.
        name: None: that of the function.
        func_type: what it is given: "general": the values of a row; "pandas", "arrow" or "polars": columns, for which
            it gives a table. The table's first column says to which row, from 0, of the columns its rows belong.

    Raises:
        InvalidTypesError: its columns have no types.
        ValueError: `func_type` is unknown, or the function says another thing than `deterministic`.
        SqlError: the package of `func_type` is not installed.
    """
    if f is None:
        return lambda function: udtf(function, input_types, result_types, deterministic, name, func_type)
    called, own = _facts(f, name, func_type, deterministic)
    if result_types is None:
        remedy = "write @udtf(result_types=[DataTypes.STRING(), DataTypes.INT()])"
        raise InvalidTypesError(f"the result types of function {called} are not known", remedy)
    function = UserTable(f, DataTypes.ARRAY(_row_type(result_types)), func_type, called, own)
    return _with_inputs(function, input_types)


def udaf(
    f: UserValue = None, input_types: UserValue = None, result_type: DataType | str | None = None,
    accumulator_type: DataType | str | None = None, deterministic: bool | None = None, name: str | None = None,
    func_type: str = "general",
) -> UserValue:  # fmt: skip
    """Return an aggregate function for queries; also a decorator.

    >>> @udaf(result_type=DataTypes.DOUBLE(), func_type="pandas")
    ... def spread(prices):
    ...     return prices.max() - prices.min()
    >>> from rayflink.table import EnvironmentSettings, TableEnvironment
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    >>> _ = t_env.get_config().set_string("execution.target", "local")
    >>> t_env.create_temporary_function("spread", spread)
    >>> list(t_env.execute_sql("SELECT spread(p) FROM (VALUES (2.5e0), (4e0)) AS t(p)").collect())
    [<Row(1.5)>]

    Args:
        f: an AggregateFunction; with a `func_type` other than "general" a function of columns, too.
        input_types: of the arguments; user-defined types alone are used, others are those that arguments have.
        result_type: of its values, also as text such as "BIGINT"; None: what `get_result_type` says.
        accumulator_type: taken for PyFlink's sake: accumulators are pickled as they are.
        deterministic: None: True, or what the function says.
        name: None: that of the function.
        func_type: what it is given: "general": the values of a row, None for NULL; "pandas", "arrow" or "polars":
            columns with all values of a group, for bounded groups, windows and frames.

    Raises:
        InvalidTypesError: its result has no type, or it is no aggregate function.
        ValueError: `func_type` is unknown, or the function says another thing than `deterministic`.
        SqlError: the package of `func_type` is not installed.
    """
    if f is None:
        return lambda function: udaf(
            function, input_types, result_type, accumulator_type, deterministic, name, func_type
        )
    called, own = _facts(f, name, func_type, deterministic)
    is_aggregate = isinstance(f, AggregateFunction) or (
        func_type != "general" and not isinstance(f, UserDefinedFunction)
    )
    if not is_aggregate:
        remedy = "give an instance of an AggregateFunction, or a function of columns with func_type='pandas'"
        raise InvalidTypesError(f"{called} is not an aggregate function", remedy)
    kind = _aggregate_type(f, called, result_type)
    if func_type == "pandas" and kind.root is Root.MAP:
        remedy = "return an ARRAY of ROW, or write an AggregateFunction"
        raise InvalidTypesError(f"the result type of function {called} over pandas is {kind}", remedy)
    return _with_inputs(UserAggregate(f, kind, func_type, called, own), input_types)


def udtaf(
    f: UserValue = None, input_types: UserValue = None, result_type: DataType | str | None = None,
    accumulator_type: DataType | str | None = None, deterministic: bool | None = None, name: str | None = None,
    func_type: str = "general",
) -> UserValue:  # fmt: skip
    """Return a table aggregate function for `flat_aggregate`; see TableAggregateFunction for an example.

    Args:
        f: a TableAggregateFunction.
        input_types: of the arguments; user-defined types alone are used, others are those that arguments have.
        result_type: of its rows: a DataTypes.ROW with the names of its columns, or text; another type stands for rows
            of one column. None: what `get_result_type` says.
        accumulator_type: taken for PyFlink's sake: accumulators are pickled as they are.
        deterministic: None: True, or what the function says.
        name: None: that of the function.
        func_type: "general", as in PyFlink.

    Raises:
        InvalidTypesError: its rows have no type, or it is no table aggregate function.
        ValueError: `func_type` is another, or the function says another thing than `deterministic`.
    """
    if func_type != "general":
        raise ValueError(f"The func_type must be 'general', got {func_type}.")
    if f is None:
        return lambda function: udtaf(
            function, input_types, result_type, accumulator_type, deterministic, name, func_type
        )
    called, own = _facts(f, name, func_type, deterministic)
    if not isinstance(f, TableAggregateFunction):
        remedy = "give an instance of a TableAggregateFunction"
        raise InvalidTypesError(f"{called} is not a table aggregate function", remedy)
    kind = DataTypes.ARRAY(_row_type(_aggregate_type(f, called, result_type)))
    return _with_inputs(UserAggregate(f, kind, func_type, called, own), input_types)


def udptf(
    f: UserValue = None, arguments: ArgumentDeclarations | None = None, states: StateDeclarations | None = None,
    result_type: DataType | str | None = None, deterministic: bool | None = None, name: str | None = None,
) -> UserValue:  # fmt: skip
    """Return a process table function; also a decorator.

    >>> @udptf(arguments={"event": table_arg(), "separator": "STRING"}, result_type="ROW<token STRING>")
    ... def tokens(ctx, event, separator=" "):
    ...     yield from event.line.split(separator)
    >>> from rayflink.table import EnvironmentSettings, TableEnvironment
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> _ = t_env.get_config().set_string("execution.target", "local")
    >>> list(t_env.from_elements([("to be",)], ["line"]).process(tokens).execute().collect())
    [<Row('to')>, <Row('be')>]

    Args:
        f: a ProcessTableFunction, or a function of a context, the states and the arguments; `@tokens.on_timer` then
            decorates the function that works timers.
        arguments: in the order of `eval`: a mapping from names to `table_arg(...)` or the type of a scalar, or a list
            of ProcessTableFunctionArguments; None: as its class says. A scalar with a default value may be left out.
        states: in the order of `eval`, before the arguments: a mapping from names to `value_state(...)`,
            `list_view(...)` or `map_view(...)`, or a list of ProcessTableFunctionStates; None: as its class says.
        result_type: of a row: a DataTypes.ROW with the names of its columns, or text; another type stands for one
            column. None: as its class says.
        deterministic: None: True, or what the ProcessTableFunction says.
        name: None: that of the function.

    Raises:
        InvalidTypesError: the type of its result is not known.
        TypeError, ValueError: parts of the declaration do not go together, or `eval` has other parameters.
    """
    if f is None:
        return lambda function: udptf(function, arguments, states, result_type, deterministic, name)
    called, own = _facts(f, name, "general", deterministic)
    function = f if isinstance(f, ProcessTableFunction) else PlainFunction(f)
    return UserProcess(function, arguments, states, result_type, called, own)


def _aggregate_type(f: UserValue, name: str, result_type: DataType | str | None) -> DataType:
    """Return the type of an aggregate function's result."""
    if result_type is not None:
        return _typed(result_type)
    if isinstance(f, ImperativeAggregateFunction) and type(f).get_result_type is not _NO_RESULT_TYPE:
        return _typed(f.get_result_type())
    remedy = "pass result_type=DataTypes.BIGINT(), or define get_result_type"
    raise InvalidTypesError(f"the result type of function {name} is not known", remedy)


_NO_RESULT_TYPE = ImperativeAggregateFunction.get_result_type


def as_user_function(function: object) -> UserFunction:
    """Return what queries call.

    Args:
        function: what `udf`, `udtf`, `udaf` or `udtaf` made, an instance or a class of a UserDefinedFunction, or a
            function with an annotation of its result.

    Raises:
        InvalidTypesError: its result has no type.
    """
    if isinstance(function, type) and issubclass(function, UserDefinedFunction):
        function = function()
    if isinstance(function, UserFunction):
        return function
    declarations: list[tuple[type, Callable[[object], UserFunction]]] = [
        (TableFunction, udtf), (AsyncTableFunction, udtf), (AggregateFunction, udaf),
        (TableAggregateFunction, udtaf),
        (ProcessTableFunction, udptf),
    ]  # fmt: skip
    return next((declare for kind, declare in declarations if isinstance(function, kind)), udf)(function)


def _facts(f: Any, name: str | None, func_type: str, deterministic: bool | None) -> tuple[str, bool]:
    """Name of a function, and whether it is deterministic."""
    if func_type not in KINDS:
        raise ValueError(f"func_type must be one of {', '.join(KINDS)}, found {func_type!r}")
    _refuse_async_columns(f, func_type)
    if func_type in ("pandas", "polars") and importlib.util.find_spec(func_type) is None:
        problem = f"a function with func_type {func_type!r} requires {func_type}, which is not installed"
        raise SqlError(problem, f"run `pip install {func_type}` here and on every node, or take func_type 'arrow'")
    if inspect.isclass(f) or not (callable(f) or isinstance(f, UserDefinedFunction)):
        raise InvalidTypesError(f"{f!r} is not a function", "give a function, or an instance of its class")
    called = str(name or getattr(f, "__name__", type(f).__name__))
    own = f.is_deterministic() if isinstance(f, UserDefinedFunction) else None
    if None not in (own, deterministic) and own is not deterministic:
        raise ValueError(
            f"function {called} has deterministic={deterministic}, but its is_deterministic() returns {own}"
        )
    is_deterministic = own if deterministic is None else deterministic
    return called, True if is_deterministic is None else is_deterministic


def _refuse_async_columns(f: UserValue, func_type: str) -> None:
    if func_type == "general" or inspect.isclass(f) or not is_async(f):
        return
    kind = "table" if isinstance(f, AsyncTableFunction) else "scalar"
    problem = f"Async {kind} functions do not support {func_type} func_type"
    raise ValueError(f"{problem}; give func_type='general', and await the values of a row")


def _with_inputs(function: SomeFunction, input_types: object) -> SomeFunction:
    """Return a function that is given objects where a user-defined type is declared of an argument."""
    types = input_types if isinstance(input_types, (list, tuple)) else [input_types]
    is_own = [isinstance(kind, DataType) and stored_type(kind) != kind for kind in types]
    if any(is_own):
        function.input_types = tuple(kind if own else None for kind, own in zip(types, is_own, strict=True))
    return function


def _typed(data_type: DataType | str) -> DataType:
    """Return a type, or the one that a text names."""
    if isinstance(data_type, DataType):
        return data_type
    if not isinstance(data_type, str):
        raise InvalidTypesError(f"{data_type!r} is not a type", "give one such as DataTypes.BIGINT(), or 'BIGINT'")
    from .parsing.statement_parser import parse_type  # slow: it loads sqlglot

    return parse_type(data_type)


def _row_type(result_types: Any) -> DataType:
    """Return the columns of a table function's rows, never null themselves."""
    if isinstance(result_types, (DataType, str)):
        row_type = _typed(result_types)
        if row_type.root is Root.ROW:
            return row_type.not_null()
        result_types = [row_type]
    return DataTypes.ROW(
        [DataTypes.FIELD(f"f{index}", _typed(result_type)) for index, result_type in enumerate(result_types)]
    ).not_null()


def _annotated(function: Any, name: str) -> DataType:
    target = body_of(function)
    target = target if inspect.isroutine(target) else type(target).__call__
    hint = typing.get_type_hints(target).get("return")
    inner = [argument for argument in typing.get_args(hint) if argument is not type(None)]
    hint = inner[0] if len(inner) == 1 and hint not in _ANNOTATED and typing.get_origin(hint) is not list else hint
    if hint not in _ANNOTATED:
        remedy = f"write @udf(result_type=DataTypes.BIGINT()), or annotate it: def {name}(...) -> int"
        raise InvalidTypesError(f"the result type of function {name} is not known", remedy)
    return _ANNOTATED[hint]


def _arity(function: Any) -> tuple[int, int]:
    """Return the least and the largest number of arguments."""
    if isinstance(function, ImperativeAggregateFunction):
        least, most = _arity(function.accumulate)
        return max(least - 1, 0), max(most - 1, 0)  # without the accumulator
    target = body_of(function)
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return 0, 1 << 30
    positional = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    least = sum(parameter.default is parameter.empty for parameter in positional)
    endless = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
    return least, 1 << 30 if endless else len(positional)
