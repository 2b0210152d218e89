"""State handles: the objects through which user code reads and writes the entry of the current key.

What a handle gives out may be changed freely: state changes by `update`, `add` and `put` alone, on every backend alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

from rayflink.user_types import UserCode, UserValue

from .backend import NO_KEY, Entries, KeyContext, KeyedBackend, MapEntries, Namespace
from .descriptors import AggregatingStateDescriptor, ReducingStateDescriptor, StateDescriptor
from .errors import StateError
from .expiry import expiring_map_table, expiring_table
from .schema.evolution import fitting
from .schema.state_summary import summary_of
from .type_variables import IN, OUT, K, T, V
from .value_isolation import IMMUTABLE_TYPES, isolated

_ABSENT: Final = object()


class NoCurrentKeyError(StateError):
    """Raised when keyed state is used where there is no current key.

    Args:
        state: name of the state.
    """

    def __init__(self, state: str) -> None:
        super().__init__(state)
        self.state = state

    def __str__(self) -> str:
        return (
            f"keyed state {self.state!r} was used without a current key; use it in process_element or on_timer, and in "
            "open only create its handle"
        )


class State:
    """The base of state handles in user code."""

    __slots__ = ()

    def clear(self) -> None:
        """Delete the state."""
        raise NotImplementedError(f"{type(self).__name__}.clear")


class KeyedState(State):
    """A handle on one keyed state, made by a `StateStore`; a `scoped` one follows the context's namespace."""

    __slots__ = ("_context", "_name", "_scoped", "_taken")

    def __init__(self, name: str, context: KeyContext, scoped: bool) -> None:
        self._name = name
        self._context = context
        self._scoped = scoped
        self._taken: Callable[[Any], Any] = isolated

    def hold_to(self, descriptor: StateDescriptor) -> None:
        """Accept from now on only values of the declared type, if any, and store them in the type's own form."""
        convert, where = convert_of(descriptor.type_info), f"state {self._name!r}"
        if convert is not None:
            self._taken = lambda value: isolated(convert(value, where))

    def _key(self) -> Any:
        key = self._context.key
        if key is NO_KEY:
            raise NoCurrentKeyError(self._name)
        return key

    def _namespace(self) -> Any:
        return self._context.namespace if self._scoped else None


class TableState(KeyedState):
    """A handle whose state is one table entry per key."""

    __slots__ = ("_table",)

    def __init__(self, table: Entries, name: str, context: KeyContext, scoped: bool) -> None:
        super().__init__(name, context, scoped)
        self._table = table

    def clear(self) -> None:
        """Delete the state of the current key."""
        self._table.remove(self._key(), self._namespace())


class ValueState(TableState, Generic[T]):
    """One value of the current key."""

    __slots__ = ()

    def value(self) -> T | None:
        """Return the value, or None where there is none."""
        context = self._context  # written out, for programs call this once a record
        if context.key is NO_KEY:
            raise NoCurrentKeyError(self._name)
        value: T | None = self._table.get(context.key, context.namespace if self._scoped else None)
        kind = value.__class__
        return value if kind in IMMUTABLE_TYPES else isolated(value)

    def update(self, value: T | None) -> None:
        """Set the value; None deletes it."""
        if value is None:
            self.clear()
            return
        context = self._context
        if context.key is NO_KEY:
            raise NoCurrentKeyError(self._name)
        self._table.put(context.key, self._taken(value), context.namespace if self._scoped else None)


class AppendingState(TableState, Generic[IN, OUT]):
    """State of the current key to which values are added, and from which a result is read."""

    __slots__ = ()

    def get(self) -> OUT | None:
        """Return the content of the state."""
        raise NotImplementedError(f"{type(self).__name__}.get")

    def add(self, value: IN) -> None:
        """Add a value."""
        raise NotImplementedError(f"{type(self).__name__}.add")


class MergingState(AppendingState[IN, OUT]):
    """Appending state whose contents for several namespaces can be merged into one."""

    __slots__ = ()

    def merge_namespaces(self, target: Namespace, sources: Iterable[Namespace]) -> None:
        """Move what the namespaces `sources` hold for the current key into the namespace `target`, in this order."""
        context = self._context
        before = context.namespace
        for source in sources:
            context.namespace = source
            content = self._content()
            self.clear()
            context.namespace = target
            if content is not None:
                self._merge_content(content)
        context.namespace = before

    def _content(self) -> Any:
        """Return the argument for `_merge_content`, or None where there is nothing."""
        return self.get()

    def _merge_content(self, content: UserValue) -> None:
        self.add(content)


class ListState(MergingState[T, Iterable[T]]):
    """A list of the current key. An empty list and no list are the same."""

    __slots__ = ()

    def get(self) -> Iterator[T]:
        """Return the elements as of now, in order."""
        return iter([isolated(element) for element in self._table.get(self._key(), self._namespace(), ())])

    def __iter__(self) -> Iterator[T]:
        return self.get()

    def add(self, value: T) -> None:
        """Append an element.

        Raises:
            ValueError: it is None.
        """
        self._table.append(self._key(), self._taken(self._element(value)), self._namespace())

    def add_all(self, values: Iterable[T]) -> None:
        """Append elements, in order.

        Raises:
            ValueError: one of them is None; nothing is appended then.
        """
        key, namespace = self._key(), self._namespace()
        for value in [self._taken(self._element(value)) for value in values]:
            self._table.append(key, value, namespace)

    def update(self, values: Iterable[T]) -> None:
        """Replace the list; an empty one deletes it.

        Raises:
            ValueError: one of the elements is None; nothing is changed then.
        """
        elements = [self._taken(self._element(value)) for value in values]
        if elements:
            self._table.put(self._key(), elements, self._namespace())
        else:
            self.clear()

    def _content(self) -> Any:
        return list(self.get())

    def _merge_content(self, content: UserValue) -> None:
        self.add_all(content)

    def _element(self, value: UserValue) -> UserValue:
        if value is None:
            raise ValueError(f"list state {self._name!r} takes no None as an element; leave it out")
        return value


class MapState(KeyedState, Generic[K, V]):
    """A map of the current key."""

    __slots__ = ("_table", "_taken_key")

    def __init__(self, table: MapEntries, name: str, context: KeyContext, scoped: bool) -> None:
        super().__init__(name, context, scoped)
        self._table = table
        self._taken_key: Callable[[Any], Any] = isolated

    def hold_to(self, descriptor: StateDescriptor) -> None:
        super().hold_to(descriptor)
        convert, where = convert_of(getattr(descriptor, "key_type_info", None)), f"key of state {self._name!r}"
        if convert is not None:
            self._taken_key = lambda key: isolated(convert(key, where))

    def get(self, key: K) -> V | None:
        """Return the value at `key`, or None."""
        value: V | None = isolated(self._table.get(self._key(), key, self._namespace()))
        return value

    def put(self, key: K, value: V) -> None:
        """Set the value at `key`."""
        self._table.put(self._key(), self._taken_key(key), self._taken(value), self._namespace())

    def put_all(self, dict_value: Mapping[K, V]) -> None:
        """Set the values of all keys of a mapping."""
        for key, value in dict_value.items():
            self.put(key, value)

    def remove(self, key: K) -> None:
        """Delete the value at `key`, if there is one."""
        self._table.remove(self._key(), key, self._namespace())

    def contains(self, key: K) -> bool:
        """Return whether there is a value at `key`."""
        return self._table.contains(self._key(), key, self._namespace())

    def items(self) -> Iterator[tuple[K, V]]:
        """Return (key, value) of all entries as of now; the map may be changed while they are read."""
        return iter([(isolated(k), isolated(v)) for k, v in self._table.items(self._key(), self._namespace())])

    def keys(self) -> Iterator[K]:
        """Yield the keys as of now."""
        return iter([isolated(key) for key, _ in self._table.items(self._key(), self._namespace())])

    def values(self) -> Iterator[V]:
        """Yield the values as of now."""
        return iter([isolated(value) for _, value in self._table.items(self._key(), self._namespace())])

    def is_empty(self) -> bool:
        """Return whether the map has no entries."""
        return not self._table.items(self._key(), self._namespace())

    def clear(self) -> None:
        """Delete all entries of the current key."""
        self._table.clear(self._key(), self._namespace())

    __getitem__, __setitem__, __delitem__, __contains__, __iter__ = get, put, remove, contains, keys


class ReducingState(MergingState[T, T]):
    """One value of the current key, into which each added value is reduced."""

    __slots__ = ("_reduce",)

    def __init__(
        self, reduce: Callable[[Any, Any], Any], table: Entries, name: str, context: KeyContext, scoped: bool
    ) -> None:
        super().__init__(table, name, context, scoped)
        self._reduce = reduce

    def get(self) -> T | None:
        """Return the reduced value, or None where nothing was added."""
        value: T | None = isolated(self._table.get(self._key(), self._namespace()))
        return value

    def add(self, value: T | None) -> None:
        """Reduce `value` into the state; None deletes the state."""
        if value is None:
            self.clear()
            return
        key, namespace = self._key(), self._namespace()
        old = self._table.get(key, namespace, _ABSENT)
        result = value if old is _ABSENT else self._reduce(old, value)
        self._table.put(key, self._taken(result), namespace)


class AggregatingState(MergingState[IN, OUT]):
    """One accumulator of the current key. The function owns it: `add` may change it in place."""

    __slots__ = ("_function",)

    def __init__(self, function: UserCode, table: Entries, name: str, context: KeyContext, scoped: bool) -> None:
        super().__init__(table, name, context, scoped)
        self._function = function
        self._taken = _itself

    def hold_to(self, descriptor: StateDescriptor) -> None:
        convert, where = convert_of(descriptor.type_info), f"accumulator of state {self._name!r}"
        if convert is not None:
            self._taken = lambda accumulator: convert(accumulator, where)

    def get(self) -> OUT | None:
        """Return the function's result of the accumulator, or None where nothing was added."""
        accumulator = self._table.get(self._key(), self._namespace(), _ABSENT)
        return None if accumulator is _ABSENT else self._function.get_result(isolated(accumulator))

    def add(self, value: IN | None) -> None:
        """Gather `value` in the accumulator; None deletes the state."""
        if value is None:
            self.clear()
            return
        key, namespace = self._key(), self._namespace()
        accumulator = self._table.get(key, namespace, _ABSENT)
        if accumulator is _ABSENT:
            accumulator = self._function.create_accumulator()
        self._table.put(key, self._taken(self._function.add(isolated(value), accumulator)), namespace)

    def _content(self) -> Any:
        return self._table.get(self._key(), self._namespace())

    def _merge_content(self, content: UserValue) -> None:
        key, namespace = self._key(), self._namespace()
        mine = self._table.get(key, namespace, _ABSENT)
        merged = content if mine is _ABSENT else self._function.merge(mine, content)
        self._table.put(key, self._taken(merged), namespace)


class StateStore:
    """A factory of the handles of one operator: it returns the same handle for the same name.

    Args:
        backend: where the state is.
        context: whose state the handles read.
        operator_uid: who owns the state, for errors.
        scoped: handles follow the context's namespace (state of a window); else they have none (state of the key).
        reserved: names of the operator's own states, which no handle may have.
    """

    def __init__(
        self,
        backend: KeyedBackend,
        context: KeyContext,
        operator_uid: str = "",
        scoped: bool = False,
        reserved: Collection[str] = (),
    ) -> None:
        self._backend = backend
        self._context = context
        self._operator_uid = operator_uid
        self._scoped = scoped
        self._reserved = reserved
        self._handles: dict[str, tuple[StateDescriptor, Any]] = {}

    def get_state(self, state_descriptor: StateDescriptor) -> ValueState[Any]:
        """Return the `ValueState` of a `ValueStateDescriptor`."""
        return self._handle(state_descriptor, "value", ValueState)

    def get_list_state(self, state_descriptor: StateDescriptor) -> ListState[Any]:
        """Return the `ListState` of a `ListStateDescriptor`."""
        return self._handle(state_descriptor, "list", ListState)

    def get_map_state(self, state_descriptor: StateDescriptor) -> MapState[Any, Any]:
        """Return the `MapState` of a `MapStateDescriptor`."""

        def create(table: Entries, name: str, context: KeyContext, scoped: bool) -> MapState[Any, Any]:
            expiry = state_descriptor.expiry
            if expiry is None:
                return MapState(self._backend.map_table(state_descriptor), name, context, scoped)
            expiring = expiring_map_table(expiry, state_descriptor, self._backend, context)
            return MapState(expiring, name, context, scoped)

        return self._handle(state_descriptor, "map", create)

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor[Any]) -> ReducingState[Any]:
        """Return the `ReducingState` of a `ReducingStateDescriptor`."""

        def create(table: Entries, name: str, context: KeyContext, scoped: bool) -> ReducingState[Any]:
            function: UserCode = state_descriptor.reduce_function
            reduce: UserCode = getattr(function, "reduce", function)
            return ReducingState(reduce, table, name, context, scoped)

        return self._handle(state_descriptor, "reducing", create)

    def get_aggregating_state(
        self, state_descriptor: AggregatingStateDescriptor[Any, Any]
    ) -> AggregatingState[Any, Any]:
        """Return the `AggregatingState` of an `AggregatingStateDescriptor`."""

        def create(table: Entries, name: str, context: KeyContext, scoped: bool) -> AggregatingState[Any, Any]:
            return AggregatingState(state_descriptor.agg_function, table, name, context, scoped)

        return self._handle(state_descriptor, "aggregating", create)

    def _fit(self, descriptor: StateDescriptor) -> None:
        """Convert restored values of another declared type to the type that is declared now.

        Raises:
            SnapshotMismatch: they cannot.
        """
        fits = fitting(self._context.restored_summaries.get(descriptor.name), descriptor, self._operator_uid)
        if fits is not None:
            change_values(self._backend, descriptor, fits)
            declared = summary_of(descriptor, descriptor.stored_kind, ())
            self._context.restored_summaries = {**self._context.restored_summaries, descriptor.name: declared}

    def _table_of(self, descriptor: StateDescriptor) -> Entries:
        if descriptor.expiry is None:
            return self._backend.table(descriptor)
        return expiring_table(descriptor.expiry, descriptor, self._backend, self._context)

    def _handle(self, descriptor: StateDescriptor, kind: str, create: Callable[[Any, str, KeyContext, bool], _H]) -> _H:
        if not isinstance(descriptor, StateDescriptor) or descriptor.kind != kind:
            raise TypeError(f"{kind} state needs {_DESCRIPTORS[kind]}, found {descriptor!r}")
        known = self._handles.get(descriptor.name)
        if known is None:
            if descriptor.name in self._reserved:
                raise StateError(f"state {descriptor.name!r} is the operator's own; give the descriptor another name")
            self._fit(descriptor)
            table = None if kind == "map" else self._table_of(descriptor)
            created = create(table, descriptor.name, self._context, self._scoped)
            created.hold_to(descriptor)
            known = descriptor, created
            self._handles[descriptor.name] = known
        elif known[0] is not descriptor:
            known[0].ensure_alike(descriptor)
        handle: _H = known[1]
        return handle


def change_values(backend: KeyedBackend, descriptor: StateDescriptor, change: Callable[[Any], Any]) -> None:
    """Give each value of a state, each element of its lists and each value of its maps, another form."""
    expires = descriptor.expiry is not None

    def changed(stored: UserValue) -> UserValue:
        return (stored[0], change(stored[1])) if expires else change(stored)

    if descriptor.kind == "map":
        maps = backend.map_table(descriptor)
        for key, namespace in list(dict.fromkeys(maps.walk())):
            for map_key, stored in list(maps.items(key, namespace)):
                maps.put(key, map_key, changed(stored), namespace)
        return
    table = backend.table(descriptor)
    for key, namespace in list(dict.fromkeys(table.walk())):
        stored = table.get(key, namespace, _ABSENT)
        if stored is not _ABSENT:
            new = [changed(element) for element in stored] if descriptor.kind == "list" else changed(stored)
            table.put(key, new, namespace)


def _itself(value: UserValue) -> UserValue:
    return value


def convert_of(type_info: object) -> Callable[[Any, str], Any] | None:
    """Return `convert(value, where)` for the type, as state stores its values; None where no type is declared."""
    if type_info is None:
        return None
    stored_type = type_info.in_state() if hasattr(type_info, "in_state") else type_info
    convert: Callable[[Any, str], Any] | None = getattr(stored_type, "convert", None)
    if convert is None:
        raise TypeError(f"the type of a state must be a TypeInformation such as Types.INT(), found {type_info!r}")
    return convert


_H = TypeVar("_H", bound=KeyedState)
_DESCRIPTORS = {
    "value": "a ValueStateDescriptor", "list": "a ListStateDescriptor", "map": "a MapStateDescriptor",
    "reducing": "a ReducingStateDescriptor", "aggregating": "an AggregatingStateDescriptor",
}  # fmt: skip
