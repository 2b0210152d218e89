"""Events that wait for a watermark outside of state."""

from __future__ import annotations

from operator import itemgetter
from random import Random

import pytest

from rayflink.cep.functions import Selection
from rayflink.cep.pattern import Pattern
from rayflink.cep.runtime import cep_operator
from rayflink.cep.runtime.cep_operator import CepOperator, MatchOptions
from rayflink.cep.runtime.recent_events import EventBatch, RecentEvents, events_by_key
from rayflink.testing import OperatorHarness


def batch(*events: tuple[str, int]) -> EventBatch:
    keys, stamps = map(list, zip(*events, strict=True))
    return EventBatch.of(keys, stamps, [1] * len(keys), [f"{key}{stamp}" for key, stamp in events])


def test_events_up_to_a_time_are_taken_and_the_others_stay() -> None:
    recent = RecentEvents()
    for events in (batch(("x", 1), ("y", 9), ("x", 3)), batch(("x", 2)), batch(("z", 12))):
        recent.add(events)
    assert [taken.events for taken in recent.take_due(5)] == [["x1", "x3"], ["x2"]]
    assert (recent.count, recent.estimated_bytes > 200) == (2, True)
    assert [taken.events for taken in recent.take_all()] == [["y9"], ["z12"]]
    assert (recent.count, recent.estimated_bytes, recent.take_due(99)) == (0, 0, [])


def test_events_of_the_keys_that_are_wanted_are_found_in_order_of_arrival() -> None:
    batches = [batch(("x", 3), ("y", 4)), batch(("x", 1))]
    x = [(3, 1, "x3"), (1, 1, "x1")]
    assert events_by_key(batches, {"x"}) == {"x": x}
    assert events_by_key(batches, None) == {"x": x, "y": [(4, 1, "y4")]}


def matches_of(events: list[tuple[str, str, int]], is_strict: bool) -> tuple[list[object], float]:
    """Return the matches of a, b in events that come up to 8 out of order, and how many events were skipped."""
    begin = Pattern[tuple[str, str, int]].begin("a").where(lambda event: event[1] == "a")
    follow = begin.next("b") if is_strict else begin.followed_by("b")
    pattern = follow.where(lambda event: event[1] == "b").within(12)
    function = Selection(lambda match: (match["a"][0], match["b"][0]))
    with OperatorHarness(lambda: CepOperator(itemgetter(0), pattern, function, MatchOptions())) as harness:
        for number, event in enumerate(events):
            harness.process(event, timestamp=event[2])
            if number % 5 == 4:
                harness.advance_watermark(number - 8)
        harness.advance_watermark(99)
        return sorted(harness.output_values()), harness.operators[0].counts.skipped


@pytest.mark.parametrize("is_strict", [True, False])
def test_matches_are_the_same_where_events_wait_in_state(is_strict: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = Random(7)
    events = [(draw.choice("xyz"), draw.choice("aabbc"), number) for number in range(60)]
    events = sorted(events, key=lambda event: event[2] + draw.randrange(8))
    recent, skipped = matches_of(events, is_strict)
    monkeypatch.setattr(cep_operator, "_MOST_RECENT", 0)
    stored, fewer = matches_of(events, is_strict)
    assert len(recent) > 5 and recent == stored
    assert fewer == (0 if is_strict else sum(event[1] == "c" for event in events)) < skipped
