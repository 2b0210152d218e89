"""The cache of lookups forgets what is old, and what is too much."""

from __future__ import annotations

import datetime

import pytest

from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.time import Duration
from rayflink.connectors.lookup_cache import CachedRows, CachedRowsStatistics, LookupCache


class Clock:
    now_ms = 1000

    def __call__(self) -> int:
        return self.now_ms


def cache(clock: Clock, **limits: object) -> CachedRows[str]:
    return CachedRows(LookupCache(**limits), clock, MetricGroup())  # type: ignore[arg-type]


def test_the_least_recently_used_rows_go_first() -> None:
    rows = cache(Clock(), max_rows=4)
    rows.put(1, ["a", "b"])
    rows.put(2, [])
    rows.put(3, ["c"])
    assert rows.get(1) == ("a", "b") and len(rows) == 4
    assert rows.statistics() == CachedRowsStatistics(keys=3, rows=4)
    rows.put(4, ["d", "e"])
    assert [rows.get(key) for key in (1, 2, 3, 4)] == [("a", "b"), None, None, ("d", "e")]
    rows.put(1, ["x"])
    assert len(rows) == 3 and rows.get(1) == ("x",)
    rows.put(5, list("12345"))  # more than there may be
    assert len(rows) == 0


def test_rows_are_loaded_anew_after_a_time() -> None:
    clock = Clock()
    written = cache(clock, expire_after_write=Duration.of_millis(10))
    used = cache(clock, expire_after_access=datetime.timedelta(milliseconds=10))
    for rows in (written, used):
        rows.put("k", ["v"])
    clock.now_ms += 6
    assert written.get("k") == used.get("k") == ("v",)
    clock.now_ms += 6
    assert written.get("k") is None and used.get("k") == ("v",)
    clock.now_ms += 10
    assert used.get("k") is None and len(used) == len(written) == 0


def test_what_has_expired_is_forgotten_without_being_asked_for() -> None:
    clock = Clock()
    rows = cache(clock, expire_after_write=5)
    for number in range(100):
        rows.put(number, ["v"])
        clock.now_ms += 1
    assert len(rows) <= 30


def test_missing_keys_are_remembered_if_that_is_wanted() -> None:
    remembering, forgetting = cache(Clock(), max_rows=9), cache(Clock(), max_rows=9, cache_missing_key=False)
    for rows in (remembering, forgetting):
        rows.put("k", [])
    assert remembering.get("k") == () and forgetting.get("k") is None


@pytest.mark.parametrize("limits", [{}, {"max_rows": 0}, {"expire_after_write": 0}, {"cache_missing_key": False}])
def test_limits_that_make_no_sense_are_refused(limits: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="limit"):
        LookupCache(**limits)  # type: ignore[arg-type]
