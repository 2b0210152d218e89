"""Columns of MySQL: the Arrow types of their values, how they are selected, and values in the server's notation.

A column of the log and of the snapshot becomes the same `natural` values first: numbers, strings, bytes, dates, and
times of day as microseconds. `converted` makes the type of them that is wanted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .mysql_session import MySqlError

if TYPE_CHECKING:
    import pyarrow

WHOLE = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
STRINGS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "json", "enum", "set"})
BYTES = frozenset({
    "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "geometry", "point", "linestring", "polygon",
    "multipoint", "multilinestring", "multipolygon", "geometrycollection", "geomcollection",
})  # fmt: skip
DATES = frozenset({"date", "datetime", "timestamp"})
_OTHERS = frozenset({"float", "double", "decimal", "time", "year", "bit"})
KINDS = frozenset(WHOLE) | STRINGS | BYTES | DATES | _OTHERS
"""Types that can be read."""
_LARGEST_DECIMAL = 76
DAY_US = 86_400_000_000
_ZERO_DATE = r"^0000|-00"


@dataclass(frozen=True)
class MySqlColumn:
    """A column of a table.

    Args:
        kind: name of its type, such as `bigint`.
        shown_type: its type as SQL writes it, such as `bigint(20) unsigned`.
        precision, scale: of decimals; the scale of a time is that of its seconds.
        length: of characters or bytes, or bits.
        encoding: Python's name of the character set of its strings in the log.
        collation: of strings; "": none.
        members: the values of an enum or a set, in order.
        target: the type of its values in batches.
        zone: the time zone in which a `timestamp` is shown where the target has none.
    """

    name: str
    kind: str
    shown_type: str
    precision: int
    scale: int
    length: int
    encoding: str
    charset: str
    collation: str
    members: tuple[str, ...]
    target: pyarrow.DataType
    zone: str = "UTC"

    @property
    def is_unsigned(self) -> bool:
        """Return whether the column has no negative numbers."""
        return "unsigned" in self.shown_type or "zerofill" in self.shown_type

    @property
    def is_shown(self) -> bool:
        """Return whether its values are wanted in the server's notation."""
        import pyarrow.types as types

        return bool(types.is_string(self.target) or types.is_large_string(self.target))


def members_of(shown_type: str) -> tuple[str, ...]:
    """Return the values of an enum or a set.

    >>> members_of("enum('a','it''s')")
    ('a', "it's")
    """
    return tuple(name.replace("''", "'") for name in re.findall(r"'((?:[^']|'')*)'", shown_type))


def arrow_type_of(kind: str, shown_type: str, precision: int, scale: int, length: int) -> pyarrow.DataType:
    """Return the Arrow type that has all values of a type of MySQL.

    >>> str(arrow_type_of("int", "int(10) unsigned", 10, 0, 0)), str(arrow_type_of("decimal", "", 10, 2, 0))
    ('int64', 'decimal128(10, 2)')
    """
    import pyarrow

    if kind in WHOLE:
        bits = WHOLE[kind] + ("unsigned" in shown_type or "zerofill" in shown_type)
        if bits > 64:
            return pyarrow.decimal128(20, 0)
        return pyarrow.int8() if bits <= 8 else pyarrow.int16() if bits <= 16 else (
            pyarrow.int32() if bits <= 32 else pyarrow.int64())  # fmt: skip
    if kind == "decimal":
        return pyarrow.decimal128(precision, scale) if precision <= 38 else pyarrow.decimal256(precision, scale)
    if kind == "bit":
        return pyarrow.bool_() if length == 1 else pyarrow.int64() if length < 64 else pyarrow.decimal128(20, 0)
    if kind in BYTES:
        return pyarrow.binary()
    return {
        "float": pyarrow.float32(), "double": pyarrow.float64(), "date": pyarrow.date32(), "year": pyarrow.int32(),
        "time": pyarrow.time64("us"), "datetime": pyarrow.timestamp("us"), "timestamp": pyarrow.timestamp("us", "UTC"),
    }.get(kind, pyarrow.string())  # fmt: skip


def is_readable_as(column: MySqlColumn, target: pyarrow.DataType) -> bool:
    """Return whether a column can be read as an Arrow type; some values may be too large."""
    import pyarrow.types as types

    kind = column.kind
    if types.is_string(target) or types.is_large_string(target):
        return kind not in BYTES
    if kind in WHOLE or kind in ("bit", "year"):
        if types.is_boolean(target):
            return column.shown_type.startswith("tinyint(1)") or (kind == "bit" and column.length == 1)
        bits = column.length if kind == "bit" else 16 if kind == "year" else WHOLE[kind] + column.is_unsigned
        is_wide = types.is_signed_integer(target) and target.bit_width >= bits - (bits % 8 == 0 and kind == "bit")
        return bool(is_wide or types.is_floating(target) or types.is_decimal(target))
    if kind in BYTES:
        return bool(types.is_binary(target) or types.is_large_binary(target))
    wanted = {
        "float": types.is_floating, "double": types.is_float64, "decimal": types.is_decimal, "date": types.is_date,
        "time": types.is_time, "datetime": types.is_timestamp, "timestamp": types.is_timestamp,
    }.get(kind)  # fmt: skip
    if wanted is None or not wanted(target):
        return False
    return kind != "datetime" or target.tz is None


def quoted(name: str) -> str:
    """Return a name as SQL writes it.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def selected(column: MySqlColumn) -> str:
    """Return the expression of a column as CSV: NULL is empty, strings are in quotes, and bytes are hexadecimal."""
    name = quoted(column.name)
    if column.kind in STRINGS:
        inner = f"REPLACE(CAST(CONVERT({name} USING utf8mb4) AS BINARY), '\"', '\"\"')"
        return f"IFNULL(CONCAT('\"', {inner}, '\"'), '')"
    if column.kind in BYTES:
        return f"IFNULL(CONCAT('\"', HEX({name}), '\"'), '')"
    if column.kind == "bit":
        return f"IFNULL({name} + 0, '')"
    if column.kind == "float":
        return f"IFNULL({name} + 0E0, '')"  # as it is, a float is shown with 6 digits
    return f"IFNULL({name}, '')"


def arrays_of_csv(data: bytes, columns: tuple[MySqlColumn, ...]) -> tuple[list[pyarrow.Array], int]:
    """Return the columns of rows of `selected`, each in its Arrow type, and the number of dates that became NULL.

    Raises:
        MySqlError: a value has no counterpart in the type of its column.
    """
    import pyarrow

    has_zeros = b"0000-" in data or b"-00" in data
    kinds = [_csv_type(column, has_zeros) for column in columns]
    table = _read_csv(data, kinds)
    arrays, zeros = [], 0
    for column, values in zip(columns, table.columns, strict=True):
        array = values.combine_chunks()
        if isinstance(array, pyarrow.ChunkedArray):  # pyarrow gives one that is empty
            array = pyarrow.array([], values.type)
        if column.kind in DATES and not column.is_shown and pyarrow.types.is_string(array.type):
            array, lost = _without_zeros(array)
            zeros += lost
            array = array.cast(pyarrow.date32() if column.kind == "date" else pyarrow.timestamp("us"))
        elif column.kind in BYTES:
            plain = [None if value is None else bytes.fromhex(value) for value in array.to_pylist()]
            array = pyarrow.array(plain, pyarrow.binary())
        elif column.kind == "time" and not column.is_shown:
            array = _microseconds(array)
        arrays.append(converted(column, array))
    return arrays, zeros


def _csv_type(column: MySqlColumn, has_zeros: bool) -> pyarrow.DataType:
    """Return the type in which Arrow's CSV reader reads a column."""
    import pyarrow

    kind = column.kind
    if kind in DATES and not column.is_shown and not has_zeros:
        return pyarrow.date32() if kind == "date" else pyarrow.timestamp("us")
    if column.is_shown and kind not in ("float", "double", "bit", "year", *WHOLE):
        return pyarrow.string()
    return natural_type(column) or pyarrow.string()


def natural_type(column: MySqlColumn) -> pyarrow.DataType | None:
    """Return the type of numbers in the log and in the snapshot; None: the column has no numbers."""
    import pyarrow

    if column.kind in WHOLE or column.kind in ("bit", "year"):
        is_large = column.is_unsigned or column.kind == "bit"
        return pyarrow.uint64() if is_large else pyarrow.int64()
    if column.kind == "decimal":
        return arrow_type_of("decimal", "", column.precision, column.scale, 0)
    return {"float": pyarrow.float64(), "double": pyarrow.float64()}.get(column.kind)


def _read_csv(data: bytes, kinds: list[pyarrow.DataType]) -> pyarrow.Table:
    import pyarrow
    from pyarrow import csv

    direct = [pyarrow.string() if pyarrow.types.is_decimal256(kind) else kind for kind in kinds]
    column_types = {str(index): kind for index, kind in enumerate(direct)}
    if not data:
        return pyarrow.table({name: pyarrow.array([], kind) for name, kind in column_types.items()})
    read = csv.ReadOptions(
        column_names=list(column_types), use_threads=False, block_size=max(1 << 20, min(len(data) + 1, 1 << 30))
    )
    convert = csv.ConvertOptions(
        column_types=column_types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    parse = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    return csv.read_csv(pyarrow.BufferReader(data), read, parse, convert)


def _without_zeros(values: pyarrow.Array) -> tuple[pyarrow.Array, int]:
    """Return dates without such as `0000-00-00` and `2024-00-10`, which are NULL, and the number of these."""
    import pyarrow
    import pyarrow.compute as compute

    is_zero = compute.fill_null(compute.match_substring_regex(values, _ZERO_DATE), False)
    without = compute.if_else(is_zero, pyarrow.scalar(None, pyarrow.string()), values)
    return without, int(compute.sum(is_zero).as_py() or 0)


def _microseconds(values: pyarrow.Array) -> pyarrow.Array:
    """Return times such as `-838:59:59.5` as microseconds, int64[n]."""
    import pyarrow
    import pyarrow.compute as compute

    parts = compute.extract_regex(values, r"^(?P<s>-?)(?P<h>\d+):(?P<m>\d+):(?P<d>\d+)(?:\.(?P<f>\d+))?$")
    whole = {name: compute.struct_field(parts, name) for name in "shmd"}
    hours, minutes, seconds = (whole[name].cast(pyarrow.int64()) for name in "hmd")
    fraction = compute.utf8_rpad(compute.struct_field(parts, "f"), 6, "0").cast(pyarrow.int64())
    total = compute.add(compute.multiply(hours, 3600), compute.add(compute.multiply(minutes, 60), seconds))
    total = compute.add(compute.multiply(total, 1_000_000), fraction)
    return compute.if_else(compute.equal(whole["s"], "-"), compute.negate(total), total)


def converted(column: MySqlColumn, values: pyarrow.Array) -> pyarrow.Array:
    """Return natural values of a column in the type that is wanted.

    Args:
        values: numbers of `natural_type`, strings, bytes, date32, timestamp("us"), or a time of day as microseconds;
            where the target is a string, dates and times are in the server's notation already.

    Raises:
        MySqlError: a value has no counterpart in the type.
    """
    import pyarrow

    try:
        return _convert(column, values)
    except (pyarrow.ArrowInvalid, ValueError, OverflowError) as error:
        problem = f"column {column.name!r} of type {column.shown_type} has a value that {column.target} lacks ({error})"
        raise MySqlError(problem, "read the column in a wider type or as a string, or correct the value") from error


def _convert(column: MySqlColumn, values: pyarrow.Array) -> pyarrow.Array:
    import pyarrow
    import pyarrow.compute as compute
    import pyarrow.types as types

    kind, target = column.kind, column.target
    if values.type == target:
        return values
    if column.is_shown:
        if kind == "year":
            values = compute.utf8_lpad(values.cast(pyarrow.string()), 4, "0")
        elif kind == "float":
            values = values.cast(pyarrow.float32(), safe=False)
        return values.cast(target)
    if types.is_boolean(target):
        return compute.not_equal(values, pyarrow.scalar(0, values.type))
    if kind == "float":
        return values.cast(pyarrow.float32(), safe=False).cast(target)
    if types.is_time(target):
        in_a_day = compute.and_(compute.greater_equal(values, 0), compute.less(values, DAY_US))
        if not compute.all(compute.fill_null(in_a_day, True)).as_py():
            raise ValueError("a time before 00:00:00 or after 23:59:59")
        return values.cast(pyarrow.time64("us")).cast(target, safe=False)
    if types.is_timestamp(target):
        return _moments(column, values)
    if types.is_decimal(target) and types.is_integer(values.type):
        return values.cast(pyarrow.decimal128(20, 0)).cast(target)
    if types.is_decimal(target) and types.is_string(values.type):
        return values.cast(natural_type(column)).cast(target)
    return values.cast(target)


def _moments(column: MySqlColumn, values: pyarrow.Array) -> pyarrow.Array:
    import pyarrow
    import pyarrow.compute as compute

    target = column.target
    naive = pyarrow.timestamp(target.unit)
    if column.kind == "timestamp" and target.tz is None and column.zone != "UTC":
        values = compute.local_timestamp(values.cast(pyarrow.timestamp("us", "UTC")).cast(
            pyarrow.timestamp("us", column.zone)))  # fmt: skip
    fitting = values if target.unit == "us" else values.cast(naive, safe=False)
    return fitting.cast(target) if target.tz is not None else fitting


__all__ = [
    "BYTES", "DATES", "KINDS", "STRINGS", "WHOLE", "MySqlColumn", "arrays_of_csv", "arrow_type_of", "converted",
    "is_readable_as", "members_of", "natural_type", "quoted", "selected",
]  # fmt: skip
