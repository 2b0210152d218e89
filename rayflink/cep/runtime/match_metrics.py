"""Metrics of a pattern: how often conditions were met, and where partial matches end."""

from __future__ import annotations

from functools import partial
from typing import Protocol

from rayflink.common.metrics.metric_group import MetricGroup

from ..nfa.automaton import Automaton, StateKind
from ..nfa.matcher import Matcher


class ConditionCounts(Protocol):
    """Counts of conditions on an event alone, evaluated and met: a number for each unit of the automaton."""

    tried: list[int]
    true: list[int]


class MatchMetrics:
    """Counts what becomes of events and partial matches.

    `numMatches`, `numPartialMatchesTimedOut` and `numPartialMatchesDropped` are the operator's. Each step of the
    pattern has `numTried` and `numTrue`, of its condition on the event alone; each state of the automaton has
    `numDied`, `numStopped` and `numTimedOut`, of the partial matches that were in it.

    Args:
        group: of the operator; None: nothing is counted.
        automaton, conditions, matcher: of the pattern.
    """

    def __init__(
        self, group: MetricGroup | None, automaton: Automaton, conditions: ConditionCounts, matcher: Matcher
    ) -> None:
        self.matches = self.timed_out = self.dropped = self.skipped = 0
        self.timed_out_in = [0] * len(automaton.states)
        if group is None:
            return
        group.gauge("numMatches", lambda: self.matches)
        group.gauge("numEventsSkipped", lambda: self.skipped)
        group.gauge("numPartialMatchesTimedOut", lambda: self.timed_out)
        group.gauge("numPartialMatchesDropped", lambda: self.dropped)
        for index, unit in enumerate(automaton.units):
            step = group.add_group("condition", f"{unit.step}: {unit.condition}")
            step.gauge("numTried", partial(conditions.tried.__getitem__, index))
            step.gauge("numTrue", partial(conditions.true.__getitem__, index))
        for index, state in enumerate(automaton.states):
            if state.kind in (StateKind.NORMAL, StateKind.PENDING):
                stage = group.add_group("state", state.name)
                stage.gauge("numDied", partial(matcher.dead.__getitem__, index))
                stage.gauge("numStopped", partial(matcher.stopped.__getitem__, index))
                stage.gauge("numTimedOut", partial(self.timed_out_in.__getitem__, index))


__all__ = ["ConditionCounts", "MatchMetrics"]
