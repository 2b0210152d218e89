"""Types of a program's own objects: user-defined types, which are stored as another type, and pickled values."""

from __future__ import annotations

import pickle

from rayflink.user_types import UserValue

from .data_type import DataType, Root, RowField
from .nested_types import RowType


class RawType(DataType):
    """Objects of the program, which are pickled in columns; only functions of the program can read them."""

    root = Root.RAW
    arrow_factory = "binary"

    def from_sql_type(self, obj: bytes) -> UserValue:
        """Return the object of its pickled form."""
        return pickle.loads(obj)


class UserDefinedType(DataType):
    """A type of the program's own objects, which tables store as a type of SQL.

    A class derives from it; the class of the objects names an instance of it in `__UDT__`. `from_elements` serializes
    such objects, and the column is of the type that `sql_type()` returns.

    >>> from rayflink.table.types import DataTypes
    >>> class PointType(UserDefinedType):
    ...     @classmethod
    ...     def sql_type(cls):
    ...         return DataTypes.ARRAY(DataTypes.DOUBLE(False))
    ...     def serialize(self, obj):
    ...         return [obj.x, obj.y]
    ...     def deserialize(self, datum):
    ...         return Point(*datum)
    >>> class Point:
    ...     __UDT__ = PointType()
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> from rayflink.table import EnvironmentSettings, TableEnvironment
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    >>> _ = t_env.get_config().set("execution.target", "local")
    >>> list(t_env.from_elements([(1, Point(2.0, 3.0))], ["id", "place"]).execute().collect())
    [<Row(1, [2.0, 3.0])>]
    """

    root = Root.USER_DEFINED

    @classmethod
    def type_name(cls) -> str:
        return cls.__name__.lower()

    @classmethod
    def sql_type(cls) -> DataType:
        """Return the type in which values are stored."""
        raise NotImplementedError(f"{cls.__name__} has no sql_type(); define it: the type in which values are stored")

    @classmethod
    def module(cls) -> str:
        """Return the module of the type."""
        return cls.__module__

    @classmethod
    def java_udt(cls) -> str:
        """Return "": there are no Java types."""
        return ""

    def need_conversion(self) -> bool:
        return True

    def to_sql_type(self, obj: UserValue) -> UserValue:
        """Return the value of an object in the form of `DataType.to_sql_type`."""
        return None if obj is None else self.sql_type().to_sql_type(self.serialize(obj))

    def from_sql_type(self, obj: UserValue) -> UserValue:
        """Return the object of that form."""
        value = self.sql_type().from_sql_type(obj)
        return None if value is None else self.deserialize(value)

    def serialize(self, obj: UserValue) -> UserValue:
        """Return a value of the type `sql_type()`."""
        raise NotImplementedError(f"{type(self).__name__} has no serialize(); define it: object to value")

    def deserialize(self, datum: UserValue) -> UserValue:
        """Return the object of a value of the type `sql_type()`."""
        raise NotImplementedError(f"{type(self).__name__} has no deserialize(); define it: value to object")

    def identity(self) -> tuple[object, ...]:
        return ()

    def to_sql(self) -> str:
        return self.type_name()


def stored_type(kind: DataType) -> DataType:
    """Return the type in which tables store values: user-defined types at any depth become their types of SQL."""
    if isinstance(kind, UserDefinedType):
        return stored_type(kind.sql_type()).as_nullable(kind.is_nullable)
    if isinstance(kind, RowType):
        return kind.with_fields([_stored_field(field) for field in kind.fields])
    return kind.with_items(tuple(stored_type(item) for item in kind.items)) if kind.items else kind


def _stored_field(field: RowField) -> RowField:
    return field.with_type(stored_type(field.type))


__all__ = ["RawType", "UserDefinedType", "stored_type"]
