"""Types of single values: truth, numbers, strings, bytes, dates and times."""

from __future__ import annotations

import calendar
import datetime
import time
from typing import TYPE_CHECKING

from .data_type import MOST_DIGITS, MOST_LENGTH, DataType, Root, number_within

if TYPE_CHECKING:
    import pyarrow

_LOCAL_OFFSET = calendar.timegm(time.localtime(0)) * 1_000_000
"""Microseconds between the machine's clock and UTC in 1970."""


class AtomicType(DataType):
    """A type that is no array, map or row."""


class NullType(AtomicType):
    """The type of NULL alone."""

    root = Root.NULL
    arrow_factory = "null"

    def __init__(self) -> None:
        super().__init__(True)


class BooleanType(AtomicType):
    """True, false or unknown: BOOLEAN."""

    root = Root.BOOLEAN
    arrow_factory = "bool_"


class NumericType(AtomicType):
    """A number."""


class IntegralType(NumericType):
    """A whole number."""


class TinyIntType(IntegralType):
    """A whole number of 1 byte: TINYINT."""

    root = Root.TINYINT
    arrow_factory = "int8"


class SmallIntType(IntegralType):
    """A whole number of 2 bytes: SMALLINT."""

    root = Root.SMALLINT
    arrow_factory = "int16"


class IntType(IntegralType):
    """A whole number of 4 bytes: INT."""

    root = Root.INT
    arrow_factory = "int32"


class BigIntType(IntegralType):
    """A whole number of 8 bytes: BIGINT."""

    root = Root.BIGINT
    arrow_factory = "int64"


class FractionalType(NumericType):
    """A number with a fraction."""


class FloatType(FractionalType):
    """A floating point number of 4 bytes: FLOAT."""

    root = Root.FLOAT
    arrow_factory = "float32"


class DoubleType(FractionalType):
    """A floating point number of 8 bytes: DOUBLE."""

    root = Root.DOUBLE
    arrow_factory = "float64"


class DecimalType(FractionalType):
    """A number of this many digits, some of them behind the point: DECIMAL(precision, scale).

    Args:
        precision: digits in all, in [1, 38].
        scale: digits behind the point, in [0, precision].
        nullable: whether a value may be null.

    Raises:
        InvalidTypesError: a number is out of its range.
    """

    root = Root.DECIMAL
    has_precision_info = True

    def __init__(self, precision: int = 10, scale: int = 0, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.precision = number_within(precision, 1, MOST_DIGITS, "the precision of a DECIMAL")
        self.scale = number_within(scale, 0, self.precision, "the scale of a DECIMAL")

    def to_arrow(self) -> pyarrow.DataType:
        import pyarrow

        return pyarrow.decimal128(self.precision, self.scale)

    def parameters(self) -> tuple[object, ...]:
        return (self.precision, self.scale)

    def to_sql(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


class _Sized(AtomicType):
    """A type with a length."""

    longest_name = ""
    """The name in SQL of the type without a limit."""

    def __init__(self, length: int = 1, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.length = length

    def parameters(self) -> tuple[object, ...]:
        return (self.length,)

    def to_sql(self) -> str:
        is_longest = self.longest_name and self.length == MOST_LENGTH
        return self.longest_name if is_longest else f"{self.root.value}({self.length})"


class CharType(_Sized):
    """Text of this many characters: CHAR(length)."""

    root = Root.CHAR
    arrow_factory = "string"


class VarCharType(_Sized):
    """Text of at most this many characters: VARCHAR(length), and STRING without a limit."""

    root = Root.VARCHAR
    arrow_factory = "string"
    longest_name = "STRING"


class BinaryType(_Sized):
    """This many bytes: BINARY(length)."""

    root = Root.BINARY
    arrow_factory = "binary"


class VarBinaryType(_Sized):
    """At most this many bytes: VARBINARY(length), and BYTES without a limit."""

    root = Root.VARBINARY
    arrow_factory = "binary"
    longest_name = "BYTES"


class DateType(AtomicType):
    """A day: DATE."""

    root = Root.DATE
    arrow_factory = "date32"
    EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()

    def need_conversion(self) -> bool:
        return True

    def to_sql_type(self, d: datetime.date | None) -> int | None:
        """Return the days since 1970."""
        return None if d is None else d.toordinal() - self.EPOCH_ORDINAL

    def from_sql_type(self, v: int | None) -> datetime.date | None:
        """Return the date of a number of days since 1970."""
        return None if v is None else datetime.date.fromordinal(v + self.EPOCH_ORDINAL)


class _Timed(AtomicType):
    """A type with fractions of seconds."""

    def need_conversion(self) -> bool:
        return True

    def _set_precision(self, precision: int) -> None:
        self.precision = number_within(precision, 0, 9, f"the precision of a {self.root.value}")

    def parameters(self) -> tuple[object, ...]:
        return (self.precision,)

    def to_sql(self) -> str:
        return f"{self.root.value}({self.precision})"


class TimeType(_Timed):
    """A time of day: TIME(precision).

    Args:
        precision: digits of a second's fraction, in [0, 9].
        nullable: whether a value may be null.

    Raises:
        InvalidTypesError: the precision is out of its range.
    """

    root = Root.TIME
    EPOCH_ORDINAL = _LOCAL_OFFSET

    def __init__(self, precision: int = 0, nullable: bool = True) -> None:
        super().__init__(nullable)
        self._set_precision(precision)

    def to_arrow(self) -> pyarrow.DataType:
        import pyarrow

        return pyarrow.time32("ms") if self.precision <= 3 else pyarrow.time64(self.unit)

    def to_sql_type(self, t: datetime.time | None) -> int | None:
        """Return the microseconds since midnight in UTC; a time without a zone is of the machine's."""
        if t is None:
            return None
        since = datetime.timedelta(hours=t.hour, minutes=t.minute, seconds=t.second, microseconds=t.microsecond)
        offset = t.utcoffset() or datetime.timedelta()
        return _micros(since) - (self.EPOCH_ORDINAL if t.tzinfo is None else _micros(offset))

    def from_sql_type(self, t: int | None) -> datetime.time | None:
        """Return the time, in the machine's zone, of the microseconds since midnight in UTC."""
        moment = datetime.timedelta(microseconds=0 if t is None else t + self.EPOCH_ORDINAL)
        return None if t is None else (datetime.datetime.min + datetime.timedelta(days=1) + moment).time()


class TimestampType(_Timed):
    """A day and time without a zone: TIMESTAMP(precision).

    Args:
        precision: digits of a second's fraction, in [0, 9].
        nullable: whether a value may be null.

    Raises:
        InvalidTypesError: the precision is out of its range.
    """

    root = Root.TIMESTAMP

    def __init__(self, precision: int = 6, nullable: bool = True) -> None:
        super().__init__(nullable)
        self._set_precision(precision)

    def to_arrow(self) -> pyarrow.DataType:
        import pyarrow

        return pyarrow.timestamp(self.unit)

    def to_sql_type(self, dt: datetime.datetime | None) -> int | None:
        """Return the microseconds since 1970 in UTC; a timestamp without a zone is of the machine's."""
        return None if dt is None else _seconds(dt) * 1_000_000 + dt.microsecond

    def from_sql_type(self, ts: int | None) -> datetime.datetime | None:
        """Return the timestamp, in the machine's zone, of microseconds since 1970 in UTC."""
        return None if ts is None else _local(ts)


class LocalZonedTimestampType(_Timed):
    """An instant, shown in the session's time zone: TIMESTAMP_LTZ(precision).

    Args:
        precision: digits of a second's fraction, in [0, 9].
        nullable: whether a value may be null.

    Raises:
        InvalidTypesError: the precision is out of its range.
    """

    root = Root.TIMESTAMP_LTZ
    EPOCH_ORDINAL = _LOCAL_OFFSET

    def __init__(self, precision: int = 6, nullable: bool = True) -> None:
        super().__init__(nullable)
        self._set_precision(precision)

    def to_arrow(self) -> pyarrow.DataType:
        import pyarrow

        return pyarrow.timestamp(self.unit, "UTC")

    def to_sql_type(self, dt: datetime.datetime | None) -> int | None:
        """Return the microseconds from 1970, midnight on the machine's clock, to the same clock's time."""
        return None if dt is None else _seconds(dt) * 1_000_000 + dt.microsecond + self.EPOCH_ORDINAL

    def from_sql_type(self, ts: int | None) -> datetime.datetime | None:
        """Return the timestamp of microseconds that `to_sql_type` returns."""
        return None if ts is None else _local(ts - self.EPOCH_ORDINAL)


class ZonedTimestampType(_Timed):
    """A day and time with its own zone; as in Flink, no column of a table has it.

    Args:
        precision: digits of a second's fraction, in [0, 9].
        nullable: whether a value may be null.

    Raises:
        InvalidTypesError: the precision is out of its range.
    """

    root = Root.TIMESTAMP_TZ
    remedy = "take DataTypes.TIMESTAMP_LTZ(), which has the same instants"

    def __init__(self, precision: int = 6, nullable: bool = True) -> None:
        super().__init__(nullable)
        self._set_precision(precision)

    def to_sql(self) -> str:
        return f"TIMESTAMP({self.precision}) WITH TIME ZONE"

    def to_sql_type(self, dt: datetime.datetime | None) -> tuple[int, int] | None:
        """Return the microseconds of the clock since 1970, and its offset in seconds from UTC."""
        if dt is None:
            return None
        offset = int((dt.astimezone() if dt.tzinfo is None else dt).utcoffset().total_seconds())  # type: ignore[union-attr]
        return (_seconds(dt) + offset) * 1_000_000 + dt.microsecond, offset

    def from_sql_type(self, zoned_ts: tuple[int, int] | None) -> datetime.datetime | None:
        """Return the timestamp of what `to_sql_type` returns."""
        if zoned_ts is None:
            return None
        micros, offset = zoned_ts
        zone = datetime.timezone(datetime.timedelta(seconds=offset))
        return datetime.datetime(1970, 1, 1, tzinfo=zone) + datetime.timedelta(microseconds=micros)


def _seconds(dt: datetime.datetime) -> int:
    """Return the whole seconds since 1970 in UTC; a timestamp without a zone is of the machine's."""
    return calendar.timegm(dt.utctimetuple()) if dt.tzinfo else int(time.mktime(dt.timetuple()))


def _local(micros: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(micros // 1_000_000) + datetime.timedelta(microseconds=micros % 1_000_000)


def _micros(length: datetime.timedelta) -> int:
    return length // datetime.timedelta(microseconds=1)


__all__ = [
    "AtomicType", "BigIntType", "BinaryType", "BooleanType", "CharType", "DateType", "DecimalType", "DoubleType",
    "FloatType", "FractionalType", "IntType", "IntegralType", "LocalZonedTimestampType", "NullType", "NumericType",
    "SmallIntType", "TimeType", "TimestampType", "TinyIntType", "VarBinaryType", "VarCharType", "ZonedTimestampType",
]  # fmt: skip
