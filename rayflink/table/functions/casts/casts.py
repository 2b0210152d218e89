"""CAST and TRY_CAST: which types can become which, and how.

Source: apache/flink CastRuleProvider and its rules; LogicalTypeCasts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions import number_format
from rayflink.table.functions.casts.number_casts import as_number
from rayflink.table.functions.declaring import Family, column
from rayflink.table.plan.typed import Arguments, Call, Expr, RowError, Session, Values
from rayflink.table.types import MOST_LENGTH, DataType, Root, TinyIntType

conversion = Family("Conversion")


@dataclass(frozen=True)
class Cast:
    """A cast of a column.

    Args:
        source: the type of the values.
        target: the type that they become.
        session: the session of the query, with its time zone.
    """

    source: DataType
    target: DataType
    session: Session


Convert: TypeAlias = Callable[[Any, Cast], Any]
"""A column of the one type -> of the other."""

_CASTS: dict[tuple[str, str], tuple[Convert, bool]] = {}

_GROUPS = {
    Root.BOOLEAN: "truth",
    Root.TINYINT: "integer",
    Root.SMALLINT: "integer",
    Root.INT: "integer",
    Root.BIGINT: "integer",
    Root.FLOAT: "float",
    Root.DOUBLE: "float",
    Root.DECIMAL: "decimal",
    Root.CHAR: "text",
    Root.VARCHAR: "text",
    Root.BINARY: "bytes",
    Root.VARBINARY: "bytes",
    Root.DATE: "date",
    Root.TIME: "time",
    Root.TIMESTAMP: "timestamp",
    Root.TIMESTAMP_LTZ: "instant",
    Root.INTERVAL_DAY_TIME: "duration",
    Root.INTERVAL_YEAR_MONTH: "months",
    Root.ARRAY: "array",
    Root.MAP: "map",
    Root.MULTISET: "multiset",
    Root.ROW: "row",
    Root.NULL: "null",
    Root.RAW: "raw",
}
NUMBERS = ("integer", "decimal", "float")


def casts(
    sources: str | Sequence[str], targets: str | Sequence[str], fails: bool = False
) -> Callable[[Convert], Convert]:
    """Declares how groups of types become others.

    Args:
        fails: whether null for a value that is not null means that it cannot be cast, which CAST takes as an error.
    """

    def declared(convert: Convert) -> Convert:
        for source in [sources] if isinstance(sources, str) else sources:
            for other in [targets] if isinstance(targets, str) else targets:
                _CASTS[source, other] = convert, fails
        return convert

    return declared


def group(kind: DataType) -> str:
    """Return the group of types that a type belongs to in casts."""
    return _GROUPS[kind.root]


def castable(source: DataType, target: DataType) -> bool:
    """Return whether CAST knows a way from one type to another."""
    if source.root is Root.NULL or source.as_nullable(True) == target.as_nullable(True):
        return True
    if (group(source), group(target)) not in _CASTS:
        return False
    if group(source) == group(target):
        if len(source.items) != len(target.items) or len(source.fields) != len(target.fields):
            return False
        parts = [*zip(source.items, target.items, strict=True)]
        parts += [(a.type, b.type) for a, b in zip(source.fields, target.fields, strict=True)]
        return all(castable(a, b) for a, b in parts)
    text = target if target.is_text else None
    within_text = [*source.items, *(field.type for field in source.fields)] if text else []
    return all(castable(part, target) for part in within_text)


def may_fail(source: DataType, target: DataType) -> bool:
    """Return whether CAST may be an error for some value."""
    if source.root is Root.NULL or source.as_nullable(True) == target.as_nullable(True):
        return False
    inner = [*zip(source.items, target.items, strict=False)]
    inner += [(a.type, b.type) for a, b in zip(source.fields, target.fields, strict=False)]
    return _CASTS.get((group(source), group(target)), (None, True))[1] or any(may_fail(a, b) for a, b in inner)


def cast_column(values: Values, cast: Cast) -> tuple[Any, Any]:
    """Cast a column, and return which rows could not be cast: a column of truth values, or None."""
    source, target = cast.source, cast.target
    if pyarrow.types.is_null(values.type):
        return pyarrow.nulls(len(values), target.to_arrow()), None
    if source.as_nullable(True) == target.as_nullable(True):
        return values, None
    convert, fails = _CASTS[group(source), group(target)]
    result = convert(values, cast)
    if isinstance(result, tuple):  # what is within may have failed
        return result
    if fails and result.null_count > values.null_count:
        return result, pc.and_(pc.is_null(result), pc.is_valid(values))
    return result, None


def _cast_kernel(tries: bool) -> Callable[[Arguments], Values]:
    def computed(arguments: Arguments) -> Values:
        (value,) = arguments.values
        cast = Cast(arguments.call.args[0].type, arguments.call.type, arguments.session)
        return _cast(value, cast, tries)

    return computed


def converted(values: Values, source: DataType, target: DataType, session: Session) -> Values:
    """Convert values of one type to another.

    Raises:
        RowError: a value cannot be cast.
    """
    if source is target or (source.root is target.root and values.type == target.to_arrow() and not target.length):
        return values
    if source.is_text and target.is_text and target.root is not Root.CHAR and source.length <= target.length:
        return values
    return _cast(values, Cast(source, target, session), False)


def _cast(values: Values, cast: Cast, tries: bool) -> Values:
    source, target = cast.source, cast.target
    if source.is_numeric and target.is_numeric:
        return as_number(values, source, target)
    if isinstance(values, pyarrow.Scalar):
        return _cast(column(values, 1), cast, tries)[0]
    result, failed = cast_column(values, cast)
    if failed is None:
        return result
    if tries:
        return pc.if_else(failed, pyarrow.scalar(None, result.type), result)
    if not pc.any(failed).as_py():
        return result
    worst = values.filter(failed)[0].as_py()
    raise RowError(f"{worst!r} cannot be cast to {target.as_nullable(True)}", "use TRY_CAST to get null instead")


def _raises(call: Call) -> bool:
    return may_fail(call.args[0].type, call.type)


def _infer(args: Sequence[Expr]) -> str:
    return "a value and the type to cast it to: CAST(value AS type)"


conversion.add(
    "CAST(value AS type)",
    "The value converted to another type; an error if that is impossible.",
    _infer,
    _cast_kernel(False),
    raises=_raises,
)
conversion.add(
    "TRY_CAST(value AS type)",
    "The value converted to another type; null if that is impossible.",
    _infer,
    _cast_kernel(True),
)


# Strings, numbers and truth values.


@casts(NUMBERS, NUMBERS)
def _number(values: Values, cast: Cast) -> Any:
    return as_number(values, cast.source, cast.target)


@casts("truth", NUMBERS)
def _number_of_truth(values: Values, cast: Cast) -> Any:
    bits = pc.cast(values, pyarrow.int8())
    return as_number(bits, TinyIntType(), cast.target)


@casts(NUMBERS, "truth")
def _truth_of_number(values: Values, cast: Cast) -> Any:
    return pc.not_equal(values, pyarrow.scalar(0, values.type))


@casts((*NUMBERS, "truth"), "text")
def _text_of_number(values: Values, cast: Cast) -> Any:
    return sized(number_format.number_strings(values, cast.source), cast.target)


@casts("text", "text")
def _text(values: Values, cast: Cast) -> Any:
    return sized(values, cast.target)


def sized(strings: Values, target: DataType) -> Any:
    """Cut strings to the length of a type, and pad them with blanks for CHAR."""
    if target.length == MOST_LENGTH:
        return strings
    if (pc.max(pc.binary_length(strings)).as_py() or 0) > target.length:
        strings = pc.utf8_slice_codeunits(strings, 0, target.length)
    return pc.utf8_rpad(strings, target.length) if target.root is Root.CHAR else strings


@casts("text", "integer", fails=True)
def _integer_of_text(values: Values, cast: Cast) -> Any:
    return number_format.parse_integers(values, cast.target)


@casts("text", "float", fails=True)
def _float_of_text(values: Values, cast: Cast) -> Any:
    return number_format.parse_floats(values, cast.target)


@casts("text", "decimal", fails=True)
def _decimal_of_text(values: Values, cast: Cast) -> Any:
    return number_format.parse_decimals(values, cast.target)


@casts("text", "truth", fails=True)
def _truth_of_text(values: Values, cast: Cast) -> Any:
    return number_format.parse_truths(values)


# Bytes.


@casts("text", "bytes")
def _bytes_of_text(values: Values, cast: Cast) -> Any:
    return _sized_bytes(pc.cast(values, pyarrow.binary()), cast.target)


@casts("bytes", "text")
def _text_of_bytes(values: Values, cast: Cast) -> Any:
    return sized(pc.cast(values, pyarrow.string()), cast.target)


@casts("bytes", "bytes")
def _bytes(values: Values, cast: Cast) -> Any:
    return _sized_bytes(values, cast.target)


def _sized_bytes(values: Values, target: DataType) -> Any:
    """Bytes cut to the length of a type, and filled up with zeros for BINARY."""
    if target.length == MOST_LENGTH:
        return values
    values = pc.binary_slice(values, 0, target.length)
    if target.root is not Root.BINARY:
        return values
    missing = pc.subtract(target.length, pc.binary_length(values))
    zeros = pc.binary_repeat(pyarrow.scalar(b"\0"), missing)
    return pc.binary_join_element_wise(values, zeros, b"")
