"""Result types where types meet: Flink's rules for decimals, common types and implicit casts.

Source: apache/flink LogicalTypeMerging, LogicalTypeCasts; docs/dev/table/types "Decimal results".
"""

from __future__ import annotations

from collections.abc import Sequence

from ..types import INTEGERS, MOST_DIGITS, MOST_LENGTH, DataType, DataTypes, Root

_LEAST_SCALE = 6
"""Digits behind the point that a decimal keeps where its digits are too many."""


def decimal(precision: int, scale: int) -> DataType:
    """Return a decimal type of these digits; where they are too many, fewer of the fraction, but at least six."""
    if precision <= MOST_DIGITS:
        return DataTypes.DECIMAL(precision, scale)
    whole = precision - scale
    return DataTypes.DECIMAL(MOST_DIGITS, max(MOST_DIGITS - whole, min(scale, _LEAST_SCALE)))


def as_decimal(kind: DataType) -> DataType:
    """Return the decimal that holds all values of an exact type."""
    return kind if kind.root is Root.DECIMAL else DataTypes.DECIMAL(kind.digits, 0)


def sum_type(left: DataType, right: DataType) -> DataType:
    """Return the type of `+` and `-` on numbers."""
    return _numeric(left, right, _decimal_sum)


def product_type(left: DataType, right: DataType) -> DataType:
    """Return the type of `*` on numbers."""
    return _numeric(left, right, lambda a, b: decimal(a.precision + b.precision + 1, a.scale + b.scale))


def quotient_type(left: DataType, right: DataType) -> DataType:
    """Return the type of `/` on numbers: for whole numbers a whole one."""

    def of_decimals(a: DataType, b: DataType) -> DataType:
        scale = max(_LEAST_SCALE, a.scale + b.precision + 1)
        return decimal(a.precision - a.scale + b.scale + scale, scale)

    return _numeric(left, right, of_decimals)


def remainder_type(left: DataType, right: DataType) -> DataType:
    """Return the type of `%` and MOD on numbers."""

    def of_decimals(a: DataType, b: DataType) -> DataType:
        scale = max(a.scale, b.scale)
        return decimal(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)

    if left.is_integer and right.is_integer:
        return right.as_nullable(left.is_nullable or right.is_nullable)
    return _numeric(left, right, of_decimals)


def _decimal_sum(a: DataType, b: DataType) -> DataType:
    scale = max(a.scale, b.scale)
    return decimal(max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale)


def _numeric(left: DataType, right: DataType, of_decimals: object) -> DataType:
    assert callable(of_decimals)
    nullable = left.is_nullable or right.is_nullable
    result: DataType
    if left.is_integer and right.is_integer:
        result = max(left, right, key=lambda kind: INTEGERS.index(kind.root))
    elif left.is_exact and right.is_exact:
        result = of_decimals(as_decimal(left), as_decimal(right))
    else:
        result = _approximate(left, right)
    return result.as_nullable(nullable)


def _approximate(left: DataType, right: DataType) -> DataType:
    roots = {left.root, right.root}
    return DataTypes.DOUBLE() if roots & {Root.DOUBLE, Root.DECIMAL} else DataTypes.FLOAT()


def common_type(types: Sequence[DataType]) -> DataType | None:
    """Return the type in which values of all of these can be, None where there is none.

    >>> print(common_type([DataTypes.INT().not_null(), DataTypes.DECIMAL(4, 2)]))
    DECIMAL(12, 2)
    """
    common: DataType | None = None
    for kind in types:
        if common is None:
            common = kind
            continue
        common = _common(common, kind)
        if common is None:
            return None
    return common


def _common(left: DataType, right: DataType) -> DataType | None:
    nullable = left.is_nullable or right.is_nullable
    if left.root is Root.NULL or right.root is Root.NULL:
        return (right if left.root is Root.NULL else left).nullable()
    if left.as_nullable(True) == right.as_nullable(True):
        return left.as_nullable(nullable)
    common = _common_number(left, right) or _common_text(left, right) or _common_time(left, right)
    common = common or _common_nested(left, right)
    return None if common is None else common.as_nullable(nullable)


def _common_number(left: DataType, right: DataType) -> DataType | None:
    if not (left.is_numeric and right.is_numeric):
        return None
    if left.is_integer and right.is_integer:
        return max(left, right, key=lambda kind: INTEGERS.index(kind.root))
    if left.is_exact and right.is_exact:
        a, b = as_decimal(left), as_decimal(right)
        scale = max(a.scale, b.scale)
        return decimal(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)
    return _approximate(left, right)


def _common_text(left: DataType, right: DataType) -> DataType | None:
    length = max(left.length, right.length)
    if left.is_text and right.is_text:
        fixed = left.root is right.root is Root.CHAR and left.length == right.length
        return DataTypes.CHAR(length) if fixed else DataTypes.VARCHAR(length)
    if left.is_bytes and right.is_bytes:
        fixed = left.root is right.root is Root.BINARY and left.length == right.length
        return DataTypes.BINARY(length) if fixed else DataTypes.VARBINARY(length)
    return None


def _common_time(left: DataType, right: DataType) -> DataType | None:
    precision = max(left.precision, right.precision)
    roots = {left.root, right.root}
    if len(roots) == 1:
        if left.root is Root.TIME:
            return DataTypes.TIME(precision)
        if left.root is Root.TIMESTAMP:
            return DataTypes.TIMESTAMP(precision)
        if left.root is Root.TIMESTAMP_LTZ:
            return DataTypes.TIMESTAMP_LTZ(precision)
        if left.root is Root.INTERVAL_DAY_TIME:
            return DataTypes.INTERVAL_DAY_TIME(precision)
        return DataTypes.INTERVAL_YEAR_MONTH() if left.root is Root.INTERVAL_YEAR_MONTH else None
    if roots <= {Root.TIMESTAMP, Root.TIMESTAMP_LTZ}:
        return DataTypes.TIMESTAMP_LTZ(precision)
    if roots <= {Root.DATE, Root.TIMESTAMP, Root.TIMESTAMP_LTZ}:
        timestamp = left if left.is_timestamp else right
        return timestamp
    return None


def _common_nested(left: DataType, right: DataType) -> DataType | None:
    if left.root is not right.root:
        return None
    if left.items and len(left.items) == len(right.items):
        items = [_common(a, b) for a, b in zip(left.items, right.items, strict=True)]
        if all(item is not None for item in items):
            return left.with_items(tuple(item for item in items if item is not None)).nullable()
    if left.root is Root.ROW and len(left.fields) == len(right.fields):
        kinds = [_common(a.type, b.type) for a, b in zip(left.fields, right.fields, strict=True)]
        if all(kind is not None for kind in kinds):
            pairs = zip(left.fields, kinds, strict=True)
            return DataTypes.ROW([DataTypes.FIELD(field.name, kind) for field, kind in pairs if kind is not None])
    return None


def contains_raw(kind: DataType) -> bool:
    """Return whether pickled objects are within values of a type; they are not compared."""
    return kind.root is Root.RAW or any(map(contains_raw, (*kind.items, *(field.type for field in kind.fields))))


def are_comparable(left: DataType, right: DataType) -> bool:
    """Return whether `=` and `<` are defined; a text is compared with a time as a time, never with a number."""
    common = _common(left, right)
    if common is not None:
        return not contains_raw(common)
    times = (Root.DATE, Root.TIME, Root.TIMESTAMP, Root.TIMESTAMP_LTZ)
    return (left.is_text and right.root in times) or (right.is_text and left.root in times)


def widens(source: DataType, wanted: DataType) -> bool:
    """Return whether a value may stand where another type is wanted without a CAST, as in Flink's INSERT."""
    if source.root is Root.NULL or source.as_nullable(True) == wanted.as_nullable(True):
        return True
    if source.is_numeric and wanted.is_numeric:
        return True
    if (source.is_text and wanted.is_text) or (source.is_bytes and wanted.is_bytes):
        return True
    if source.root is wanted.root and source.items:
        return all(widens(a, b) for a, b in zip(source.items, wanted.items, strict=True))
    if source.root is wanted.root is Root.ROW:
        return len(source.fields) == len(wanted.fields) and all(
            widens(a.type, b.type) for a, b in zip(source.fields, wanted.fields, strict=True)
        )
    if source.root is wanted.root:
        return True
    times = (Root.DATE, Root.TIMESTAMP, Root.TIMESTAMP_LTZ)
    return source.root in times and wanted.root in times


TEXT = DataTypes.VARCHAR(MOST_LENGTH)
