"""Window aggregation under every hardship, and beside a model that goes row by row."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from rayflink.common.types import Row
from rayflink.operators.base import UserCodeError
from rayflink.state.errors import SnapshotMismatch
from rayflink.state.keys import key_hash
from rayflink.state.keys.key_groups import key_group, key_group_range
from rayflink.table.plan.logical import Emission, WindowKind
from rayflink.table.runtime.aggregates.window_spec import WindowAggregation, WindowSpec
from rayflink.table.runtime.keyed_state.frame_snapshots import one_batch
from rayflink.table.runtime.windows.window_operators import (
    emitting_window_aggregate,
    global_window_aggregate,
    local_window_aggregate,
    one_phase_window_aggregate,
    session_window_aggregate,
)
from rayflink.table.types import DataTypes
from rayflink.testing import OperatorHarness, at, rec, verify, wm
from rayflink.testing.elements import columns
from rayflink.testing.harness import Place, rescaled_snapshots

from .window_cases import OK, WORD, N, aggregate, by_word, cumulate, hop, key_of, rows, session, tumble


def two_phases(aggregation: WindowAggregation) -> Any:
    return lambda: [local_window_aggregate(aggregation), global_window_aggregate(aggregation)]


def one_phase(aggregation: WindowAggregation) -> Any:
    return lambda: one_phase_window_aggregate(aggregation)


def sessions(aggregation: WindowAggregation) -> Any:
    return lambda: session_window_aggregate(aggregation)


def ms(value: int) -> datetime:
    return datetime(1970, 1, 1) + timedelta(milliseconds=value)


def out(aggregation: WindowAggregation, *values: Any) -> Any:
    """A row of the result; the last two values are the window's start and end."""
    names = [field.name for field in aggregation.result.fields]
    *given, start, end = values
    return rec(Row(*names)(*given, ms(start), ms(end), ms(end - 1)), end - 1)


BASIC = by_word(
    tumble(), aggregate("COUNT"), aggregate("COUNT", N), aggregate("SUM", N), aggregate("MIN", N), aggregate("MAX", N),
    aggregate("AVG", N),
)  # fmt: skip
GIVEN = [
    rows(("b", 4, 3), ("a", 1, 0), ("b", None, 9), ("a", 2, 12), ("b", -9, 5), (None, 7, 3), ("c", None, 19)),
    wm(8),
    rows(("b", 1, 2), ("a", 5, 29), ("c", 6, 11)),
    wm(9),
    rows(("late", 1, 9), ("a", -8, 10)),
    wm(19),
    wm(25),
    rows(("a", 3, 20)),
    wm(40),
]
THEN = [
    wm(8),
    out(BASIC, "b", 4, 3, -4, -9, 4, -1, 0, 10),
    out(BASIC, "a", 1, 1, 1, 1, 1, 1, 0, 10),
    out(BASIC, None, 1, 1, 7, 7, 7, 7, 0, 10),
    wm(9),
    out(BASIC, "a", 2, 2, -6, -8, 2, -3, 10, 20),
    out(BASIC, "c", 2, 1, 6, 6, 6, 6, 10, 20),
    wm(19),
    wm(25),
    out(BASIC, "a", 2, 2, 8, 3, 5, 4, 20, 30),
    wm(40),
]


@pytest.mark.slow
def test_tumbling_windows_in_two_phases():
    verify(two_phases(BASIC), GIVEN, THEN, key=key_of(BASIC))


@pytest.mark.slow
def test_tumbling_windows_in_one_phase():
    verify(one_phase(BASIC), GIVEN, THEN, key=key_of(BASIC))


def test_late_rows_are_counted():
    for factory in (two_phases(BASIC), one_phase(BASIC)):
        with OperatorHarness(factory) as harness:
            for element in [rows(("a", 1, 0)), wm(9), rows(("b", 1, 9), ("b", 1, 1), ("c", 1, 3), ("a", 2, 10)), wm(9)]:
                harness.give(element)
            harness.advance_watermark(100)
            assert harness.operators[-1].ctx.metrics.counter("numLateRecordsDropped").get_count() == 3


RICH = (
    aggregate("COUNT"), aggregate("SUM", N, filter=OK), aggregate("COUNT", N, distinct=True), aggregate("MAX", WORD),
    aggregate("AVG", N), aggregate("COLLECT", N), aggregate("ARRAY_AGG", N), aggregate("ARRAY_AGG", N, distinct=True),
)  # fmt: skip
MANY = [
    rows(("b", 4, 3, True), ("a", 1, 0, None), ("b", 4, 9, False), ("a", 2, 12, True), ("b", -9, 5, True)),
    wm(8),
    rows(("b", 1, 22, True), ("a", None, 29, True), (None, 6, 11, False), ("a", 5, 4, True)),
    wm(9),
    rows(("a", 7, 5, True), ("b", 4, 31, True), ("a", 1, 2, True)),
    wm(19),
    wm(33),
    rows(("a", 7, 5, True), ("b", 4, 28, True), ("b", 4, 47, True)),
    wm(60),
    wm(100),
]


@pytest.mark.slow
@pytest.mark.parametrize("window", [hop(), cumulate()], ids=["hop", "cumulate"])
@pytest.mark.parametrize("phases", [two_phases, one_phase])
def test_windows_that_share_slices(phases, window):
    aggregation = by_word(window, *RICH)
    verify(phases(aggregation), MANY, key=key_of(aggregation))


@pytest.mark.slow
def test_sessions():
    ordered = aggregate("FIRST_VALUE", N), aggregate("LAST_VALUE", N), aggregate("LISTAGG", WORD, distinct=True)
    aggregation = by_word(session(), *RICH, *ordered)
    verify(sessions(aggregation), MANY, key=key_of(aggregation))


@pytest.mark.slow
def test_a_key_of_several_columns():
    aggregation = by_word(tumble(), *RICH, keys=(WORD, OK))
    verify(two_phases(aggregation), MANY, key=key_of(aggregation))


@pytest.mark.slow
@pytest.mark.parametrize("window", [tumble(), hop(), session()], ids=["tumble", "hop", "session"])
def test_processing_time(window):
    clock = replace(window, time_column=None, is_event_time=False, time_type=DataTypes.TIMESTAMP_LTZ(3))
    aggregation = by_word(clock, *RICH)
    given = [
        at(1_003), rows(("a", 1), ("b", 2)), at(1_007), rows(("a", 2)), wm(5_000), at(1_009), rows(("b", 3)), at(1_010),
        rows(("a", 5), ("c", 9)), at(1_019), at(1_020), at(1_041), rows(("a", 6)), at(1_100),
    ]  # fmt: skip
    factory = sessions(aggregation) if window.gap_ms else one_phase(aggregation)
    verify(factory, given, key=key_of(aggregation))


def test_processing_time_tumbles_by_the_clock():
    window = replace(tumble(), time_column=None, is_event_time=False)
    aggregation = by_word(window, aggregate("SUM", N))
    with OperatorHarness(one_phase(aggregation)) as harness:
        for element in [at(13), rows(("a", 1), ("b", 2)), at(19), rows(("a", 4)), at(20), rows(("a", 8)), at(35)]:
            harness.give(element)
        assert [tuple(value)[:-1] for value in harness.output_values()] == [
            ("a", 5, ms(10), ms(20)), ("b", 2, ms(10), ms(20)), ("a", 8, ms(20), ms(30)),
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("made", "window", "dropped"),
    [(one_phase, tumble(), 2), (one_phase, hop(), 3), (sessions, session(), 3),
     (lambda one: lambda: emitting_window_aggregate(one, Emission(0)), tumble(), 2)],
)  # fmt: skip
def test_rows_of_windows_of_processing_time_that_are_open_at_the_end_are_counted(made, window, dropped):
    clock = replace(window, time_column=None, is_event_time=False, time_type=DataTypes.TIMESTAMP_LTZ(3))
    with OperatorHarness(made(by_word(clock, aggregate("SUM", N)))) as harness:
        for element in [at(1), rows(("a", 1), ("b", 2)), at(29), rows(("a", 4)), at(31), rows(("a", 8), ("c", 1))]:
            harness.give(element)
        given = harness.output_values()
        harness.end_input()
        assert harness.output_values() == given
        counted = harness.operators[-1].ctx.metrics.counter("numRecordsInOpenWindowsDropped").get_count()
        assert counted == dropped


def test_without_a_key_an_empty_window_gives_no_row():
    aggregation = by_word(tumble(), aggregate("COUNT"), aggregate("SUM", N), keys=())
    given = [wm(10), rows(("a", None, 41), ("b", None, 42)), wm(100)]
    for phases in (one_phase, two_phases):
        verify(phases(aggregation), given, [wm(10), out(aggregation, 2, None, 40, 50), wm(100)])


def test_a_group_may_have_no_aggregate():
    aggregation = by_word(tumble())
    given = [rows(("a", 1, 1), ("b", 2, 1), ("a", 3, 9)), wm(9)]
    then = [out(aggregation, "a", 0, 10), out(aggregation, "b", 0, 10), wm(9)]
    verify(two_phases(aggregation), given, then, key=key_of(aggregation))


def test_an_empty_stream_gives_nothing():
    for factory in (two_phases(BASIC), one_phase(BASIC), sessions(by_word(session(), aggregate("COUNT")))):
        verify(factory, [wm(5), wm(100)], [wm(5), wm(100)], key=key_of(BASIC))


@pytest.mark.slow
def test_windows_that_were_assigned_before_go_by_their_end():
    window = replace(hop(), end_column=2)  # of the column ts
    aggregation = by_word(window, aggregate("SUM", N))
    given = [rows(("a", 1, 30), ("a", 2, 40), ("a", 4, 30)), wm(29), wm(39)]
    then = [out(aggregation, "a", 5, 0, 30), wm(29), out(aggregation, "a", 2, 10, 40), wm(39)]
    for phases in (one_phase, two_phases):
        verify(phases(aggregation), given, then, key=key_of(aggregation))


@pytest.mark.slow
def test_windows_with_one_end_and_two_starts_are_two():
    row = DataTypes.ROW([("k", DataTypes.STRING()), ("start", DataTypes.TIMESTAMP(3)), ("end", DataTypes.TIMESTAMP(3))])
    window = WindowSpec(WindowKind.TUMBLE, 1, start_column=1, end_column=2)
    aggregation = WindowAggregation(row, (0,), (aggregate("COUNT"),), window)
    given = [rows(("a", 0, 20), ("a", 5, 20), ("b", 5, 20), ("a", 0, 20), ("a", 0, 30), of=row), wm(19), wm(29)]
    then = [
        out(aggregation, "a", 2, 0, 20),
        out(aggregation, "a", 1, 5, 20),
        out(aggregation, "b", 1, 5, 20),
        wm(19),
        out(aggregation, "a", 1, 0, 30),
        wm(29),
    ]
    for phases in (one_phase, two_phases):
        verify(phases(aggregation), given, then, key=key_of(aggregation))


def test_windows_assigned_earlier_by_the_clock_may_be_over_when_their_rows_come():
    window = replace(tumble(), end_column=2, is_event_time=False)
    aggregation = by_word(window, aggregate("SUM", N))
    with OperatorHarness(one_phase(aggregation)) as harness:
        for element in [at(20), rows(("a", 1, 20)), at(21), rows(("a", 2, 20), ("a", 4, 30)), at(22), at(30)]:
            harness.give(element)
        assert [tuple(value)[:3] for value in harness.output_values()] == [
            ("a", 1, ms(10)),
            ("a", 2, ms(10)),
            ("a", 4, ms(20)),
        ]


def test_a_row_without_a_time_is_refused():
    for factory in (two_phases(BASIC), one_phase(BASIC), sessions(by_word(session(), aggregate("COUNT")))):
        with OperatorHarness(factory) as harness, pytest.raises(UserCodeError, match="column 'ts' is NULL in a row"):
            harness.give(rows(("a", 1, None)))
            harness.snapshot()


def test_rescaled_from_one_to_three_to_two():
    words = [f"word {number}" for number in range(50)]
    aggregation = by_word(hop(), aggregate("COUNT"), aggregate("MAX", N))
    deal, factory = key_of(aggregation), lambda: one_phase_window_aggregate(aggregation)

    def dealt(subtasks: list[OperatorHarness], *values: Any) -> None:
        for value in values:
            group = key_group(key_hash(value[0]), 128)
            at = next(i for i in range(len(subtasks)) if group in key_group_range(i, len(subtasks), 128))
            subtasks[at].give(rows(value))

    def rescale(subtasks: list[OperatorHarness], parallelism: int) -> list[OperatorHarness]:
        parts = rescaled_snapshots([one.snapshot() for one in subtasks], parallelism)
        fresh = [OperatorHarness(factory, place=Place(i, parallelism), restore=[part]) for i, part in enumerate(parts)]
        for one in fresh:
            one.adopt_position(subtasks[0])
        return fresh

    subtasks = [OperatorHarness(factory)]
    assert deal(Row("word")("x")) == "x"
    dealt(subtasks, *((word, i, i % 30) for i, word in enumerate(words)))
    subtasks[0].advance_watermark(9)
    first = Counter(tuple(value)[:3] for value in subtasks[0].output_values())
    assert first == Counter((word, 1, i) for i, word in enumerate(words) if i % 30 < 10)
    for parallelism in (3, 2):
        subtasks = rescale(subtasks, parallelism)
        dealt(subtasks, *((word, 100 + i, 20) for i, word in enumerate(words)))
    for one in subtasks:
        one.advance_watermark(29)
    found = Counter(tuple(value)[:3] for one in subtasks for value in one.output_values() if value[3] == ms(0))
    assert found == Counter((word, 3, 100 + i) for i, word in enumerate(words))


def test_windows_of_a_subtask_that_was_ahead_fire_once():
    aggregation = by_word(hop(), aggregate("COUNT"))

    def run(*subtasks: OperatorHarness) -> list[tuple[Any, ...]]:
        return sorted(tuple(value)[:3] for one in subtasks for value in one.output_values())

    pair = [OperatorHarness(lambda: one_phase_window_aggregate(aggregation), place=Place(at, 2)) for at in range(2)]
    words = [f"word {number}" for number in range(20)]
    for at_, one in enumerate(pair):
        one.give(rows(*((word, 1, 5) for word in words if key_group(key_hash(word), 128) // 64 == at_)))
    pair[0].advance_watermark(19)
    pair[1].advance_watermark(3)
    fired = run(*pair)
    assert 0 < len(fired) < 40
    (joined,) = rescaled_snapshots([one.snapshot() for one in pair], 1)
    with OperatorHarness(lambda: one_phase_window_aggregate(aggregation), restore=[joined]) as whole:
        whole.advance_watermark(9)
        again = whole.snapshot()
        first = run(whole)
    with OperatorHarness(lambda: one_phase_window_aggregate(aggregation), restore=[again]) as whole:
        whole.advance_watermark(100)
        wanted = Counter((word, 1, ms(end - 30)) for word in words for end in (10, 20, 30))
        assert Counter(fired + first + run(whole)) == wanted


@pytest.mark.parametrize(
    "other",
    [
        by_word(tumble(), aggregate("MIN", WORD)),
        by_word(tumble(), aggregate("MAX", N)),
        by_word(tumble(20), aggregate("MIN", N)),
        by_word(tumble(offset_ms=1), aggregate("MIN", N)),
        by_word(tumble(), aggregate("MIN", N), keys=(WORD, N)),
    ],
)
def test_state_of_something_else_is_refused(other):
    with OperatorHarness(one_phase(by_word(tumble(), aggregate("MIN", N)))) as harness:
        harness.give(rows(("a", 1, 1)))
        snapshot = harness.snapshot()
    with pytest.raises(SnapshotMismatch, match="other windows, aggregates or keys"):
        OperatorHarness(one_phase(other), restore=[snapshot])


def test_small_batches_are_held_until_a_slice_ends():
    with OperatorHarness(lambda: local_window_aggregate(BASIC)) as local:
        local.advance_watermark(0)
        for number in range(1, 9):
            local.give(rows(("a", number, number)))
            local.advance_watermark(number)
        assert local.output_values() == []
        local.advance_watermark(9)
        (partial,) = local.output_values()
        assert (partial["v0"], partial["v2"]) == (8, 36)


def test_partial_rows_of_one_key_that_the_exchange_put_into_one_batch_are_joined():
    aggregation = by_word(tumble(), aggregate("COUNT"), aggregate("SUM", N))
    parts = []
    for number in (1, 2):
        local = OperatorHarness(lambda: local_window_aggregate(aggregation))
        local.give(rows(("a", number, 3)))
        parts += [entry.data for entry in local.operators[0].finish()]
        local.close()
    harness = OperatorHarness(lambda: global_window_aggregate(aggregation))
    harness.give(columns(one_batch(parts)))
    harness.advance_watermark(9)
    assert harness.take() == [out(aggregation, "a", 2, 3, 0, 10), wm(9)]
    harness.close()
