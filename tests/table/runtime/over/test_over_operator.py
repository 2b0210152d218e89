"""Functions OVER rows of a stream, under every hardship and beside a model that looks at each frame."""

from __future__ import annotations

import math
import random
from datetime import timedelta
from decimal import Decimal

import pytest

from rayflink.datastream.streams.selectors import NamedField
from rayflink.table.plan.over import Frame
from rayflink.table.runtime.over.over_spec import RowFunction
from rayflink.testing import OperatorHarness, at, verify, wm

from ..groups.group_cases import agg, same
from .over_cases import (
    ALL_BEFORE,
    EPOCH,
    FUNCTIONS,
    OK,
    RANKS,
    UNTIL_ROW,
    WORD,
    D,
    N,
    Over,
    OverModel,
    X,
    lag,
    nth,
    row,
    rows,
    values_of,
)

BY_WORD = NamedField("word")
COUNTED = (agg("COUNT"), agg("SUM", N))
FRAMES = [
    UNTIL_ROW, ALL_BEFORE, Frame(True, -3, 0), Frame(False, -400, 0), Frame(True, 0, 0), Frame(False, 0, 0),
    Frame(True, -4, -2), Frame(False, -900, -200),
]  # fmt: skip


def random_rows(chance: random.Random, count: int, since_ms: int, odd: float) -> list[tuple]:
    """Rows after a time, of which some have equal times."""
    rows_of_time = []
    for number in range(count):
        time = EPOCH + timedelta(milliseconds=since_ms + 1 + chance.randrange(10) * 50 + 10 * number)
        amount = chance.choice([None, Decimal("1.25"), Decimal("-3.10"), Decimal("9.99")])
        word, n = chance.choice([None, "a", "b", "c"]), chance.choice([None, 1, 2, 3, -5, 7])
        x = chance.choice([None, 1.0, 2.5, -3.5, odd])
        rows_of_time.append((word, n, x, amount, chance.random() < 0.7, time))
    return rows_of_time


@pytest.mark.spec("R18", "each-row", "partition")
@pytest.mark.slow
@pytest.mark.parametrize("frame", FRAMES, ids=str)
@pytest.mark.parametrize("keys", [(WORD,), (), (D, OK), (X, N)])
def test_every_result_is_that_of_the_model(keys, frame):
    chance, odd = random.Random(f"{keys}{frame}"), 0.0 if X in keys else math.nan
    choice = [*FUNCTIONS, *([] if frame.first is None else [nth(N, 2)])]
    if frame.first is not None and not frame.by_rows:  # state goes with the times of rows, and such are no others
        choice = [one for one in choice if not isinstance(one, RowFunction) or one.name == "NTH_VALUE"]
    for _ in range(3):
        over = Over(tuple(chance.sample(choice, chance.randint(1, 7))), frame, keys)
        model, watermark = OverModel(over), 0
        with OperatorHarness(over.operators) as harness:
            for _ in range(3):
                part = random_rows(chance, 30, watermark, odd)
                model.waiting += part
                harness.give(rows(*part))
                watermark += 300
                harness.give(wm(watermark))
                assert same(values_of(harness.take()), list(model.advance(watermark))), over.functions


def given():
    return [
        rows(row("a", 1, 5), row("b", 2, 3), row("a", 3, 1)), wm(4), rows(row("a", 4, 5), row("b", 7, 6)), wm(5),
        rows(row("a", 9, 8), row("a", 1, 5)), wm(8),
    ]  # fmt: skip


@pytest.mark.spec("R18", "order")
@pytest.mark.slow
def test_rows_wait_for_their_time_and_late_ones_are_dropped():
    over = Over((*COUNTED, lag(N), RANKS[1]))
    out = over.out
    verify(
        over.operators,
        elements=given(),
        then=[
            out(row("a", 3, 1), 1, 3, None, 1), out(row("b", 2, 3), 1, 2, None, 1), wm(4),
            out(row("a", 1, 5), 3, 8, 3, 2), out(row("a", 4, 5), 3, 8, 1, 2), wm(5),
            out(row("b", 7, 6), 2, 9, 2, 2), out(row("a", 9, 8), 4, 17, 4, 4), wm(8),
        ],
        key=BY_WORD,
    )  # fmt: skip


@pytest.mark.spec("R18", "range", "rows")
@pytest.mark.slow
def test_frames_of_rows_and_of_time_go_with_the_rows_before():
    for frame, results in ((Frame(True, -1, 0), (3, 2, 4, 5, 9, 13)), (Frame(False, -3, 0), (3, 2, 5, 5, 9, 14))):
        over = Over((agg("SUM", N), agg("COUNT", N, distinct=True)), frame)
        first, second, third, fourth, fifth, sixth = results
        last = 2 if frame.by_rows else 3
        out = over.out
        verify(
            over.operators,
            elements=given(),
            then=[
                out(row("a", 3, 1), first, 1), out(row("b", 2, 3), second, 1), wm(4),
                out(row("a", 1, 5), third, 2), out(row("a", 4, 5), fourth, 2), wm(5),
                out(row("b", 7, 6), fifth, 2), out(row("a", 9, 8), sixth, last), wm(8),
            ],
            key=BY_WORD,
        )  # fmt: skip


@pytest.mark.slow
def test_a_key_is_forgotten_when_no_row_came_for_the_time_to_live():
    over = Over(COUNTED, ALL_BEFORE, ttl_ms=10)
    out = over.out
    verify(
        over.operators,
        elements=[rows(row("a", 1, 1)), wm(1), at(6), rows(row("a", 2, 2)), wm(2), at(30), rows(row("a", 3, 3)), wm(3)],
        then=[out(row("a", 1, 1), 1, 1), wm(1), out(row("a", 2, 2), 2, 3), wm(2), out(row("a", 3, 3), 1, 3), wm(3)],
        key=BY_WORD,
    )


@pytest.mark.spec("R18", "processing-time")
@pytest.mark.slow
def test_by_processing_time_results_come_at_once_but_those_of_frames_of_time():
    over = Over(COUNTED, UNTIL_ROW, is_event_time=False)
    out = over.out
    verify(
        over.operators,
        elements=[rows(row("a", 1), row("a", 2)), wm(7), rows(row("a", 3))],
        then=[out(row("a", 1), 1, 1), out(row("a", 2), 2, 3), wm(7), out(row("a", 3), 3, 6)],
        key=BY_WORD,
    )
    over = Over(COUNTED, Frame(False, -10, 0), is_event_time=False)
    out = over.out
    verify(
        over.operators,
        elements=[
            at(1), rows(row("a", 1)), rows(row("a", 2)), at(5), rows(row("a", 3)), at(14), rows(row("a", 4)), at(20),
        ],
        then=[out(row("a", 1), 2, 3), out(row("a", 2), 2, 3), out(row("a", 3), 3, 6), out(row("a", 4), 2, 7)],
        key=BY_WORD,
    )  # fmt: skip


def test_rows_of_processing_time_are_due_though_more_rows_come_each_millisecond():
    over = Over(COUNTED, Frame(False, -10, 0), is_event_time=False)
    with OperatorHarness(over.operators) as harness:
        [operator] = harness.operators
        for number in range(3):
            harness.give(rows(row("a", number)))
            harness.clock.advance(1)
        assert operator.next_processing_time() == 1
        [due] = operator.on_processing_time(2)
        assert due.data.column("o0").to_pylist() == [1, 2]
        assert operator.next_processing_time() == 3


def test_rows_are_worked_in_parts_where_much_is_stored_or_results_are_lists(monkeypatch):
    monkeypatch.setattr("rayflink.table.runtime.over.over_operator.MOST_STORED", 20)
    monkeypatch.setattr("rayflink.table.runtime.over.over_operator.LISTED_ROWS", 4)
    chance = random.Random(5)
    for functions in (COUNTED, (agg("ARRAY_AGG", N), agg("SUM", N))):
        over = Over(functions, Frame(True, -5, 0))
        model = OverModel(over)
        with OperatorHarness(over.operators) as harness:
            for watermark in (1000, 2000, 3000):
                part = random_rows(chance, 40, watermark - 1000, 0.0)
                model.waiting += part
                harness.give(rows(*part))
                harness.give(wm(watermark))
                assert same(values_of(harness.take()), list(model.advance(watermark)))


def test_rows_that_no_frame_reaches_are_not_stored():
    over = Over((agg("SUM", N),), Frame(False, -50, 0))
    [operator] = over.operators()
    with OperatorHarness(lambda: [operator]) as harness:
        for number in range(40):
            harness.give(rows(*(row(f"{number}-{key}", 1, 100 * number) for key in range(10))))
            harness.give(wm(100 * number))
        assert len(operator._state.table) < 100
