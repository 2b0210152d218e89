"""SQL's data types: their names in Flink's words, their Arrow form, and the `DataTypes` that make them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rayflink.common.errors import InvalidTypesError
from rayflink.common.types import Row, RowKind

if TYPE_CHECKING:
    import pyarrow

__all__ = ["DataType", "DataTypes", "Field", "Root", "Row", "RowKind"]

MOST_LENGTH = 2**31 - 1
MOST_DIGITS = 38


class Root(Enum):
    """The kind of values of a type; the families are those of Flink's LogicalTypeRoot."""

    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    CHAR = "CHAR"
    VARCHAR = "VARCHAR"
    BINARY = "BINARY"
    VARBINARY = "VARBINARY"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_LTZ = "TIMESTAMP_LTZ"
    INTERVAL_DAY_TIME = "INTERVAL DAY TO SECOND"
    INTERVAL_YEAR_MONTH = "INTERVAL YEAR TO MONTH"
    ARRAY = "ARRAY"
    MAP = "MAP"
    MULTISET = "MULTISET"
    ROW = "ROW"
    NULL = "NULL"


INTEGERS = (Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT)
"""From the narrowest to the widest."""
_DIGITS = {Root.TINYINT: 3, Root.SMALLINT: 5, Root.INT: 10, Root.BIGINT: 19}
_ARROW = {
    Root.BOOLEAN: "bool_",
    Root.TINYINT: "int8",
    Root.SMALLINT: "int16",
    Root.INT: "int32",
    Root.BIGINT: "int64",
    Root.FLOAT: "float32",
    Root.DOUBLE: "float64",
    Root.CHAR: "string",
    Root.VARCHAR: "string",
    Root.BINARY: "binary",
    Root.VARBINARY: "binary",
    Root.DATE: "date32",
    Root.INTERVAL_YEAR_MONTH: "int32",
    Root.NULL: "null",
}


@dataclass(frozen=True)
class Field:
    """A field of a row type."""

    name: str
    type: DataType
    description: str | None = None

    def __str__(self) -> str:
        described = f"`{self.name.replace('`', '``')}` {self.type}"
        return described if self.description is None else f"{described} '{self.description}'"


@lru_cache(maxsize=1024)
def _as_nullable(kind: DataType, is_nullable: bool) -> DataType:
    return replace(kind, is_nullable=is_nullable)


@dataclass(frozen=True)
class DataType:
    """A type of values, made by `DataTypes`; its text is the type in SQL.

    >>> DataTypes.ROW([DataTypes.FIELD("id", DataTypes.BIGINT().not_null()), ("word", DataTypes.STRING())])
    ROW<`id` BIGINT NOT NULL, `word` STRING>

    Args:
        root: the kind.
        is_nullable: whether a value may be null.
        length: of characters or bytes.
        precision: digits of a decimal number, or of the fraction of a second.
        scale: digits of a decimal number behind the point.
        items: the types within: of an array's or multiset's elements; of a map's keys and values.
        fields: of a row.
    """

    root: Root
    is_nullable: bool = True
    length: int = 0
    precision: int = 0
    scale: int = 0
    items: tuple[DataType, ...] = ()
    fields: tuple[Field, ...] = ()

    def not_null(self) -> DataType:
        """Return the same without nulls."""
        return self.as_nullable(False)

    def nullable(self) -> DataType:
        """Return the same with nulls."""
        return self.as_nullable(True)

    def as_nullable(self, is_nullable: bool) -> DataType:
        """Return the same with or without nulls."""
        return self if is_nullable == self.is_nullable else _as_nullable(self, is_nullable)

    @property
    def is_integer(self) -> bool:
        """TINYINT to BIGINT."""
        return self.root in INTEGERS

    @property
    def is_exact(self) -> bool:
        """Return a whole or a decimal number."""
        return self.is_integer or self.root is Root.DECIMAL

    @property
    def is_approximate(self) -> bool:
        """FLOAT or DOUBLE."""
        return self.root in (Root.FLOAT, Root.DOUBLE)

    @property
    def is_numeric(self) -> bool:
        """Return a number."""
        return self.is_exact or self.is_approximate

    @property
    def is_text(self) -> bool:
        """CHAR, VARCHAR, STRING."""
        return self.root in (Root.CHAR, Root.VARCHAR)

    @property
    def is_bytes(self) -> bool:
        """BINARY, VARBINARY, BYTES."""
        return self.root in (Root.BINARY, Root.VARBINARY)

    @property
    def is_timestamp(self) -> bool:
        """Return whether it is a timestamp, with or without a zone."""
        return self.root in (Root.TIMESTAMP, Root.TIMESTAMP_LTZ)

    @property
    def is_interval(self) -> bool:
        """Return a length of time."""
        return self.root in (Root.INTERVAL_DAY_TIME, Root.INTERVAL_YEAR_MONTH)

    @property
    def digits(self) -> int:
        """Digits of an exact number."""
        return self.precision if self.root is Root.DECIMAL else _DIGITS[self.root]

    def field(self, name: str) -> Field | None:
        """Return a field of a row."""
        return next((field for field in self.fields if field.name == name), None)

    def to_arrow(self) -> pyarrow.DataType:
        """Arrow's type of a column; fractions of a second are kept in milli-, micro- or nanoseconds."""
        import pyarrow

        root = self.root
        if root in _ARROW:
            arrow_type: pyarrow.DataType = getattr(pyarrow, _ARROW[root])()
            return arrow_type
        if root is Root.DECIMAL:
            return pyarrow.decimal128(self.precision, self.scale)
        if root is Root.TIME:
            return pyarrow.time32("ms") if self.precision <= 3 else pyarrow.time64(self.unit)
        if root is Root.TIMESTAMP:
            return pyarrow.timestamp(self.unit)
        if root is Root.TIMESTAMP_LTZ:
            return pyarrow.timestamp(self.unit, "UTC")
        if root is Root.INTERVAL_DAY_TIME:
            return pyarrow.duration("ms")
        if root is Root.ARRAY:
            return pyarrow.list_(self.items[0].to_arrow())
        if root is Root.MAP:
            return pyarrow.map_(*(item.to_arrow() for item in self.items))
        if root is Root.MULTISET:
            return pyarrow.map_(self.items[0].to_arrow(), pyarrow.int32())
        return pyarrow.struct([field.type.to_arrow_field(field.name) for field in self.fields])

    def to_arrow_field(self, name: str) -> pyarrow.Field:
        """Return a column of that name and type."""
        import pyarrow

        return pyarrow.field(name, self.to_arrow(), self.is_nullable)

    @property
    def unit(self) -> str:
        """Arrow's unit for fractions of a second of this precision."""
        return "ms" if self.precision <= 3 else "us" if self.precision <= 6 else "ns"

    def __str__(self) -> str:
        return self._text() + ("" if self.is_nullable else " NOT NULL")

    __repr__ = __str__

    def _text(self) -> str:
        root = self.root
        if root is Root.VARCHAR and self.length == MOST_LENGTH:
            return "STRING"
        if root is Root.VARBINARY and self.length == MOST_LENGTH:
            return "BYTES"
        if root in (Root.CHAR, Root.VARCHAR, Root.BINARY, Root.VARBINARY):
            return f"{root.value}({self.length})"
        if root is Root.DECIMAL:
            return f"DECIMAL({self.precision}, {self.scale})"
        if root in (Root.TIME, Root.TIMESTAMP, Root.TIMESTAMP_LTZ):
            return f"{root.value}({self.precision})"
        if root is Root.INTERVAL_DAY_TIME:
            return f"INTERVAL DAY TO SECOND({self.precision})"
        if self.items:
            return f"{root.value}<{', '.join(map(str, self.items))}>"
        if root is Root.ROW:
            return f"ROW<{', '.join(map(str, self.fields))}>"
        return str(root.value)


def _ranged(value: int, low: int, high: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidTypesError(f"{what} is {value!r}", f"give a whole number within [{low}, {high}]")
    return value


class Resolution:
    """A unit of intervals; made by `DataTypes.DAY()` and the like.

    Args:
        unit: one of `Resolution.IntervalUnit`.
        precision: digits of years or days, or of the fraction of a second.
    """

    class IntervalUnit(Enum):
        """The units, from the shortest to the longest."""

        SECOND = 0
        MINUTE = 1
        HOUR = 2
        DAY = 3
        MONTH = 4
        YEAR = 5

    def __init__(self, unit: IntervalUnit, precision: int = -1) -> None:
        self._unit, self._precision = unit, precision

    @property
    def unit(self) -> IntervalUnit:
        """Return the unit."""
        return self._unit

    @property
    def precision(self) -> int:
        """Digits."""
        return self._precision

    def __str__(self) -> str:
        return self._unit.name if self._precision < 0 else f"{self._unit.name}({self._precision})"


class DataTypes:
    """Makes data types; `nullable` False is `.not_null()`.

    >>> DataTypes.ARRAY(DataTypes.DECIMAL(10, 2).not_null())
    ARRAY<DECIMAL(10, 2) NOT NULL>

    Raises (all of them):
        InvalidTypesError: a length, precision or scale is out of its range.
    """

    @staticmethod
    def NULL() -> DataType:
        """Return the type of NULL alone."""
        return DataType(Root.NULL)

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> DataType:
        """Text of this many characters."""
        return DataType(Root.CHAR, nullable, length=_ranged(length, 1, MOST_LENGTH, "the length of a CHAR"))

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> DataType:
        """Text of at most this many characters."""
        return DataType(Root.VARCHAR, nullable, length=_ranged(length, 1, MOST_LENGTH, "the length of a VARCHAR"))

    @staticmethod
    def STRING(nullable: bool = True) -> DataType:
        """Text."""
        return DataType(Root.VARCHAR, nullable, length=MOST_LENGTH)

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> DataType:
        """True, false or unknown."""
        return DataType(Root.BOOLEAN, nullable)

    @staticmethod
    def BINARY(length: int, nullable: bool = True) -> DataType:
        """Return the type of byte strings of a fixed length."""
        return DataType(Root.BINARY, nullable, length=_ranged(length, 1, MOST_LENGTH, "the length of a BINARY"))

    @staticmethod
    def VARBINARY(length: int, nullable: bool = True) -> DataType:
        """Return the type of byte strings up to a length."""
        return DataType(Root.VARBINARY, nullable, length=_ranged(length, 1, MOST_LENGTH, "the length of a VARBINARY"))

    @staticmethod
    def BYTES(nullable: bool = True) -> DataType:
        """Bytes."""
        return DataType(Root.VARBINARY, nullable, length=MOST_LENGTH)

    @staticmethod
    def DECIMAL(precision: int = 10, scale: int = 0, nullable: bool = True) -> DataType:
        """Return a number of this many digits, some of them behind the point."""
        digits = _ranged(precision, 1, MOST_DIGITS, "the precision of a DECIMAL")
        return DataType(
            Root.DECIMAL, nullable, precision=digits, scale=_ranged(scale, 0, digits, "the scale of a DECIMAL")
        )

    @staticmethod
    def TINYINT(nullable: bool = True) -> DataType:
        """Return a whole number of 1 byte."""
        return DataType(Root.TINYINT, nullable)

    @staticmethod
    def SMALLINT(nullable: bool = True) -> DataType:
        """Return a whole number of 2 bytes."""
        return DataType(Root.SMALLINT, nullable)

    @staticmethod
    def INT(nullable: bool = True) -> DataType:
        """Return a whole number of 4 bytes."""
        return DataType(Root.INT, nullable)

    @staticmethod
    def BIGINT(nullable: bool = True) -> DataType:
        """Return a whole number of 8 bytes."""
        return DataType(Root.BIGINT, nullable)

    @staticmethod
    def FLOAT(nullable: bool = True) -> DataType:
        """Return a floating point number of 4 bytes."""
        return DataType(Root.FLOAT, nullable)

    @staticmethod
    def DOUBLE(nullable: bool = True) -> DataType:
        """Return a floating point number of 8 bytes."""
        return DataType(Root.DOUBLE, nullable)

    @staticmethod
    def DATE(nullable: bool = True) -> DataType:
        """Return a day."""
        return DataType(Root.DATE, nullable)

    @staticmethod
    def TIME(precision: int = 0, nullable: bool = True) -> DataType:
        """Return a time of day, with this many digits of a second's fraction."""
        return DataType(Root.TIME, nullable, precision=_ranged(precision, 0, 9, "the precision of a TIME"))

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> DataType:
        """Return a day and time without a zone."""
        return DataType(Root.TIMESTAMP, nullable, precision=_ranged(precision, 0, 9, "the precision of a TIMESTAMP"))

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> DataType:
        """Return an instant, shown in the session's time zone."""
        digits = _ranged(precision, 0, 9, "the precision of a TIMESTAMP_LTZ")
        return DataType(Root.TIMESTAMP_LTZ, nullable, precision=digits)

    TIMESTAMP_WITH_LOCAL_TIME_ZONE = TIMESTAMP_LTZ

    @staticmethod
    def INTERVAL_DAY_TIME(precision: int = 3, nullable: bool = True) -> DataType:
        """Return a length of time in milliseconds."""
        digits = _ranged(precision, 0, 9, "the precision of an INTERVAL DAY TO SECOND")
        return DataType(Root.INTERVAL_DAY_TIME, nullable, precision=digits)

    @staticmethod
    def INTERVAL_YEAR_MONTH(nullable: bool = True) -> DataType:
        """Return a number of months."""
        return DataType(Root.INTERVAL_YEAR_MONTH, nullable)

    @staticmethod
    def SECOND(precision: int = 3) -> Resolution:
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
    def DAY(precision: int = 2) -> Resolution:
        """Days, of this many digits."""
        return Resolution(Resolution.IntervalUnit.DAY, precision)

    @staticmethod
    def MONTH() -> Resolution:
        """Months."""
        return Resolution(Resolution.IntervalUnit.MONTH)

    @staticmethod
    def YEAR(precision: int = 2) -> Resolution:
        """Years, of this many digits."""
        return Resolution(Resolution.IntervalUnit.YEAR, precision)

    @staticmethod
    def INTERVAL(upper_resolution: Resolution, lower_resolution: Resolution | None = None) -> DataType:
        """Return a length of time from one unit to another; all of days and shorter units are kept as milliseconds.

        >>> DataTypes.INTERVAL(DataTypes.DAY(), DataTypes.SECOND(3)), DataTypes.INTERVAL(DataTypes.MONTH())
        (INTERVAL DAY TO SECOND(3), INTERVAL YEAR TO MONTH)
        """
        upper, lower = upper_resolution, lower_resolution or upper_resolution
        if not isinstance(upper, Resolution) or not isinstance(lower, Resolution):
            raise InvalidTypesError(f"INTERVAL of {upper!r} and {lower!r}", "give units, as DataTypes.DAY()")
        kinds = [bound.unit.value >= Resolution.IntervalUnit.MONTH.value for bound in (upper, lower)]
        if kinds[0] is not kinds[1] or upper.unit.value < lower.unit.value:
            problem = f"INTERVAL from {upper} to {lower}"
            raise InvalidTypesError(problem, "give units from DAY down to SECOND, or from YEAR down to MONTH")
        if kinds[0]:
            return DataTypes.INTERVAL_YEAR_MONTH()
        seconds = lower.precision if lower.unit is Resolution.IntervalUnit.SECOND else 3
        return DataTypes.INTERVAL_DAY_TIME(seconds)

    @staticmethod
    def ARRAY(element_type: DataType, nullable: bool = True) -> DataType:
        """Return the type of arrays of one type."""
        return DataType(Root.ARRAY, nullable, items=(_type(element_type),))

    @staticmethod
    def MAP(key_type: DataType, value_type: DataType, nullable: bool = True) -> DataType:
        """Return the type of maps."""
        return DataType(Root.MAP, nullable, items=(_type(key_type), _type(value_type)))

    @staticmethod
    def MULTISET(element_type: DataType, nullable: bool = True) -> DataType:
        """Return the type of multisets: values with the number of times they occur."""
        return DataType(Root.MULTISET, nullable, items=(_type(element_type),))

    @staticmethod
    def ROW(row_fields: Any = (), nullable: bool = True) -> DataType:
        """Fields of their own types.

        Args:
            row_fields: of `FIELD(...)`, or (name, type) pairs.
        """
        fields = tuple(item if isinstance(item, Field) else DataTypes.FIELD(*item) for item in row_fields)
        names = [field.name for field in fields]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise InvalidTypesError(f"a row has two fields named {twice!r}", "give each field a name of its own")
        return DataType(Root.ROW, nullable, fields=fields)

    @staticmethod
    def FIELD(name: str, data_type: DataType, description: str | None = None) -> Field:
        """Return a field of a row."""
        if not isinstance(name, str) or not name:
            raise InvalidTypesError(f"the name of a field is {name!r}", "give a string")
        return Field(name, _type(data_type), description)


def _type(value: Any) -> DataType:
    if not isinstance(value, DataType):
        raise InvalidTypesError(f"{value!r} is not a data type", "make one with DataTypes, such as DataTypes.INT()")
    return value
