from operator import itemgetter
from typing import Any

import pytest

from rayflink.operators.keyed.keyed_process import KeyedProcessOperator
from rayflink.operators.keyed.rolling import KeyedReduceOperator, KeyedSumOperator
from rayflink.operators.windows.assigners import SlidingEventTimeWindows, TumblingEventTimeWindows
from rayflink.operators.windows.triggers import EventTimeTrigger
from rayflink.operators.windows.window_factory import WindowRules, window_operator
from rayflink.operators.windows.window_functions import built_in
from rayflink.testing.elements import rec, wm
from rayflink.testing.hardships import verify
from tests.operators.keyed.test_timers import Script

first = itemgetter(0)
LATE = [
    rec(("a", 1), 1), rec(("b", 2), 7), rec(("a", 4), 12), wm(9), rec(("a", 8), 3), rec(("c", 1), 9), wm(12),
    rec(("a", 16), 3), rec(("b", 32), 14), wm(40),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("trigger", [None, EventTimeTrigger()])
@pytest.mark.parametrize("lateness", [0, 3, 20])
@pytest.mark.parametrize("assigner", [TumblingEventTimeWindows.of(10), SlidingEventTimeWindows.of(10, 4)])
def test_windows_give_the_same_under_every_hardship(assigner: Any, lateness: int, trigger: Any) -> None:
    rules = WindowRules(trigger, lateness, "late")
    verify(lambda: window_operator(first, assigner, built_in("sum", 1), None, rules), LATE)


def test_rolling_aggregations_and_timers_give_the_same_under_every_hardship() -> None:
    records = [rec((key, number), number) for number, key in enumerate("abacbcaab")]
    verify(lambda: KeyedSumOperator(first, 1), records)
    verify(lambda: KeyedReduceOperator(first, max), records)
    timers = [rec((key, "register_event_time_timer", at), at) for at, key in enumerate("abacbcaab")]
    verify(lambda: KeyedProcessOperator(first, Script()), [*timers[:5], wm(2), *timers[5:], wm(4), wm(99)])
