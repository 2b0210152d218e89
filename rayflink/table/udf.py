"""Functions of the user's own in queries, with PyFlink's names."""

from __future__ import annotations

import datetime
import inspect
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rayflink.common.errors import InvalidTypesError, shorten

from .typed import Arguments, Expr, Function, RowError, Values
from .types import DataType, DataTypes

if TYPE_CHECKING:
    import pyarrow

__all__ = ["FunctionContext", "ScalarFunction", "UserScalar", "udf"]

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
_KINDS = ("general", "pandas", "arrow", "polars")


class FunctionContext:
    """What a function learns when it is opened.

    Args:
        metric_group: of the operator.
        parameters: options of the job.
    """

    def __init__(self, metric_group: Any, parameters: dict[str, str]) -> None:
        self._metric_group, self._parameters = metric_group, parameters

    def get_metric_group(self) -> Any:
        """The metrics of the operator in which it runs."""
        return self._metric_group

    def get_job_parameter(self, key: str, default_value: str) -> str:
        """An option of the job."""
        return self._parameters.get(key, default_value)


class ScalarFunction(ABC):
    """A function of the values of a row, or, as a vectorised one, of columns."""

    def open(self, function_context: FunctionContext) -> None:  # noqa: B027
        """Called once a subtask before the first row."""

    def close(self) -> None:  # noqa: B027
        """Called once a subtask after the last row."""

    def is_deterministic(self) -> bool:
        """Whether it gives the same for the same arguments."""
        return True

    @abstractmethod
    def eval(self, *args: Any) -> Any:
        """The result for a row's values, or for columns."""


class UserKernel:
    """Calls a user's function in an operator.

    Args:
        function: a ScalarFunction, or a callable.
        kind: what it is given: values of a row, or columns of pandas, Arrow or polars.
        name: for messages.
    """

    def __init__(self, function: Any, kind: str, name: str) -> None:
        self._function, self._kind, self._name = function, kind, name
        self._call: Callable[..., Any] = function.eval if isinstance(function, ScalarFunction) else function

    def open(self, context: FunctionContext) -> None:
        """Open the user's function."""
        if isinstance(self._function, ScalarFunction):
            self._function.open(context)

    def close(self) -> None:
        """Close it."""
        if isinstance(self._function, ScalarFunction):
            self._function.close()

    def __call__(self, arguments: Arguments) -> Values:
        import pyarrow

        columns = [_column(values, arguments.rows) for values in arguments.values]
        if self._kind == "general":
            return self._by_row(columns, arguments)
        form = {"pandas": lambda one: one.to_pandas(), "polars": _to_polars, "arrow": lambda one: one}[self._kind]
        found = self._call(*map(form, columns))
        result = found.to_arrow() if self._kind == "polars" else pyarrow.array(found, from_pandas=True)
        if isinstance(result, pyarrow.ChunkedArray):
            result = result.combine_chunks()
        if len(result) != arguments.rows:
            problem = f"function {self._name} gave {len(result)} values for {arguments.rows} rows"
            raise RowError(problem, "give one for each row")
        return result.cast(arguments.result)

    def _by_row(self, columns: Sequence[pyarrow.Array], arguments: Arguments) -> pyarrow.Array:
        import pyarrow

        rows: Any = zip(*(column.to_pylist() for column in columns), strict=True) if columns else None
        call = self._call
        found = [call(*row) for row in rows] if rows is not None else [call() for _ in range(arguments.rows)]
        try:
            return pyarrow.array(found, arguments.result)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError) as error:
            for value in found:
                try:
                    pyarrow.array([value], arguments.result)
                except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, OverflowError):
                    problem = f"function {self._name} gave {shorten(value, 80)} of type {type(value).__name__}"
                    remedy = f"wanted is {arguments.call.type}: convert it, or declare another result_type"
                    raise RowError(problem, remedy) from error
            raise


class UserScalar:
    """A scalar function of the user's own, made by `udf`; can be called in Python as before.

    Args:
        function: a ScalarFunction or a callable.
        result_type: of its values.
        kind: what it is given.
        name: shown in plans.
        deterministic: whether it gives the same for the same arguments.
    """

    def __init__(self, function: Any, result_type: DataType, kind: str, name: str, deterministic: bool) -> None:
        self.function, self.result_type, self.kind = function, result_type, kind
        self.name, self.deterministic = name, deterministic

    def __call__(self, *args: Any) -> Any:
        return self.function.eval(*args) if isinstance(self.function, ScalarFunction) else self.function(*args)

    def registered(self, name: str) -> Function:
        """As a function of queries, under a name."""
        low, high = _arity(self.function)

        def infer(args: Sequence[Expr]) -> DataType | str:
            if not low <= len(args) <= high:
                return f"{low if low == high else f'{low} or more'} arguments"
            return self.result_type

        kernel = UserKernel(self.function, self.kind, name)
        return Function(name, infer, kernel, "User", is_deterministic=self.deterministic, raises=True)


def udf(
    f: Any = None, input_types: Any = None, result_type: DataType | None = None, deterministic: bool | None = None,
    name: str | None = None, func_type: str = "general",
) -> Any:  # fmt: skip
    """A scalar function for queries; also a decorator.

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
        f: a function, a callable object, or a ScalarFunction.
        input_types: taken for PyFlink's sake: arguments have the types that they have.
        result_type: of its values; None: by its annotation.
        deterministic: None: True, or what the ScalarFunction says.
        name: None: that of the function.
        func_type: what it is given: "general": the values of a row, None for NULL; "pandas", "arrow" or "polars":
            columns, for which it gives a column.

    Raises:
        InvalidTypesError: its result has no type.
        ValueError: `func_type` is unknown.
    """
    if func_type not in _KINDS:
        raise ValueError(f"func_type must be one of {', '.join(_KINDS)}, got {func_type!r}")
    if f is None:
        return lambda function: udf(function, input_types, result_type, deterministic, name, func_type)
    if inspect.isclass(f) or not (callable(f) or isinstance(f, ScalarFunction)):
        raise InvalidTypesError(f"{f!r} is no function", "give a function, or an instance of a ScalarFunction")
    called = str(name or getattr(f, "__name__", type(f).__name__))
    own = f.is_deterministic() if isinstance(f, ScalarFunction) else True
    kind = result_type if result_type is not None else _annotated(f, called)
    return UserScalar(f, kind, func_type, called, own if deterministic is None else deterministic)


def _annotated(function: Any, name: str) -> DataType:
    target = function.eval if isinstance(function, ScalarFunction) else function
    target = target if inspect.isroutine(target) else type(target).__call__
    hint = typing.get_type_hints(target).get("return")
    inner = [one for one in typing.get_args(hint) if one is not type(None)]
    hint = inner[0] if len(inner) == 1 and hint not in _ANNOTATED and typing.get_origin(hint) is not list else hint
    if hint not in _ANNOTATED:
        remedy = f"write @udf(result_type=DataTypes.BIGINT()), or annotate it: def {name}(...) -> int"
        raise InvalidTypesError(f"the type of what function {name} gives is not known", remedy)
    return _ANNOTATED[hint]


def _arity(function: Any) -> tuple[int, int]:
    """The least and the largest number of arguments."""
    target = function.eval if isinstance(function, ScalarFunction) else function
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return 0, 1 << 30
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    least = sum(one.default is one.empty for one in positional)
    endless = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    return least, 1 << 30 if endless else len(positional)


def _column(values: Values, rows: int) -> pyarrow.Array:
    import pyarrow

    if isinstance(values, pyarrow.Scalar):
        return pyarrow.repeat(values, rows)
    return values.combine_chunks() if isinstance(values, pyarrow.ChunkedArray) else values


def _to_polars(column: pyarrow.Array) -> Any:
    import polars

    return polars.Series(column)
