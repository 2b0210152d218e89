"""Declares functions: the kinds of arguments they take, and their results.

Choose the decorator of a kernel by the arguments it wants: `by_columns` if all are columns, `by_values(1)` if argument
1, counted from 0, is wanted as a Python value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy
import pyarrow
import pyarrow.compute as pc

from rayflink.table.plan.typed import Arguments, Call, Expr, Function, Infer, Literal, Values, register
from rayflink.table.types import DataType, DataTypes, Root

Kernel: TypeAlias = Callable[[Arguments], Values]
Columns: TypeAlias = Sequence[pyarrow.Array]
"""The arguments of a call as columns, of one length."""


@dataclass(frozen=True)
class Kind:
    """Types of arguments that a function takes.

    Args:
        description: in words, such as "a string".
        holds: returns whether a type belongs to the kind; the type of a bare NULL always does.
        default: a type of the kind, where a result needs one although the argument is a bare NULL. The kernel gets such
            an argument with the type null, and casts it, as `REPEAT` does with `as_strings`.
    """

    description: str
    holds: Callable[[DataType], bool]
    default: DataType

    def accepts(self, data_type: DataType) -> bool:
        """Return whether a value of the type may be such an argument."""
        return data_type.root is Root.NULL or self.holds(data_type)


def _rooted(*roots: Root) -> Callable[[DataType], bool]:
    return lambda data_type: data_type.root in roots


STRING = DataTypes.STRING()
BOOLEAN = DataTypes.BOOLEAN()
INT = DataTypes.INT()
BIGINT = DataTypes.BIGINT()
DOUBLE = DataTypes.DOUBLE()
BYTES = DataTypes.BYTES()

TEXT = Kind("a text", lambda data_type: data_type.is_text, STRING)
BINARY = Kind("bytes", lambda data_type: data_type.is_bytes, BYTES)
TEXT_OR_BYTES = Kind("a text or bytes", lambda data_type: data_type.is_text or data_type.is_bytes, STRING)
NUMBER = Kind("a number", lambda data_type: data_type.is_numeric, INT)
INTEGER = Kind("a whole number", lambda data_type: data_type.is_integer, INT)
TRUTH = Kind("a truth value", _rooted(Root.BOOLEAN), BOOLEAN)
DAY = Kind("a date", _rooted(Root.DATE), DataTypes.DATE())
TIMESTAMP = Kind("a timestamp", lambda data_type: data_type.is_timestamp, DataTypes.TIMESTAMP(3))
DAY_OR_TIMESTAMP = Kind(
    "a date or a timestamp", lambda data_type: data_type.is_timestamp or data_type.root is Root.DATE, DAY.default
)
TIME_POINT = Kind(
    "a date, a time or a timestamp",
    _rooted(Root.DATE, Root.TIME, Root.TIMESTAMP, Root.TIMESTAMP_LTZ),
    DataTypes.TIMESTAMP(3),
)
ARRAY = Kind("an array", _rooted(Root.ARRAY), DataTypes.ARRAY(DataTypes.INT()))
MAP = Kind("a map", _rooted(Root.MAP), DataTypes.MAP(STRING, STRING))
ANYTHING = Kind("any value", lambda data_type: True, STRING)

ResultType: TypeAlias = "DataType | Callable[[Sequence[Expr]], DataType | str]"
"""The type of a result, or a function that returns it for the arguments; a string describes the arguments wanted."""


def is_nullable(args: Sequence[Expr]) -> bool:
    """Return whether one of the arguments may be null."""
    return any(arg.type.is_nullable for arg in args)


def takes(
    *kinds: Kind, gives: ResultType, least: int | None = None, more: Kind | None = None, null: bool | None = None
) -> Infer:
    """Return an inference of the result type for arguments of these kinds.

    Args:
        gives: type of the result, which may be null if an argument may be, or a function that returns it.
        least: number of required arguments; None: all.
        more: kind of any number of further arguments; None: there are none.
        null: whether the result may be null; None: if an argument may be.
    """
    least = len(kinds) if least is None else least

    def infer(args: Sequence[Expr]) -> DataType | str:
        fits = least <= len(args) and (more is not None or len(args) <= len(kinds))
        expected = [*kinds, *[more] * (len(args) - len(kinds))] if more is not None else kinds
        if not fits or not all(kind.accepts(arg.type) for kind, arg in zip(expected, args, strict=False) if kind):
            return _expected_arguments(kinds, least, more)
        result = gives if isinstance(gives, DataType) else gives(args)
        return result if isinstance(result, str) else result.as_nullable(is_nullable(args) if null is None else null)

    return infer


def _expected_arguments(kinds: Sequence[Kind], least: int, more: Kind | None) -> str:
    expected = [
        kind.description if position < least else f"{kind.description} or nothing"
        for position, kind in enumerate(kinds)
    ]
    if more is not None:
        expected.append(f"any number of arguments, each {more.description}")
    return ", ".join(expected) or "no arguments"


def either(*choices: Infer) -> Infer:
    """Return an inference of the result type by the first of these that takes the arguments."""

    def infer(args: Sequence[Expr]) -> DataType | str:
        problems = []
        for choice in choices:
            result = choice(args)
            if isinstance(result, DataType):
                return result
            problems.append(result)
        return "; or ".join(dict.fromkeys(problems))

    return infer


def like_argument(position: int) -> Callable[[Sequence[Expr]], DataType]:
    """Return an inference of the result type: that of an argument."""
    return lambda args: args[position].type


class Family:
    """Declares the functions under one heading of the documentation."""

    def __init__(self, heading: str) -> None:
        self.heading = heading

    def add(self, usage: str, about: str, infer: Infer, kernel: Kernel | None, **traits: Any) -> Function:
        """Register a function; its name is the part of `usage` before the parenthesis, unless `name` is passed.

        Args:
            usage, about, infer, kernel: see `Function`.
            traits: other fields of `Function`, and `name`.
        """
        name = traits.pop("name", None) or usage.partition("(")[0]
        return register(Function(name, infer, kernel, self.heading, usage, about, **traits))

    def __call__(self, usage: str, about: str, infer: Infer, **traits: Any) -> Callable[[Kernel], Kernel]:
        """Decorates a kernel."""

        def declared(kernel: Kernel) -> Kernel:
            self.add(usage, about, infer, kernel, **traits)
            return kernel

        return declared


def constant(expr: Expr) -> Any:
    """Return the value of a literal, None for anything else."""
    return expr.value if isinstance(expr, Literal) else None


def can_raise(expr: Expr) -> bool:
    """Return whether some rows may be an error."""
    return isinstance(expr, Call) and expr.may_raise


def column(values: Values, rows: int) -> pyarrow.Array:
    """Repeat a constant for all rows, or return the column as it is."""
    if isinstance(values, pyarrow.Scalar):
        return pyarrow.repeat(values, rows)
    return values.combine_chunks() if isinstance(values, pyarrow.ChunkedArray) else values


def by_columns(kernel: Callable[[Arguments, Sequence[Any]], pyarrow.Array]) -> Kernel:
    """Return a kernel from one that wants all arguments as columns; constants become columns of one row."""

    def computed(arguments: Arguments) -> Values:
        values = arguments.values
        if values and all(isinstance(value, pyarrow.Scalar) for value in values):
            return kernel(arguments, [column(value, 1) for value in values])[0]
        return kernel(arguments, [column(value, arguments.rows) for value in values])

    return computed


def joined_present(values: Sequence[Values], separator: Values | str) -> Values:
    """Return the strings of each row that are not null, with a separator between them.

    Arrow leaves out the rows where all are null; they are empty strings here.
    """
    missing = pc.is_null(values[0])
    for value in values[1:]:
        missing = pc.and_(missing, pc.is_null(value))
    first = pc.if_else(missing, "", values[0])
    return pc.binary_join_element_wise(first, *values[1:], separator, null_handling="skip")


def as_strings(values: Values) -> Values:
    """Strings: a bare NULL becomes one."""
    return values.cast(pyarrow.string()) if pyarrow.types.is_null(values.type) else values


ValuesKernel: TypeAlias = "Callable[..., pyarrow.Array]"
"""A function of (arguments, columns, *values), as `by_values` wants it."""


def by_values(*argument_numbers: int) -> Callable[[ValuesKernel], Kernel]:
    """Return a decorator of kernels that want some arguments as Python values, and the others as columns.

    The kernel is called as (arguments, columns, *values), once for each distinct combination of values, with the rows
    that have these values; `columns` has all arguments. If a value is null the result is null, without a call.

    Args:
        argument_numbers: the arguments wanted as values, counted from 0; an optional one may be missing in a call.
    """

    def decorate(kernel: ValuesKernel) -> Kernel:
        def computed(arguments: Arguments) -> Values:
            values = arguments.values
            choices = [values[number] for number in argument_numbers if number < len(values)]
            constants = all(isinstance(value, pyarrow.Scalar) for value in values)
            rows = 1 if constants else arguments.rows
            if all(isinstance(value, pyarrow.Scalar) for value in choices):
                chosen = tuple(value.as_py() for value in choices)
                result = _of_choice(kernel, arguments, chosen, [column(value, rows) for value in values])
            else:
                result = _by_choice(kernel, arguments, choices, rows)
            return result[0] if constants else result

        return computed

    return decorate


def _of_choice(kernel: ValuesKernel, arguments: Arguments, chosen: tuple[Any, ...], columns: list[Any]) -> Any:
    if None in chosen:
        return pyarrow.nulls(len(columns[0]), arguments.result)
    result = kernel(arguments, columns, *chosen)
    return result if result.type == arguments.result else result.cast(arguments.result)


def _by_choice(kernel: ValuesKernel, arguments: Arguments, chosen: list[Any], rows: int) -> Any:
    columns = [column(item, rows) for item in arguments.values]
    codes = numpy.zeros(rows, numpy.int64)
    choices: list[tuple[Any, ...]] = [()]
    for item in chosen:
        coded = column(item, rows).dictionary_encode(null_encoding="encode")
        size = len(coded.dictionary)
        codes = codes * size + coded.indices.to_numpy(zero_copy_only=False)
        choices = [(*choice, value) for choice in choices for value in coded.dictionary.to_pylist()]
    parts, places, size = [], numpy.zeros(rows, numpy.int64), 0
    for code in numpy.unique(codes).tolist():
        here = numpy.flatnonzero(codes == code)
        places[here] = numpy.arange(size, size + len(here))
        chosen_columns = [item.take(pyarrow.array(here)) for item in columns]
        parts.append(_of_choice(kernel, arguments, choices[code], chosen_columns))
        size += len(here)
    if not parts:
        return pyarrow.nulls(0, arguments.result)
    return pyarrow.concat_arrays(parts).take(pyarrow.array(places))
