"""Joins of rows near each other in time, under every hardship, beside a model, and within their memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rayflink.common.managed_memory import Allowance, MemoryManager
from rayflink.common.records.batches import ArrowBatch
from rayflink.table.plan.joins import JoinKind
from rayflink.table.runtime.joins import interval_join as interval_joins
from rayflink.table.runtime.joins import join_pairs, timed_rows
from rayflink.table.runtime.joins.interval_bounds import IntervalBounds, SideTime
from rayflink.table.runtime.joins.interval_join import TimeIntervalJoinOperator
from rayflink.table.runtime.keyed_state import frame_memory
from rayflink.testing import OperatorHarness, at, idle, in2, verify, wm
from rayflink.testing.elements import Mark, Record
from rayflink.testing.harness import rescaled_snapshots

from ..windows.test_window_model import late_in
from .join_cases import BY_WORD, interval, interval_join, matches, pair, spec, timed, timed2

KINDS = [JoinKind.INNER, JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL]


def row(number: int | None, word: str | None, time: int) -> Any:
    return number, word, time, time


GIVEN = [
    timed((1, "a", 10), (5, "b", 12), (1, None, 11)), in2(timed2((2, "a", 8), (9, "a", 15), (9, None, 11))),
    wm(5), in2(wm(5)), in2(timed2((3, "a", 12), (3, "a", 16), (9, "b", 13))), timed((2, "a", 17), (8, "b", 15)),
    wm(14), in2(wm(14)), timed((0, "a", 13)), in2(timed2((9, "a", 9))), timed((0, "a", 1)),
    wm(15), in2(wm(15)), wm(16), in2(wm(16)), wm(40), in2(wm(40)),
]  # fmt: skip
FIRST = [
    pair(row(1, "a", 10), row(2, "a", 8)), pair(row(1, "a", 10), row(9, "a", 15)), wm(0),
    pair(row(1, "a", 10), row(3, "a", 12)), pair(row(5, "b", 12), row(9, "b", 13)),
    pair(row(2, "a", 17), row(9, "a", 15)), pair(row(2, "a", 17), row(3, "a", 16)),
    pair(row(8, "b", 15), row(9, "b", 13)),
]  # fmt: skip
THEN = {
    JoinKind.INNER: [
        *FIRST, wm(9), pair(row(0, "a", 13), row(9, "a", 15)), pair(row(0, "a", 13), row(3, "a", 16)),
        pair(row(1, "a", 10), row(9, "a", 9)), wm(10), wm(11), wm(35),
    ],
    JoinKind.FULL: [
        *FIRST, pair(None, row(9, None, 11)), wm(9),
        pair(row(0, "a", 13), row(9, "a", 15)), pair(row(0, "a", 13), row(3, "a", 16)),
        pair(row(1, "a", 10), row(9, "a", 9)), pair(row(0, "a", 1), None), wm(10),
        pair(row(1, None, 11), None), wm(11), wm(35),
    ],
}  # fmt: skip
"""Right times are 2 before to 5 after left ones."""


@pytest.mark.spec("R23", "pairs")
@pytest.mark.slow
@pytest.mark.parametrize("kind", list(THEN))
def test_pairs_are_given_when_their_second_row_comes(kind):
    verify(interval_join(kind, -2, 5), GIVEN, THEN[kind], BY_WORD)


@pytest.mark.spec("R23", "outer")
@pytest.mark.slow
@pytest.mark.parametrize("kind", [JoinKind.LEFT, JoinKind.RIGHT])
def test_an_outer_join_gives_the_same_however_the_input_is_cut(kind):
    verify(interval_join(kind, -2, 5), GIVEN, None, BY_WORD)


def test_late_rows_that_find_nothing_are_counted():
    harness = OperatorHarness(interval_join(JoinKind.INNER, -2, 5), 2)
    for element in GIVEN:
        harness.give(element)
    assert late_in(harness) == 1


def test_a_side_may_be_empty_or_idle():
    for kind, then in [(JoinKind.INNER, []), (JoinKind.LEFT, [pair(row(1, "a", 10), None)])]:
        harness = OperatorHarness(interval_join(kind, -2, 5), 2)
        harness.give(timed((1, "a", 10)))
        harness.give(in2(idle()))
        harness.give(wm(15))
        assert [one for one in harness.take() if isinstance(one, Record)] == then


@pytest.mark.spec("R23", "processing-time")
@pytest.mark.slow
def test_by_the_clock_a_row_waits_as_long_as_a_partner_may_come():
    def factory() -> TimeIntervalJoinOperator:
        return TimeIntervalJoinOperator(
            spec(JoinKind.LEFT), IntervalBounds(SideTime(None), SideTime(None), 0, 10), False
        )

    one, other, third = row(1, "a", 0), row(2, "a", 0), row(3, "a", 0)
    steps = [
        at(100), timed((1, "a", 0)), at(110), in2(timed2((2, "a", 0))), timed((3, "a", 0)), at(111),
        in2(timed2((9, "a", 0))), at(120), at(121), in2(timed2((9, "a", 0))), wm(2**63 - 1), in2(wm(2**63 - 1)),
    ]  # fmt: skip
    then = [pair(one, other), pair(third, row(9, "a", 0)), wm(2**63 - 1)]
    without = ["as a job in this process", "as a simulated job"]  # clocks of their own
    verify(factory, steps, then, BY_WORD, without)


@pytest.mark.spec("R23", "removed")
@pytest.mark.parametrize(("progress", "side", "until"), [(100, 0, 90), (100, 1, 105), (-(2**63), 0, -(2**63))])
def test_how_long_rows_are_kept(progress, side, until):
    assert interval(5, 10).droppable_until(side, progress) == until


@pytest.mark.parametrize(
    ("bounds", "delay"),
    [
        (interval(5, 10), 10), (interval(-7, 2), 7), (interval(-7, -3), 7), (interval(0, 0), 0),
        (interval(0, 10, right_shift=1), 9), (interval(0, 10, left_shift=-9), 9), (interval(-4, -3, left_shift=-9), 13),
    ],
)  # fmt: skip
def test_by_how_much_watermarks_are_late(bounds, delay):
    assert bounds.delay_ms == delay


# a model


@dataclass
class Model:
    """An interval join pair by pair. What may be forgotten is found by trying the times that may come."""

    kind: JoinKind
    bounds: IntervalBounds
    nulls_match: bool = False
    watermark: int = -1000
    late: int = 0
    held: tuple[list[list[Any]], list[list[Any]]] = field(default_factory=lambda: ([], []))

    def near(self, one: int, other: int) -> bool:
        return self.bounds.lower_ms <= other - one <= self.bounds.upper_ms

    def has_partners_to_come(self, side: int, time: int) -> bool:
        least = self.watermark + self.bounds.sides[1 - side].shift_ms + 1
        times = range(least, least + 1200)
        return any(self.near(other, time) if side else self.near(time, other) for other in times)

    def alone(self, side: int, one: Any) -> list[Record]:
        if self.kind.keeps_right if side else self.kind.keeps_left:
            return [pair(None, one) if side else pair(one, None)]
        return []

    def add(self, side: int, one: Any) -> list[Record]:
        found = []
        for entry in self.held[1 - side]:
            own, other = (entry[0], one) if side else (one, entry[0])
            if self.near(own[3], other[3]) and matches(own, other, self.nulls_match):
                entry[1] = True
                found.append(pair(own, other))
        if self.has_partners_to_come(side, one[3]):
            self.held[side].append([one, bool(found)])
        elif not found:
            found = self.alone(side, one)
            is_late = one[3] <= self.watermark + self.bounds.sides[side].shift_ms
            self.late += is_late and not found
        return found

    def advance(self, watermark: int) -> list[Record]:
        self.watermark = max(watermark, self.watermark)
        found: list[Record] = []
        for side in (0, 1):
            over = [one for one in self.held[side] if not self.has_partners_to_come(side, one[0][3])]
            found += [row for one, met in over if not met for row in self.alone(side, one)]
            self.held[side][:] = [one for one in self.held[side] if one not in over]
        return found


values = st.tuples(st.none() | st.integers(0, 4), st.sampled_from(["a", "b", None]), st.integers(-20, 60))
streams = st.lists(
    st.tuples(st.sampled_from([0, 1]), st.lists(values, min_size=1, max_size=8)) | st.integers(-10, 60), max_size=12
)
intervals = st.tuples(st.integers(-15, 15), st.integers(-3, 25))
shifts = st.sampled_from([0, 1, -9])


@pytest.fixture(autouse=True)
def _blocks_segments_and_pieces_are_small(monkeypatch, request):
    if "model" in request.node.name:
        monkeypatch.setattr(interval_joins, "_LEAST_SEGMENT_MS", 1)
        monkeypatch.setattr(interval_joins, "BLOCK_PAIRS", 3)
        monkeypatch.setattr(timed_rows, "MOST_LOOSE", 2)
        monkeypatch.setattr(timed_rows, "SPARSE", 1)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(streams, st.sampled_from(KINDS), intervals, st.tuples(shifts, shifts), st.booleans(), st.integers(0, 9))
def test_any_rows_in_any_order_are_joined_as_the_model_does(elements, kind, apart, shift, nulls_match, restored_at):
    bounds = interval(apart[0], apart[0] + apart[1], *shift)
    model = Model(kind, bounds, nulls_match)

    def factory() -> TimeIntervalJoinOperator:
        return TimeIntervalJoinOperator(spec(kind, nulls_match=nulls_match), bounds, True)

    harness = OperatorHarness(factory, 2)
    for number, element in enumerate([*elements, 1000]):
        if isinstance(element, int):
            harness.give(wm(element))
            harness.give(in2(wm(element)))
            wanted = model.advance(element)
        else:
            side, own = element
            harness.give(in2(timed2(*own)) if side else timed(*own))
            wanted = [one for value in own for one in model.add(side, row(*value))]
        found = harness.take()
        records = [one for one in found if isinstance(one, Record)]
        assert records == wanted
        for mark in (one for one in found if isinstance(one, Mark)):
            assert mark.timestamp == element - bounds.delay_ms
        assert late_in(harness) == model.late
        if number == restored_at:
            (snapshots,) = rescaled_snapshots([harness.snapshot()], 1)
            harness, model.late = harness.restore(factory, snapshots), 0
    assert not any(len(one) for side in harness.operators[0]._sides for one in side)


# memory, and much of one key


def worked(operator: type, kind: JoinKind, words: int) -> Counter[str]:
    def factory() -> TimeIntervalJoinOperator:
        made: TimeIntervalJoinOperator = operator(spec(kind), interval(-30, 20), True)
        return made

    harness = OperatorHarness(factory, 2)
    found: list[Any] = []
    for number in range(40):
        own = [(at_ % 7, f"{at_ * number % words}", number * 5 + at_ % 9) for at_ in range(30)]
        harness.give(timed(*own))
        harness.give(in2(timed2(*own[:20])))
        harness.give(wm(number * 5 - 3))
        harness.give(in2(wm(number * 5 - 3)))
        if number == 20:
            found += harness.take()
            harness = harness.restore(factory, harness.snapshot())
    harness.give(wm(1000))
    harness.give(in2(wm(1000)))
    found += harness.take()
    harness.close()
    return Counter(map(repr, found))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "words"), [
    (JoinKind.FULL, 1),
    pytest.param(JoinKind.FULL, 40, marks=pytest.mark.soak),
    pytest.param(JoinKind.INNER, 1, marks=pytest.mark.soak),
    pytest.param(JoinKind.INNER, 40, marks=pytest.mark.soak),
])  # fmt: skip
def test_a_state_that_exceeds_its_memory_goes_to_files(tmp_path, monkeypatch, kind, words):
    monkeypatch.setattr(frame_memory, "STEP_BYTES", 256)
    monkeypatch.setattr(frame_memory, "LEAST_BYTES", 256)
    memory, files = MemoryManager(1 << 30), []
    written = frame_memory.FrameMemory.written

    class Small(TimeIntervalJoinOperator):
        def setup(self, ctx):
            ctx.managed_memory, ctx.spill_folder = Allowance(memory, "task", 4096), str(tmp_path)
            super().setup(ctx)

    def counted(self, pieces):
        files.append(1)
        return written(self, pieces)

    wanted = worked(TimeIntervalJoinOperator, kind, words)
    monkeypatch.setattr(frame_memory.FrameMemory, "written", counted)
    assert worked(Small, kind, words) == wanted
    assert len(files) > 3 and memory.used == 0 and not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_row_with_many_partners_is_given_in_batches_of_a_bounded_size():
    many = join_pairs.BLOCK_PAIRS * 2 + 10
    operator = TimeIntervalJoinOperator(spec(JoinKind.INNER, None), interval(-5, 5), True)
    harness = OperatorHarness(lambda: operator, 2)
    harness.give(in2(timed2(*[(1, "a", at_ % 5) for at_ in range(many)])))
    sizes = [len(one) for one in operator.process(timed((1, "a", 3), (2, "b", 3)).batch, 0)
             if isinstance(one, ArrowBatch)]  # fmt: skip
    assert sum(sizes) == many and max(sizes) <= join_pairs.BLOCK_PAIRS
