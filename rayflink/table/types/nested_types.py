"""Types of values with values inside: arrays, maps, multisets, rows, and the views of accumulators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, overload

from rayflink.common.errors import InvalidTypesError
from rayflink.common.types import Row, RowKind
from rayflink.user_types import UserValue

from .data_type import DataType, Root, RowField, type_checked

if TYPE_CHECKING:
    import pyarrow


class _Container(DataType):
    """A type whose values hold others of the types `items`."""

    def parameters(self) -> tuple[object, ...]:
        return self.items

    def to_sql(self) -> str:
        return f"{self.root.value}<{', '.join(map(str, self.items))}>"


class _Elements(_Container):
    """A type whose values hold any number of others of one type."""

    def __init__(self, element_type: DataType, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.items = (type_checked(element_type),)

    @property
    def element_type(self) -> DataType:
        """Return the type of the values."""
        return self.items[0]

    def need_conversion(self) -> bool:
        return self.element_type.need_conversion()

    def to_sql_type(self, obj: Sequence[UserValue] | None) -> Sequence[UserValue] | None:
        """Return the values in the form of `DataType.to_sql_type`."""
        return obj if obj is None else [self.element_type.to_sql_type(element) for element in obj]

    def from_sql_type(self, obj: Sequence[UserValue] | None) -> Sequence[UserValue] | None:
        """Return the values of that form."""
        return obj if obj is None else [self.element_type.from_sql_type(element) for element in obj]


class ArrayType(_Elements):
    """A list of values of one type: ARRAY<element>.

    >>> from rayflink.table.types import IntType
    >>> ArrayType(IntType(False)).element_type
    IntType(false)

    Args:
        element_type: of the values.
        nullable: whether the list may be null.

    Raises:
        InvalidTypesError: the element type is none.
    """

    root = Root.ARRAY

    def to_arrow(self) -> pyarrow.DataType:
        import pyarrow

        return pyarrow.list_(self.items[0].to_arrow())


class MapType(_Container):
    """Values by key: MAP<key, value>.

    Args:
        key_type: of the keys.
        value_type: of the values.
        nullable: whether the map may be null.

    Raises:
        InvalidTypesError: a type is none.
    """

    root = Root.MAP

    def __init__(self, key_type: DataType, value_type: DataType, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.items = (type_checked(key_type), type_checked(value_type))

    @property
    def key_type(self) -> DataType:
        """Return the type of the keys."""
        return self.items[0]

    @property
    def value_type(self) -> DataType:
        """Return the type of the values."""
        return self.items[1]

    def to_arrow(self) -> pyarrow.DataType:
        import pyarrow

        return pyarrow.map_(self.items[0].to_arrow(), self.items[1].to_arrow())

    def need_conversion(self) -> bool:
        return any(item.need_conversion() for item in self.items)

    def to_sql_type(self, obj: dict[UserValue, UserValue] | None) -> dict[UserValue, UserValue] | None:
        """Return keys and values in the form of `DataType.to_sql_type`."""
        key, item = self.key_type.to_sql_type, self.value_type.to_sql_type
        return None if obj is None else {key(map_key): item(value) for map_key, value in obj.items()}

    def from_sql_type(self, obj: dict[UserValue, UserValue] | None) -> dict[UserValue, UserValue] | None:
        """Return keys and values of that form."""
        key, item = self.key_type.from_sql_type, self.value_type.from_sql_type
        return None if obj is None else {key(map_key): item(value) for map_key, value in obj.items()}


class MultisetType(_Elements):
    """Values with the number of times they occur: MULTISET<element>.

    In Python it is a dict of elements and their counts; programs may pass a list of the elements, too.

    Args:
        element_type: of the values.
        nullable: whether the multiset may be null.

    Raises:
        InvalidTypesError: the element type is none.
    """

    root = Root.MULTISET

    def to_arrow(self) -> pyarrow.DataType:
        import pyarrow

        return pyarrow.map_(self.items[0].to_arrow(), pyarrow.int32())


class ListViewType(_Container):
    """A `ListView` in the accumulator of an aggregate function, and nowhere else.

    Args:
        element_type: of the values.

    Raises:
        InvalidTypesError: the element type is none.
    """

    root = Root.LIST_VIEW
    remedy = "a view is a field of the accumulator of an AggregateFunction; take DataTypes.ARRAY for columns"

    def __init__(self, element_type: DataType) -> None:
        super().__init__(False)
        self.items = (type_checked(element_type),)

    @property
    def element_type(self) -> DataType:
        """Return the type of the values."""
        return self.items[0]

    def __repr__(self) -> str:
        return f"ListViewType({self.element_type!r})"


class MapViewType(_Container):
    """A `MapView` in the accumulator of an aggregate function, and nowhere else.

    Args:
        key_type: of the keys.
        value_type: of the values.

    Raises:
        InvalidTypesError: a type is none.
    """

    root = Root.MAP_VIEW
    remedy = "a view is a field of the accumulator of an AggregateFunction; take DataTypes.MAP for columns"

    def __init__(self, key_type: DataType, value_type: DataType) -> None:
        super().__init__(False)
        self.items = (type_checked(key_type), type_checked(value_type))

    @property
    def key_type(self) -> DataType:
        """Return the type of the keys."""
        return self.items[0]

    @property
    def value_type(self) -> DataType:
        """Return the type of the values."""
        return self.items[1]

    def __repr__(self) -> str:
        return f"MapViewType({self.key_type!r}, {self.value_type!r})"


class _RowFields(tuple[RowField, ...]):
    """The fields of a row, which programs copy and add to lists, as those of PyFlink, which are a list.

    >>> from rayflink.table.types import DataTypes
    >>> fields = DataTypes.ROW([("id", DataTypes.INT())]).fields
    >>> len(fields + [DataTypes.FIELD("name", DataTypes.STRING())]), type(fields.copy())
    (2, <class 'list'>)
    """

    __slots__ = ()

    def copy(self) -> list[RowField]:
        """Return a list of the fields."""
        return list(self)

    def __add__(self, other: Sequence[RowField]) -> list[RowField] | tuple[RowField, ...]:  # type: ignore[override]
        return [*self, *other] if isinstance(other, list) else (*self, *other)

    def __radd__(self, other: list[RowField]) -> list[RowField]:
        return [*other, *self]

    def __reduce__(self) -> tuple[type[tuple[RowField, ...]], tuple[list[RowField]]]:
        return tuple, (list(self),)


class RowType(DataType):
    """Fields of their own types: ROW<name type, ...>.

    >>> from rayflink.table.types import BigIntType, VarCharType
    >>> user = RowType().add("id", BigIntType(False)).add("name", VarCharType(20))
    >>> len(user), user.names, user["id"].data_type, [field.name for field in user]
    (2, ['id', 'name'], BigIntType(false), ['id', 'name'])

    Args:
        fields: None: there are none yet.
        nullable: whether the row may be null.

    Raises:
        InvalidTypesError: a field is none.
    """

    root = Root.ROW

    def __init__(self, fields: Sequence[RowField] | None = None, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.fields = _RowFields(fields or ())
        if wrong := next((field for field in self.fields if not isinstance(field, RowField)), None):
            raise InvalidTypesError(f"{wrong!r} is no field of a row", "make it with DataTypes.FIELD(name, type)")

    def add(self, field: RowField | str, data_type: DataType | None = None) -> RowType:
        """Add a field behind the others of this type, and return the type; before tables or functions use it.

        Args:
            field: a field, or the name of one.
            data_type: of its values, where `field` is a name.

        Raises:
            ValueError: a name comes without a type.
        """
        if not isinstance(field, RowField):
            if data_type is None:
                raise ValueError(f"field {field!r} has no type; write add({field!r}, DataTypes.STRING())")
            field = RowField(field, data_type)
        self.fields = _RowFields((*self.fields, field))
        return self

    def with_fields(self, fields: Sequence[RowField]) -> RowType:
        """Return a row type of other fields, null where this one is."""
        return RowType(fields, self.is_nullable)

    @property
    def names(self) -> list[str]:
        """Return the names of the fields."""
        return [field.name for field in self.fields]

    def field_names(self) -> list[str]:
        """Return the names of the fields."""
        return self.names

    def field_types(self) -> list[DataType]:
        """Return the types of the fields."""
        return [field.type for field in self.fields]

    def __iter__(self) -> Iterator[RowField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __bool__(self) -> bool:
        return True

    @overload
    def __getitem__(self, key: str | int) -> RowField: ...

    @overload
    def __getitem__(self, key: slice) -> RowType: ...

    def __getitem__(self, key: str | int | slice) -> RowField | RowType:
        if isinstance(key, slice):
            return RowType(self.fields[key])
        if isinstance(key, str):
            field = self.field(key)
            if field is None:
                raise KeyError(f"the row has no field {key!r}; its fields are {self.names}")
            return field
        if not isinstance(key, int):
            raise TypeError(f"a field of a row is found by name, position or slice, not by {key!r}")
        if not -len(self.fields) <= key < len(self.fields):
            raise IndexError(f"the row has {len(self.fields)} fields, and none at {key}")
        return self.fields[key]

    def to_arrow(self) -> pyarrow.DataType:
        import pyarrow

        return pyarrow.struct([field.type.to_arrow_field(field.name) for field in self.fields])

    def need_conversion(self) -> bool:
        return True

    def to_sql_type(self, obj: UserValue) -> tuple[UserValue, ...] | None:
        """Return the number of a row's kind and its values in the form of `DataType.to_sql_type`.

        Args:
            obj: a Row, tuple, list or dict, or an object with attributes.
        """
        if obj is None:
            return None
        if isinstance(obj, Row):
            kind, values = obj.get_row_kind(), obj.get_fields_by_names(self.names)
        else:
            kind, values = RowKind.INSERT, obj
            if not isinstance(obj, (tuple, list)):
                by_name = obj if isinstance(obj, dict) else vars(obj)
                values = [by_name.get(name) for name in self.names]
        return (kind.value, *(field.to_sql_type(value) for field, value in zip(self.fields, values, strict=True)))

    def from_sql_type(self, obj: UserValue) -> Row | None:
        """Return the Row of values of that form, which come without the number of its kind."""
        if obj is None or isinstance(obj, Row):
            return obj
        values = [field.from_sql_type(value) for field, value in zip(self.fields, obj, strict=True)]
        return Row(**dict(zip(self.names, values, strict=True)))

    def to_sql(self) -> str:
        return f"ROW<{', '.join(map(str, self.fields))}>"

    def __repr__(self) -> str:
        return f"RowType({','.join(map(repr, self.fields))})"


__all__ = ["ArrayType", "ListViewType", "MapType", "MapViewType", "MultisetType", "RowType"]
