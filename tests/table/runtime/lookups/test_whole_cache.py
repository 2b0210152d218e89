"""Tables in memory: rows by key, readings in the background, and files that are read as a whole."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pyarrow as pa
import pytest

from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.operators.async_io.event_loops import SteppedLoop
from rayflink.state.clock import ManualClock
from rayflink.table.runtime.lookups.whole_cache import IndexedRows, TableReader, WholeTableLookup

ROWS = pa.table({"k": [2, 1, None, 2], "s": ["a", "b", "c", "d"], "v": [1, 2, 3, 4]})


class Versions(TableReader):
    """Each reading gives the next version; an exception is raised."""

    def __init__(self, *versions: pa.Table | Exception) -> None:
        self.versions, self.reads = list(versions), 0

    def read(self, config, metrics, is_cancelled):
        self.reads += 1
        version = self.versions.pop(0) if len(self.versions) > 1 else self.versions[0]
        if isinstance(version, Exception):
            raise version
        return version


class Asked:
    """A lookup whose loop follows a clock that is moved by hand."""

    def __init__(self, reader: TableReader, reload_ms: int | None = None, is_fixed_rate: bool = False) -> None:
        self.clock = ManualClock()
        self.loop = SteppedLoop(self.clock)
        self.lookup = WholeTableLookup(reader, ["k"], reload_ms, is_fixed_rate)
        self.metrics = MetricGroup()
        self.lookup.open(SimpleNamespace(get_metrics_group=lambda: self.metrics))

    def values(self, *keys: int) -> list[int]:
        async def ask() -> list[int]:
            answer = await self.lookup.look_up(pa.record_batch({"k": pa.array(keys, pa.int64())}))
            return answer.rows.column("v").to_pylist()

        return self.loop.call(ask)

    def pass_ms(self, ms: int) -> None:
        self.clock.advance(ms)
        self.loop.advance()

    def count(self, name: str) -> int:
        found = {known: metric for _, known, metric in self.metrics.walk()}
        return found[name].get_count()


def test_rows_are_found_by_one_or_several_keys_and_null_is_none():
    answer = IndexedRows.of(ROWS, ["k"]).look_up([pa.array([1, 3, 2])])
    assert (answer.rows.column("v").to_pylist(), answer.keys.tolist()) == ([2, 1, 4], [0, 2, 2])
    both = IndexedRows.of(ROWS, ["k", "s"]).look_up([pa.array([2, 2]), pa.array(["d", "b"])])
    assert (both.rows.column("v").to_pylist(), both.keys.tolist()) == ([4], [0])
    nothing = IndexedRows.of(ROWS.slice(0, 0), ["k"]).look_up([pa.array([1])])
    assert nothing.rows.num_rows == 0


@pytest.mark.spec("R26", "caches")
def test_a_table_is_read_once_without_an_interval():
    reader = Versions(ROWS)
    asked = Asked(reader)
    assert asked.values(2, 9) == [1, 4] and asked.values(1) == [2]
    asked.pass_ms(10_000_000)
    assert asked.values(1) == [2] and reader.reads == 1
    assert (asked.count("hitCount"), asked.count("missCount"), asked.count("numTableReads")) == (3, 1, 1)


def test_a_table_is_read_again_and_keeps_its_rows_where_that_fails():
    reader = Versions(ROWS, ROWS.slice(1, 1), OSError("away"), ROWS.slice(0, 1))
    asked = Asked(reader, 1_000)
    assert asked.values(2) == [1, 4]
    asked.pass_ms(999)
    assert asked.values(2) == [1, 4]
    asked.pass_ms(1)
    assert asked.values(2) == []
    asked.pass_ms(1_000)
    assert asked.values(1) == [2] and asked.count("numTableReadFailures") == 1
    asked.pass_ms(1_000)
    assert asked.values(1) == [] and asked.values(2) == [1] and reader.reads == 4


def test_a_first_reading_that_fails_is_an_error_and_may_succeed_later():
    asked = Asked(Versions(ConnectionError("away"), ROWS))
    with pytest.raises(ConnectionError, match="away"):
        asked.values(1)
    assert asked.values(1) == [2]


def test_requests_share_the_first_reading():
    reader = Versions(ROWS)
    asked = Asked(reader)

    async def both() -> list[int]:
        batch = pa.record_batch({"k": pa.array([1], pa.int64())})
        answers = await asyncio.gather(asked.lookup.look_up(batch), asked.lookup.look_up(batch))
        return [answer.rows.num_rows for answer in answers]

    assert asked.loop.call(both) == [1, 1] and reader.reads == 1
