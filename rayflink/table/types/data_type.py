"""The base of all types of values, the kinds there are, and the fields of rows."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, ClassVar, TypeVar

from rayflink.common.errors import InvalidTypesError
from rayflink.user_types import UserValue

if TYPE_CHECKING:
    import pyarrow

MOST_LENGTH = 2**31 - 1
MOST_DIGITS = 38
SomeType = TypeVar("SomeType", bound="DataType")


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
    TIMESTAMP_TZ = "TIMESTAMP WITH TIME ZONE"
    INTERVAL_DAY_TIME = "INTERVAL DAY TO SECOND"
    INTERVAL_YEAR_MONTH = "INTERVAL YEAR TO MONTH"
    ARRAY = "ARRAY"
    MAP = "MAP"
    MULTISET = "MULTISET"
    ROW = "ROW"
    RAW = "RAW"
    USER_DEFINED = "USER DEFINED"
    LIST_VIEW = "LIST_VIEW"
    MAP_VIEW = "MAP_VIEW"
    NULL = "NULL"


INTEGERS = (Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT)
"""From the narrowest to the widest."""
_DIGITS = {Root.TINYINT: 3, Root.SMALLINT: 5, Root.INT: 10, Root.BIGINT: 19}


class DataType:
    """A type of values; each kind of values has a class of its own, and `DataTypes` makes them.

    `str()` is the type in SQL, `repr()` PyFlink's form. Equal types have equal classes, parameters and nullability.

    >>> from rayflink.table.types import DataTypes, DecimalType
    >>> price = DataTypes.DECIMAL(10, 2).not_null()
    >>> price, str(price), price.scale, isinstance(price, DecimalType)
    (DecimalType(10, 2, false), 'DECIMAL(10, 2) NOT NULL', 2, True)

    Args:
        nullable: whether a value may be null.

    Attributes:
        root: the kind.
        is_nullable: whether a value may be null.
        length: of characters or bytes.
        precision: digits of a decimal number, or of the fraction of a second.
        scale: digits of a decimal number behind the point.
        items: the types within: of an array's or multiset's elements; of a map's keys and values.
        fields: of a row.
    """

    root: ClassVar[Root]
    arrow_factory: ClassVar[str] = ""
    """Name of the function of pyarrow that makes the type of a column; "": there is no function without arguments."""
    is_nullable: bool
    length: int = 0
    precision: int = 0
    scale: int = 0
    items: tuple[DataType, ...] = ()
    fields: tuple[RowField, ...] = ()

    def __init__(self, nullable: bool = True) -> None:
        self.is_nullable = nullable

    @classmethod
    def type_name(cls) -> str:
        """Return the name of the class in capital letters, without its ending: "DECIMAL" of `DecimalType`."""
        return cls.__name__[: -len("Type")].upper()

    def not_null(self: SomeType) -> SomeType:
        """Return the same without nulls."""
        return self.as_nullable(False)

    def nullable(self: SomeType) -> SomeType:
        """Return the same with nulls."""
        return self.as_nullable(True)

    def as_nullable(self: SomeType, is_nullable: bool) -> SomeType:
        """Return the same with or without nulls."""
        if is_nullable is self.is_nullable:
            return self
        twin = object.__new__(self.__class__)
        twin.__dict__.update(self.__dict__, is_nullable=is_nullable)
        return twin

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

    def field(self, name: str) -> RowField | None:
        """Return a field of a row."""
        return next((field for field in self.fields if field.name == name), None)

    def with_items(self, items: tuple[DataType, ...]) -> DataType:
        """Return the same with other types within; of an ARRAY, MAP or MULTISET."""
        assert len(items) == len(self.items), f"{self} has not {len(items)} types within"
        twin = object.__new__(self.__class__)
        twin.__dict__.update(self.__dict__, items=items)
        return twin

    def to_arrow(self) -> pyarrow.DataType:
        """Return Arrow's type of a column; fractions of a second are kept in milli-, micro- or nanoseconds.

        Raises:
            InvalidTypesError: no column is of this type.
        """
        import pyarrow

        if not self.arrow_factory:
            raise InvalidTypesError(f"no column of a table can be of type {self}", self.remedy)
        arrow_type: pyarrow.DataType = getattr(pyarrow, self.arrow_factory)()
        return arrow_type

    remedy: ClassVar[str] = "take another one of DataTypes"
    """What to do where a column is declared of a type that no column has."""

    def to_arrow_field(self, name: str) -> pyarrow.Field:
        """Return a column of that name and type."""
        import pyarrow

        return pyarrow.field(name, self.to_arrow(), self.is_nullable)

    @property
    def unit(self) -> str:
        """Arrow's unit for fractions of a second of this precision."""
        return "ms" if self.precision <= 3 else "us" if self.precision <= 6 else "ns"

    def need_conversion(self) -> bool:
        """Return whether `to_sql_type` changes values."""
        return False

    def to_sql_type(self, obj: UserValue) -> UserValue:
        """Return a Python value in PyFlink's plain form: numbers for times, tuples for rows. Tables do not use it."""
        return obj

    def from_sql_type(self, obj: UserValue) -> UserValue:
        """Return the Python value of PyFlink's plain form."""
        return obj

    def identity(self) -> tuple[object, ...]:
        """Return all by which it differs from other types of its class."""
        return (self.is_nullable, self.length, self.precision, self.scale, self.items, self.fields)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, DataType):
            return NotImplemented
        return self.__class__ is other.__class__ and self.identity() == other.identity()

    def __hash__(self) -> int:
        return hash((self.__class__, *self.identity()))

    def __str__(self) -> str:
        return self.to_sql() + ("" if self.is_nullable else " NOT NULL")

    def to_sql(self) -> str:
        """Return the type in SQL, without NOT NULL."""
        return str(self.root.value)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({', '.join((*map(repr, self.parameters()), self._nullability()))})"

    def parameters(self) -> tuple[object, ...]:
        """Return the arguments of the constructor before `nullable`."""
        return ()

    def _nullability(self) -> str:
        return str(self.is_nullable).lower()


class RowField:
    """A field of a row type.

    >>> from rayflink.table.types import IntType
    >>> field = RowField("n", IntType())
    >>> field, field.name, field.data_type
    (RowField(n, IntType(true), ...), 'n', IntType(true))

    Args:
        name: of the field.
        data_type: of its values; also the attribute `type`.
        description: for people.

    Raises:
        InvalidTypesError: the name is no string, or the type none.
    """

    def __init__(self, name: str, data_type: DataType, description: str | None = None) -> None:
        if not isinstance(name, str):
            raise InvalidTypesError(f"the name of a field is {name!r}", "give a string")
        self.name, self.type, self.description = name, type_checked(data_type), description

    @property
    def data_type(self) -> DataType:
        """Return the type of its values."""
        return self.type

    def with_type(self, data_type: DataType) -> RowField:
        """Return the same with another type."""
        return RowField(self.name, data_type, self.description)

    def need_conversion(self) -> bool:
        """Return whether `to_sql_type` changes values."""
        return self.type.need_conversion()

    def to_sql_type(self, obj: UserValue) -> UserValue:
        """Return a value in the form of `DataType.to_sql_type`."""
        return self.type.to_sql_type(obj)

    def from_sql_type(self, obj: UserValue) -> UserValue:
        """Return the value of that form."""
        return self.type.from_sql_type(obj)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowField):
            return NotImplemented
        return (self.name, self.type, self.description) == (other.name, other.type, other.description)

    def __hash__(self) -> int:
        return hash((self.name, self.type, self.description))

    def __str__(self) -> str:
        described = f"`{self.name.replace('`', '``')}` {self.type}"
        return described if self.description is None else f"{described} '{self.description}'"

    def __repr__(self) -> str:
        description = "..." if self.description is None else self.description
        return f"RowField({self.name}, {self.type!r}, {description})"


def type_checked(value: object) -> DataType:
    """Return a type.

    Raises:
        InvalidTypesError: it is none.
    """
    if not isinstance(value, DataType):
        raise InvalidTypesError(f"{value!r} is not a data type", "make one with DataTypes, such as DataTypes.INT()")
    return value


def number_within(value: object, low: int, high: int, what: str) -> int:
    """Return a whole number.

    Raises:
        InvalidTypesError: it is none, or out of its range.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidTypesError(f"{what} is {value!r}", f"give a whole number within [{low}, {high}]")
    return value


__all__ = ["INTEGERS", "MOST_DIGITS", "MOST_LENGTH", "DataType", "Root", "RowField", "number_within", "type_checked"]
