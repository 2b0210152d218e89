"""Types and values of a gateway's answers, in JSON.

Source: apache/flink LogicalTypeJsonSerializer and RowDataToJsonConverters (timestamps in ISO 8601).
"""

from __future__ import annotations

import base64
import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from typing import cast

from rayflink.common.types import Row
from rayflink.table.types import DataType, DataTypes, Root

from .exceptions import InternalError

__all__ = ["Read", "reader_of", "type_of"]

Json = object
Read = Callable[[Json], object]

_PLAIN: dict[str, Callable[[], DataType]] = {
    "BOOLEAN": DataTypes.BOOLEAN, "TINYINT": DataTypes.TINYINT, "SMALLINT": DataTypes.SMALLINT,
    "INTEGER": DataTypes.INT, "BIGINT": DataTypes.BIGINT, "FLOAT": DataTypes.FLOAT, "DOUBLE": DataTypes.DOUBLE,
    "DATE": DataTypes.DATE, "NULL": DataTypes.NULL,
}  # fmt: skip
_WITH_LENGTH: dict[str, Callable[[int], DataType]] = {
    "CHAR": DataTypes.CHAR, "VARCHAR": DataTypes.VARCHAR, "BINARY": DataTypes.BINARY, "VARBINARY": DataTypes.VARBINARY,
}  # fmt: skip
_WITH_PRECISION: dict[str, Callable[[int], DataType]] = {
    "TIME_WITHOUT_TIME_ZONE": DataTypes.TIME, "TIMESTAMP_WITHOUT_TIME_ZONE": DataTypes.TIMESTAMP,
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": DataTypes.TIMESTAMP_LTZ,
}  # fmt: skip
MAX_DIGITS = 38
_TIMESTAMP = re.compile(r"(-?\d+)-(\d\d)-(\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(Z?)")
_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?")


def type_of(description: Mapping[str, Json]) -> DataType:
    """Return the type that a gateway describes.

    >>> str(type_of({"type": "DECIMAL", "nullable": False, "precision": 5, "scale": 2}))
    'DECIMAL(5, 2) NOT NULL'

    Raises:
        InternalError: it is no type, or one that is not read here.
    """
    try:
        return _type_of(description).as_nullable(bool(description.get("nullable", True)))
    except (KeyError, TypeError, AttributeError) as error:
        raise InternalError(f"the gateway describes the type {description!r:.200}, which is not known") from error


def _type_of(description: Mapping[str, Json]) -> DataType:
    name = str(description["type"])
    if name in _PLAIN:
        return _PLAIN[name]()
    if name in _WITH_LENGTH:
        return _WITH_LENGTH[name](_number(description, "length"))
    if name in _WITH_PRECISION:
        return _WITH_PRECISION[name](_number(description, "precision"))
    match name:
        case "DECIMAL":
            return DataTypes.DECIMAL(_number(description, "precision"), _number(description, "scale"))
        case "INTERVAL_DAY_TIME":
            return DataTypes.INTERVAL_DAY_TIME(_number(description, "fractionalPrecision"))
        case "INTERVAL_YEAR_MONTH":
            return DataTypes.INTERVAL_YEAR_MONTH()
        case "ARRAY":
            return DataTypes.ARRAY(_part(description, "elementType"))
        case "MULTISET":
            return DataTypes.MULTISET(_part(description, "elementType"))
        case "MAP":
            return DataTypes.MAP(_part(description, "keyType"), _part(description, "valueType"))
        case "ROW":
            fields = description["fields"]
            assert isinstance(fields, list), f"found {fields!r:.80}"
            return DataTypes.ROW([(str(field["name"]), _part(field, "fieldType")) for field in fields])
    raise KeyError(name)


def _number(description: Mapping[str, Json], key: str) -> int:
    value = description[key]
    if not isinstance(value, int):
        raise TypeError(f"found {value!r} as {key}, expected a number")
    return value


def _part(description: Mapping[str, Json], key: str) -> DataType:
    part = description[key]
    if not isinstance(part, dict):
        raise TypeError(f"found {part!r} as {key}, expected a type")
    return type_of(part)


def reader_of(kind: DataType) -> Read:
    """Return a function that makes the value of Python of a JSON value; numbers with a point arrive as Decimal.

    >>> reader_of(DataTypes.ARRAY(DataTypes.DATE()))(["2024-01-31", None])
    [datetime.date(2024, 1, 31), None]
    """
    read = _reader_of(kind)
    return lambda value: None if value is None else read(value)


def _reader_of(kind: DataType) -> Read:
    if kind.root is Root.DECIMAL:
        return _decimal_reader(Decimal(1).scaleb(-kind.scale))
    simple = _READERS.get(kind.root)
    if simple is not None:
        return simple
    if kind.root is Root.ARRAY:
        return _array_reader(reader_of(kind.items[0]))
    if kind.root is Root.MAP:
        return _map_reader(_key_reader(kind.items[0]), reader_of(kind.items[1]))
    if kind.root is Root.MULTISET:
        return _map_reader(_key_reader(kind.items[0]), reader_of(DataTypes.INT()))
    if kind.root is Root.ROW:
        return _row_reader([(field.name, reader_of(field.data_type)) for field in kind.fields])
    return lambda value: value


def _decimal_reader(unit: Decimal) -> Read:
    """Return a function that gives a number the digits of its column: JSON has 1.5 for 1.50."""
    digits = Context(prec=MAX_DIGITS)
    return lambda value: Decimal(str(value)).quantize(unit, context=digits)


def _array_reader(element: Read) -> Read:
    return lambda values: [element(value) for value in cast("list[Json]", values)]


def _map_reader(key: Read, value: Read) -> Read:
    def read(entries: Json) -> object:
        return {key(name): value(entry) for name, entry in cast("dict[str, Json]", entries).items()}

    return read


def _row_reader(fields: Sequence[tuple[str, Read]]) -> Read:
    row_type = Row(*(name for name, _ in fields))

    def read(values: Json) -> object:
        of_name = cast("dict[str, Json]", values)
        return row_type(*(value(of_name.get(name)) for name, value in fields))

    return read


def _key_reader(kind: DataType) -> Read:
    """Return a function that reads the key of a map, which JSON has as a string."""
    if kind.root is Root.BOOLEAN:
        return lambda text: text == "true"
    if kind.is_integer:
        return lambda text: None if text == "null" else int(str(text))
    if kind.root in (Root.BINARY, Root.VARBINARY):
        return lambda text: bytes.fromhex(str(text)[2:-1])  # x'00ff'
    if kind.items or kind.fields or kind.root is Root.INTERVAL_DAY_TIME:
        return lambda text: text  # no text of SQL is read back
    return reader_of(kind)


def _float(value: Json) -> float:
    return float(str(value))  # "NaN" and "Infinity" are strings


def _timestamp(value: Json) -> dt.datetime:
    match = _TIMESTAMP.fullmatch(str(value))
    if match is None:
        raise InternalError(f"the gateway sent the timestamp {value!r:.80}, which has no known form")
    year, month, day, hour, minute = (int(part) for part in match.groups()[:5])
    zone = dt.timezone.utc if match[8] else None
    return dt.datetime(year, month, day, hour, minute, int(match[6] or 0), _micros(match[7]), zone)


def _time(value: Json) -> dt.time:
    match = _TIME.fullmatch(str(value))
    if match is None:
        raise InternalError(f"the gateway sent the time {value!r:.80}, which has no known form")
    return dt.time(int(match[1]), int(match[2]), int(match[3] or 0), _micros(match[4]))


def _micros(fraction: str | None) -> int:
    return int((fraction or "0")[:6].ljust(6, "0"))


_READERS: dict[Root, Read] = {
    Root.FLOAT: _float,
    Root.DOUBLE: _float,
    Root.BINARY: lambda value: base64.b64decode(str(value)),
    Root.VARBINARY: lambda value: base64.b64decode(str(value)),
    Root.DATE: lambda value: dt.date.fromisoformat(str(value)),
    Root.TIME: _time,
    Root.TIMESTAMP: _timestamp,
    Root.TIMESTAMP_LTZ: _timestamp,
    Root.INTERVAL_DAY_TIME: lambda value: dt.timedelta(milliseconds=int(str(value))),
}
