"""Values of tables as strings: as Flink's client prints them, and as its `print` connector does."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from rayflink.common.errors import shorten
from rayflink.common.records.print_form import floating_text
from rayflink.common.records.time_strings import instant_text
from rayflink.common.time import Instant
from rayflink.common.types import Row, RowKind

from ..types import DataType, Root

SHORT_KINDS = {RowKind.INSERT: "+I", RowKind.UPDATE_BEFORE: "-U", RowKind.UPDATE_AFTER: "+U", RowKind.DELETE: "-D"}
Text = Callable[[Any], str]


@dataclass(frozen=True)
class ValueFormat:
    """Strings of values: times by ISO 8601, with as many digits of a second as their types have; instants in UTC."""

    null: str = "null"

    def of(self, kind: DataType) -> Text:
        """Return the function that formats values of a type."""
        shown = self._of(kind)
        return lambda value: self.null if value is None else shown(value)

    def _of(self, kind: DataType) -> Text:
        if kind.root is Root.ARRAY:
            return _array(self.of(kind.items[0]))
        if kind.root in (Root.MAP, Root.MULTISET):
            return _map(self.of(kind.items[0]), self.of(kind.items[1]) if kind.root is Root.MAP else str)
        if kind.root is Root.ROW:
            return self._row([self.of(field.type) for field in kind.fields], [field.name for field in kind.fields])
        if kind.root in (Root.TIMESTAMP, Root.TIMESTAMP_LTZ, Root.TIME):
            return self._timed(kind)
        if kind.is_interval:
            return self._interval(kind)
        return {Root.BOOLEAN: self._truth, Root.BINARY: self._bytes, Root.VARBINARY: self._bytes}.get(
            kind.root, _TEXTS.get(kind.root, str)
        )

    def _truth(self, value: Any) -> str:
        return "true" if value else "false"

    def _bytes(self, value: Any) -> str:
        return str(list(value))

    def _row(self, strings: Sequence[Text], names: Sequence[str]) -> Text:
        return lambda value: f"+I[{', '.join(_fields(value, strings, names))}]"

    def _interval(self, kind: DataType) -> Text:
        return _period if kind.root is Root.INTERVAL_YEAR_MONTH else _duration

    def _timed(self, kind: DataType) -> Text:
        ending = "Z" if kind.root is Root.TIMESTAMP_LTZ else ""
        if kind.root is Root.TIME:
            return lambda value: _clock(value, kind.precision)
        return lambda value: f"{value.date().isoformat()}T{_clock(value.time(), kind.precision)}{ending}"


@dataclass(frozen=True)
class SqlFormat(ValueFormat):
    """The strings of a CAST to STRING, and bytes in hexadecimal digits: Flink's client prints these.

    Args:
        zone: in which instants are shown.
    """

    null: str = "NULL"
    zone: str = "UTC"

    def _truth(self, value: Any) -> str:
        return "TRUE" if value else "FALSE"

    def _bytes(self, value: Any) -> str:
        return f"x'{value.hex()}'"

    def _row(self, strings: Sequence[Text], names: Sequence[str]) -> Text:
        return lambda value: f"({', '.join(_fields(value, strings, names))})"

    def _interval(self, kind: DataType) -> Text:
        return _months if kind.root is Root.INTERVAL_YEAR_MONTH else _days

    def _timed(self, kind: DataType) -> Text:
        if kind.root is Root.TIME:
            return lambda value: _clock(value, kind.precision)
        zone = ZoneInfo(self.zone) if kind.root is Root.TIMESTAMP_LTZ else None

        def text(value: Any) -> str:
            value = value.to_datetime() if isinstance(value, Instant) else value
            shown = value if zone is None or value.tzinfo is None else value.astimezone(zone)
            return f"{shown.date().isoformat()} {_clock(shown.time(), kind.precision)}"

        return text


@dataclass(frozen=True)
class JavaFormat(ValueFormat):
    """The strings of Java's LocalDateTime, LocalTime and Instant: zeros at their ends are left out."""

    def _timed(self, kind: DataType) -> Text:
        if kind.root is Root.TIME:
            return lambda value: _short_clock(value, True)
        if kind.root is Root.TIMESTAMP_LTZ:
            return _instant
        return lambda value: f"{value.date().isoformat()}T{_short_clock(value.time(), True)}"


class RowFormat:
    """The text of a row: its kind, and its values by their types.

    >>> from rayflink.table.types import DataTypes
    >>> RowFormat([DataTypes.INT(), DataTypes.STRING()])(Row(1, None))
    '+I[1, null]'

    Args:
        types: of the fields.
        strings: of the values.
    """

    def __init__(self, types: Sequence[DataType], strings: ValueFormat | None = None) -> None:
        self._types, self._values = tuple(types), strings or ValueFormat()
        self._strings = [self._values.of(kind) for kind in self._types]

    def __call__(self, row: Row) -> str:
        values = ", ".join(text(value) for text, value in zip(self._strings, row._values, strict=True))
        return f"{SHORT_KINDS[row.get_row_kind()]}[{values}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return RowFormat, (self._types, self._values)


_TEXTS: dict[Root, Text] = {
    Root.DECIMAL: lambda value: format(value, "f"),
    Root.DOUBLE: lambda value: floating_text(np.float64(value)),
    Root.FLOAT: lambda value: floating_text(np.float32(value)),
    Root.RAW: lambda value: shorten(value, 80),
}


def _instant(value: Any) -> str:
    if isinstance(value, Instant):
        return instant_text(value)
    return f"{value.date().isoformat()}T{_short_clock(value.time(), False)}Z"


def _clock(value: datetime.time, digits: int) -> str:
    fraction = f".{value.microsecond:06d}"[: 1 + digits] if digits else ""
    return value.strftime("%H:%M:%S") + fraction


def _short_clock(value: datetime.time, without_seconds: bool) -> str:
    """Return the time with 0, 3 or 6 digits of a second, as many as are needed.

    Args:
        without_seconds: no seconds where they are zero.
    """
    if value.microsecond:
        return _clock(value, 3 if value.microsecond % 1000 == 0 else 6)
    return value.strftime("%H:%M" if without_seconds and not value.second else "%H:%M:%S")


def _days(value: datetime.timedelta) -> str:
    """Return a length of time as CAST does: `+1 02:03:04.500`."""
    seconds, millis = divmod(abs(value) // datetime.timedelta(milliseconds=1), 1000)
    sign = "-" if value < datetime.timedelta(0) else "+"
    days, seconds = divmod(seconds, 86_400)
    return f"{sign}{days} {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{millis:03}"


def _months(value: int) -> str:
    """Return a number of months as CAST does: `+1-02`."""
    return f"{'-' if value < 0 else '+'}{abs(value) // 12}-{abs(value) % 12:02}"


def _duration(value: datetime.timedelta) -> str:
    """Return a length of time as Java's Duration prints itself: `PT26H3M4.5S`."""
    millis = value // datetime.timedelta(milliseconds=1)
    sign, millis = ("-" if millis < 0 else ""), abs(millis)
    hours, minutes, seconds = millis // 3_600_000, millis // 60_000 % 60, Decimal(millis % 60_000) / 1000
    parts = [f"{sign}{number.normalize():f}{unit}" if number else ""
             for number, unit in ((Decimal(hours), "H"), (Decimal(minutes), "M"), (seconds, "S"))]  # fmt: skip
    return f"PT{''.join(parts) or '0S'}"


def _period(value: int) -> str:
    """Return a number of months as Java's Period prints itself: `P1Y2M`."""
    years, months = abs(value) // 12, abs(value) % 12
    sign = "-" if value < 0 else ""
    return f"P{f'{sign}{years}Y' if years else ''}{f'{sign}{months}M' if months else ''}" if value else "P0D"


def _array(item: Text) -> Text:
    return lambda value: "[" + ", ".join(map(item, value)) + "]"


def _map(key: Text, value_text: Text) -> Text:
    def text(value: Any) -> str:
        pairs = value.items() if isinstance(value, dict) else value
        return "{" + ", ".join(f"{key(key_)}={value_text(other)}" for key_, other in pairs) + "}"

    return text


def _fields(value: Any, strings: Sequence[Text], names: Sequence[str]) -> list[str]:
    values = [value[name] for name in names] if isinstance(value, dict) else list(value)
    return [to_string(item) for to_string, item in zip(strings, values, strict=True)]
