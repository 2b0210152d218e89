"""The row cache against a plain dict, with budgets so small that it evicts all the time."""

from __future__ import annotations

import pickle
from concurrent.futures import Future
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rayflink.state.errors import SerializationError
from rayflink.state.keys.key_encoding import NAN
from rayflink.state.rocksdb.cache_budget import CacheBudget, CacheLimits
from rayflink.state.rocksdb.cache_generation import CacheUsage, Generation
from rayflink.state.rocksdb.missing_rows import MissingRows
from rayflink.state.rocksdb.row_cache import RowCache
from tests.state.rocksdb.rows_in_memory import ColumnInMemory, PickledRows

AMPLE = 1 << 30
SMALL_LIMITS = CacheLimits(evict_entries=3, growth_entries=4, max_tombstones=3, max_stored_namespaces=2)
namespaces = st.integers(0, 3)
keys = st.integers(0, 9)
some_keys = st.lists(keys, max_size=5, unique=True)
values = st.integers(0, 99)


def cache_of(column: Any, budget_bytes: int = AMPLE, limits: CacheLimits | None = None) -> RowCache:
    return RowCache(column, PickledRows(), CacheBudget(lambda: budget_bytes, limits), "x")


class CacheHistory(RuleBasedStateMachine):
    """Any calls in any order; the model is a dict (namespace, key) -> value."""

    @initialize(budget_bytes=st.sampled_from([1, 3000, 8000, AMPLE]))
    def begin(self, budget_bytes: int) -> None:
        self.column = ColumnInMemory()
        self.cache = cache_of(self.column, budget_bytes, SMALL_LIMITS)
        self.model: dict[tuple[int, int], int] = {}
        self.captured: Any = None
        self.captured_model: dict[tuple[int, int], int] | None = None
        self.written: Future[None] | None = None

    def of_namespace(self, namespace: int) -> dict[int, int]:
        return {key: value for (within, key), value in self.model.items() if within == namespace}

    @rule(namespace=namespaces, key=keys, value=values)
    def put(self, namespace: int, key: int, value: int) -> None:
        self.cache.put(key, value, namespace)
        self.model[namespace, key] = value

    @rule(namespace=namespaces, key=keys)
    def get(self, namespace: int, key: int) -> None:
        assert self.cache.get(key, namespace, "none") == self.model.get((namespace, key), "none")

    @rule(namespace=namespaces, of_batch=some_keys, value=values)
    def work_on_a_batch(self, namespace: int, of_batch: list[int], value: int) -> None:
        entries = self.cache.load(of_batch, namespace)
        expected = self.of_namespace(namespace)
        assert {key: entries[key] for key in of_batch if key in entries} == {
            key: expected[key] for key in of_batch if key in expected
        }
        for key in of_batch:
            entries[key] = self.model[namespace, key] = value
        self.cache.changed(of_batch, namespace)

    @rule(namespace=namespaces, key=keys)
    def extend_in_place(self, namespace: int, key: int) -> None:
        entries = self.cache.load((key,), namespace)
        if key in entries:
            entries[key] += 100
            self.model[namespace, key] += 100
            self.cache.mark_extended(namespace, key, 100)

    @rule(namespace=namespaces, of_batch=some_keys)
    def remove(self, namespace: int, of_batch: list[int]) -> None:
        self.cache.remove_all(iter(of_batch), namespace)
        for key in of_batch:
            self.model.pop((namespace, key), None)

    @rule(namespace=namespaces)
    def read_namespace(self, namespace: int) -> None:
        """Read all rows, as the tables of maps and lists do."""
        cache = self.cache
        if not cache.is_complete(namespace):
            cache.flush_namespace(namespace)
            entries = cache.cached_entries(namespace)
            cache.pinned = True
            for data in self.column.visible().values():
                within, key, value = pickle.loads(data)
                if within == namespace and key not in entries:
                    cache.insert_clean(namespace, key, value)
            cache.complete_namespace(namespace)
            cache.pinned = False
        assert cache.cached_entries(namespace) == self.of_namespace(namespace)
        cache.make_room()

    @rule(namespace=namespaces)
    def drop_namespace(self, namespace: int) -> None:
        """Delete all rows, as the tables of maps and lists do: one by one where the keys are known."""
        stored = self.cache.stored_keys(namespace)
        rows = [row for row in self.column.visible() if row.startswith(b"%d/" % namespace)]
        if self.cache.drop_namespace(namespace):
            if stored is None:
                self.column.delete_range(b"%d/" % namespace, b"%d0" % namespace)
            else:
                deleted = PickledRows().rows(namespace, stored)
                assert set(rows) <= set(deleted)
                self.column.write((), deleted)
        else:
            assert not rows
        self.model = {place: value for place, value in self.model.items() if place[0] != namespace}

    @rule()
    def flush(self) -> None:
        self.cache.flush()
        assert self.stored() == self.model and not self.cache.has_more_dirty_than(0)
        self.cache.recount()
        sizes = self.cache.statistics()
        assert self.cache.usage.entries == sizes.hot_entries + sizes.known_missing

    @rule(limit=st.integers(1, 5))
    def write_some(self, limit: int) -> None:
        self.cache.write_some(limit)

    @rule()
    def rotate(self) -> None:
        self.cache.rotate()

    @rule()
    def clear(self) -> None:
        self.cache.clear_all()
        self.model = {}

    @precondition(lambda self: self.written is None)
    @rule()
    def capture(self) -> None:
        self.captured = self.cache.capture_dirty() or ()
        self.column.begin_capture()
        self.captured_model, self.written = dict(self.model), Future()
        self.cache.capture_written_by(self.written)

    @precondition(lambda self: self.written is not None)
    @rule()
    def finish_capture(self) -> None:
        rows = self.column.end_capture(self.captured)
        assert {data[:2]: data[2] for data in map(pickle.loads, rows.values())} == self.captured_model
        self.end_capture(None)

    @precondition(lambda self: self.written is not None)
    @rule()
    def fail_capture(self) -> None:
        self.column.end_capture(())
        self.end_capture(OSError("the disk is gone"))

    def end_capture(self, error: Exception | None) -> None:
        assert self.written is not None
        self.written.set_exception(error) if error else self.written.set_result(None)
        self.written = None

    def stored(self) -> dict[tuple[int, int], int]:
        return {data[:2]: data[2] for data in map(pickle.loads, self.column.visible().values())}

    @invariant()
    def entries_in_memory_are_those_of_the_model(self) -> None:
        if hasattr(self, "cache"):
            in_memory = {(namespace, key): value for namespace, key, value in self.cache.all_cached_entries()}
            assert in_memory.items() <= self.model.items()

    @invariant()
    def memory_is_never_counted_too_low(self) -> None:
        if hasattr(self, "cache"):
            sizes = self.cache.statistics()
            assert self.cache.usage.entries >= sizes.hot_entries + sizes.known_missing
            assert sizes.tombstones <= SMALL_LIMITS.max_tombstones

    def teardown(self) -> None:
        if hasattr(self, "cache"):
            if self.written is not None:
                self.finish_capture()
            self.flush()


CacheHistory.TestCase.settings = settings(
    max_examples=100, stateful_step_count=40, deadline=None, report_multiple_bugs=False
)
TestAnyHistory = pytest.mark.slow(CacheHistory.TestCase)


@pytest.fixture
def column() -> ColumnInMemory:
    return ColumnInMemory()


def test_an_entry_in_use_is_neither_read_nor_written(column: ColumnInMemory) -> None:
    cache = cache_of(column)
    for key in range(100):
        cache.put(key, key)
    cache.rotate()
    for _ in range(5):
        assert cache.get(7) == 7
        cache.rotate()
    assert cache.get(7) == 7 and column.reads == 0
    assert column.writes == 99, "all but the one in use were evicted"


def test_without_a_surplus_nothing_is_evicted(column: ColumnInMemory) -> None:
    cache = cache_of(column)
    cache.put("a", 1)
    assert cache.evict(1_000) == 0, "only cold entries are"
    cache.rotate()
    assert cache.evict(0) == 0 and cache.statistics().cold_entries == 1
    assert cache.evict(1) > 0 and cache.statistics().cold_entries == 0


def test_a_key_of_another_form_is_changed_under_its_own(column: ColumnInMemory) -> None:
    cache = cache_of(column)
    cache.load([float("nan")])[NAN] = 1
    cache.changed([float("nan")])
    cache.rotate()
    cache.rotate()
    assert cache.get(NAN) == 1 and (column.reads, column.writes) == (1, 1)


def test_what_was_evicted_clean_is_not_written_again(column: ColumnInMemory) -> None:
    cache = cache_of(column)
    cache.put("a", 1)
    cache.flush()
    cache.rotate()
    cache.rotate()
    assert cache.get("a") == 1 and (column.reads, column.writes) == (1, 1)


def test_what_is_known_to_be_missing_is_not_looked_up(column: ColumnInMemory) -> None:
    cache = cache_of(column)
    cache.put("a", 1, "with rows")
    cache.put("b", 2, "with rows")
    cache.flush()
    assert cache.get("a", "never written") is None
    assert [cache.get("looked up before", "with rows") for _ in range(3)] == [None] * 3
    assert cache.load(["looked up before"], "with rows").keys() == {"a", "b"}
    cache.remove_all(["a"], "with rows")
    assert cache.get("a", "with rows") is None and cache.statistics().tombstones == 1
    cache.complete_namespace("with rows")
    assert cache.get("c", "with rows") is None and column.reads == cache.misses == 1


def test_a_window_that_ends_within_the_cache_never_touches_the_disk(column: ColumnInMemory) -> None:
    cache = cache_of(column)
    for window in range(50):
        entries = cache.load(range(20), window)
        entries.update(dict.fromkeys(range(20), 1))
        cache.changed(range(20), window)
        cache.remove_all(range(20), window)
    assert column.is_empty and column.reads == 0
    assert cache.usage.entries == 0 and cache.statistics().dirty_namespaces == 0


def test_rows_of_tombstones_are_deleted_together(column: ColumnInMemory) -> None:
    cache = cache_of(column, limits=CacheLimits(max_tombstones=10))
    for key in range(20):
        cache.put(key, key)
    cache.flush()
    cache.remove_all(range(5))
    cache.remove_all(range(10))
    assert cache.statistics().tombstones == 10 and len(column.rows) == 20
    cache.remove_all((10,))
    assert cache.statistics().tombstones == 0 and len(column.rows) == 9


def test_a_pinned_cache_keeps_its_entries_over_budget(column: ColumnInMemory) -> None:
    cache = cache_of(column, 1)
    entries = cache.load(range(100))
    entries.update(dict.fromkeys(range(100), 1))
    assert cache.pinned
    cache.make_room()
    assert len(cache.cached_entries(None)) == 100
    cache.changed(range(100))
    cache.make_room()
    assert cache.statistics().hot_entries == 0, "it rotated as soon as nobody held the dict"


def test_a_value_that_cannot_be_written_stays_in_memory(column: ColumnInMemory) -> None:
    cache = cache_of(column)
    cache.put("k", lambda: 1)
    cache.rotate()
    with pytest.raises(SerializationError, match="state 'x' of key 'k'"):
        cache.rotate()
    assert cache.statistics().cold_entries == 1


def test_a_moved_entry_is_as_dirty_as_before() -> None:
    cold, hot = Generation(), Generation()
    cold.entries["w"] = {"a": 1, "b": 2}
    cold.mark_dirty("w", ["a"])
    cold.move("w", ["a", "b"], hot)
    assert hot.entries == {"w": {"a": 1, "b": 2}} and hot.dirty == {"w": {"a"}}
    assert cold.entries == {"w": {}} and not cold.dirty


def test_a_very_large_value_counts_as_several_entries() -> None:
    usage = CacheUsage()
    usage.sample("k", b"x" * 1_000_000)
    assert 1_000_000 <= usage.entries * usage.entry_bytes + usage.entry_bytes < 1_100_000
    usage.count_promoted(3)
    assert usage.growth == usage.entries - 3
    growth = usage.growth
    usage.correct(10)
    assert (usage.entries, usage.growth) == (10, growth), "an exact count is no growth"
    usage.restart_growth()
    assert (usage.entries, usage.growth) == (10, 0)


def test_too_many_namespaces_may_all_have_rows(column: Any) -> None:
    column.write([(b"r", b"1")])
    missing = MissingRows(column, 2)
    for namespace in "ab":
        missing.discard(namespace, ())
    assert missing.may_have_rows("a") and not missing.may_have_rows("c")
    missing.discard("c", ())
    assert missing.may_have_rows("d")
