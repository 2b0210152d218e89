"""Row patterns find the matches of the same pattern in the Pattern API, whose automaton is compared with Flink's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.cep import AfterMatchSkipStrategy, Pattern
from rayflink.cep.nfa.compiler import compile_pattern
from rayflink.cep.nfa.logic import Bit
from rayflink.cep.nfa.masks import EventConditions
from rayflink.cep.nfa.matcher import Matcher
from rayflink.cep.nfa.partial_matches import KeyMatches
from rayflink.cep.nfa.row_patterns import (
    RowChoice,
    RowConditions,
    RowRepetition,
    RowSequence,
    RowVariable,
    compile_row_pattern,
    greedy_end,
    matches_nothing,
)
from rayflink.cep.skip_strategies import SkipFailed

NAMES = "ABCD"
QUANTIFIERS = [(1, 1), (0, None), (1, None), (0, 1), (2, 2), (1, 3), (2, 3), (0, 2), (2, None)]
A, B, C, D = (RowVariable(index, name) for index, name in enumerate(NAMES))
PAST_LAST = AfterMatchSkipStrategy.skip_past_last_event()
TO_NEXT = AfterMatchSkipStrategy.skip_to_next()

quantified = st.tuples(st.sampled_from(QUANTIFIERS), st.booleans())
skips = st.sampled_from(
    [PAST_LAST, TO_NEXT, AfterMatchSkipStrategy.skip_to_first("A"), AfterMatchSkipStrategy.skip_to_last("A")]
)


def row_pattern(parts: list[Any]) -> RowSequence:
    return RowSequence(
        tuple(
            RowVariable(index, NAMES[index]) if times == (1, 1)
            else RowRepetition(RowVariable(index, NAMES[index]), *times, is_greedy or times == (0, 1))
            for index, (times, is_greedy) in enumerate(parts)
        )
    )  # fmt: skip


def api_pattern(parts: list[Any], skip: AfterMatchSkipStrategy) -> Any:
    """The pattern that Flink makes of the clause PATTERN."""
    pattern: Any = None
    for index, ((least, most), is_greedy) in enumerate(parts):
        name = NAMES[index]
        pattern = Pattern.begin(name, skip) if pattern is None else pattern.next(name)
        pattern = pattern.where(lambda event, bit=index: bool(event >> bit & 1))
        if (least, most) == (1, 1):
            continue
        if (least, most) == (0, 1):
            pattern = pattern.optional()
            continue
        if most is None:
            pattern = pattern.times_or_more(max(least, 1)).consecutive()
            pattern = pattern.optional() if least == 0 else pattern
        else:
            pattern = pattern.times(least, most).consecutive()
        if is_greedy and least != most:
            pattern = pattern.greedy()
    return pattern


class Never:
    """Evaluates nothing: masks decide everything here."""


def found(matcher: Matcher, events: list[int], masks: list[int]) -> list[Any]:
    matches = KeyMatches()
    results: list[Any] = []
    for number, (event, mask) in enumerate(zip(events, masks, strict=True)):
        try:
            nodes = matcher.process(matches, event, number, mask)
        except SkipFailed as error:
            return [*results, error.problem]
        for node in nodes:
            rows = []
            while node is not None:
                rows.append(f"{matcher.automaton.steps[node[0]]}{node[1]}")
                node = node[3]
            results.append(" ".join(reversed(rows)))
    return results


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(st.lists(quantified, min_size=1, max_size=4), skips, st.lists(st.integers(0, 15), max_size=12))
def test_sequences_of_variables_match_as_in_the_pattern_api(parts, skip, events):
    pattern = row_pattern(parts)
    if matches_nothing(pattern) or greedy_end(pattern) is not None:
        return
    before_optional = zip(parts, parts[1:], strict=False)
    if any(greedy and times[0] != times[1] and then[0][0] == 0 for (times, greedy), then in before_optional):
        return  # the Pattern API refuses an optional step behind a greedy one
    own = compile_row_pattern(pattern, NAMES[: len(parts)], conditions(len(parts)), skip)
    other = compile_pattern(api_pattern(parts, skip))
    expected = found(Matcher(other, Never()), events, EventConditions(other.units).masks(events))
    assert found(Matcher(own, Never()), events, events) == expected


def conditions(count: int) -> RowConditions:
    return RowConditions(tuple(Bit(index) for index in range(count)))


@pytest.mark.parametrize(("pattern", "skip", "events", "expected"), [
    (RowSequence((A, RowChoice((B, C)), D)), PAST_LAST, [1, 6, 8], ["A0 B1 D2"]),
    (RowSequence((A, RowChoice((C, B)), D)), PAST_LAST, [1, 6, 8], ["A0 C1 D2"]),
    (RowSequence((A, RowChoice((B, RowSequence((C, D)))))), PAST_LAST, [1, 4, 8, 1, 2], ["A0 C1 D2", "A3 B4"]),
    (RowSequence((A, RowRepetition(RowSequence((B, C)), 1, None, True), D)), PAST_LAST, [1, 2, 4, 2, 4, 8],
     ["A0 B1 C2 B3 C4 D5"]),
    (RowSequence((A, RowRepetition(RowSequence((B, C)), 0, 2, False), D)), TO_NEXT, [1, 8, 1, 2, 4, 8],
     ["A0 D1", "A2 B3 C4 D5"]),
    (RowSequence((A, RowRepetition(RowSequence((B, C)), 1, None, True), D)), PAST_LAST, [1, 2, 4, 10, 8], []),
    (RowSequence((A, RowRepetition(RowSequence((B, C)), 1, None, False), D)), PAST_LAST, [1, 2, 4, 10, 8],
     ["A0 B1 C2 D3"]),
    (RowSequence((A, B, A)), PAST_LAST, [1, 2, 1, 2, 1], ["A0 B1 A2"]),
    (RowSequence((A, B, A)), AfterMatchSkipStrategy.skip_to_last("A"), [1, 2, 1, 2, 1], ["A0 B1 A2", "A2 B3 A4"]),
])  # fmt: skip
def test_groups_choices_and_variables_that_recur(pattern, skip, events, expected):
    automaton = compile_row_pattern(pattern, NAMES, conditions(4), skip)
    assert found(Matcher(automaton, Never()), events, events) == expected


def test_a_pattern_is_shown_as_it_is_written():
    pattern = RowSequence((A, RowRepetition(RowChoice((B, C)), 2, 3, False), RowRepetition(D, 0, None, True), A))
    assert str(pattern) == "A (B | C){2,3}? D* A"
