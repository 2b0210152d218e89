"""The states of a process table function, as its partitions have them.

A value is read once for the rows of a batch that have its key, and written once behind them; it is stored as a dict of
its fields, so that fields may come and go between two versions of a program. Lists and maps are views of the backend's
own state, of which each call reads and writes what it asks for. `state_types` checks what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TypeVar

from rayflink.common.functions.runtime_context import KeyedStateStore
from rayflink.common.functions.state_ttl import StateTtlConfig
from rayflink.common.time import Duration
from rayflink.common.types import Row
from rayflink.state.descriptors import (
    DeclaredType,
    ListStateDescriptor,
    MapStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from rayflink.state.handles import ListState, MapState, ValueState
from rayflink.user_types import UserKey, UserValue

from ...data_view import ListView, MapView, RemovableIterator
from ...types import DataType
from ...user_functions.process.declarations import ProcessTableFunctionState
from .state_types import ClassStateType, state_type

Fields = Mapping[str, UserValue]
Described = TypeVar("Described", bound=StateDescriptor)


def are_equal(first: Fields | None, second: Fields | None) -> bool:
    """Return whether fields are equal; arrays, whose comparison has no single answer, are taken for different."""
    try:
        return bool(first == second)
    except ValueError:
        return False


class RowForm:
    """Objects of a value state that are Rows, whose fields are None at first.

    Args:
        kind: the ROW.
    """

    def __init__(self, kind: DataType) -> None:
        self._names = [field.name for field in kind.fields]

    def create(self, stored: Fields | None) -> Row:
        """Return the object of stored fields."""
        row = Row(*([None] * len(self._names)) if stored is None else map(stored.get, self._names))
        row.set_field_names(self._names)
        return row

    def store(self, row: Row) -> Fields | None:
        """Return its fields; None: it has nothing to be stored."""
        values = list(row)
        return None if values.count(None) == len(values) else dict(zip(self._names, values, strict=True))


class ObjectForm:
    """Objects of a value state that are of a class of the program, which makes them without arguments.

    Args:
        kind: the class.
    """

    def __init__(self, kind: type) -> None:
        self._class = kind

    def create(self, stored: Fields | None) -> UserValue:
        """Return the object of stored fields; of those that are not there it has those of a new object."""
        value = self._class()
        known = self._attributes(value)
        for name, content in (stored or {}).items():
            if name in known:
                setattr(value, name, content)
        return value

    def store(self, value: UserValue) -> Fields | None:
        """Return its attributes; None: it is like a new object."""
        attributes = self._attributes(value)
        return None if are_equal(attributes, self._attributes(self._class())) else attributes

    def _attributes(self, value: UserValue) -> dict[str, UserValue]:
        if is_dataclass(value):
            return {field.name: getattr(value, field.name) for field in fields(value)}
        return dict(vars(value))


class StateListView(ListView[UserValue]):
    """A list that is a list state of the current key.

    Args:
        state: of the backend.
    """

    def __init__(self, state: ListState[UserValue]) -> None:
        self._state = state

    def get(self) -> Iterable[UserValue]:
        return self._state.get()

    def add(self, value: UserValue) -> None:
        self._state.add(value)

    def clear(self) -> None:
        self._state.clear()


class StateMapView(MapView[UserKey, UserValue]):
    """A map that is a map state of the current key.

    Args:
        state: of the backend.
    """

    def __init__(self, state: MapState[UserKey, UserValue]) -> None:
        self._state = state

    def get(self, key: UserKey) -> UserValue:
        return self._state.get(key)

    def put(self, key: UserKey, value: UserValue) -> None:
        self._state.put(key, value)

    def remove(self, key: UserKey) -> None:
        self._state.remove(key)

    def contains(self, key: UserKey) -> bool:
        return self._state.contains(key)

    def is_empty(self) -> bool:
        return self._state.is_empty()

    def clear(self) -> None:
        self._state.clear()

    def items(self) -> RemovableIterator[tuple[UserKey, UserValue]]:
        return RemovableIterator(self._entries().items(), self._state.keys(), self.remove)

    def _entries(self) -> dict[UserKey, UserValue]:
        return dict(self._state.items())


class ValueEntry:
    """A value state.

    Args:
        state: of the backend.
        form: its objects.
        expires: whether it has a time to live; then it is written only where it has changed.
    """

    def __init__(self, state: ValueState[Fields], form: RowForm | ObjectForm, expires: bool) -> None:
        self._state, self._form, self._expires = state, form, expires

    def load(self) -> UserValue:
        """Return the object of the current key."""
        return self._form.create(self._state.value())

    def save(self, value: UserValue) -> None:
        """Write the object of the current key."""
        content = self._form.store(value)
        if self._expires and are_equal(content, self._state.value()):
            return
        self._state.update(content)

    def clear(self) -> UserValue:
        """Return a new object, in the place of that of the current key."""
        return self._form.create(None)


class ViewEntry:
    """A list or a map.

    Args:
        view: of the current key.
    """

    def __init__(self, view: StateListView | StateMapView) -> None:
        self._view = view

    def load(self) -> UserValue:
        """Return the view."""
        return self._view

    def save(self, value: UserValue) -> None:
        """Do nothing: the view has written what it changed."""

    def clear(self) -> UserValue:
        """Return the view, whose entries of the current key are removed."""
        self._view.clear()
        return self._view


class ProcessStates:
    """The states of the partitions that are worked.

    Args:
        declared: the states.
        store: of the operator.
        ttl_ms: how long those are known whose declaration does not say; 0: for ever.
        function: name of the function, for errors.

    Raises:
        SnapshotMismatch: a restored state was declared of a type whose values do not fit that of now.
    """

    def __init__(
        self, declared: Sequence[ProcessTableFunctionState], store: KeyedStateStore, ttl_ms: int, function: str
    ) -> None:  # fmt: skip
        self.names = [state.name for state in declared]
        self._entries = [
            _entry(state, store, ttl_ms if state.ttl_ms is None else state.ttl_ms, function) for state in declared
        ]
        self._loaded: dict[UserKey, list[UserValue]] = {}

    def of(self, key: UserKey) -> list[UserValue]:
        """Return the states of a key, which is the current one."""
        states = self._loaded.get(key)
        if states is None:
            states = self._loaded[key] = [entry.load() for entry in self._entries]
        return states

    def clear(self, key: UserKey, names: Iterable[str]) -> None:
        """Clear states of a key, which is the current one."""
        states = self._loaded[key]
        for name in names:
            number = self.names.index(name)
            states[number] = self._entries[number].clear()

    def save(self, enter: Callable[[UserKey], None]) -> Iterator[None]:
        """Write what was loaded, key by key, and forget it.

        Args:
            enter: makes a key the current one.
        """
        loaded, self._loaded = self._loaded, {}
        for key, states in loaded.items():
            enter(key)
            for entry, state in zip(self._entries, states, strict=True):
                entry.save(state)
            yield


def _entry(
    state: ProcessTableFunctionState, store: KeyedStateStore, ttl_ms: int, function: str
) -> ValueEntry | ViewEntry:  # fmt: skip
    if state.kind == "list":
        elements = ListStateDescriptor[UserValue](state.name, state_type(state.data_type[0], function))
        return ViewEntry(StateListView(store.get_list_state(_expiring(elements, ttl_ms))))
    if state.kind == "map":
        key, value = (state_type(kind, function) for kind in state.data_type)
        entries = MapStateDescriptor[UserKey, UserValue](state.name, key, value)
        return ViewEntry(StateMapView(store.get_map_state(_expiring(entries, ttl_ms))))
    form: RowForm | ObjectForm
    declared: DeclaredType | None
    if isinstance(state.data_type, type):
        form = ObjectForm(state.data_type)
        declared = ClassStateType(state.data_type) if is_dataclass(state.data_type) else None
    else:
        form, declared = RowForm(state.data_type), state_type(state.data_type, function)
    content = ValueStateDescriptor[Fields](state.name, declared)
    return ValueEntry(store.get_state(_expiring(content, ttl_ms)), form, bool(ttl_ms))


def _expiring(descriptor: Described, ttl_ms: int) -> Described:
    """Return the descriptor with a time to live; 0: for ever."""
    if ttl_ms:
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Duration.of_millis(ttl_ms)).build())
    return descriptor


__all__ = ["ObjectForm", "ProcessStates", "RowForm"]
