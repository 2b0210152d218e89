"""The story of a pattern: what each event does to each partial match, for one key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rayflink.cep.conditions import ConditionContext
from rayflink.cep.nfa.automaton import Automaton, StateKind
from rayflink.cep.nfa.compiler import compile_pattern
from rayflink.cep.nfa.masks import EventConditions, as_bool
from rayflink.cep.nfa.matcher import Matcher, Move
from rayflink.cep.nfa.partial_matches import NODE, STATE, KeyMatches, Node, PartialMatch, events_of
from rayflink.cep.pattern import Pattern
from rayflink.common.errors import shorten
from rayflink.user_types import UserRecord


def why(pattern: Pattern[Any], events: Iterable[tuple[UserRecord, int]], until: int | None = None) -> str:
    """Return, step by step, what the partial matches of one key do, for a test or for a person who wonders.

    Args:
        pattern: what is looked for.
        events: (event, timestamp) of one key, in order of time.
        until: the timestamp that time advances to in the end; None: that of the last event.

    >>> pattern = Pattern.begin("a").where(lambda n: n < 5).next("b").where(lambda n: n > 5)
    >>> print(why(pattern, [(1, 10), (3, 20), (8, 30)]))
    1 at 10
      begins a match: taken as 'a', now waits for 'b'
    3 at 20
      [a: 1] ends: 'b' accepts it not, and no event may lie between
      begins a match: taken as 'a', now waits for 'b'
    8 at 30
      [a: 3] taken as 'b': a MATCH [a: 3] [b: 8]
    """
    return "\n".join(_Story(compile_pattern(pattern)).lines(events, until))


class _Story:
    """Runs a matcher, and looks at each partial match before it moves."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self._conditions = EventConditions(automaton.units)
        self._matcher = Matcher(automaton, self)
        self._matches = KeyMatches()

    def unit(self, index: int, event: UserRecord) -> bool:
        return self._conditions.evaluate(index, event)

    def test(self, index: int, event: UserRecord, context: ConditionContext) -> bool:
        test = self._automaton.tests[index]
        return as_bool(test.function.call(event, context), test)

    def now_ms(self) -> int:
        return 0

    def lines(self, events: Iterable[tuple[UserRecord, int]], until: int | None) -> list[str]:
        lines: list[str] = []
        for event, timestamp in events:
            lines += self._time(timestamp)
            lines.append(f"{shorten(event, 80)} at {timestamp}")
            mask = self._conditions.masks([event])[0]
            begun = [
                self._moved(None, move, event)
                for move in self._matcher.moves(None, event, timestamp, mask)
                if move.takes and self._automaton.start >= 0
            ]
            for match in self._matches.partial:
                moves = self._matcher.moves(match, event, timestamp, mask)
                lines += self._moves_of(match, moves, event)
            lines += begun
            waiting = len(self._matches.partial)
            nodes = self._matcher.process(self._matches, event, timestamp, mask)
            if self._automaton.skip_strategy.is_skip_strategy and nodes:
                lines += [f"  emitted: {self._shown(node)}" for node in nodes]
                lines.append(
                    f"  {self._automaton.skip_strategy.skip_to.value}: {len(self._matches.partial)} partial matches "
                    f"remain of {waiting}"
                )
        if until is not None:
            lines += self._time(until)
        return lines

    def _time(self, timestamp: int) -> list[str]:
        lines: list[str] = []
        deadline = self._matcher.next_deadline(self._matches)
        while deadline is not None and deadline <= timestamp:
            nodes, timed_out = self._matcher.advance(self._matches, deadline)
            lines.append(f"time {deadline}")
            lines += [f"  {self._shown(node)} is a MATCH: the event that must not come did not" for node in nodes]
            for match in timed_out:
                lines.append(f"  {self._shown(match.node)} timed out, waiting for {self._step(match.state)}")
            deadline = self._matcher.next_deadline(self._matches)
        return lines

    def _moves_of(self, match: PartialMatch, moves: tuple[Move, ...], event: UserRecord) -> list[str]:
        shown = self._shown(match[NODE])
        if not moves:
            waiting = self._step(match[STATE])
            return [f"  {shown} ends: {waiting} accepts it not, and no event may lie between"]
        stopped = [move for move in moves if move.kind is StateKind.STOP]
        if stopped:
            return [f"  {shown} ends: {self._step(stopped[0].target)} must not come"]
        return [self._moved(match, move, event) for move in moves]

    def _moved(self, match: PartialMatch | None, move: Move, event: UserRecord) -> str:
        shown = "begins a match:" if match is None else self._shown(match[NODE])
        if not move.takes:
            if move.kind is StateKind.FINAL:
                return f"  {shown} is a MATCH: the event that must not come next did not"
            return f"  {shown} passes it by, still waits for {self._step(move.target)}"
        name = self._automaton.steps[move.step]
        node = (move.step, 0, event, None if match is None else match[NODE])
        is_match = move.kind is StateKind.FINAL or move.final >= 0
        result = f": a MATCH {self._shown(node)}" if is_match else ""
        waits = "" if move.kind is StateKind.FINAL else f", now waits for {self._step(move.target)}"
        return f"  {shown} taken as {name!r}{result}{waits}"

    def _step(self, state: int) -> str:
        step = self._automaton.states[state].step
        return repr(self._automaton.steps[step]) if step >= 0 else "the next round of the group"

    def _shown(self, node: Node) -> str:
        events = events_of(node, self._automaton.steps)
        return " ".join(f"[{name}: {', '.join(shorten(event, 40) for event in part)}]" for name, part in events.items())


__all__ = ["why"]
