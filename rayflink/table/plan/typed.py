"""Expressions whose columns, functions and types are known: what the planner works on and what is evaluated.

Frozen trees that compare by value. A `place` is where in the text of a query the expression stands; it takes no part
in the comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ..types import DataType

if TYPE_CHECKING:
    import pyarrow

Values: TypeAlias = "pyarrow.Array | pyarrow.Scalar"
"""A column, or one value that stands for all rows."""


@dataclass(frozen=True)
class QueryText:
    """The text of a query.

    Args:
        view: name of the view that the query defines; "" if it defines none.
    """

    text: str
    view: str = ""


@dataclass(frozen=True)
class Place:
    """A part of a query's text: characters [start, stop).

    Args:
        query: the query of this text; None: the statement that is being parsed.
    """

    start: int
    stop: int
    query: QueryText | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Expr:
    """An expression of a type."""

    type: DataType
    place: Place | None = field(default=None, compare=False, kw_only=True)

    @property
    def inputs(self) -> tuple[Expr, ...]:
        """Return the operands of the expression."""
        return ()

    def with_inputs(self, inputs: Sequence[Expr]) -> Expr:
        """Return the same expression with other operands."""
        return self

    def walk(self) -> Iterator[Expr]:
        """Yield the expression and all its parts."""
        yield self
        for operand in self.inputs:
            yield from operand.walk()

    def mapped(self, change: Callable[[Expr], Expr]) -> Expr:
        """Return the tree with each expression replaced by `change` of it, operands first."""
        inputs = tuple(operand.mapped(change) for operand in self.inputs)
        same = all(new is old for new, old in zip(inputs, self.inputs, strict=True))
        return change(self if same else self.with_inputs(inputs))


@dataclass(frozen=True)
class Column(Expr):
    """A column of the input, by its number."""

    index: int
    name: str = field(compare=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Literal(Expr):
    """A constant: a Python value that pyarrow accepts for the type; intervals are whole months or milliseconds.

    Two literals are equal if their values have the same repr: 0.0 differs from -0.0, and NaN equals NaN.
    """

    value: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal) or self.type != other.type:
            return False
        return self.value is other.value or repr(self.value) == repr(other.value)

    @cached_property
    def scalar(self) -> pyarrow.Scalar:
        """Return the value in Arrow's type."""
        import pyarrow

        return pyarrow.scalar(self.value, self.type.to_arrow())

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "scalar"}  # it is made again

    def __str__(self) -> str:
        if self.value is None:
            return f"null:{self.type}"
        if self.type.is_text:
            return "'" + str(self.value).replace("'", "''") + "'"
        if isinstance(self.value, bool):
            return str(self.value).lower()
        return str(self.value)


@dataclass(frozen=True)
class Call(Expr):
    """A function of expressions.

    Args:
        options: further values on which the function's meaning depends: a field's name, a cast that gives null.
    """

    function: Function
    args: tuple[Expr, ...]
    options: tuple[Any, ...] = ()

    @property
    def inputs(self) -> tuple[Expr, ...]:
        return self.args

    def with_inputs(self, inputs: Sequence[Expr]) -> Expr:
        return replace(self, args=tuple(inputs))

    @cached_property
    def may_raise(self) -> bool:
        """Return whether some rows may be an error."""
        return self.function.may_raise(self) or any(
            isinstance(argument, Call) and argument.may_raise for argument in self.args
        )

    def __str__(self) -> str:
        return self.function.describe(self)


def with_common_parts(exprs: Sequence[Expr]) -> list[Expr]:
    """Share equal calls between expressions, so that they are computed once; random ones stay apart."""
    known: dict[tuple[str, Expr], Expr] = {}

    def one(expr: Expr) -> Expr:
        calls = (part for part in expr.walk() if isinstance(part, Call))
        if not isinstance(expr, Call) or not all(call.function.is_deterministic for call in calls):
            return expr
        return known.setdefault((str(expr), expr), expr)  # its string distinguishes 0.0 from -0.0

    return [expr.mapped(one) for expr in exprs]


Infer: TypeAlias = "Callable[[Sequence[Expr]], DataType | str]"
"""Returns the type of a result from the arguments; a string describes the arguments that are wanted instead."""


@dataclass(frozen=True)
class Arguments:
    """The arguments of a kernel.

    Args:
        values: a column or a scalar for each argument.
        rows: number of rows.
        call: the call itself, with the types of its arguments.
        session: settings of the query's session.
        shared_results: what calls over the same rows share; see `once`.
    """

    values: Sequence[Values]
    rows: int
    call: Call
    session: Session
    shared_results: dict[Any, Any] = field(default_factory=dict)

    @property
    def result(self) -> pyarrow.DataType:
        """Arrow's type of the result."""
        return self.call.type.to_arrow()

    def once(self, about: Any, values: Values, compute: Callable[[], Any]) -> Any:
        """Return `compute()` for a column, computed once for all calls over the same rows.

        Args:
            about: what is computed, such as "lower case".
            values: the column.
            compute: computes the result.
        """
        key = about, id(values)
        if key not in self.shared_results:
            self.shared_results[key] = values, compute()  # an id is of one column as long as that is there
        return self.shared_results[key][1]


@dataclass(frozen=True)
class Session:
    """The settings that evaluation depends on in addition to its input.

    Args:
        zone: time zone in which TIMESTAMP_LTZ is shown, a name of the IANA database.
        now_ms: returns the epoch milliseconds of CURRENT_TIMESTAMP and the like.
        watermark: returns the epoch milliseconds of the last watermark; None before the first, and without watermarks.
        database: name of the current database.
    """

    zone: str = "UTC"
    now_ms: Callable[[], int] = field(default=lambda: 0, compare=False)
    watermark: Callable[[], int | None] = field(default=lambda: None, compare=False)
    database: str = "default_database"


@dataclass(frozen=True)
class Function:
    """A scalar function of SQL.

    Two functions are equal if name and kernel are equal. A built-in function is pickled by its name.

    Args:
        name: in capitals, or an operator.
        infer: returns the type of the result.
        kernel: computes a column; a scalar if all arguments are scalars.
        family: the heading under which the documentation lists it.
        usage: its form in a query, such as "UPPER(text)".
        about: one sentence that describes the result.
        aliases: other names.
        raises: whether some rows may be an error, or a function that decides this for a call; CASE and WHERE then
            evaluate it only for the rows that need it.
        is_deterministic: whether equal arguments always give equal results, so that it may be computed while planning.
        is_clock: whether the result depends on nothing but the time of evaluation, so that two uses share one result.
        symbol: the operator that is written between the two arguments; "" for a function.
        lazily: evaluates the call instead of `kernel`, if not every argument is evaluated for all rows, as in CASE.
        by_options: returns the type of the result instead of `infer`, if it depends on the call's options.
        gives_rows: whether it is a table function, whose result is an ARRAY of ROW.
        aggregates: whether it is an aggregate function of the user's own; its kernel is then an `AggregateKernel`.
        is_async: whether its results are awaited, in a step that awaits those of many rows; see `async_steps`.
    """

    name: str
    infer: Infer = field(compare=False, repr=False)
    kernel: Callable[[Arguments], Values] | None = field(repr=False, default=None)
    family: str = field(default="", compare=False, repr=False)
    usage: str = field(default="", compare=False, repr=False)
    about: str = field(default="", compare=False, repr=False)
    aliases: tuple[str, ...] = field(default=(), compare=False, repr=False)
    raises: bool | Callable[[Call], bool] = field(default=False, compare=False, repr=False)
    is_deterministic: bool = field(default=True, compare=False, repr=False)
    is_clock: bool = field(default=False, compare=False, repr=False)
    symbol: str = field(default="", compare=False, repr=False)
    lazily: Callable[[Call, Evaluation], Values] | None = field(default=None, compare=False, repr=False)
    by_options: Callable[[Sequence[Expr], tuple[Any, ...]], DataType | str] | None = field(
        default=None, compare=False, repr=False
    )
    gives_rows: bool = field(default=False, compare=False, repr=False)
    aggregates: bool = field(default=False, compare=False, repr=False)
    is_async: bool = field(default=False, compare=False, repr=False)

    def result(self, args: Sequence[Expr], options: tuple[Any, ...] = ()) -> DataType | str:
        """Return the type of a call's result, or a description of the arguments that are wanted instead."""
        return self.infer(args) if self.by_options is None else self.by_options(args, options)

    def may_raise(self, call: Call) -> bool:
        """Return whether the call is an error for some values of its arguments."""
        return self.raises if isinstance(self.raises, bool) else self.raises(call)

    @property
    def is_built_in(self) -> bool:
        """Return whether the function is not one of the user's own."""
        return _FUNCTIONS.get(self.name) is self

    def describe(self, call: Call) -> str:
        """Return a call as plans show it."""
        if self.symbol and len(call.args) == 2:
            left, right = map(_inner, call.args)
            return f"{left} {self.symbol} {right}"
        described = [*map(str, call.args), *map(str, call.options)]
        return f"{self.name}({', '.join(described)})"

    def __reduce__(self) -> tuple[Any, ...]:
        if _FUNCTIONS.get(self.name) is self:
            return named, (self.name,)
        values = {member.name: getattr(self, member.name) for member in fields(self)}  # one of the user's
        return partial(Function, **values), ()


def _inner(expr: Expr) -> str:
    return f"({expr})" if isinstance(expr, Call) and expr.function.symbol else str(expr)


class Evaluation:
    """Computes expressions over the rows of a batch. Each subexpression is computed once for all rows.

    Args:
        columns: the columns of the input.
        rows: number of rows.
        session: settings of the query's session.
        within: the evaluation of more rows, and the mask that selects these rows; results of `within` are reused.
    """

    def __init__(
        self,
        columns: Sequence[pyarrow.Array],
        rows: int,
        session: Session,
        within: tuple[Evaluation, pyarrow.Array] | None = None,
    ) -> None:
        self.columns, self.rows, self.session, self._within = columns, rows, session, within
        self._known: dict[int, tuple[Expr, Values]] = {}
        self._shared_results: dict[Any, Any] = {}

    def values(self, expr: Expr) -> Values:
        """Return a column, or one value for all rows.

        Raises:
            RowError: a row is an error.
        """
        if isinstance(expr, Column):
            return self.columns[expr.index]
        known = self._known.get(id(expr))
        if known is not None:
            return known[1]
        result = self._taken_over(expr)
        if result is None:
            result = self._computed(expr)
        self._known[id(expr)] = expr, result
        return result

    def _taken_over(self, expr: Expr) -> Values | None:
        """Return values that `within` has already computed, for these rows; None: it has not computed them."""
        import pyarrow

        if self._within is None:
            return None
        all_rows, mask = self._within
        known = all_rows._known.get(id(expr))
        if known is None or isinstance(known[1], pyarrow.Scalar):
            return None if known is None else known[1]
        return known[1].filter(mask)

    def column(self, expr: Expr) -> pyarrow.Array:
        """Return a column."""
        import pyarrow

        values = self.values(expr)
        if isinstance(values, pyarrow.Scalar):
            values = pyarrow.repeat(values, self.rows)
        if isinstance(values, pyarrow.ChunkedArray):
            values = values.combine_chunks()
        return values

    def among(self, mask: pyarrow.Array) -> Evaluation:
        """Return an evaluation of the rows for which the mask is true."""
        return Evaluation(_Filtered(self.columns, mask), mask.true_count, self.session, (self, mask))

    def _computed(self, expr: Expr) -> Values:
        if isinstance(expr, Literal):
            return expr.scalar
        assert isinstance(expr, Call), expr
        function = expr.function
        if function.lazily is not None:
            return function.lazily(expr, self)
        assert function.kernel is not None, function.name
        values = [self.values(arg) for arg in expr.args]
        return function.kernel(Arguments(values, self.rows, expr, self.session, self._shared_results))


class _Filtered(Sequence["pyarrow.Array"]):
    """Some rows of columns, taken when a column is asked for."""

    def __init__(self, columns: Sequence[pyarrow.Array], mask: pyarrow.Array) -> None:
        self._columns, self._mask = columns, mask
        self._known: dict[int, pyarrow.Array] = {}

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, index: Any) -> Any:
        if index not in self._known:
            self._known[index] = self._columns[index].filter(self._mask)
        return self._known[index]


class RowError(ValueError):
    """An error in a row: a division by zero, a string that is no number.

    Args:
        problem: what is wrong.
        remedy: what to write instead.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}"


_FUNCTIONS: dict[str, Function] = {}


def register(function: Function) -> Function:
    """Register a function under its name and aliases."""
    for name in (function.name, *function.aliases):
        assert name not in _FUNCTIONS, f"{name} is there already"
        _FUNCTIONS[name] = function
    return function


def named(name: str) -> Function:
    """Return a function by its name.

    Raises:
        KeyError: there is none.
    """
    from .. import functions  # they register themselves

    assert functions
    return _FUNCTIONS[name]


def all_functions() -> list[Function]:
    """Return all functions, sorted by family and name."""
    from .. import functions  # which imports this module

    assert functions
    return sorted(set(_FUNCTIONS.values()), key=lambda function: (function.family, function.name))


def known_names() -> list[str]:
    """Return all names of functions, with aliases."""
    all_functions()
    return sorted(_FUNCTIONS)
