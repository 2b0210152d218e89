"""Key selectors made from field names and indexes."""

from __future__ import annotations

from operator import attrgetter, itemgetter
from typing import Any


class NamedField:
    """record -> the value of a field: a dictionary's entry, else an attribute."""

    def __init__(self, name: str) -> None:
        self.columns = (name,)
        self._item, self._attribute = itemgetter(name), attrgetter(name)

    def __call__(self, record: Any) -> Any:
        return self._item(record) if isinstance(record, dict) else self._attribute(record)

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedField, self.columns


class NamedFields:
    """record -> the tuple of several fields."""

    def __init__(self, *names: str) -> None:
        self.columns = names
        self._fields = tuple(map(NamedField, names))

    def __call__(self, record: Any) -> tuple[Any, ...]:
        return tuple(field(record) for field in self._fields)

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedFields, self.columns


def field_selector(key: Any) -> Any:
    """Return a key selector for a field name, an index, or a tuple of either; anything else is returned as it is.

    Raises:
        TypeError: the tuple mixes names and indexes, or is empty.
    """
    if isinstance(key, bool):
        raise TypeError(f"a key is a function, a field name or an index, found {key!r}")
    if isinstance(key, int):
        return itemgetter(key)
    if isinstance(key, str):
        return NamedField(key)
    if isinstance(key, tuple | list) and not callable(key):
        kinds = {type(part) for part in key}
        if kinds == {int}:
            return itemgetter(*key)
        if kinds == {str}:
            return NamedFields(*key)
        raise TypeError(f"a key of several fields needs names only or indexes only, found {key!r}")
    return key
