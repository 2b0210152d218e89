"""The cache in front of RocksDB: its size is bounded however it is used, and evicted values come back unchanged."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rayflink.operators.windows.merging_window_set import MergingWindowSet
from rayflink.operators.windows.session_windows import EventTimeSessionWindows
from rayflink.operators.windows.window import TimeWindow
from rayflink.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rayflink.state.errors import SerializationError
from rayflink.state.memory import HashMapBackend
from rayflink.state.rocksdb.cache_budget import CacheLimits
from rayflink.state.rocksdb.rocksdb_backend import RocksDBBackend, StateMemory
from rayflink.testing.backend_laws.subject import snapshot_of

GROUPS = range(4)
BUDGET = 100_000


class Point(NamedTuple):
    """A key that reads back as a plain tuple."""

    x: int
    y: int


@pytest.fixture
def backend() -> Iterator[RocksDBBackend]:
    folder = Path(tempfile.gettempdir(), f"rayflink-{uuid.uuid4().hex}")
    made = RocksDBBackend(GROUPS, len(GROUPS), "op", folder, StateMemory(BUDGET))
    yield made
    made.close()


def cold(backend: RocksDBBackend) -> None:
    """Evict everything from memory."""
    for cache in backend.cache_budget.caches:
        cache.rotate()
        cache.rotate()


def estimated_bytes(backend: RocksDBBackend) -> float:
    return sum(cache.estimated_bytes for cache in backend.cache_budget.caches)


def test_looking_for_what_is_not_there_takes_no_more_memory_than_the_budget(backend: RocksDBBackend) -> None:
    table = backend.table(ValueStateDescriptor("x"))
    table.put(0, 0)
    cold(backend)
    assert all(table.get(key) is None for key in range(1, 3000))
    assert estimated_bytes(backend) < BUDGET


def test_lists_and_maps_that_are_only_read_take_no_more_memory_than_the_budget(backend: RocksDBBackend) -> None:
    lists, maps = backend.table(ListStateDescriptor("l")), backend.map_table(MapStateDescriptor("m"))
    for key in range(600):
        lists.put(key, [key])
        maps.put(key, "a", key)
    cold(backend)
    assert all(lists.get(key) == [key] for key in range(600))
    assert estimated_bytes(backend) < BUDGET
    assert all(list(maps.items(key)) == [("a", key)] for key in range(600))
    assert estimated_bytes(backend) < BUDGET


def test_maps_that_come_and_go_leave_nothing_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(RocksDBBackend, "cache_limits", CacheLimits(max_stored_namespaces=1))
    backend = RocksDBBackend(GROUPS, len(GROUPS), "op", tmp_path / "db", StateMemory(BUDGET))
    maps: Any = backend.map_table(MapStateDescriptor("m"))
    for key in range(10):
        maps.put(key, "a", key)
    cold(backend)
    for key in range(10, 2000):
        maps.put(key, "a", key)
        maps.clear(key)
    assert maps.cache.statistics().complete_namespaces < 500
    backend.close()


def test_namespaces_that_were_only_looked_at_leave_nothing_in_memory(backend: RocksDBBackend) -> None:
    table: Any = backend.table(ValueStateDescriptor("x"))
    for namespace in range(100):
        table.changed((), namespace)
    assert table.statistics().dirty_namespaces == 0


@pytest.mark.parametrize("key", [2**63, 2**70, (2**64, "a"), -(2**65)])
def test_a_whole_number_beyond_64_bits_stays_one(backend: RocksDBBackend, key: Any) -> None:
    table, maps = backend.table(ValueStateDescriptor("x")), backend.map_table(MapStateDescriptor("m"))
    table.put(key, "a")
    maps.put("k", key, "b")
    cold(backend)
    ((found, _, _),) = table.entries(GROUPS)
    ((at, _),) = maps.items("k")
    assert (repr(found), repr(at)) == (repr(key), repr(key))


@pytest.mark.parametrize("make", [ValueStateDescriptor, ListStateDescriptor, MapStateDescriptor])
def test_a_walk_gives_the_keys_as_they_were_set(backend: RocksDBBackend, make: Any) -> None:
    descriptor = make("x")
    keys = [Point(1, 2), 2**70, True, "a", ("b", 1)]
    for key in keys:
        if descriptor.kind == "map":
            backend.map_table(descriptor).put(key, "a", 1)
        else:
            backend.table(descriptor).put(key, [1])
    cold(backend)
    table = backend.map_table(descriptor) if descriptor.kind == "map" else backend.table(descriptor)
    assert {repr(key) for key, _ in table.walk()} == set(map(repr, keys))


def test_a_key_may_have_many_windows_in_flight_that_are_not_in_memory(backend: RocksDBBackend) -> None:
    windows = MergingWindowSet(EventTimeSessionWindows(5), backend.map_table(MapStateDescriptor("windows")))
    for start in range(0, 4000, 10):
        windows.add("k", TimeWindow(start, start + 5), lambda *merge: None)
    windows.forget()
    cold(backend)
    merged: list[Any] = []
    assert windows.add("k", TimeWindow(2004, 2009), lambda *merge: merged.append(merge)) == TimeWindow(2000, 2009)
    assert len(merged) == 1


def test_none_as_a_value_is_in_the_snapshot(backend: RocksDBBackend) -> None:
    descriptor = ValueStateDescriptor("x")
    backend.table(descriptor).put("a", None)
    restored = HashMapBackend(GROUPS, len(GROUPS))
    restored.restore([snapshot_of(backend)])
    assert restored.table(descriptor).get("a", None, "nothing") is None


def test_a_value_that_cannot_be_pickled_is_named_when_it_leaves_memory(backend: RocksDBBackend) -> None:
    table = backend.table(ValueStateDescriptor("x"))
    table.put("k", lambda: 1)
    with pytest.raises(SerializationError, match=r"state 'x' of key 'k'"):
        cold(backend)


def test_timers_that_go_to_disk_while_their_time_fires_fire_once(backend: RocksDBBackend) -> None:
    queue = backend.timers("t")
    count = queue._most - 10
    for key in range(count):
        queue.register(5, key)
    fired: list[Any] = []
    for _, _, keys in queue.due_keys(5, 100):
        fired += keys
        for key in keys:
            queue.register(1_000_000 + key, key)
            queue.register(2_000_000 + key, key)
    assert sorted(fired) == list(range(count))
