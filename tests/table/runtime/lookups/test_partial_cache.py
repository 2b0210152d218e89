"""The cache of rows by key: limits in rows and in time, beside a model, and what it counts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.connectors.lookup_cache import LookupCache
from rayflink.table.runtime.lookups import partial_cache
from rayflink.table.runtime.lookups.found_rows import FoundRows
from rayflink.table.runtime.lookups.partial_cache import PartialCache


class Cached:
    """A cache of one key column, with a clock that is moved by hand."""

    def __init__(self, limits: LookupCache) -> None:
        self.now_ms, self.metrics = 0, MetricGroup()
        self.cache = PartialCache(limits, [pa.string()], [pa.int64()], lambda: self.now_ms, self.metrics)

    def put(self, rows: dict[str, list[int]]) -> None:
        values = [value for listed in rows.values() for value in listed]
        keys = np.repeat(np.arange(len(rows)), [len(listed) for listed in rows.values()])
        by_key = FoundRows.of([pa.array(values, pa.int64())], keys, len(rows))
        self.cache.add([pa.array(list(rows), pa.string())], by_key)

    def get(self, *keys: str) -> list[list[int] | None]:
        found, is_missing = self.cache.find([pa.array(keys, pa.string())])
        values = found.columns[0].to_pylist()
        spans = zip(found.firsts.tolist(), found.counts.tolist(), is_missing.tolist(), strict=True)
        return [None if is_absent else values[first : first + count] for first, count, is_absent in spans]


@pytest.mark.spec("R26", "caches")
def test_rows_of_keys_are_found_and_counted():
    cached = Cached(LookupCache(10))
    cached.put({"a": [1, 2], "b": [], "c": [3]})
    assert cached.get("c", "x", "a", "b") == [[3], None, [1, 2], []]
    assert cached.cache.statistics() == partial_cache.PartialCacheStatistics(keys=3, rows=4)
    found = {name: metric for _, name, metric in cached.metrics.walk()}
    assert (found["hitCount"].get_count(), found["missCount"].get_count()) == (3, 1)
    assert found["numCachedRecord"].get_value() == 4


def test_keys_without_rows_are_not_remembered_where_the_limits_say_so():
    cached = Cached(LookupCache(10, cache_missing_key=False))
    cached.put({"a": [1], "b": []})
    assert cached.get("a", "b") == [[1], None]


def test_rows_expire_after_they_were_loaded_or_used():
    cached = Cached(LookupCache(expire_after_write=100, expire_after_access=60))
    cached.put({"a": [1], "b": [2]})
    cached.now_ms = 50
    assert cached.get("a") == [[1]]
    cached.now_ms = 60
    assert cached.get("a", "b") == [[1], None]
    cached.put({"b": [3]})
    cached.now_ms = 100
    assert cached.get("a", "b") == [None, [3]]


def test_keys_that_were_used_longest_ago_are_removed_and_the_limit_holds():
    cached = Cached(LookupCache(16))
    for number in range(16):
        cached.now_ms = number
        cached.put({f"k{number}": [number]})
    cached.now_ms = 20
    assert cached.get("k0") == [[0]]
    cached.put({"new": [1, 2]})
    assert cached.cache.statistics().rows <= 16
    assert cached.get("k0", "k1", "k2", "k3", "k15", "new") == [[0], None, None, [3], [15], [1, 2]]
    cached.put({"huge": list(range(17)), "small": [5]})
    assert cached.get("huge", "small") == [None, [5]]


PUT = st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.integers(0, 9), max_size=3))
STEPS = st.lists(st.tuples(st.integers(0, 30), PUT), max_size=12)


@given(steps=STEPS, most=st.integers(1, 12), written=st.none() | st.integers(10, 60))
@settings(max_examples=30, deadline=None)
def test_what_is_found_is_what_was_put_last_and_the_limits_hold(steps, most, written):
    cached, known = Cached(LookupCache(most, expire_after_write=written)), {}
    for passed_ms, rows in steps:
        cached.now_ms += passed_ms
        if rows:
            cached.put(rows)
        known.update({key: (cached.now_ms, values) for key, values in rows.items()})
        assert cached.cache.statistics().rows <= most
        for key, values in zip("abcdefgh", cached.get(*"abcdefgh"), strict=True):
            if values is not None:
                assert values == known[key][1] and (written is None or cached.now_ms - known[key][0] < written)
