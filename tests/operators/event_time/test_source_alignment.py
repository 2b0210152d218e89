"""A source that is aligned with others: when it reports, when it waits, and which of its splits wait."""

from __future__ import annotations

from typing import Any

import pytest

from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, RowBatch, Watermark, WatermarkStatus
from rayflink.common.time import Duration
from rayflink.common.watermarks import WatermarkAlignment, WatermarkStrategy
from tests.operators.event_time.test_split_watermarks import BY_VALUE, Bench, Several

ALIGNED = BY_VALUE.with_watermark_alignment("g", Duration.of_millis(50), Duration.of_millis(200))
OPEN_END = MAX_TIMESTAMP


def test_a_source_reports_at_once_then_by_interval_then_its_end() -> None:
    bench = Bench(ALIGNED)
    bench.tick(0)
    bench.operator.watermark_announced(OPEN_END)  # type: ignore[attr-defined]
    bench.operator.add_splits(["a"])  # type: ignore[attr-defined]
    bench.gets("a", 30)
    bench.tick()
    bench.gets("a", 80)
    bench.tick()
    list(bench.operator.finish())
    assert bench.reports == [MIN_TIMESTAMP, 29, 79, MAX_TIMESTAMP]
    assert bench.operator.next_processing_time() == 3 * 200, "only the next periodic watermark, no report"


def test_it_reads_until_its_first_watermark_and_then_no_further_than_allowed() -> None:
    bench = Bench(ALIGNED)
    bench.operator.add_splits(["a"])  # type: ignore[attr-defined]
    assert bench.gets("a", 30) == [RowBatch([30], [30])]
    bench.tick()
    assert bench.gets("a", 31) == [], "nobody has said how far it may go"
    assert bench.operator.next_poll_ms() is None, "a mail wakes it"  # type: ignore[attr-defined]
    bench.operator.watermark_announced(29)  # type: ignore[attr-defined]
    assert bench.poll() == [RowBatch([31], [31])]
    assert bench.tick() == [Watermark(30)]
    bench.gets("a", 32)
    assert bench.poll() == []
    assert bench.metrics.snapshot()["watermarkAlignmentDrift"] == 30 - (29 - 50)


def test_it_is_not_idle_while_it_waits_and_an_idle_one_reports_none() -> None:
    bench = Bench(ALIGNED.with_idleness(Duration.of_millis(300)))
    bench.operator.add_splits(["a"])  # type: ignore[attr-defined]
    bench.gets("a", 30)
    assert [bench.tick() for _ in range(6)] == [[Watermark(29)], [], [], [], [], []]
    bench.operator.watermark_announced(OPEN_END)  # type: ignore[attr-defined]
    assert [bench.tick() for _ in range(3)] == [[], [], [WatermarkStatus(True)]]
    assert bench.reports[-1] is None and None not in bench.reports[:-1]


def test_splits_that_are_ahead_are_paused_and_resumed_one_by_one() -> None:
    bench = Bench(ALIGNED.with_idleness(Duration.of_millis(300)))
    bench.operator.add_splits(["a", "b"])  # type: ignore[attr-defined]
    bench.gets("a", 900)
    bench.gets("b", 30)
    bench.tick()
    announce = bench.operator.watermark_announced  # type: ignore[attr-defined]
    announce(29 + 50)
    assert bench.reader.paused == {"a"}
    for value in range(31, 36):
        bench.gets("b", value)
        assert bench.tick() == [Watermark(value - 1)], (
            "the paused split is not idle: it holds nothing back, being ahead"
        )
    announce(1000)
    assert bench.reader.paused == set()


def test_a_split_that_goes_too_far_is_paused_before_the_group_says_more() -> None:
    bench = Bench(ALIGNED)
    bench.operator.add_splits(["a", "b"])  # type: ignore[attr-defined]
    bench.gets("a", 10)
    bench.gets("b", 10)
    bench.tick()
    bench.operator.watermark_announced(9 + 50)  # type: ignore[attr-defined]
    bench.gets("a", 900)
    bench.tick()
    assert bench.reader.paused == set(), "its watermark was not known yet"
    assert bench.gets("a", 901) == [RowBatch([901], [901])], "what was read already is not lost"
    assert bench.reader.paused == {"a"}
    assert bench.gets("b", 20) == [RowBatch([20], [20])]
    bench.operator.watermark_announced(1000)  # type: ignore[attr-defined]
    assert bench.reader.paused == set()


def test_an_ended_split_is_forgotten_and_a_reader_without_split_pauses_pauses_whole() -> None:
    class Stubborn(Several):
        pause_or_resume_splits = Several.__mro__[1].pause_or_resume_splits

    for reader in (Several(), Stubborn()):
        bench = Bench(ALIGNED, reader=reader)
        bench.operator.add_splits(["a", "b"])  # type: ignore[attr-defined]
        bench.gets("a", 900)
        bench.gets("b", 30)
        bench.tick()
        announce = bench.operator.watermark_announced  # type: ignore[attr-defined]
        announce(79)
        assert bench.gets("b", 500) == [RowBatch([500], [500])], "the minimum may go on"
        bench.tick()
        assert bench.gets("a", 901) == []
        announce(499)
        reader.held = ("b",)
        bench.poll()
        announce(600)
        assert bench.gets("b", 501) == [RowBatch([501], [501])]


def test_in_batch_mode_and_without_a_coordinator_nothing_is_aligned() -> None:
    bench = Bench(ALIGNED, config={"execution.runtime-mode": "BATCH"})
    assert bench.operator.next_processing_time() is None and bench.reports == []
    assert "watermarkAlignmentDrift" not in Bench(BY_VALUE).metrics.snapshot()


def test_wrong_alignments_are_refused_where_they_are_made() -> None:
    second = Duration.of_seconds(1)
    assert BY_VALUE.with_watermark_alignment("g", second).alignment == WatermarkAlignment("g", 1000, 1000)
    with pytest.raises(TypeError, match="must be a string that is not empty, found ''"):
        BY_VALUE.with_watermark_alignment("", second)
    with pytest.raises(ValueError, match="got -1 ms and 1000 ms"):
        BY_VALUE.with_watermark_alignment("g", Duration.of_millis(-1))
    with pytest.raises(ValueError, match="got 1000 ms and 0 ms"):
        BY_VALUE.with_watermark_alignment("g", second, Duration.of_millis(0))
    with pytest.raises(ValueError, match="hold back its group for ever; use for_bounded"):
        WatermarkStrategy.no_watermarks().with_watermark_alignment("g", second)


def test_the_strategy_of_a_stream_that_is_no_source_cannot_be_aligned() -> None:
    from rayflink.datastream import StreamExecutionEnvironment

    stream: Any = StreamExecutionEnvironment().from_collection([1])
    with pytest.raises(ValueError, match="only a source can wait for others.*from_source"):
        stream.assign_timestamps_and_watermarks(ALIGNED)
