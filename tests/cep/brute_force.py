"""Matches by their definition: every way to choose events for the steps of a pattern that breaks no rule.

A second opinion on the automaton, without one. It knows plain patterns: no groups, no `until`, no conditions on the
partial match, no windows between events, NO_SKIP; and steps that must not occur only behind one that occurs once, with
letters that no other step has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.cep.described_patterns import Described, Event, condition_of, read_events

_FOR_EVER = 1 << 60


@dataclass(frozen=True)
class Step:
    """A step that occurs, with the rules for the events before it.

    Args:
        strategies: before its first event and between two of them: "next", "followed_by" or "followed_by_any".
        not_next: conditions that the event directly behind the one before must not meet.
        not_before: conditions that no event since the one before may meet.
        greedy_before: the condition of a greedy step before, which takes each event that it can, or None.
    """

    name: str
    condition: Any
    least: int
    most: int
    is_optional: bool
    strategies: tuple[str, str]
    not_next: tuple[Any, ...]
    not_before: tuple[Any, ...]
    greedy_before: Any


@dataclass(frozen=True)
class End:
    """What must not occur behind the last event."""

    not_next: tuple[Any, ...]
    not_before: tuple[Any, ...]


def find_by_definition(pair: Described) -> list[str]:
    """Return the lines of all matches, in any order."""
    events = read_events(pair["events"])
    windows = [call[1] for step in pair["steps"] for call in step["calls"] if call[0] == "within"]
    window = min(windows, default=_FOR_EVER)
    steps, end = _steps_of(pair["steps"])
    lines = []
    for match in _choices(events, steps, window):
        named = [(steps[index].name, event) for index, event in match]
        line = _completed(named, events, end, window, events[-1].time + pair["rest"])
        if line is not None:
            lines.append(line)
    return lines


def _steps_of(described: Sequence[Described]) -> tuple[list[Step], End]:
    steps: list[Step] = []
    not_next: list[Any] = []
    not_before: list[Any] = []
    greedy: Any = None
    for one in described:
        condition = _all_conditions(one["calls"])
        if one["how"] == "not_next":
            not_next.append(condition)
            continue
        if one["how"] == "not_followed_by":
            not_before.append(condition)
            continue
        calls = {call[0]: call[1:] for call in one["calls"]}
        least, most = _times(calls)
        inner = "next" if "consecutive" in calls else "followed_by"
        inner = "followed_by_any" if "allow_combinations" in calls else inner
        is_optional = "optional" in calls or least == 0
        strategies = one["how"], inner
        nots = tuple(not_next), tuple(not_before)
        steps.append(Step(one["name"], condition, max(least, 1), most, is_optional, strategies, *nots, greedy))
        not_next, not_before = [], []
        greedy = condition if "greedy" in calls and max(least, 1) != most else None
    return steps, End(tuple(not_next), tuple(not_before))


def _times(calls: dict[str, list[Any]]) -> tuple[int, int]:
    if "one_or_more" in calls:
        return 1, _FOR_EVER
    if "times_or_more" in calls:
        return calls["times_or_more"][0], _FOR_EVER
    if "times" in calls:
        return calls["times"][0], calls["times"][0]
    least, most = calls.get("times_range", [1, 1])[:2]
    return least, most


def _all_conditions(calls: Sequence[Sequence[Any]]) -> Any:
    parts = [(call[0], condition_of(call[1])) for call in calls if call[0] in ("where", "or_")]

    def holds(event: Event) -> bool:
        answer = True
        for place, (kind, condition) in enumerate(parts):
            own = condition(event)
            answer = own if place == 0 else (answer and own if kind == "where" else answer or own)
        return answer

    return holds


Match = tuple[tuple[int, Event], ...]
"""The index of the step and the event of each event of a match."""


def _choices(events: Sequence[Event], steps: Sequence[Step], window: int) -> Iterator[Match]:
    """Yield each choice of events for all steps; steps that may be absent are absent in some."""
    unfinished: list[tuple[Match, int, int]] = [((), 0, 0)]
    while unfinished:
        match, index, count = unfinished.pop()
        step = steps[index] if index < len(steps) else None
        if step is None:
            if match:
                yield match
            continue
        if count >= step.least or (count == 0 and step.is_optional):
            unfinished.append((match, index + 1, 0))
        if count == step.most:
            continue
        for event in events[match[-1][1].place + 1 if match else 0 :]:
            is_in_time = not match or event.time - match[0][1].time < window
            if is_in_time and step.condition(event) and _may_follow(match, steps, index, event, events):
                unfinished.append(((*match, (index, event)), index, count + 1))


def _may_follow(match: Match, steps: Sequence[Step], index: int, event: Event, events: Sequence[Event]) -> bool:
    step = steps[index]
    if not match:
        return step.greedy_before is None or not step.greedy_before(event)
    last_index, last = match[-1]
    between = events[last.place + 1 : event.place]
    strategy = step.strategies[last_index == index]
    if strategy == "next" and between or strategy == "followed_by" and any(map(step.condition, between)):
        return False
    if last_index == index:
        return True
    for absent in steps[last_index + 1 : index + 1]:  # what must not occur before an absent step must not before this
        if any(condition(events[last.place + 1]) for condition in absent.not_next):
            return False
        if any(condition(other) for condition in absent.not_before for other in between):
            return False
    return step.greedy_before is None or not any(map(step.greedy_before, [*between, event]))


def _completed(
    match: list[tuple[str, Event]], events: Sequence[Event], end: End, window: int, until: int
) -> str | None:
    """Return the line of a match whose events are chosen; None where it does not come about."""
    over = match[0][1].time + window
    last = match[-1][1].place
    chosen: dict[str, list[str]] = {}
    for name, event in match:
        chosen.setdefault(name, []).append(str(event.place))
    text = " ".join(f"{name}={','.join(places)}" for name, places in chosen.items())
    behind = [event for event in events[last + 1 :] if event.time < over]
    if any(condition(event) for condition in end.not_next for event in behind[:1]):
        return None
    if end.not_before:
        is_certain = over <= until and not any(condition(event) for condition in end.not_before for event in behind)
        return f"at {over} {text}" if is_certain else None
    if end.not_next:
        return f"{last + 1} {text}" if behind else None
    return f"{last} {text}"


__all__ = ["find_by_definition"]
