"""Values in PostgreSQL's notation as Arrow columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from .postgres_session import PostgresError

if TYPE_CHECKING:
    import pyarrow

SETTINGS = {
    "TimeZone": "UTC", "DateStyle": "ISO", "IntervalStyle": "postgres", "extra_float_digits": "3",
    "bytea_output": "hex", "client_encoding": "UTF8",
}  # fmt: skip
"""Settings of connections, on which the notation of values depends."""
_WHOLE = {"int2": 16, "int4": 32, "int8": 64, "oid": 64}
_LARGEST_DECIMAL = 76


class TypedColumn(Protocol):
    """A column of PostgreSQL and the Arrow type that its values are wanted in.

    `kind` is the name of its type in `pg_type`.
    """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def target(self) -> pyarrow.DataType: ...


def arrow_type_of(kind: str, modifier: int) -> pyarrow.DataType:
    """Return the Arrow type that has all values of a type of PostgreSQL, with a few exceptions that raise on reading.

    Numbers without a declared precision, JSON, enums, intervals, networks and whatever else is not listed are strings.

    >>> str(arrow_type_of("numeric", (10 << 16 | 2) + 4)), str(arrow_type_of("_int4", -1))
    ('decimal128(10, 2)', 'list<item: int32>')

    Args:
        kind: the name of the type in `pg_type`; arrays begin with an underscore.
        modifier: of the column.
    """
    import pyarrow

    if kind.startswith("_"):
        return pyarrow.list_(arrow_type_of(kind[1:], modifier))
    if kind in _WHOLE:
        return {16: pyarrow.int16(), 32: pyarrow.int32(), 64: pyarrow.int64()}[_WHOLE[kind]]
    if kind == "numeric" and modifier >= 4:
        precision, scale = (modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0x7FF
        if scale <= precision <= _LARGEST_DECIMAL:
            return pyarrow.decimal128(precision, scale) if precision <= 38 else pyarrow.decimal256(precision, scale)
        return pyarrow.string()
    return {
        "float4": pyarrow.float32(), "float8": pyarrow.float64(), "bool": pyarrow.bool_(), "bytea": pyarrow.binary(),
        "date": pyarrow.date32(), "time": pyarrow.time64("us"), "timestamp": pyarrow.timestamp("us"),
        "timestamptz": pyarrow.timestamp("us", "UTC"),
    }.get(kind, pyarrow.string())  # fmt: skip


def is_readable_as(kind: str, target: pyarrow.DataType) -> bool:
    """Return whether a column of PostgreSQL can be read as an Arrow type.

    Args:
        kind: as of `arrow_type_of`.
    """
    import pyarrow.types as types

    if types.is_string(target) or types.is_large_string(target):
        return True
    if types.is_list(target):
        return kind.startswith("_") and is_readable_as(kind[1:], target.value_type)
    if kind in _WHOLE:
        is_wide = types.is_signed_integer(target) and target.bit_width >= _WHOLE[kind]
        return bool(is_wide or types.is_floating(target) or types.is_decimal(target))
    wanted = {
        "float4": types.is_floating, "float8": types.is_float64, "numeric": types.is_decimal, "bool": types.is_boolean,
        "bytea": types.is_binary, "date": types.is_date, "time": types.is_time, "timestamp": types.is_timestamp,
        "timestamptz": types.is_timestamp,
    }.get(kind)  # fmt: skip
    if wanted is None or not wanted(target):
        return False
    return not types.is_timestamp(target) or (target.tz is not None) is (kind == "timestamptz")


def decoded(name: str, values: pyarrow.Array, kind: str, target: pyarrow.DataType) -> pyarrow.Array:
    """Return a column in an Arrow type.

    Args:
        name: of the column, for errors.
        values: strings in the notation that `SETTINGS` give.
        kind: as of `arrow_type_of`.

    Raises:
        PostgresError: a value has no counterpart, such as the date 'infinity', or a number that is too large.
    """
    import pyarrow

    try:
        return _decode(values, kind, target)
    except (pyarrow.ArrowInvalid, ValueError) as error:
        problem = f"column {name!r} of type {kind} has a value that {target} lacks ({error})"
        remedy = "read the column as a string, or correct the value; Arrow has no infinite dates and no dates BC"
        raise PostgresError(problem, remedy) from error


def _decode(values: pyarrow.Array, kind: str, target: pyarrow.DataType) -> pyarrow.Array:
    import pyarrow
    import pyarrow.compute as compute
    import pyarrow.types as types

    if types.is_string(target):
        return values
    if types.is_boolean(target):
        return compute.equal(values, "t")
    if types.is_binary(target):
        plain = [None if value is None else bytes.fromhex(value[2:]) for value in values.to_pylist()]
        return pyarrow.array(plain, target)
    if types.is_list(target):
        return _lists(values, kind[1:], target)
    if types.is_timestamp(target):
        if target.tz is not None:
            values = compute.replace_substring_regex(values, r"\+00$", "")
        return _unit(values.cast(pyarrow.timestamp("us")), target)
    if types.is_time(target):
        whole = compute.strptime(compute.utf8_slice_codeunits(values, 0, 8), "%H:%M:%S", "us")
        fraction = compute.utf8_rpad(compute.utf8_slice_codeunits(values, 9), 6, "0").cast(pyarrow.int64())
        moment = compute.add(whole.cast(pyarrow.int64()), fraction)
        day = compute.subtract(moment, compute.multiply(compute.divide(moment, 86_400_000_000), 86_400_000_000))
        return compute.if_else(compute.less(day, 0), compute.add(day, 86_400_000_000), day).cast(
            pyarrow.time64("us")).cast(target, safe=False)  # fmt: skip
    return values.cast(target)


def _unit(moments: pyarrow.Array, target: pyarrow.DataType) -> pyarrow.Array:
    import pyarrow

    naive = pyarrow.timestamp(target.unit)
    fitting = moments if target.unit == "us" else moments.cast(naive, safe=False)
    return fitting.cast(target) if target.tz is not None else fitting


def _lists(values: pyarrow.Array, kind: str, target: pyarrow.DataType) -> pyarrow.Array:
    import pyarrow

    lists = [None if value is None else parse_array(value) for value in values.to_pylist()]
    offsets: list[int] = [0]
    flat: list[str | None] = []
    for entries in lists:
        flat += entries or ()
        offsets.append(len(flat))
    inner = _decode(pyarrow.array(flat, pyarrow.string()), kind, target.value_type)
    mask = pyarrow.array([entries is None for entries in lists], pyarrow.bool_())
    return pyarrow.ListArray.from_arrays(pyarrow.array(offsets, pyarrow.int32()), inner, type=target, mask=mask)


def parse_array(value: str) -> list[str | None]:
    r"""Return the entries of an array of one dimension.

    >>> parse_array('{1,NULL,"a \\"b\\"",""}')
    ['1', None, 'a "b"', '']

    Raises:
        ValueError: it has several dimensions.
    """
    if value == "{}":
        return []
    if not value.startswith("{") or value.startswith("{{"):
        raise ValueError(f"{value[:60]!r} is an array of several dimensions or with bounds of its own")
    entries: list[str | None] = []
    position, end = 1, len(value) - 1
    while position <= end:
        if value[position] == '"':
            position += 1
            letters = []
            while value[position] != '"':
                position += value[position] == "\\"
                letters.append(value[position])
                position += 1
            entries.append("".join(letters))
            position += 2
        else:
            stop = value.find(",", position)
            stop = end if stop < 0 else stop
            entry = value[position:stop]
            entries.append(None if entry == "NULL" else entry)
            position = stop + 1
    return entries


def arrays_of_csv(data: bytes, columns: Sequence[TypedColumn]) -> list[pyarrow.Array]:
    """Return the columns of `COPY ... TO STDOUT (FORMAT csv)`, each in its Arrow type.

    Most types are read by Arrow's CSV reader itself. Where it cannot read a value, such as an infinite date, all values
    are read as strings first, so that the error names the column.

    Args:
        data: with the notation that `SETTINGS` give.

    Raises:
        PostgresError: a value has no counterpart in the type of its column.
    """
    import pyarrow

    direct = [_csv_type(column.kind, column.target) for column in columns]
    try:
        table = _read_csv(data, direct)
    except pyarrow.ArrowInvalid:
        table = _read_csv(data, [pyarrow.string()] * len(columns))
    arrays = []
    for column, values in zip(columns, table.columns, strict=True):
        array = values.combine_chunks()
        if isinstance(array, pyarrow.ChunkedArray):  # pyarrow gives one that is empty
            array = pyarrow.array([], values.type)
        if array.type == column.target:
            arrays.append(array)
        elif pyarrow.types.is_string(array.type):
            arrays.append(decoded(column.name, array, column.kind, column.target))
        else:
            arrays.append(array.cast(column.target, safe=False))  # a finer or coarser fraction of a second
    return arrays


def _csv_type(kind: str, target: pyarrow.DataType) -> pyarrow.DataType:
    """Return the type in which Arrow's CSV reader reads a column: that of its values, or strings."""
    import pyarrow
    import pyarrow.types as types

    if types.is_timestamp(target):
        return pyarrow.timestamp("us", None if target.tz is None else "UTC")
    if types.is_time(target):
        return pyarrow.time64("us")
    is_plain = (
        types.is_signed_integer(target) or types.is_floating(target) or types.is_decimal128(target)
        or types.is_date32(target) or (types.is_boolean(target) and kind == "bool")
    )  # fmt: skip
    return target if is_plain else pyarrow.string()


def _read_csv(data: bytes, kinds: Sequence[pyarrow.DataType]) -> pyarrow.Table:
    import pyarrow
    from pyarrow import csv

    column_types = {str(index): kind for index, kind in enumerate(kinds)}
    if not data:
        return pyarrow.table({name: pyarrow.array([], kind) for name, kind in column_types.items()})
    return csv.read_csv(
        pyarrow.BufferReader(data),
        csv.ReadOptions(
            column_names=list(column_types), use_threads=False, block_size=max(1 << 20, min(len(data) + 1, 1 << 30))
        ),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types=column_types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False,
            true_values=["t"], false_values=["f"],
        ),
    )  # fmt: skip


__all__ = ["SETTINGS", "TypedColumn", "arrays_of_csv", "arrow_type_of", "decoded", "is_readable_as", "parse_array"]
