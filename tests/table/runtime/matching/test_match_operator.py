"""MATCH_RECOGNIZE under every hardship, and beside a model that gives each row to the automaton."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.cep.nfa.logic import Bit
from rayflink.cep.nfa.matcher import Matcher
from rayflink.cep.nfa.partial_matches import KeyMatches
from rayflink.cep.nfa.row_patterns import RowConditions, compile_row_pattern
from rayflink.state.errors import SnapshotMismatch
from rayflink.testing import OperatorHarness, at, verify, wm

from .match_cases import BY_WORD, matching, out, planned, row, rows, values_of

RISE = (
    "ORDER BY ts MEASURES FIRST(A.n) AS low, LAST(B.n) AS high, COUNT(*) AS size, MIN(ts) AS start "
    "PATTERN (A B+? C) WITHIN INTERVAL '10' SECOND DEFINE A AS A.n > 0, B AS B.n > LAST(n, 1), C AS C.n < LAST(B.n)"
)
BEFORE = (
    "ORDER BY ts, n MEASURES A.n AS low, PREV(A.n) AS before, PREV(B.n, 2) AS two_before, MIN(ts) AS start "
    "PATTERN (A B) DEFINE A AS A.n < PREV(A.n, 2), B AS B.n > PREV(B.n)"
)
CLOCK = (
    "ORDER BY at MEASURES A.n AS a, B.n AS b, COUNT(ts) AS size PATTERN (A B) WITHIN INTERVAL '1' SECOND "
    "DEFINE A AS A.n = 1, B AS B.n > A.n"
)
PLAIN = (
    "ORDER BY ts MEASURES FIRST(A.n) AS a, LAST(C.n) AS c, COUNT(*) AS size, MIN(ts) AS start PATTERN (A B* C) "
    "DEFINE A AS A.n = 1, B AS B.n = 2, C AS C.n >= 3"
)
EPOCH = datetime(1970, 1, 1)


@pytest.mark.slow
@pytest.mark.spec("Q01")
def test_rows_are_matched_in_the_order_of_their_times_until_these_are_over():
    verify(
        matching(RISE),
        elements=[
            rows(row("a", 5, 3_000), row("b", 1, 1_000), row("a", 2, 1_000), row(None, 1, 1_000), row("a", 1, 4_000)),
            wm(2_000),
            rows(row("b", 2, 9_000), row("a", 9, 2_000), row(None, 2, 2_500), row(None, 1, 3_000)),
            wm(3_500),
            wm(8_000),
            rows(row("b", 1, 11_000)),
            wm(20_000),
        ],
        then=[
            wm(2_000),
            out(RISE, None, 1, 2, 3, EPOCH.replace(second=1)),
            wm(3_500),
            out(RISE, "a", 2, 5, 3, EPOCH.replace(second=1)),
            wm(8_000),
            wm(20_000),
        ],
        key=BY_WORD,
    )


@pytest.mark.slow
def test_rows_before_are_those_of_the_partition_whenever_they_came():
    verify(
        matching(BEFORE),
        elements=[
            rows(row("a", 5, 1_000), row("a", 4, 2_000), row("b", 1, 2_000)),
            wm(3_000),
            rows(row("a", 3, 4_000), row("a", 7, 4_000), row("b", 9, 4_000)),
            wm(5_000),
        ],
        then=[wm(3_000), out(BEFORE, "a", 3, 4, 4, EPOCH.replace(second=4)), wm(5_000)],
        key=BY_WORD,
    )


@pytest.mark.slow
def test_in_processing_time_rows_match_as_they_come_and_time_out_by_the_clock():
    verify(
        matching(CLOCK),
        elements=[rows(row("a", 1), row("b", 1), row("a", 3)), at(900), rows(row("b", 2), row("a", 1)), at(2_000),
               rows(row("a", 2))],
        then=[out(CLOCK, "a", 1, 3, 2), out(CLOCK, "b", 1, 2, 2)],
        key=BY_WORD,
    )  # fmt: skip


def test_late_rows_and_rows_without_use_are_counted_and_never_become_values():
    harness = OperatorHarness(matching(PLAIN))
    harness.give(rows(*(row(word, 7, ms) for ms, word in enumerate("abcabc")), row("a", 1, 8), row("a", 3, 9)))
    harness.give(wm(9))
    harness.give(rows(row("a", 3, 9), row("b", 3, 10)))
    harness.give(wm(20))
    assert values_of(harness.take()) == [("a", 1, 3, 2, EPOCH.replace(microsecond=8_000))]
    [operator] = harness.operators
    assert operator._metrics.skipped == 7 and not operator._matches


def test_state_goes_on_under_other_conditions_but_not_with_another_pattern():
    harness = OperatorHarness(matching(PLAIN))
    harness.give(rows(row("a", 1, 1)))
    harness.give(wm(1))
    other_condition = matching(PLAIN.replace("C.n >= 3", "C.n >= 4"))
    restored = harness.restore(other_condition, harness.snapshot())
    restored.give(rows(row("a", 3, 2)))
    restored.give(wm(2))
    assert values_of(restored.take()) == []
    restored = harness.restore(other_condition, harness.snapshot())
    restored.give(rows(row("a", 4, 2)))
    restored.give(wm(2))
    assert [value[:3] for value in values_of(restored.take())] == [("a", 1, 4)]
    with pytest.raises(SnapshotMismatch, match="C D"):
        harness.restore(matching(PLAIN.replace("B* C)", "B* C D)")), harness.snapshot())


numbers = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 4), st.integers(0, 3)), max_size=30)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(numbers, st.lists(st.integers(0, 9), max_size=6))
def test_matches_are_those_of_all_rows_one_by_one(steps, cuts):
    """Rows that matter to no match are left out, wherever batches and watermarks cut the stream."""
    time, events = 0, []
    for word, n, gap in steps:
        time += gap
        events.append((word, n, time))
    harness, first, progress = OperatorHarness(matching(PLAIN)), 0, -1
    for cut in [*cuts, len(events)]:
        part, first = events[first : first + cut], first + cut
        if part:
            harness.give(rows(*(row(*event) for event in part if event[2] > progress)))
            if first < len(events) and events[first][2] > part[-1][2]:
                progress = part[-1][2]
                harness.give(wm(progress))
    harness.give(wm(10_000))
    got = sorted(value[:4] for value in values_of(harness.take()))
    assert got == sorted(model(events))


def model(events):
    """(word, first number, last number, size) of each match."""
    plan = planned(PLAIN)
    automaton = compile_row_pattern(
        plan.pattern, plan.variables, RowConditions((Bit(0), Bit(1), Bit(2))), plan.skip
    )  # fmt: skip
    results = []
    for word in "ab":
        matcher, matches = Matcher(automaton, None), KeyMatches()
        for _, n, time in (event for event in events if event[0] == word):
            mask = (n == 1) | (n == 2) << 1 | (n >= 3) << 2
            for node in matcher.process(matches, n, time, mask):
                numbers_of_match = []
                while node is not None:
                    numbers_of_match.append(node[2])
                    node = node[3]
                results.append((word, numbers_of_match[-1], numbers_of_match[0], len(numbers_of_match)))
    return results
