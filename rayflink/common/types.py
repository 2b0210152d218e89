"""Row, the record with named fields, and RowKind, the change it stands for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

from rayflink.user_types import UserValue

__all__ = ["Row", "RowKind"]


class RowKind(Enum):
    """The change a row describes in a changelog; ``str()`` gives Flink's short form (+I, -U, +U, -D)."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        return _SHORT_FORMS[self.value]


_SHORT_FORMS = ("+I", "-U", "+U", "-D")


def _create_row(fields: Sequence[str] | None, values: Sequence[Any], row_kind: RowKind | None = None) -> Row:
    """Build a row from its parts; the target of pickling."""
    row = Row.__new__(Row)
    row._values = list(values)
    row._names = None if fields is None else list(fields)
    row._row_kind = RowKind.INSERT if row_kind is None else row_kind
    return row


class Row:
    """A mutable record of values by position and, where names are given, by name.

    Rows are equal when kind, names and values are equal; the order of names does not matter.

    >>> row = Row(name="Alice", age=11)
    >>> row, row["age"], row.name, "name" in row
    (Row(name='Alice', age=11), 11, 'Alice', True)
    >>> Person = Row("name", "age")
    >>> Person("Bob", 12)
    Row(name='Bob', age=12)
    """

    __slots__ = ("_values", "_names", "_row_kind")
    _values: list[Any]
    _names: list[str] | None
    _row_kind: RowKind

    def __init__(self, *args: UserValue, **kwargs: UserValue) -> None:
        if kwargs:
            if args:
                raise ValueError("a Row takes positional values or named values, not both")
            self._names = list(kwargs)
            self._values = list(kwargs.values())
        else:
            self._names = None
            self._values = list(args)
        self._row_kind = RowKind.INSERT

    @property
    def _fields(self) -> list[str]:
        names = self._names
        if names is None:
            raise AttributeError("this Row has no field names; give them with set_field_names()")
        return names

    @staticmethod
    def of_kind(row_kind: RowKind, *args: UserValue, **kwargs: UserValue) -> Row:
        """Make a row of the given kind; arguments as for ``Row``."""
        row = Row(*args, **kwargs)
        row._row_kind = row_kind
        return row

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """Return the fields by name; `recursive` also turns rows within rows, lists and dicts.

        Raises: TypeError: the row has no field names.
        """
        if self._names is None:
            raise TypeError("cannot turn a Row without field names into a dict; give names with set_field_names()")
        values = map(_plain, self._values) if recursive else self._values
        return dict(zip(self._names, values, strict=False))

    def get_row_kind(self) -> RowKind:
        """Return the change this row stands for; INSERT unless set."""
        return self._row_kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        """Set the change this row stands for."""
        self._row_kind = row_kind

    def set_field_names(self, field_names: Sequence[str]) -> None:
        """Name the fields in order of position."""
        self._names = list(field_names)

    def get_fields_by_names(self, names: Sequence[str]) -> list[Any]:
        """Return the values in the order of `names`; all values when the row has no names.

        Raises: ValueError: a name is not a field of the row.
        """
        own = self._names
        if own is None or names == own:
            return self._values
        return [self[name] for name in names]

    def _is_retract_msg(self) -> bool:
        return self._row_kind is RowKind.UPDATE_BEFORE or self._row_kind is RowKind.DELETE

    def _is_accumulate_msg(self) -> bool:
        return self._row_kind is RowKind.UPDATE_AFTER or self._row_kind is RowKind.INSERT

    def __contains__(self, item: object) -> bool:
        return item in (self._values if self._names is None else self._names)

    def __call__(self, *args: UserValue) -> Row:
        """Make a row whose field names are this row's values."""
        if len(args) > len(self._values):
            raise ValueError(f"cannot create a Row with fields {self}: wanted {len(self)} values, found {len(args)}")
        return _create_row(self._values, args, self._row_kind)

    def __getitem__(self, item: int | slice | str) -> Any:
        if isinstance(item, (int, slice)):
            return self._values[item]
        return self._values[self._position(item)]

    def __setitem__(self, key: int | slice | str, value: UserValue) -> None:
        if isinstance(key, (int, slice)):
            self._values[key] = value
        elif self._names is None:
            raise KeyError(key)
        else:
            self._values[self._position(key)] = value

    def _position(self, name: str) -> int:
        names = self._fields
        try:
            return names.index(name)
        except ValueError:
            raise ValueError(f"row has no field {name!r}; its fields are {names}") from None

    def __getattr__(self, item: str) -> Any:
        if item[:1] == "_" or self._names is None:
            raise AttributeError(item)
        try:
            return self._values[self._names.index(item)]
        except (ValueError, IndexError):
            raise AttributeError(f"row has no field {item!r}; its fields are {self._names}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        return _create_row, (self._names, tuple(self._values), self._row_kind)

    def __repr__(self) -> str:
        begin, fields, end = self._repr_parts()
        return f"{begin}{', '.join(f'{name}{value!r}' for name, value in fields)}{end}"

    def _repr_parts(self) -> tuple[str, list[tuple[str, Any]], str]:
        """Return what stands before the fields in its repr, each field with what stands before it, and the end."""
        if self._names is None:
            return "<Row(", [("", value) for value in self._values], ")>"
        named = zip(self._names, self._values, strict=False)
        return "Row(", [(f"{name}=", value) for name, value in named], ")"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row) or self.__class__ is not other.__class__:
            return False
        if self._row_kind is not other._row_kind:
            return False
        if self._names == other._names:
            return self._values == other._values
        return self._names is not None and other._names is not None and self._sorted() == other._sorted()

    def _sorted(self) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        """Return names and values in the order of names, the form in which named rows compare."""
        names = self._names or []
        order = sorted(range(len(names)), key=names.__getitem__)
        return tuple(names[i] for i in order), tuple(self._values[i] for i in order)

    def __hash__(self) -> int:
        return hash(tuple(self._values) if self._names is None else self._sorted()[1])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _plain(value: UserValue) -> Any:
    if isinstance(value, Row):
        return value.as_dict(True)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
