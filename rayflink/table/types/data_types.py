"""`DataTypes`, by which programs make types."""

from __future__ import annotations

from collections.abc import Iterable

from rayflink.common.errors import InvalidTypesError

from .atomic_types import (
    BigIntType,
    BinaryType,
    BooleanType,
    CharType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntType,
    LocalZonedTimestampType,
    NullType,
    SmallIntType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
)
from .data_type import MOST_LENGTH, DataType, RowField, number_within
from .interval_types import DayTimeIntervalType, Resolution, YearMonthIntervalType, interval_between
from .nested_types import ArrayType, ListViewType, MapType, MapViewType, MultisetType, RowType
from .program_types import RawType


class DataTypes:
    """Makes data types; `nullable` False is `.not_null()`.

    >>> kind = DataTypes.ARRAY(DataTypes.DECIMAL(10, 2).not_null())
    >>> kind, str(kind)
    (ArrayType(DecimalType(10, 2, false), true), 'ARRAY<DECIMAL(10, 2) NOT NULL>')

    Raises (all of them):
        InvalidTypesError: a length, precision or scale is out of its range.
    """

    @staticmethod
    def NULL() -> NullType:
        """Return the type of NULL alone."""
        return NullType()

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> CharType:
        """Text of this many characters."""
        return CharType(number_within(length, 1, MOST_LENGTH, "the length of a CHAR"), nullable)

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> VarCharType:
        """Text of at most this many characters."""
        return VarCharType(number_within(length, 1, MOST_LENGTH, "the length of a VARCHAR"), nullable)

    @staticmethod
    def STRING(nullable: bool = True) -> VarCharType:
        """Text."""
        return VarCharType(MOST_LENGTH, nullable)

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> BooleanType:
        """True, false or unknown."""
        return BooleanType(nullable)

    @staticmethod
    def BINARY(length: int, nullable: bool = True) -> BinaryType:
        """Return the type of byte strings of a fixed length."""
        return BinaryType(number_within(length, 1, MOST_LENGTH, "the length of a BINARY"), nullable)

    @staticmethod
    def VARBINARY(length: int, nullable: bool = True) -> VarBinaryType:
        """Return the type of byte strings up to a length."""
        return VarBinaryType(number_within(length, 1, MOST_LENGTH, "the length of a VARBINARY"), nullable)

    @staticmethod
    def BYTES(nullable: bool = True) -> VarBinaryType:
        """Bytes."""
        return VarBinaryType(MOST_LENGTH, nullable)

    @staticmethod
    def DECIMAL(precision: int = 10, scale: int = 0, nullable: bool = True) -> DecimalType:
        """Return a number of this many digits, some of them behind the point."""
        return DecimalType(precision, scale, nullable)

    @staticmethod
    def TINYINT(nullable: bool = True) -> TinyIntType:
        """Return a whole number of 1 byte."""
        return TinyIntType(nullable)

    @staticmethod
    def SMALLINT(nullable: bool = True) -> SmallIntType:
        """Return a whole number of 2 bytes."""
        return SmallIntType(nullable)

    @staticmethod
    def INT(nullable: bool = True) -> IntType:
        """Return a whole number of 4 bytes."""
        return IntType(nullable)

    @staticmethod
    def BIGINT(nullable: bool = True) -> BigIntType:
        """Return a whole number of 8 bytes."""
        return BigIntType(nullable)

    @staticmethod
    def FLOAT(nullable: bool = True) -> FloatType:
        """Return a floating point number of 4 bytes."""
        return FloatType(nullable)

    @staticmethod
    def DOUBLE(nullable: bool = True) -> DoubleType:
        """Return a floating point number of 8 bytes."""
        return DoubleType(nullable)

    @staticmethod
    def DATE(nullable: bool = True) -> DateType:
        """Return a day."""
        return DateType(nullable)

    @staticmethod
    def TIME(precision: int = 0, nullable: bool = True) -> TimeType:
        """Return a time of day, with this many digits of a second's fraction."""
        return TimeType(precision, nullable)

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> TimestampType:
        """Return a day and time without a zone."""
        return TimestampType(precision, nullable)

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> LocalZonedTimestampType:
        """Return an instant, shown in the session's time zone."""
        return LocalZonedTimestampType(precision, nullable)

    TIMESTAMP_WITH_LOCAL_TIME_ZONE = TIMESTAMP_LTZ

    @staticmethod
    def INTERVAL_DAY_TIME(precision: int = 3, nullable: bool = True) -> DayTimeIntervalType:
        """Return a length of time in milliseconds."""
        days = DayTimeIntervalType.DEFAULT_DAY_PRECISION
        return DayTimeIntervalType(DayTimeIntervalType.DayTimeResolution.DAY_TO_SECOND, days, precision, nullable)

    @staticmethod
    def INTERVAL_YEAR_MONTH(nullable: bool = True) -> YearMonthIntervalType:
        """Return a number of months."""
        months = YearMonthIntervalType.YearMonthResolution.YEAR_TO_MONTH
        return YearMonthIntervalType(months, nullable=nullable)

    @staticmethod
    def SECOND(precision: int = DayTimeIntervalType.DEFAULT_FRACTIONAL_PRECISION) -> Resolution:
        """Seconds, with this many digits of their fraction."""
        return Resolution(Resolution.IntervalUnit.SECOND, precision)

    @staticmethod
    def MINUTE() -> Resolution:
        """Minutes."""
        return Resolution(Resolution.IntervalUnit.MINUTE)

    @staticmethod
    def HOUR() -> Resolution:
        """Hours."""
        return Resolution(Resolution.IntervalUnit.HOUR)

    @staticmethod
    def DAY(precision: int = DayTimeIntervalType.DEFAULT_DAY_PRECISION) -> Resolution:
        """Days, of this many digits."""
        return Resolution(Resolution.IntervalUnit.DAY, precision)

    @staticmethod
    def MONTH() -> Resolution:
        """Months."""
        return Resolution(Resolution.IntervalUnit.MONTH)

    @staticmethod
    def YEAR(precision: int = YearMonthIntervalType.DEFAULT_PRECISION) -> Resolution:
        """Years, of this many digits."""
        return Resolution(Resolution.IntervalUnit.YEAR, precision)

    @staticmethod
    def INTERVAL(
        upper_resolution: Resolution, lower_resolution: Resolution | None = None
    ) -> DayTimeIntervalType | YearMonthIntervalType:
        """Return a length of time from one unit to another; all of days and shorter units are kept as milliseconds.

        >>> print(DataTypes.INTERVAL(DataTypes.DAY(), DataTypes.SECOND(3)), DataTypes.INTERVAL(DataTypes.MONTH()))
        INTERVAL DAY TO SECOND(3) INTERVAL YEAR TO MONTH
        """
        return interval_between(upper_resolution, lower_resolution)

    @staticmethod
    def ARRAY(element_type: DataType, nullable: bool = True) -> ArrayType:
        """Return the type of arrays of one type."""
        return ArrayType(element_type, nullable)

    @staticmethod
    def MAP(key_type: DataType, value_type: DataType, nullable: bool = True) -> MapType:
        """Return the type of maps."""
        return MapType(key_type, value_type, nullable)

    @staticmethod
    def LIST_VIEW(element_type: DataType) -> ListViewType:
        """Return the type of a list in the accumulator of an aggregate function."""
        return ListViewType(element_type)

    @staticmethod
    def MAP_VIEW(key_type: DataType, value_type: DataType) -> MapViewType:
        """Return the type of a map in the accumulator of an aggregate function."""
        return MapViewType(key_type, value_type)

    @staticmethod
    def MULTISET(element_type: DataType, nullable: bool = True) -> MultisetType:
        """Return the type of multisets: values with the number of times they occur."""
        return MultisetType(element_type, nullable)

    @staticmethod
    def RAW(nullable: bool = True) -> RawType:
        """Return the type of any objects of the program, which are pickled in columns.

        >>> print(DataTypes.ARRAY(DataTypes.RAW()))
        ARRAY<RAW>
        """
        return RawType(nullable)

    @staticmethod
    def ROW(row_fields: Iterable[RowField | tuple[str, DataType]] = (), nullable: bool = True) -> RowType:
        """Fields of their own types.

        Args:
            row_fields: of `FIELD(...)`, or (name, type) pairs.
        """
        fields = tuple(item if isinstance(item, RowField) else DataTypes.FIELD(*item) for item in row_fields)
        names = [field.name for field in fields]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise InvalidTypesError(f"a row has two fields named {twice!r}", "give each field a name of its own")
        return RowType(fields, nullable)

    @staticmethod
    def FIELD(name: str, data_type: DataType, description: str | None = None) -> RowField:
        """Return a field of a row."""
        if not isinstance(name, str) or not name:
            raise InvalidTypesError(f"the name of a field is {name!r}", "give a string")
        return RowField(name, data_type, description)


__all__ = ["DataTypes"]
