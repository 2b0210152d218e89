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
from rayflink.table.types import MOST_LENGTH, DataType, Root

conversion = Family("Conversion")


@dataclass(frozen=True)
class Cast:
    """A cast under way.

    Args:
        found: the type of the values.
        wanted: what they become.
        session: what the query's session says.
    """

    found: DataType
    wanted: DataType
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
}
NUMBERS = ("integer", "decimal", "float")


def casts(found: str | Sequence[str], wanted: str | Sequence[str], fails: bool = False) -> Callable[[Convert], Convert]:
    """Declares how groups of types become others.

    Args:
        fails: whether null for a value that is not null means that it cannot be cast, which CAST takes as an error.
    """

    def declared(convert: Convert) -> Convert:
        for one in [found] if isinstance(found, str) else found:
            for other in [wanted] if isinstance(wanted, str) else wanted:
                _CASTS[one, other] = convert, fails
        return convert

    return declared


def group(kind: DataType) -> str:
    """Return the group of types that a type belongs to in casts."""
    return _GROUPS[kind.root]


def castable(found: DataType, wanted: DataType) -> bool:
    """Return whether CAST knows a way from one type to another."""
    if found.root is Root.NULL or found.as_nullable(True) == wanted.as_nullable(True):
        return True
    if (group(found), group(wanted)) not in _CASTS:
        return False
    if group(found) == group(wanted):
        if len(found.items) != len(wanted.items) or len(found.fields) != len(wanted.fields):
            return False
        within = [*zip(found.items, wanted.items, strict=True)]
        within += [(a.type, b.type) for a, b in zip(found.fields, wanted.fields, strict=True)]
        return all(castable(a, b) for a, b in within)
    text = wanted if wanted.is_text else None
    within_text = [*found.items, *(field.type for field in found.fields)] if text else []
    return all(castable(one, wanted) for one in within_text)


def may_fail(found: DataType, wanted: DataType) -> bool:
    """Return whether CAST may be an error for some value."""
    if found.root is Root.NULL or found.as_nullable(True) == wanted.as_nullable(True):
        return False
    inner = [*zip(found.items, wanted.items, strict=False)]
    inner += [(a.type, b.type) for a, b in zip(found.fields, wanted.fields, strict=False)]
    return _CASTS.get((group(found), group(wanted)), (None, True))[1] or any(may_fail(a, b) for a, b in inner)


def cast_column(values: Any, cast: Cast) -> tuple[Any, Any]:
    """Cast a column, and return which rows could not be cast: a column of truth values, or None."""
    found, wanted = cast.found, cast.wanted
    if pyarrow.types.is_null(values.type):
        return pyarrow.nulls(len(values), wanted.to_arrow()), None
    if found.as_nullable(True) == wanted.as_nullable(True):
        return values, None
    convert, fails = _CASTS[group(found), group(wanted)]
    made = convert(values, cast)
    if isinstance(made, tuple):  # what is within may have failed
        return made
    if fails and made.null_count > values.null_count:
        return made, pc.and_(pc.is_null(made), pc.is_valid(values))
    return made, None


def _cast_kernel(tries: bool) -> Callable[[Arguments], Values]:
    def computed(arguments: Arguments) -> Values:
        (value,) = arguments.values
        cast = Cast(arguments.call.args[0].type, arguments.call.type, arguments.session)
        return _cast(value, cast, tries)

    return computed


def converted(values: Values, found: DataType, wanted: DataType, session: Session) -> Values:
    """Convert values of one type to another.

    Raises:
        RowError: a value cannot be cast.
    """
    if found is wanted or (found.root is wanted.root and values.type == wanted.to_arrow() and not wanted.length):
        return values
    if found.is_text and wanted.is_text and wanted.root is not Root.CHAR and found.length <= wanted.length:
        return values
    return _cast(values, Cast(found, wanted, session), False)


def _cast(values: Values, cast: Cast, tries: bool) -> Values:
    found, wanted = cast.found, cast.wanted
    if found.is_numeric and wanted.is_numeric:
        return as_number(values, found, wanted)
    if isinstance(values, pyarrow.Scalar):
        return _cast(column(values, 1), cast, tries)[0]
    made, failed = cast_column(values, cast)
    if failed is None:
        return made
    if tries:
        return pc.if_else(failed, pyarrow.scalar(None, made.type), made)
    if not pc.any(failed).as_py():
        return made
    worst = values.filter(failed)[0].as_py()
    raise RowError(f"{worst!r} cannot be cast to {wanted.as_nullable(True)}", "use TRY_CAST to get null instead")


def _raises(call: Call) -> bool:
    return may_fail(call.args[0].type, call.type)


def _infer(args: Sequence[Expr]) -> str:
    return "a value and the type to cast it to: CAST(value AS type)"


conversion.add(
    "CAST(value AS type)",
    "The value as another type; a value that cannot be is an error.",
    _infer,
    _cast_kernel(False),
    raises=_raises,
)
conversion.add(
    "TRY_CAST(value AS type)",
    "The value as another type, null where that cannot be.",
    _infer,
    _cast_kernel(True),
)


# Strings, numbers and truth values.


@casts(NUMBERS, NUMBERS)
def _number(values: Any, cast: Cast) -> Any:
    return as_number(values, cast.found, cast.wanted)


@casts("truth", NUMBERS)
def _number_of_truth(values: Any, cast: Cast) -> Any:
    bits = pc.cast(values, pyarrow.int8())
    return as_number(bits, DataType(Root.TINYINT), cast.wanted)


@casts(NUMBERS, "truth")
def _truth_of_number(values: Any, cast: Cast) -> Any:
    return pc.not_equal(values, pyarrow.scalar(0, values.type))


@casts((*NUMBERS, "truth"), "text")
def _text_of_number(values: Any, cast: Cast) -> Any:
    return sized(number_format.number_strings(values, cast.found), cast.wanted)


@casts("text", "text")
def _text(values: Any, cast: Cast) -> Any:
    return sized(values, cast.wanted)


def sized(strings: Any, wanted: DataType) -> Any:
    """Cut strings to the length of a type, and pad them with blanks for CHAR."""
    if wanted.length == MOST_LENGTH:
        return strings
    if (pc.max(pc.binary_length(strings)).as_py() or 0) > wanted.length:
        strings = pc.utf8_slice_codeunits(strings, 0, wanted.length)
    return pc.utf8_rpad(strings, wanted.length) if wanted.root is Root.CHAR else strings


@casts("text", "integer", fails=True)
def _integer_of_text(values: Any, cast: Cast) -> Any:
    return number_format.parsed_integers(values, cast.wanted)


@casts("text", "float", fails=True)
def _float_of_text(values: Any, cast: Cast) -> Any:
    return number_format.parsed_floats(values, cast.wanted)


@casts("text", "decimal", fails=True)
def _decimal_of_text(values: Any, cast: Cast) -> Any:
    return number_format.parsed_decimals(values, cast.wanted)


@casts("text", "truth", fails=True)
def _truth_of_text(values: Any, cast: Cast) -> Any:
    return number_format.parsed_truths(values)


# Bytes.


@casts("text", "bytes")
def _bytes_of_text(values: Any, cast: Cast) -> Any:
    return _sized_bytes(pc.cast(values, pyarrow.binary()), cast.wanted)


@casts("bytes", "text")
def _text_of_bytes(values: Any, cast: Cast) -> Any:
    return sized(pc.cast(values, pyarrow.string()), cast.wanted)


@casts("bytes", "bytes")
def _bytes(values: Any, cast: Cast) -> Any:
    return _sized_bytes(values, cast.wanted)


def _sized_bytes(values: Any, wanted: DataType) -> Any:
    """Bytes cut to the length of a type, and filled up with zeros for BINARY."""
    if wanted.length == MOST_LENGTH:
        return values
    values = pc.binary_slice(values, 0, wanted.length)
    if wanted.root is not Root.BINARY:
        return values
    missing = pc.subtract(wanted.length, pc.binary_length(values))
    zeros = pc.binary_repeat(pyarrow.scalar(b"\0"), missing)
    return pc.binary_join_element_wise(values, zeros, b"")
