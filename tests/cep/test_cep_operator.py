"""The operator of pattern matching, under every hardship."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from typing import Any

import pytest

from rayflink.cep.functions import PatternProcessFunction, TimedOutPartialMatchHandler
from rayflink.cep.pattern import Pattern
from rayflink.cep.runtime.cep_operator import CepOperator
from rayflink.cep.runtime.match_state import ChangedPattern
from rayflink.cep.runtime.matching_operator import MatchOptions
from rayflink.cep.skip_strategies import AfterMatchSkipStrategy
from rayflink.common.output_tag import OutputTag
from rayflink.operators.base import UserCodeError
from rayflink.testing import OperatorHarness, rec, side, verify, wm

TIMED_OUT = OutputTag("timed out")
_key = itemgetter(0)


def kind(wanted: str) -> Any:
    return lambda event: event[1] == wanted


class Numbers(PatternProcessFunction[Any, str], TimedOutPartialMatchHandler[Any]):
    """Gives each match as the numbers of its events."""

    def process_match(self, match: Any, ctx: Any) -> Any:
        yield _numbers(match)

    def process_timed_out_match(self, match: Any, ctx: Any) -> Any:
        ctx.output(TIMED_OUT, _numbers(match))


def _numbers(match: Any) -> str:
    return "".join(str(event[2]) for events in match.values() for event in events)


def matching(pattern: Any, **options: Any) -> Any:
    return partial(CepOperator, _key, pattern, Numbers(), MatchOptions(**options))


def a_then_b() -> Any:
    return Pattern.begin("a").where(kind("a")).followed_by("b").where(kind("b"))


def event(key: str, name: str, number: int, stamp: int) -> Any:
    return rec((key, name, number), stamp)


@pytest.mark.slow
def test_matches_are_found_by_key_in_the_order_of_time() -> None:
    verify(
        matching(a_then_b()),
        elements=[
            event("x", "b", 3, 30), event("x", "a", 1, 10), event("y", "b", 2, 20), event("y", "a", 4, 40), wm(35),
            event("y", "b", 5, 50), event("x", "c", 6, 55), wm(60),
        ],
        then=[rec("13", 30), wm(35), rec("45", 50), wm(60)],
        key=_key,
    )  # fmt: skip


@pytest.mark.slow
def test_partial_matches_time_out() -> None:
    verify(
        matching(a_then_b().within(20)),
        elements=[event("x", "a", 1, 10), event("x", "a", 2, 15), event("x", "b", 3, 32), wm(60)],
        then=[side("timed out", "1", 30), rec("23", 32), wm(60)],
        key=_key,
    )


@pytest.mark.slow
def test_an_event_that_must_not_come_is_waited_for() -> None:
    pattern = Pattern.begin("a").where(kind("a")).not_followed_by("b").where(kind("b")).within(20)
    verify(
        matching(pattern),
        elements=[event("x", "a", 1, 10), event("x", "b", 2, 15), event("x", "a", 3, 20), wm(39), wm(40), wm(99)],
        then=[wm(39), rec("3", 40), wm(40), wm(99)],
        key=_key,
    )


@pytest.mark.slow
def test_strict_steps_see_events_that_meet_no_condition() -> None:
    pattern = Pattern.begin("a").where(kind("a")).next("b").where(kind("b"))
    verify(
        matching(pattern),
        elements=[
            event("x", "a", 1, 10), event("x", "b", 2, 30), event("x", "z", 3, 20), event("y", "z", 4, 20), wm(30),
            event("x", "a", 5, 40), wm(41), event("x", "b", 6, 50), wm(60),
        ],
        then=[wm(30), wm(41), rec("56", 50), wm(60)],
        key=_key,
    )  # fmt: skip


@pytest.mark.slow
def test_late_events_go_to_a_side_output() -> None:
    verify(
        matching(a_then_b(), late_tag="late"),
        elements=[event("x", "a", 1, 10), wm(20), event("x", "b", 2, 20), event("x", "b", 3, 21), wm(30)],
        then=[wm(20), side("late", ("x", "b", 2), 20), rec("13", 21), wm(30)],
        key=_key,
    )


@pytest.mark.slow
def test_a_comparator_orders_events_of_one_time() -> None:
    pattern = Pattern.begin("all").times(3)
    verify(
        matching(pattern, comparator=_by_number),
        elements=[event("x", "a", 2, 10), event("x", "a", 3, 10), event("x", "a", 1, 10), wm(20)],
        then=[rec("123", 10), wm(20)],
        key=_key,
    )


def _by_number(one: Any, other: Any) -> int:
    return int(one[2] - other[2])


@pytest.mark.slow
def test_partial_matches_beyond_the_limit_are_dropped() -> None:
    verify(
        matching(a_then_b(), max_partial_matches=2, dropped_tag="dropped"),
        elements=[*(event("x", "a", number, number) for number in (1, 2, 3)), event("x", "b", 4, 4), wm(9)],
        then=[rec("24", 4), rec("34", 4), side("dropped", {"a": [("x", "a", 1)]}, 3), wm(9)],
        key=_key,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "strategy, matches",
    [
        (AfterMatchSkipStrategy.no_skip(), ["1234", "234", "34"]),
        (AfterMatchSkipStrategy.skip_to_next(), ["1234", "234", "34"]),
        (AfterMatchSkipStrategy.skip_past_last_event(), ["1234"]),
        (AfterMatchSkipStrategy.skip_to_first("b"), ["1234", "234", "34"]),
        (AfterMatchSkipStrategy.skip_to_last("b"), ["1234", "34"]),
    ],
    ids=lambda value: value.skip_to.name if isinstance(value, AfterMatchSkipStrategy) else "",
)
def test_skip_strategies_drop_overlapping_matches(strategy: Any, matches: list[str]) -> None:
    pattern = Pattern.begin("b", strategy).where(kind("b")).one_or_more().consecutive().next("c").where(kind("c"))
    verify(
        matching(pattern),
        elements=[*(event("x", "b", number, number) for number in (1, 2, 3)), event("x", "c", 4, 4), wm(9)],
        then=[*(rec(match, 4) for match in matches), wm(9)],
        key=_key,
    )


@pytest.mark.slow
def test_iterative_conditions_see_the_events_of_their_own_partial_match() -> None:
    def rises(value: Any, ctx: Any) -> bool:
        return all(value[2] > other[2] for other in ctx.get_events_for_pattern("up"))

    pattern = Pattern.begin("up").where(rises).times(3).consecutive()
    verify(
        matching(pattern),
        elements=[event("x", "a", number, stamp) for stamp, number in enumerate((1, 3, 2, 4, 6))] + [wm(9)],
        then=[rec("246", 4), wm(9)],
        key=_key,
    )


def test_a_condition_that_raises_names_its_line_and_the_event() -> None:
    pattern = Pattern.begin("a").where(kind("a")).followed_by("b").where(lambda event: event["price"] > 3)
    with OperatorHarness(matching(pattern)) as harness:
        harness.process(("x", "z", 0), timestamp=1)  # no partial match waits for b: its condition is not needed
        harness.advance_watermark(5)
        harness.process(("x", "a", 1), timestamp=10)
        harness.process(("x", "b", 2), timestamp=11)
        with pytest.raises(UserCodeError, match=r"the condition 'lambda of line \d+'.*\('x', 'b', 2\)") as raised:
            harness.advance_watermark(20)
    assert "test_cep_operator.py" in str(raised.value)


def test_a_condition_that_gives_no_bool_is_an_error_at_its_line() -> None:
    pattern = Pattern.begin("a").where(lambda event: event[2])
    with OperatorHarness(matching(pattern)) as harness, pytest.raises(UserCodeError, match="gave 1 of type"):
        harness.process(("x", "a", 1), timestamp=1)


def test_events_without_timestamps_are_refused_with_the_remedy() -> None:
    with OperatorHarness(matching(a_then_b())) as harness, pytest.raises(UserCodeError, match="in_processing_time"):
        harness.process(("x", "a", 1))


def test_restored_matches_need_a_pattern_of_the_same_steps() -> None:
    with OperatorHarness(matching(a_then_b())) as harness:
        harness.process(("x", "a", 1), timestamp=1)
        harness.advance_watermark(5)
        snapshot = harness.snapshot(1)
    other_condition = Pattern.begin("a").where(kind("a")).followed_by("b").where(kind("c"))
    with OperatorHarness(matching(a_then_b())) as old, old.restore(matching(other_condition), snapshot) as harness:
        harness.process(("x", "c", 2), timestamp=9)
        harness.advance_watermark(10)
        assert harness.output == [rec("12", 9), wm(10)]
    longer = a_then_b().followed_by("c").where(kind("c"))
    with OperatorHarness(matching(a_then_b())) as old:
        with pytest.raises(ChangedPattern, match="drop_partial_matches_on_change"):
            old.restore(matching(longer), snapshot)
        restored = old.restore(matching(longer, drops_on_change=True), snapshot)
    with restored as harness:
        for number, name in ((2, "b"), (3, "c")):
            harness.process(("x", name, number), timestamp=number + 10)
        harness.advance_watermark(20)
        assert harness.output == [wm(20)]


def test_processing_time_matches_events_as_they_arrive() -> None:
    with OperatorHarness(matching(a_then_b().within(100), is_processing_time=True)) as harness:
        harness.process(("x", "a", 1))
        harness.process(("x", "b", 2))
        assert harness.output == [rec("12")]
        harness.process(("x", "a", 1))
        harness.set_processing_time(harness.clock.now_ms() + 200)
        assert harness.side_output(TIMED_OUT) == [side("timed out", "1")]


def test_a_key_has_one_timer_for_its_partial_matches() -> None:
    with OperatorHarness(matching(a_then_b().within(20))) as harness:
        timers = harness.operators[0].state.timers
        for stamp in (10, 12, 14):
            harness.process(("x", "a", stamp), timestamp=stamp)
            harness.advance_watermark(stamp)
        assert len(timers) == 1
        harness.advance_watermark(31)
        assert harness.side_output(TIMED_OUT) == [side("timed out", "10", 30)] and len(timers) == 1
        harness.process(("x", "b", 33), timestamp=33)
        harness.advance_watermark(40)
        assert harness.side_output(TIMED_OUT)[1:] == [side("timed out", "12", 32)]
        assert harness.output_values() == ["1433"] and len(timers) == 0
