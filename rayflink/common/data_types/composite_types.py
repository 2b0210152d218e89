"""Types made of types: rows, tuples, lists, maps and arrays."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import chain
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from rayflink.user_types import UserValue

from ..errors import InvalidTypesError
from ..types import Row, RowKind, _create_row
from .basic_types import BasicType, BasicTypeInfo
from .type_base import Fault, TypeInformation, only_types

if TYPE_CHECKING:
    import pyarrow

__all__ = [
    "BasicArrayTypeInfo",
    "ListTypeInfo",
    "MapTypeInfo",
    "ObjectArrayTypeInfo",
    "PrimitiveArrayTypeInfo",
    "RowTypeInfo",
    "TupleTypeInfo",
]

_names_of = attrgetter("_names")
_values_of = attrgetter("_values")


def _convert_columns(fields: Sequence[TypeInformation], records: Sequence[Any]) -> list[tuple[Any, ...]] | None:
    """Convert records of equal length field by field, into tuples; None where no value changes."""
    columns = [list(map(itemgetter(index), records)) for index in range(len(fields))]
    converted = [field._convert_column(column) for field, column in zip(fields, columns, strict=True)]
    if all(old is new for old, new in zip(columns, converted, strict=True)):
        return None
    return list(zip(*converted, strict=True))


def _columns_fit(fields: Sequence[TypeInformation], records: Sequence[Any]) -> bool:
    if not set(map(len, records)) <= {len(fields)}:
        return False
    return all(field.field_column_fits(list(map(itemgetter(index), records))) for index, field in enumerate(fields))


class TupleTypeInfo(TypeInformation):
    """A tuple of fixed length; a list or Row of that length becomes one."""

    accepts_none = False
    python_form = "a tuple of that many fields"

    def __init__(self, field_types: Sequence[TypeInformation]) -> None:
        self.field_types = only_types(field_types, "a tuple type")

    def get_field_types(self) -> list[TypeInformation]:
        """Return the types of the fields in order."""
        return list(self.field_types)

    def _parameters(self) -> tuple[Any, ...]:
        return self.field_types

    def _fault(self, value: UserValue, path: str) -> Fault | None:
        if not isinstance(value, (tuple, list, Row)):
            return self._mismatch(value, path)
        if len(value) != len(self.field_types):
            return self._mismatch(value, path, f"{type(value).__name__} of {len(value)} fields")
        for index, (field, item) in enumerate(zip(self.field_types, value, strict=True)):
            fault = field.field_fault(item, f"{path}.f{index}")
            if fault is not None:
                return fault
        return None

    def _column_fits(self, values: Sequence[Any]) -> bool:
        return set(map(type, values)) <= {tuple} and _columns_fit(self.field_types, values)

    def _convert_value(self, value: UserValue) -> Any:
        items = [field.convert_field(item) for field, item in zip(self.field_types, value, strict=True)]
        if type(value) is tuple and all(old is new for old, new in zip(value, items, strict=True)):
            return value
        return tuple(items)

    def _convert_column(self, values: Sequence[Any]) -> Sequence[Any]:
        if not values or not self.field_types or set(map(type, values)) != {tuple}:
            return super()._convert_column(values)
        return _convert_columns(self.field_types, values) or values

    def __repr__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(str, self.field_types))})"


class RowTypeInfo(TypeInformation):
    """A Row; tuples, lists, dicts and objects with attributes become one, with the names the type has.

    Without names the fields are f0, f1, ... As in Flink, names do not matter for equality of types.
    """

    accepts_none = False
    python_form = "a Row (or tuple, list, dict) with these fields"

    def __init__(self, field_types: Sequence[TypeInformation], field_names: Sequence[str] | None = None) -> None:
        self.field_types = only_types(field_types, "a row type")
        self._field_names = None if field_names is None else list(field_names)
        names = self._field_names
        if names is not None and (len(names) != len(self.field_types) or len(set(names)) != len(names)):
            raise InvalidTypesError(
                f"a row type of {len(self.field_types)} fields has the names {names}", "give each field one name"
            )
        self._names = names if names is not None else [f"f{index}" for index in range(len(self.field_types))]

    def get_field_names(self) -> list[str]:
        """Return the names in order."""
        return list(self._names)

    def get_field_types(self) -> list[TypeInformation]:
        """Return the types of the fields in order."""
        return list(self.field_types)

    def get_field_index(self, field_name: str) -> int:
        """Return the position of a named field; -1 where the type has no names or not this one."""
        names = self._field_names or []
        return names.index(field_name) if field_name in names else -1

    def arrow_schema(self) -> pyarrow.Schema | None:
        """Return the columns, where the type knows more of them than its fields say."""
        return None

    def text_of(self, row: UserValue) -> str | None:
        """Return the string of a row where such rows have one of their own; None: they have that of all rows."""
        return None

    def _parameters(self) -> tuple[Any, ...]:
        return self.field_types

    def _items(self, value: UserValue) -> Sequence[Any] | None:
        """Return the fields of a value in the order of the type; None where it does not have them."""
        if isinstance(value, Row):
            names = value._names
            if names is None or names == self._names or self._field_names is None:
                return value._values
            return [value[name] for name in self._names] if set(names) == set(self._names) else None
        if isinstance(value, (tuple, list)):
            return value
        if isinstance(value, dict):
            return [value.get(name) for name in self._names]
        attributes = getattr(value, "__dict__", None)
        return None if attributes is None else [attributes.get(name) for name in self._names]

    def _fault(self, value: UserValue, path: str) -> Fault | None:
        items = None if isinstance(value, type) else self._items(value)
        if items is None:
            return self._mismatch(value, path)
        if len(items) != len(self.field_types):
            return self._mismatch(value, path, f"{type(value).__name__} of {len(items)} fields")
        for name, field, item in zip(self._names, self.field_types, items, strict=True):
            fault = field.field_fault(item, f"{path}.{name}")
            if fault is not None:
                return fault
        return None

    def _column_fits(self, values: Sequence[Any]) -> bool:
        kinds = set(map(type, values))
        if kinds <= {tuple}:
            return _columns_fit(self.field_types, values)
        return self._all_named_alike(kinds, values) and _columns_fit(self.field_types, list(map(_values_of, values)))

    def _all_named_alike(self, kinds: set[type], values: Sequence[Any]) -> bool:
        return kinds == {Row} and list(map(_names_of, values)).count(self._names) == len(values)

    def _convert_value(self, value: UserValue) -> Any:
        items = self._items(value) or ()
        fields = [field.convert_field(item) for field, item in zip(self.field_types, items, strict=True)]
        named = isinstance(value, Row) and value._names is not None
        if named and (value._names == self._names or self._field_names is None):
            same = all(old is new for old, new in zip(items, fields, strict=True))
            return value if same else _create_row(value._names, fields, value._row_kind)
        return _create_row(self._names, fields, value._row_kind if isinstance(value, Row) else RowKind.INSERT)

    def _convert_column(self, values: Sequence[Any]) -> Sequence[Any]:
        if not self.field_types or not self._all_named_alike(set(map(type, values)), values):
            return super()._convert_column(values)
        records = _convert_columns(self.field_types, list(map(_values_of, values)))
        if records is None:
            return values
        return [_create_row(self._names, new, old._row_kind) for old, new in zip(values, records, strict=True)]

    def __repr__(self) -> str:
        if self._field_names is None:
            return f"RowTypeInfo({', '.join(map(str, self.field_types))})"
        named = zip(self._field_names, self.field_types, strict=True)
        return f"RowTypeInfo({', '.join(f'{name}: {field}' for name, field in named)})"


class ElementsTypeInfo(TypeInformation):
    """A list of values of one type; other sequences become lists."""

    python_form = "a list of such elements"
    _takes: tuple[type, ...] = (list, tuple)
    _none_elements = True

    def __init__(self, element_type: TypeInformation) -> None:
        (self.element_type,) = only_types((element_type,), type(self).__name__)

    def _parameters(self) -> tuple[Any, ...]:
        return (self.element_type,)

    def _fault(self, value: UserValue, path: str) -> Fault | None:
        if not isinstance(value, self._takes) and not (type(value).__module__ == "numpy" and hasattr(value, "tolist")):
            return self._mismatch(value, path)
        find = self.element_type.field_fault if self._none_elements else self.element_type._fault
        for index, item in enumerate(value):
            fault = find(item, f"{path}[{index}]")
            if fault is not None:
                return fault
        return None

    def _column_fits(self, values: Sequence[Any]) -> bool:
        if not set(map(type, values)) <= {list}:
            return False
        items = list(chain.from_iterable(values))
        element = self.element_type
        return element.field_column_fits(items) if self._none_elements else element._column_fits(items)

    def _convert_value(self, value: UserValue) -> Any:
        items = value.tolist() if hasattr(value, "tolist") else value
        converted = self.element_type._convert_column(items)
        return converted if type(converted) is list else list(converted)

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.element_type}>"


class ListTypeInfo(ElementsTypeInfo):
    """A list."""

    @property
    def elem_type(self) -> TypeInformation:
        """Return the type of the elements."""
        return self.element_type


class ObjectArrayTypeInfo(ElementsTypeInfo):
    """An array of values of any type, as a list."""

    accepts_none = False


class BasicArrayTypeInfo(ElementsTypeInfo):
    """An array of values of a basic type, as a list; elements may be None."""

    def __init__(self, element_type: TypeInformation) -> None:
        super().__init__(element_type)
        if not isinstance(element_type, BasicTypeInfo):
            problem = f"a basic array holds basic types, found {element_type}"
            raise InvalidTypesError(problem, "use Types.OBJECT_ARRAY()")


_PRIMITIVES = frozenset({
    BasicType.BOOLEAN, BasicType.BYTE, BasicType.SHORT, BasicType.INT,
    BasicType.LONG, BasicType.FLOAT, BasicType.DOUBLE, BasicType.CHAR,
})  # fmt: skip


class PrimitiveArrayTypeInfo(ElementsTypeInfo):
    """An array of primitive values, none of them None: bytes where the element is BYTE, else a list."""

    accepts_none = False
    _takes = (list, tuple, array)
    _none_elements = False

    def __init__(self, element_type: TypeInformation) -> None:
        super().__init__(element_type)
        kind = element_type.basic_type if isinstance(element_type, BasicTypeInfo) else None
        if kind not in _PRIMITIVES:
            raise InvalidTypesError(
                f"a primitive array holds primitive types, found {element_type}",
                "use Types.BASIC_ARRAY() or Types.OBJECT_ARRAY()",
            )
        self.is_bytes = kind is BasicType.BYTE

    @property
    def python_form(self) -> str:  # type: ignore[override]  # a property here, as it depends on the element
        """Return a description of what to pass, for error messages."""
        return "bytes" if self.is_bytes else "a list without None"

    def _fault(self, value: UserValue, path: str) -> Fault | None:
        if not self.is_bytes:
            return super()._fault(value, path)
        return None if isinstance(value, (bytes, bytearray, memoryview)) else self._mismatch(value, path)

    def _column_fits(self, values: Sequence[Any]) -> bool:
        return set(map(type, values)) <= {bytes} if self.is_bytes else super()._column_fits(values)

    def _convert_value(self, value: UserValue) -> Any:
        return bytes(value) if self.is_bytes else super()._convert_value(value)


class MapTypeInfo(TypeInformation):
    """A dict with keys of one type, never None, and values of one type."""

    python_form = "a dict of such keys and values"

    def __init__(self, key_type_info: TypeInformation, value_type_info: TypeInformation) -> None:
        types = only_types((key_type_info, value_type_info), "a map type")
        self.key_type, self.value_type = types

    def _parameters(self) -> tuple[Any, ...]:
        return self.key_type, self.value_type

    def _fault(self, value: UserValue, path: str) -> Fault | None:
        if not isinstance(value, dict):
            return self._mismatch(value, path)
        for key, item in value.items():
            fault = self.key_type._fault(key, f"{path}.key")
            fault = fault or self.value_type.field_fault(item, f"{path}[{key!r}]")
            if fault is not None:
                return fault
        return None

    def _column_fits(self, values: Sequence[Any]) -> bool:
        return (
            set(map(type, values)) <= {dict}
            and self.key_type._column_fits(list(chain.from_iterable(values)))
            and self.value_type.field_column_fits(list(chain.from_iterable(map(dict.values, values))))
        )

    def _convert_value(self, value: UserValue) -> Any:
        keys, items = list(value), list(value.values())
        new_keys, new_items = self.key_type._convert_column(keys), self.value_type._convert_column(items)
        return value if new_keys is keys and new_items is items else dict(zip(new_keys, new_items, strict=True))

    def __repr__(self) -> str:
        return f"MapTypeInfo<{self.key_type}, {self.value_type}>"
