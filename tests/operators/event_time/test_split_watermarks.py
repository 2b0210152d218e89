"""Watermarks by split, by count and time together, idleness, and generators that misbehave."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.connector_base.source import END, PENDING, Boundedness, Source, SourceReader
from rayflink.common.connector_base.split_reader import OneByOneReader, split_id
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import MIN_TIMESTAMP, RowBatch, Watermark, WatermarkStatus
from rayflink.common.time import Duration
from rayflink.common.watermarks import (
    BoundedOutOfOrdernessWatermarks,
    Idleness,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from rayflink.connectors.files.file_blocks import FileSplit
from rayflink.connectors.generator import NumberSplit
from rayflink.connectors.hybrid_source import HybridSource, HybridSplit
from rayflink.operators.base import UserCodeError
from rayflink.operators.event_time.partial_watermarks import PartialWatermarks
from rayflink.operators.event_time.watermark_operator import TimestampsAndWatermarksOperator
from rayflink.operators.sources import ReaderSourceOperator
from rayflink.testing import HARDSHIPS, ScriptedSource
from tests.operators.laws import answers, context, now, started, verify
from tests.operators.running import FixedClock

IDLE, ACTIVE = WatermarkStatus(True), WatermarkStatus(False)
BY_VALUE = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)
LOSES_GENERATORS = [name for name in HARDSHIPS if name.startswith("restored")]
TICK = 200


class Several(SourceReader):
    """Reads several splits at once; the test says of which the next records are."""

    def __init__(self) -> None:
        self.held: tuple[str, ...] = ()
        self.next: Any = PENDING
        self.split = ""
        self.paused: set[str] = set()

    def add_splits(self, splits: list[Any]) -> None:
        self.held += tuple(splits)

    def notify_no_more_splits(self) -> None: ...

    def split_ids(self) -> tuple[str, ...]:
        return self.held

    def current_split(self) -> str:
        return self.split

    def poll(self, max_records: int) -> Any:
        answer, self.next = self.next, PENDING
        return answer

    def pause_or_resume_splits(self, splits_to_pause: Any, splits_to_resume: Any) -> None:
        self.paused = (self.paused | set(splits_to_pause)) - set(splits_to_resume)

    def snapshot_state(self) -> list[Any]:
        return list(self.held)


class SeveralSource(Source):
    boundedness = Boundedness.CONTINUOUS_UNBOUNDED
    create_enumerator = restore_enumerator = None  # type: ignore[assignment]

    def __init__(self, reader: SourceReader) -> None:
        self.reader = reader

    def create_reader(self, ctx: Any) -> SourceReader:
        return self.reader


class Bench:
    """A source operator, its reader and its clock."""

    def __init__(
        self, strategy: WatermarkStrategy = BY_VALUE, snapshots: Any = (), reader: Any = None, config: Any = None
    ) -> None:
        self.reader = Several() if reader is None else reader
        self.clock = FixedClock()
        self.metrics = MetricGroup()
        facts: dict[str, Any] = {
            "config": config or {},
            "clock": self.clock,
            "metrics": self.metrics,
            "request_split": lambda: None,
        }
        self.reports: list[Any] = []
        facts["report_watermark"] = lambda alignment, mark: self.reports.append(mark)
        self.operator = started(lambda: ReaderSourceOperator(SeveralSource(self.reader), strategy), context(**facts))
        if snapshots:
            self.operator.initialize_state(snapshots)
            self.operator.open()

    def gets(self, split: str, *values: int) -> list[Any]:
        self.reader.split, self.reader.next = split, RowBatch(list(values))
        return list(self.operator.poll(100))  # type: ignore[attr-defined]

    def tick(self, ms: int = TICK) -> list[Any]:
        self.clock.now += ms
        return list(self.operator.on_processing_time(self.clock.now))

    def poll(self) -> list[Any]:
        return list(self.operator.poll(100))  # type: ignore[attr-defined]


@pytest.mark.spec("E23", "source")
def test_the_watermark_of_a_source_is_the_minimum_over_its_splits_even_unread_ones() -> None:
    bench = Bench()
    bench.operator.add_splits(["a", "b"])  # type: ignore[attr-defined]
    bench.gets("a", 100)
    assert bench.tick() == [], "b has given nothing"
    bench.gets("b", 30)
    assert bench.tick() == [Watermark(29)]
    bench.gets("a", 200)
    bench.gets("b", 150)
    assert bench.tick() == [Watermark(149)]


def test_a_split_that_has_ended_leaves_and_a_new_one_takes_part_from_its_begin() -> None:
    bench = Bench()
    bench.operator.add_splits(["a", "b"])  # type: ignore[attr-defined]
    bench.gets("a", 100)
    bench.gets("b", 30)
    bench.tick()
    bench.reader.held = ("a",)
    bench.poll()
    assert bench.tick() == [Watermark(99)]
    bench.operator.add_splits(["c"])  # type: ignore[attr-defined]
    bench.gets("a", 500)
    assert bench.tick() == [], "c may have records of any time after the watermark"
    bench.gets("c", 300)
    assert bench.tick() == [Watermark(299)]


def test_the_last_watermark_of_the_last_split_goes_out_though_the_split_has_ended() -> None:
    bench = Bench()
    bench.operator.add_splits(["a"])  # type: ignore[attr-defined]
    bench.reader.held = ()  # the reader lets go of it with its last records
    assert bench.gets("a", 70) == [RowBatch([70], [70])]
    bench.poll()
    assert bench.tick() == [Watermark(69)]
    assert list(bench.operator.finish()) == []


def test_a_reader_may_tell_its_splits_by_one_list_that_it_changes() -> None:
    bench = Bench()
    bench.reader.held = held = ["a", "b"]
    bench.poll()
    bench.gets("b", 30)
    assert bench.tick() == []
    held.remove("a")
    bench.poll()
    assert bench.tick() == [Watermark(29)]


def test_an_idle_split_does_not_hold_back_and_all_idle_splits_make_the_source_idle() -> None:
    bench = Bench(BY_VALUE.with_idleness(Duration.of_millis(2 * TICK)))
    bench.operator.add_splits(["a", "b"])  # type: ignore[attr-defined]
    out = []
    for round_ in range(4):
        bench.gets("a", 100 + round_)
        out.append(bench.tick())
    assert out == [[], [], [], [Watermark(102)]], "b is idle after more than two ticks, 103 - 1 at the fourth"
    assert [bench.tick() for _ in range(4)] == [[], [], [], [IDLE]]
    bench.gets("b", 50)
    assert bench.tick() == [], "behind what was announced"
    bench.gets("b", 200)
    assert bench.tick() == [ACTIVE, Watermark(199)]


def test_a_source_without_splits_becomes_idle_too() -> None:
    bench = Bench(BY_VALUE.with_idleness(Duration.of_millis(TICK)))
    bench.poll()
    assert [bench.tick() for _ in range(3)] == [[], [], [IDLE]]


def test_punctuated_watermarks_of_a_split_go_out_at_once_if_they_raise_the_minimum() -> None:
    class Each(WatermarkGenerator):
        def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
            output.emit_watermark(Watermark(event_timestamp))

        def on_periodic_emit(self, output: WatermarkOutput) -> None: ...

    bench = Bench(WatermarkStrategy.for_generator(Each).with_timestamp_assigner(lambda value, _: value))
    bench.operator.add_splits(["a", "b"])  # type: ignore[attr-defined]
    assert bench.gets("a", 5, 9) == [RowBatch([5, 9], [5, 9])]
    assert bench.gets("b", 3, 7, 12) == [
        RowBatch([3], [3]), Watermark(3), RowBatch([7], [7]), Watermark(7), RowBatch([12], [12]), Watermark(9),
    ]  # fmt: skip


def test_each_split_has_a_gauge_as_long_as_it_is_held() -> None:
    bench = Bench()
    bench.operator.add_splits(["dir/a.txt", "b"])  # type: ignore[attr-defined]
    bench.gets("b", 30)
    bench.tick()
    report = bench.metrics.snapshot()
    assert report["split.b.watermark.currentWatermark"] == 29 and report["split.b.watermark.isIdle"] is False
    assert report["split.dir/a.txt.watermark.currentWatermark"] is None
    bench.reader.held = ("b",)
    bench.poll()
    assert [name for name in bench.metrics.snapshot() if "a.txt" in name] == []


def test_a_restored_source_has_a_generator_for_each_of_its_splits() -> None:
    bench = Bench()
    bench.operator.add_splits(["a", "b"])  # type: ignore[attr-defined]
    bench.gets("a", 100)
    bench.gets("b", 30)
    snapshot = bench.operator.snapshot_state(1)
    again = Bench(snapshots=(snapshot,))
    again.gets("a", 110)
    assert again.tick() == []
    again.gets("b", 40)
    assert again.tick() == [Watermark(39)]


class Lists(OneByOneReader):
    """Each split is (name, values)."""

    def open_split(self, split: Any) -> Any:
        return ListCursor(split)


class ListCursor:
    def __init__(self, split: Any) -> None:
        self.split = split

    def read(self, max_records: int) -> Any:
        (name, values), taken = self.split, self.split[1][:max_records]
        self.split = (name, values[len(taken) :])
        return RowBatch(list(taken)) if taken else None

    def position(self) -> Any:
        return self.split

    def close(self) -> None: ...


def test_a_reader_of_one_split_after_another_reads_those_that_are_not_paused_first() -> None:
    reader = Lists()
    reader.add_splits([("a", (1, 2)), ("b", (3,)), ("c", (4,))])
    a, b, c = reader.split_ids()
    assert reader.poll(1) == RowBatch([1]) and reader.current_split() == a
    reader.pause_or_resume_splits({a, b}, ())
    assert reader.poll(1) == RowBatch([4]) and reader.current_split() == c
    assert reader.poll(1) is PENDING and set(reader.split_ids()) == {a, b}
    assert sorted(reader.snapshot_state()) == [("a", (2,)), ("b", (3,))]
    reader.notify_no_more_splits()
    assert reader.poll(1) is PENDING, "paused splits are no end"
    reader.pause_or_resume_splits((), {a})
    assert reader.poll(9) == RowBatch([2]) and reader.poll(9) is PENDING
    reader.pause_or_resume_splits((), {b})
    assert reader.poll(9) == RowBatch([3]) and reader.poll(9) is END


def test_splits_are_called_what_people_know_and_the_same_at_every_position() -> None:
    assert split_id(FileSplit("in/a.txt", 0, 9)) == split_id(FileSplit("in/a.txt", 0, 9, offset=4)) == "in/a.txt"
    assert split_id(FileSplit("in/a.txt", 10, 19)) == "in/a.txt:10"
    assert split_id(NumberSplit(3, 9)) == split_id(NumberSplit(7, 9))
    assert split_id(("a", 1)) == "('a', 1)"


def test_a_hybrid_source_tells_the_splits_of_the_source_it_reads() -> None:
    source = HybridSource([ScriptedSource([]), SeveralSource(Several())])
    reader = source.create_reader(None)  # type: ignore[arg-type]
    assert list(reader.split_ids() or ()) == []
    reader.add_splits([HybridSplit(1, "a"), HybridSplit(1, "b")])
    inner: Any = source._sources[1].reader  # type: ignore[attr-defined]
    inner.split, inner.next = "b", RowBatch([5])
    assert reader.poll(1) == RowBatch([5]) and (reader.split_ids(), reader.current_split()) == (("a", "b"), "b")
    reader.pause_or_resume_splits({"b"}, ())
    assert inner.paused == {"b"}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([1, 2, 3, "idle", "active"])), max_size=30))
def test_the_joined_watermark_is_the_greatest_minimum_over_active_parts(steps: list[Any]) -> None:
    joined = PartialWatermarks(BoundedOutOfOrdernessWatermarksOfZero, lambda: None)
    joined.hold("abc")
    marks, idle, highest = dict.fromkeys("abc", MIN_TIMESTAMP), set(), MIN_TIMESTAMP
    for name, what in steps:
        part = joined.parts[name]
        if what == "idle":
            part.mark_idle()
            idle.add(name)
        else:
            idle.discard(name)
            if what == "active":
                part.mark_active()
            else:
                part.emit_watermark(Watermark(what))
                marks[name] = max(marks[name], what)
        active = [mark for part_name, mark in marks.items() if part_name not in idle]
        if what != "active":  # the status alone; the minimum follows with the next watermark
            highest = max(highest, min(active, default=MIN_TIMESTAMP))
        assert joined.current == highest
        assert len(idle) < 3 or joined.is_idle
    sent = [element.timestamp for element in joined.take() if isinstance(element, Watermark)]
    assert sent == sorted(set(sent))


def BoundedOutOfOrdernessWatermarksOfZero() -> WatermarkGenerator:
    return BoundedOutOfOrdernessWatermarks(0)


# by count and time together


@pytest.mark.spec("E20")
def test_a_watermark_is_emitted_after_a_number_of_records_or_a_time() -> None:
    strategy = BY_VALUE.with_emit_every(records=3, interval=Duration.of_millis(10))
    steps = [
        RowBatch([1, 2, 3, 4]), now(5), RowBatch([5]), now(9), now(10), RowBatch([6, 7]), now(14), RowBatch([8, 9]),
        now(15), now(23), RowBatch([10]), now(24), now(33),
    ]  # fmt: skip
    out = verify(lambda: TimestampsAndWatermarksOperator(strategy), steps, without=LOSES_GENERATORS)
    events = [entry if isinstance(entry, Watermark) else entry[1] for entry in out]
    assert events == [
        1, 2, 3, Watermark(2), 4, 5, Watermark(4),  # by count, then by time at 10
        6, 7, 8, Watermark(7), 9, 10, Watermark(9),  # by count at 14, which begins the 10 ms anew
    ]  # fmt: skip


@pytest.mark.spec("E20")
@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 5), st.integers(1, 7))
def test_the_count_is_exact_however_records_are_divided_into_batches(values: list[int], every: int, size: int) -> None:
    operator = started(lambda: TimestampsAndWatermarksOperator(BY_VALUE.with_emit_every(every), 0), context())
    out = []
    for start in range(0, len(values), size):
        for element in answers(operator, RowBatch(values[start : start + size])):
            out += [element] if isinstance(element, Watermark) else element.values
    expected, highest = [], MIN_TIMESTAMP
    for count, value in enumerate(values, 1):
        expected.append(value)
        mark = max(values[:count]) - 1
        if count % every == 0 and mark > highest:
            highest = mark
            expected.append(Watermark(mark))  # type: ignore[arg-type]
    assert out == expected


def test_wrong_numbers_of_records_are_refused() -> None:
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="at least 1 record"):
            BY_VALUE.with_emit_every(wrong)
    for no_int in (1.5, True, None):
        with pytest.raises(TypeError, match="a whole number"):
            BY_VALUE.with_emit_every(no_int)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least 0 ms"):
        BY_VALUE.with_emit_every(1, Duration.of_millis(-1))


def test_strategies_are_values_which_methods_leave_as_they_are_and_which_can_be_sent() -> None:
    whole = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)).with_timestamp_column("at")
    changed = whole.with_idleness(Duration.of_seconds(9)).with_emit_every(5).with_null_timestamps_dropped()
    changed = changed.with_watermark_alignment("g", Duration.of_seconds(2))
    assert (whole.idle_timeout_ms, whole.emit_every, whole.alignment, whole.drops_null_timestamps) == (
        None, None, None, False,
    )  # fmt: skip
    sent = pickle.loads(pickle.dumps(changed))
    assert vars(sent).keys() == vars(changed).keys() and sent.alignment == changed.alignment
    assert (sent.idle_timeout_ms, sent.emit_every.records, sent.drops_null_timestamps) == (9000, 5, True)


# idleness and a task that is held up


def test_time_in_which_a_task_was_held_up_makes_nobody_idle() -> None:
    idleness = Idleness(500, longest_ms=100)
    assert [idleness.check(now_ms) for now_ms in (0, 50, 10_000, 20_000)] == [False] * 4
    assert [idleness.check(now_ms) for now_ms in range(20_100, 20_500, 100)] == [False, False, True, True]


# generators that misbehave


class Misbehaving(WatermarkGenerator):
    def __init__(
        self, event: Callable[[Any, WatermarkOutput], Any], periodic: Callable[[WatermarkOutput], Any]
    ) -> None:
        self.event, self.periodic = event, periodic

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        self.event(event, output)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        self.periodic(output)


def nothing(*given: Any) -> None: ...


@pytest.mark.parametrize(
    "make, problem",
    [
        (lambda: "no generator", "failed in create_watermark_generator.*it made 'no generator' of type str"),
        (lambda: 1 // 0, "failed in create_watermark_generator.*division"),
        (lambda: Misbehaving(lambda e, o: o.emit_watermark(5), nothing), "on_event on record 7: TypeError: emit"),
        (lambda: Misbehaving(lambda e, o: e["x"], nothing), "failed in on_event on record 7: TypeError"),
        (lambda: Misbehaving(nothing, lambda o: o.emit_watermark(None)), "on_periodic_emit: TypeError: emit_water"),
        (lambda: Misbehaving(nothing, lambda o: 1 // 0), "failed in on_periodic_emit: ZeroDivisionError"),
        (lambda: Misbehaving(nothing, lambda o: o.emit_watermark(Watermark(2**63))), "on_periodic_emit: ValueError"),
    ],
)  # fmt: skip
def test_a_generator_that_raises_or_gives_nonsense_is_named(make: Callable[[], Any], problem: str) -> None:
    strategy = WatermarkStrategy.for_generator(make)
    with pytest.raises(UserCodeError, match=f"'tested'.*{problem}"):
        operator = started(lambda: TimestampsAndWatermarksOperator(strategy, 10), context())
        list(answers(operator, RowBatch([7], [7])))
        list(answers(operator, now(10)))


def test_a_watermark_that_goes_back_is_ignored() -> None:
    back = Misbehaving(lambda event, output: output.emit_watermark(Watermark(event)), nothing)
    strategy = WatermarkStrategy.for_generator(lambda: back)
    operator = started(lambda: TimestampsAndWatermarksOperator(strategy, 10), context())
    out = list(answers(operator, RowBatch([5, 3, 5, 6], [0, 0, 0, 0])))
    assert [element for element in out if isinstance(element, Watermark)] == [Watermark(5), Watermark(6)]


def test_a_class_below_a_built_in_generator_is_asked_for_each_record() -> None:
    class EverySecond(BoundedOutOfOrdernessWatermarks):
        def __init__(self) -> None:
            super().__init__(0)

        def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
            if event % 2 == 0:
                super().on_event(event, event_timestamp, output)

    strategy = WatermarkStrategy.for_generator(EverySecond)
    operator = started(lambda: TimestampsAndWatermarksOperator(strategy, 10), context())
    list(answers(operator, RowBatch([4, 9], [4, 9])))
    assert list(answers(operator, now(10))) == [Watermark(3)]
