"""The backend under test, and the assertions by which a law reports what it found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Protocol

from rayflink.state.backend import KeyContext, KeyedBackend, KeyedMapTable, KeyedTable
from rayflink.state.handles import StateStore
from rayflink.state.keys.key_groups import key_group_range
from rayflink.state.memory import HashMapBackend
from rayflink.state.snapshots import InlineSnapshots

MAX_PARALLELISM = 128
OPERATOR_UID = "uid-1"


class MakeBackend(Protocol):
    """A factory of new, empty backends."""

    def __call__(self, key_groups: range, max_parallelism: int, operator_uid: str) -> KeyedBackend: ...


class Subject:
    """A factory of the backends that a law asks for, which are closed after it.

    Args:
        make_backend: makes the backend under test.
    """

    def __init__(self, make_backend: MakeBackend) -> None:
        self.make_backend = make_backend
        self._open: list[KeyedBackend] = []

    def backend(self, *snapshots: Mapping[int, bytes], subtask: int = 0, parallelism: int = 1) -> KeyedBackend:
        """Return a new backend under test, with this subtask's part of the snapshots."""
        return self._started(self.make_backend, snapshots, key_group_range(subtask, parallelism, MAX_PARALLELISM))

    def hashmap(self, *snapshots: Mapping[int, bytes]) -> KeyedBackend:
        """Return a new hashmap backend, with the content of the snapshots."""
        return self._started(HashMapBackend, snapshots, range(MAX_PARALLELISM))

    def store(self, now_ms: Callable[[], int] | None = None, scoped: bool = False) -> tuple[StateStore, KeyContext]:
        """Return the handles of a new backend, and the context that sets their key, "k" at first."""
        return self.store_of(self.backend(), now_ms, scoped)

    def store_of(
        self, backend: KeyedBackend, now_ms: Callable[[], int] | None = None, scoped: bool = False
    ) -> tuple[StateStore, KeyContext]:
        """Return the handles of this backend."""
        context = KeyContext() if now_ms is None else KeyContext(now_ms)
        context.key = "k"
        return StateStore(backend, context, OPERATOR_UID, scoped), context

    def close(self, backend: KeyedBackend) -> None:
        """Close one of the backends."""
        self._open.remove(backend)
        backend.close()

    def _started(self, make: MakeBackend, snapshots: Iterable[Mapping[int, bytes]], groups: range) -> KeyedBackend:
        backend = make(groups, MAX_PARALLELISM, OPERATOR_UID)
        self._open.append(backend)
        backend.restore(snapshots)
        return backend

    def __enter__(self) -> Subject:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._open:
            self._open.pop().close()


def snapshot_of(backend: KeyedBackend) -> dict[int, bytes]:
    """Return key group -> its state and timers as of now, in the format of all backends."""
    inline = InlineSnapshots()
    capture = backend.capture(inline.checkpoint_id)
    try:
        parts = capture.write(inline)
    finally:
        capture.release()
        backend.abort(inline.checkpoint_id)
    assert not parts.databases, "a savepoint is key groups alone"
    return {group: inline.read(blob) for group, blob in parts.groups.items()}


Law = Callable[[Subject], None]
"""Raises an AssertionError where the backend does not keep it."""


def same(what: str, actual: Any, expected: Any) -> None:
    """Check that `actual` equals `expected`."""
    if actual != expected:
        raise AssertionError(f"{what}: expected {expected!r:.1000}, found {actual!r:.1000}")


def same_bag(what: str, actual: Iterable[Any], expected: Iterable[Any]) -> None:
    """Check that two collections of hashable things are equal but for the order."""
    mine, wanted = list(actual), list(expected)
    if len(mine) != len(wanted) or set(mine) != set(wanted):
        missing, more = set(wanted) - set(mine), set(mine) - set(wanted)
        counts = f"{len(wanted)} expected, {len(mine)} found"
        raise AssertionError(f"{what}: {counts}; missing {missing!r:.500}, not expected {more!r:.500}")


def refused(what: str, error: type[Exception], said: str, action: Callable[[], object]) -> None:
    """Check that `action` raises `error` with these words in its message."""
    try:
        action()
    except error as raised:
        if said not in str(raised):
            raise AssertionError(f"{what}: the error should say {said!r}, and says {str(raised)!r}") from raised
    else:
        raise AssertionError(f"{what}: {error.__name__} is to be raised, and is not")


def content_of(table: KeyedTable) -> dict[tuple[Any, Any], Any]:
    """Return (key, namespace) -> value of all entries, each of which must be there once; check `len` and `walk`
    too.
    """
    rows = list(table.entries(range(MAX_PARALLELISM)))
    content = {(key, namespace): value for key, namespace, value in rows}
    same("each entry is given once; entries given", len(rows), len(content))
    same("len(table)", len(table), len(content))
    same("places that walk() misses", set(content) - set(table.walk()), set())
    return content


def maps_in(table: KeyedMapTable) -> dict[tuple[Any, Any], dict[Any, Any]]:
    """Return (key, namespace) -> map of all maps that have entries."""
    maps = {(key, namespace): dict(table.items(key, namespace)) for key, namespace in set(table.walk())}
    return {place: entries for place, entries in maps.items() if entries}
