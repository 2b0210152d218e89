"""Rows in the JSON of Flink's gateway: as JSON values, or as the strings that its SQL client prints."""

from __future__ import annotations

import base64
import datetime
import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Context, Decimal
from enum import Enum
from functools import partial
from zoneinfo import ZoneInfo

import msgspec
import numpy as np

from rayflink.common.time import Instant
from rayflink.common.types import Row, RowKind
from rayflink.table.conversion.row_format import SqlFormat
from rayflink.table.types import DataType, Root
from rayflink.user_types import UserValue

__all__ = ["RowForm", "RowWriter"]

Value = Callable[[UserValue], object]
_DIGITS = Context(prec=38)
"""Digits of a DECIMAL, at most: the context of the thread rounds to 28."""
_MILLISECOND = datetime.timedelta(milliseconds=1)


class RowForm(Enum):
    """The form of values in an answer, as the parameter `rowFormat` names it."""

    JSON = "JSON"
    PLAIN_TEXT = "PLAIN_TEXT"


class RowWriter:
    """Writes rows as JSON.

    >>> from rayflink.table.types import DataTypes
    >>> columns = [DataTypes.DECIMAL(5, 3), DataTypes.BYTES()]
    >>> RowWriter(columns, RowForm.JSON, "UTC").write(Row(Decimal("1.500"), None))
    b'{"kind":"INSERT","fields":[1.5,null]}'
    >>> RowWriter(columns, RowForm.PLAIN_TEXT, "UTC").write(Row(Decimal("1.500"), b"a"))
    b'{"kind":"INSERT","fields":["1.500","x\\'61\\'"]}'

    Args:
        types: of the columns.
        form: of the values.
        zone: in which instants are shown.
    """

    def __init__(self, types: Sequence[DataType], form: RowForm, zone: str) -> None:
        self._values = [_json_value(data_type, ZoneInfo(zone)) for data_type in types]
        if form is RowForm.PLAIN_TEXT:
            sql_format = SqlFormat(zone=zone)
            self._values = [_nullable(sql_format.of(data_type)) for data_type in types]
        self._encoder = msgspec.json.Encoder(decimal_format="number")

    def write(self, row: Row) -> bytes:
        """Return a row."""
        fields = [convert(value) for convert, value in zip(self._values, row, strict=True)]
        return self._encoder.encode({"kind": _KINDS[row.get_row_kind()], "fields": fields})


_KINDS = {kind: kind.name for kind in RowKind}


def _nullable(convert: Value) -> Value:
    return lambda value: None if value is None else convert(value)


def _json_value(data_type: DataType, zone: ZoneInfo) -> Value:
    """Return what makes JSON of a value.

    Source: apache/flink RowDataToJsonConverters, with times by ISO 8601, and RowDataLocalTimeZoneConverter.
    """
    return _nullable(_converter(data_type, zone))


def _converter(data_type: DataType, zone: ZoneInfo) -> Value:
    match data_type.root:
        case Root.ARRAY:
            element = _json_value(data_type.items[0], zone)
            return lambda value: [element(item) for item in _items(value)]
        case Root.MAP:
            return _map(data_type.items[0], _json_value(data_type.items[1], zone))
        case Root.MULTISET:
            return _map(data_type.items[0], int)
        case Root.ROW:
            fields = data_type.fields
            return _row([field.name for field in fields], [_json_value(field.type, zone) for field in fields])
        case Root.TIMESTAMP_LTZ:
            return partial(_instant, zone)
        case Root.RAW | Root.USER_DEFINED | Root.TIMESTAMP_TZ:
            return str
        case _:
            return _ATOMIC.get(data_type.root, _unchanged)


def _unchanged(value: UserValue) -> object:
    return value


def _items(value: UserValue) -> Iterable[UserValue]:
    items: Iterable[UserValue] = value
    return items


def _map(key_type: DataType, convert: Value) -> Value:
    key_text = SqlFormat().of(key_type)

    def document(value: UserValue) -> object:
        pairs = value.items() if isinstance(value, dict) else value
        return {key_text(key): convert(item) for key, item in pairs}

    return document


def _row(names: Sequence[str], converters: Sequence[Value]) -> Value:
    def document(value: UserValue) -> object:
        values = [value[name] for name in names] if isinstance(value, dict) else list(value)
        return {name: convert(item) for name, convert, item in zip(names, converters, values, strict=True)}

    return document


def _decimal(value: Decimal) -> object:
    """Return the number without zeros at its end, as Flink's does."""
    return value.normalize(_DIGITS)


def _double(value: float) -> object:
    if math.isfinite(value):
        return float(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _float(value: float) -> object:
    """Return the shortest number that a FLOAT reads as the same."""
    return float(str(np.float32(value))) if math.isfinite(value) else _double(value)


def _base64(value: bytes) -> object:
    return base64.b64encode(value).decode("ascii")


def _clock(value: datetime.time) -> str:
    fraction = f".{value.microsecond:06d}".rstrip("0") if value.microsecond else ""
    return value.strftime("%H:%M:%S") + fraction


def _timestamp(value: datetime.datetime) -> str:
    return f"{value.date().isoformat()}T{_clock(value.time())}"


def _instant(zone: ZoneInfo, value: Instant | datetime.datetime) -> str:
    """Return what a clock in the zone shows, with a Z behind it: Flink's JDBC driver gives its users that time."""
    moment = value.to_datetime() if isinstance(value, Instant) else value
    if moment.tzinfo is not None:
        moment = moment.astimezone(zone)
    return f"{_timestamp(moment)}Z"


def _milliseconds(value: datetime.timedelta) -> int:
    return value // _MILLISECOND


_ATOMIC: dict[Root, Value] = {
    Root.DECIMAL: _decimal,
    Root.FLOAT: _float,
    Root.DOUBLE: _double,
    Root.BINARY: _base64,
    Root.VARBINARY: _base64,
    Root.DATE: datetime.date.isoformat,
    Root.TIME: _clock,
    Root.TIMESTAMP: _timestamp,
    Root.INTERVAL_DAY_TIME: _milliseconds,
}
