"""Operator state: lists that belong to a subtask, not to a key, and are redistributed when the parallelism changes.

How the entries of all subtasks are distributed is the mode of a list: "split" gives each entry to one subtask, "union"
all entries to every subtask, "broadcast" one copy of the state, which is equal everywhere, to every subtask.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Generic, NoReturn

from rayflink.user_types import UserValue

from .descriptors import DeclaredType, ListStateDescriptor, MapStateDescriptor, StateDescriptor
from .errors import DuplicateStateError, SerializationError, SnapshotMismatch, StateError, VersionMismatch
from .handles import State, convert_of
from .schema.evolution import Evolution, fitting
from .schema.state_summary import SAMPLES, StateSummary, merge_summaries, summary_of
from .type_variables import K, T, V
from .value_isolation import isolated

ENTRY_FORMAT = 1
"""Version of the bytes of one entry; their first byte."""

Lists = Mapping[str, tuple[str, tuple[bytes, ...]]]
"""State name -> (mode, entries), as in an operator's snapshot."""


class OperatorListState(Generic[T]):
    """A list of the subtask; returned entries may be changed freely, the state changes by its methods alone."""

    def __init__(self, entries: Iterable[T] = ()) -> None:
        self._entries = list(entries)
        self._taken: Callable[[Any], Any] = isolated

    def hold_to(self, descriptor: StateDescriptor) -> None:
        """Accept from now on only values of the declared type, if any, and store them in the type's own form."""
        self._taken = _taken(descriptor.type_info, f"state {descriptor.name!r}")

    def get(self) -> Iterator[T]:
        """Yield the entries as of now, in order."""
        return iter([isolated(entry) for entry in self._entries])

    __iter__ = get

    def add(self, value: T) -> None:
        """Append an entry."""
        self._entries.append(self._taken(value))

    def add_all(self, values: Iterable[T]) -> None:
        """Append entries, in order."""
        self._entries += [self._taken(value) for value in values]

    def update(self, values: Iterable[T]) -> None:
        """Replace all entries."""
        self._entries = [self._taken(value) for value in values]

    def clear(self) -> None:
        """Delete all entries."""
        self._entries = []

    def samples(self, most: int) -> list[T]:
        """Return the first entries; they must not be changed."""
        return self._entries[:most]


class ReadOnlyBroadcastState(State, Generic[K, V]):
    """A read-only map that is equal in every subtask."""

    def __init__(self, entries: Iterable[tuple[K, V]] = ()) -> None:
        self._entries = dict(entries)

    def get(self, key: K) -> V | None:
        """Return the value at `key`, or None."""
        value: V | None = isolated(self._entries.get(key))
        return value

    def contains(self, key: K) -> bool:
        """Return whether there is a value at `key`."""
        return key in self._entries

    def is_empty(self) -> bool:
        """Return whether the map has no entries."""
        return not self._entries

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield (key, value) of all entries as of now."""
        return iter([(isolated(key), isolated(value)) for key, value in self._entries.items()])

    def keys(self) -> Iterator[K]:
        """Yield the keys as of now."""
        return (key for key, _ in self.items())

    def values(self) -> Iterator[V]:
        """Yield the values as of now."""
        return (value for _, value in self.items())

    __getitem__, __contains__, __iter__ = get, contains, keys


class BroadcastState(ReadOnlyBroadcastState[K, V]):
    """A map that every subtask must write alike."""

    def __init__(self, entries: Iterable[tuple[K, V]] = ()) -> None:
        super().__init__(entries)
        self._taken_key: Callable[[Any], Any] = isolated
        self._taken: Callable[[Any], Any] = isolated

    def hold_to(self, descriptor: StateDescriptor) -> None:
        """Accept from now on only keys and values of the declared types, if there are any."""
        self._taken_key = _taken(getattr(descriptor, "key_type_info", None), f"key of state {descriptor.name!r}")
        self._taken = _taken(descriptor.type_info, f"state {descriptor.name!r}")

    def samples(self, most: int) -> list[V]:
        """Return the values of the first entries; they must not be changed."""
        return list(islice(self._entries.values(), most))

    def read_only(self, name: str) -> ReadOnlyBroadcastState[K, V]:
        """Return a read-only view of the same map; `name` is the state's, for errors."""
        return _ReadOnlyView(name, self._entries)

    def put(self, key: K, value: V) -> None:
        """Set the value at `key`."""
        self._entries[self._taken_key(key)] = self._taken(value)

    def put_all(self, dict_value: Mapping[K, V]) -> None:
        """Set the values of all keys of a mapping."""
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: K) -> None:
        """Delete the value at `key`, if there is one."""
        self._entries.pop(key, None)

    def clear(self) -> None:
        """Delete all entries."""
        self._entries.clear()

    __setitem__, __delitem__ = put, remove


class ReadOnlyError(StateError):
    """Raised on a write to broadcast state where it may only be read.

    Args:
        state: name of the state.
        call: the method that was called.
    """

    def __init__(self, state: str, call: str) -> None:
        super().__init__(state, call)
        self.state, self.call = state, call

    def __str__(self) -> str:
        return (
            f"{self.call} of broadcast state {self.state!r} was called where it may only be read: the others would not "
            "have what one subtask writes; write it in process_broadcast_element, which all subtasks call alike"
        )


class _ReadOnlyView(ReadOnlyBroadcastState[K, V]):
    """A read-only view of the entries of a state; its write methods raise an error that names who may write."""

    def __init__(self, name: str, entries: dict[K, V]) -> None:
        self._name, self._entries = name, entries

    def put(self, key: object, value: object) -> NoReturn:
        raise ReadOnlyError(self._name, "put")

    def put_all(self, dict_value: object) -> NoReturn:
        raise ReadOnlyError(self._name, "put_all")

    def remove(self, key: object) -> NoReturn:
        raise ReadOnlyError(self._name, "remove")

    def clear(self) -> NoReturn:
        raise ReadOnlyError(self._name, "clear")

    __setitem__, __delitem__ = put, remove


def _taken(type_info: DeclaredType | None, where: str) -> Callable[[Any], Any]:
    """Return what state stores for a value."""
    convert = convert_of(type_info)
    if convert is None:
        return isolated
    return lambda value: isolated(convert(value, where))


def ensure_operator_state(descriptor: object, kind: str) -> None:
    """Refuse what does not describe operator state of this kind, "list" or "map".

    Raises:
        StateError: it is no such descriptor, or one whose values expire.
    """
    if not isinstance(descriptor, StateDescriptor) or descriptor.kind != kind:
        wanted = f"a {kind.capitalize()}StateDescriptor"
        raise StateError(f"operator {kind} state needs {wanted}, found {descriptor!r:.100}; write {wanted[2:]}('name')")
    if descriptor.expiry is not None:
        remedy = "leave enable_time_to_live out, and keep the time in the value"
        raise StateError(
            f"operator state {descriptor.name!r} has a time to live, which only keyed state supports; {remedy}"
        )


class OperatorStateStore:
    """The operator state of one subtask.

    Args:
        restored: the lists assigned to this subtask; several where snapshots of several subtasks come together.
        operator_uid: who owns the state, for errors.
        evolution: how what is restored becomes state of the classes of now; None: as it is.
    """

    def __init__(
        self, restored: Iterable[Lists] = (), operator_uid: str = "", evolution: Evolution | None = None
    ) -> None:
        self._operator_uid, self._evolution = operator_uid, evolution
        self._restored: dict[str, tuple[str, list[bytes]]] = {}
        self._states: dict[str, tuple[str, StateDescriptor, Any]] = {}
        for lists in restored:
            for name, (mode, entries) in lists.items():
                known, gathered = self._restored.setdefault(name, (mode, []))
                self._check(name, known, mode)
                if mode != "broadcast" or not gathered:
                    gathered += entries

    def get_list_state(self, state_descriptor: ListStateDescriptor[T]) -> OperatorListState[T]:
        """Return the list of a `ListStateDescriptor` whose entries are split over the subtasks on restore.

        Raises:
            SnapshotMismatch: the snapshot has a state of this name in another mode.
            StateError: the descriptor is of another kind, or lets values expire, or the name is another state's.
        """
        return self._state(state_descriptor, "list", "split", OperatorListState)  # type: ignore[no-any-return]

    def get_union_list_state(self, state_descriptor: ListStateDescriptor[T]) -> OperatorListState[T]:
        """Return the list of a `ListStateDescriptor` of which every subtask gets all entries on restore.

        Raises:
            SnapshotMismatch: the snapshot has a state of this name in another mode.
            StateError: the descriptor is of another kind, or lets values expire, or the name is another state's.
        """
        return self._state(state_descriptor, "list", "union", OperatorListState)  # type: ignore[no-any-return]

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor[K, V]) -> BroadcastState[K, V]:
        """Return the map of a `MapStateDescriptor` that is equal in every subtask.

        Raises:
            SnapshotMismatch: the snapshot has a state of this name in another mode.
            StateError: the descriptor is of another kind, or lets values expire, or the name is another state's.
        """
        return self._state(state_descriptor, "map", "broadcast", BroadcastState)  # type: ignore[no-any-return]

    def snapshot(self) -> dict[str, tuple[str, tuple[bytes, ...]]]:
        """Return all lists as of now, those included that were restored and not asked for.

        Raises:
            SerializationError: an entry cannot be turned into bytes.
        """
        lists = {name: (mode, tuple(entries)) for name, (mode, entries) in self._restored.items()}
        for name, (mode, _, state) in self._states.items():
            entries = state.items() if mode == "broadcast" else state.get()
            lists[name] = mode, tuple(self._encode(name, entry) for entry in entries)
        return lists

    def summaries(self) -> tuple[StateSummary, ...]:
        """Return a summary of each state, including those that were restored and not asked for."""
        known = {} if self._evolution is None else self._evolution.lists
        unclaimed = [known[name] for name in self._restored if name in known]
        declared = []
        for mode, descriptor, state in self._states.values():
            kind = mode if mode == "broadcast" else f"{mode} list"
            declared.append(summary_of(descriptor, kind, state.samples(SAMPLES)))
        return merge_summaries((*declared, *unclaimed))

    @staticmethod
    def _fitted(mode: str, fits: Callable[[Any], Any] | None, entry: UserValue) -> UserValue:
        if fits is None:
            return entry
        return (entry[0], fits(entry[1])) if mode == "broadcast" else fits(entry)

    def _state(self, descriptor: StateDescriptor, kind: str, mode: str, create: Any) -> Any:
        ensure_operator_state(descriptor, kind)
        name = descriptor.name
        if name not in self._states:
            known, entries = self._restored.get(name, (mode, []))
            self._check(name, known, mode)
            stored = None if self._evolution is None else self._evolution.lists.get(name)
            fits = fitting(stored, descriptor, self._operator_uid)
            created = create([self._fitted(mode, fits, self._decode(name, entry)) for entry in entries])
            created.hold_to(descriptor)
            self._states[name] = mode, descriptor, created
        known, first_descriptor, state = self._states[name]
        if known != mode:
            first, second = f"{known} operator state", f"{mode} operator state"
            raise DuplicateStateError(name, first, second)
        first_descriptor.ensure_alike(descriptor)
        return state

    def _check(self, name: str, known: str, mode: str) -> None:
        if known != mode:
            written, declared = f"{known} operator state", f"{mode} operator state"
            raise SnapshotMismatch(name, self._operator_uid, written, declared, "the modes differ")

    def _encode(self, name: str, entry: UserValue) -> bytes:
        try:
            return bytes((ENTRY_FORMAT,)) + pickle.dumps(entry, protocol=5)
        except Exception as error:  # a user's class may raise anything while it is pickled
            problem = f"an entry of {name!r} ({type(error).__name__}: {error})"
            remedy = "keep in state only values that can be pickled"
            raise SerializationError("operator state", problem, remedy) from error

    def _decode(self, name: str, data: bytes) -> Any:
        if data[:1] != bytes((ENTRY_FORMAT,)):
            actual = f"entry format {data[0]}" if data else "no bytes"
            raise VersionMismatch(actual, f"entry format {ENTRY_FORMAT}", name, self._operator_uid)
        body = memoryview(data)[1:]
        evolution = self._evolution
        return pickle.loads(body) if evolution is None or not evolution.is_needed else evolution.loads(body)
