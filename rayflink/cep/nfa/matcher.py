"""Steps of the automaton: an event, or the passing of time, applied to the partial matches of a key.

Most edges are decided by the mask of the event: a bit for each condition that depends on the event alone. The moves of
a state for a mask are worked out once and stored, so that an event costs a partial match the look-up of its moves.
Only conditions that also depend on the partial match are evaluated for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from rayflink.common.errors import shorten
from rayflink.user_types import UserRecord

from ..conditions import ConditionContext
from ..errors import MalformedPatternException
from ..skip_strategies import AfterMatchSkipStrategy, SkipFailed, SkipTo
from .automaton import Action, Automaton, Edge, StateKind
from .logic import decide, evaluate
from .match_heap import drop, pop, push
from .partial_matches import (
    LAST_TIME,
    NODE,
    START,
    START_TIME,
    STATE,
    KeyMatches,
    Node,
    PartialMatch,
    events_of,
)

UNKNOWN = -1
"""The mask of an event some condition of which could not be evaluated ahead; each is evaluated when it is needed."""

_NORMAL, _FINAL = StateKind.NORMAL, StateKind.FINAL
_GOING_ON = (StateKind.NORMAL, StateKind.PENDING, StateKind.FINAL)


class Move(NamedTuple):
    """One way in which an event changes a partial match.

    Args:
        takes: whether the event belongs to the match.
        target: the state that it comes to.
        kind: of that state.
        step: of the pattern that the event is taken for.
        final: the final state that can be reached from there without another event; -1 for none.
    """

    takes: bool
    target: int
    kind: StateKind
    step: int
    final: int


class Evaluator(Protocol):
    """Evaluates conditions of the automaton that a mask does not decide."""

    def unit(self, index: int, event: UserRecord) -> bool:
        """Return whether the event meets a condition that depends on it alone."""
        ...

    def test(self, index: int, event: UserRecord, context: ConditionContext) -> bool:
        """Return whether the event meets a condition that also depends on the partial match."""
        ...

    def now_ms(self) -> int:
        """Return the epoch milliseconds of the wall clock."""
        ...


class TimedOut(NamedTuple):
    """A partial match whose time has passed.

    Args:
        node: of its last event.
        timestamp: at which its time had passed, in epoch milliseconds.
        state: in which it was.
    """

    node: Node
    timestamp: int
    state: int


class Matcher:
    """Applies events and time to the partial matches of keys.

    Args:
        automaton: the compiled pattern.
        evaluator: evaluates conditions that a mask does not decide.
    """

    def __init__(self, automaton: Automaton, evaluator: Evaluator) -> None:
        self.automaton = automaton
        self._evaluator = evaluator
        self._skip = automaton.skip_strategy
        self._window_ms = automaton.window_ms
        self._state_windows = tuple(state.window_ms for state in automaton.states)
        self._has_state_windows = any(window is not None for window in self._state_windows)
        self.is_timed = self._has_state_windows or self._window_ms is not None
        """Whether partial matches may time out."""
        self.single_window_ms = None if self._has_state_windows else self._window_ms
        """Milliseconds from the first event of a match to its end, where nothing else limits its time."""
        self._pending = frozenset(
            index for index, state in enumerate(automaton.states) if state.kind is StateKind.PENDING
        )
        self._tables: dict[int, list[tuple[Move, ...] | None]] = {}
        self._starts: dict[int, bool] = {}
        self._bears: dict[int, bool] = {}
        self._ends: dict[int, bool] = {}
        self.dead = [0] * len(automaton.states)
        """Partial matches that an event ended, by the state in which they were."""
        self.stopped = [0] * len(automaton.states)
        """Partial matches that an event ended which must not occur, by the state in which they were."""

    def may_start(self, mask: int) -> bool:
        """Return whether an event with that mask may begin a match."""
        answer = self._starts.get(mask)
        if answer is None:
            answer = self._starts[mask] = self.automaton.start >= 0 and self._moves_of(self.automaton.start, mask) != ()
        return answer

    def matters(self, mask: int) -> bool:
        """Return whether an event with that mask may change any partial match, or begin one."""
        answer = self._bears.get(mask)
        if answer is None:
            answer = self._bears[mask] = self.may_start(mask) or any(
                self._moves_of(index, mask) != self._staying(index)
                for index, state in enumerate(self.automaton.states)
                if state.kind in (StateKind.NORMAL, StateKind.PENDING)
            )
        return answer

    def ends_all(self, mask: int) -> bool:
        """Return whether an event with that mask ends every partial match, and makes none a match."""
        answer = self._ends.get(mask)
        if answer is None:
            states = enumerate(self.automaton.states)
            living = [index for index, state in states if state.kind in (StateKind.NORMAL, StateKind.PENDING)]
            answer = self._ends[mask] = all(self._moves_of(index, mask) == () for index in living)
        return answer

    def process(self, matches: KeyMatches, event: UserRecord, timestamp: int, mask: int) -> list[Node]:
        """Apply an event; time has been advanced to its timestamp before.

        Args:
            matches: of the event's key, changed in place.
            mask: bit i is set if the event meets unit i; UNKNOWN where that is not known.

        Returns: the last nodes of the matches, in the order in which they are emitted.
        """
        number = matches.next_number
        partial: list[PartialMatch] = []
        candidates: list[PartialMatch] = []
        table = self._tables.get(mask) or self._table(mask)
        for match in matches.partial:
            state = match[0]
            moves = table[state]
            if moves is _UNSEEN:
                moves = self._moves_of(state, mask)
            if moves is None:
                moves = self._evaluate(state, mask, event, match, timestamp)
            if len(moves) == 1:
                takes, target, kind, step, final = moves[0]
                if not takes and target == state:
                    partial.append(match)
                elif takes and final < 0 and kind in _GOING_ON:
                    node = (step, number, event, match[1])
                    moved = (target, node, match[2], match[3], timestamp)
                    (candidates if kind is _FINAL else partial).append(moved)
                else:
                    self._move(match, moves, (event, timestamp, number), partial, candidates)
            elif moves:
                self._move(match, moves, (event, timestamp, number), partial, candidates)
            else:
                self.dead[state] += 1
        may_start = self._starts.get(mask)
        if may_start or may_start is None and self.may_start(mask):
            begins = table[self.automaton.start]
            if begins and len(begins) == 1 and begins[0].final < 0 and begins[0].kind is _NORMAL:
                _, target, _, step, _ = begins[0]
                partial.append((target, (step, number, event, None), timestamp, number, timestamp))
            else:
                self._begin((event, timestamp, number), mask, partial, candidates)
        matches.partial = partial
        matches.next_number = number + 1
        return self._emit(matches, candidates) if candidates or matches.completed else []

    def next_deadline(self, matches: KeyMatches) -> int | None:
        """Return the timestamp at which the time of a partial match has passed; None for never."""
        partial = matches.partial
        if not partial:
            return None
        window = self._window_ms
        deadline = None if window is None else partial[0][START_TIME] + window
        if self._has_state_windows:
            windows = self._state_windows
            for match in partial:
                window = windows[match[STATE]]
                if window is not None and (deadline is None or match[LAST_TIME] + window < deadline):
                    deadline = match[LAST_TIME] + window
        return deadline

    def advance(self, matches: KeyMatches, timestamp: int) -> tuple[list[Node], list[TimedOut]]:
        """Let time pass to a timestamp, which is at most the next deadline.

        Returns: the last nodes of matches that are certain by then, and the partial matches that have timed out.
        """
        remaining: list[PartialMatch] = []
        candidates: list[PartialMatch] = []
        timed_out: list[TimedOut] = []
        for match in matches.partial:
            over = self._over_since(match)
            if over is None or over > timestamp:
                remaining.append(match)
            elif match[STATE] in self._pending:
                candidates.append(match)
            else:
                timed_out.append(TimedOut(match[NODE], over, match[STATE]))
        matches.partial = remaining
        return self._emit(matches, candidates), timed_out

    def drop_earliest(self, matches: KeyMatches, limit: int) -> list[PartialMatch]:
        """Drop the partial matches that began first, until `limit` remain; return those that were dropped."""
        excess = len(matches.partial) - limit
        if excess <= 0:
            return []
        dropped, matches.partial = matches.partial[:excess], matches.partial[excess:]
        return dropped

    def moves(self, match: PartialMatch | None, event: UserRecord, timestamp: int, mask: int) -> tuple[Move, ...]:
        """Return what a partial match, or the start for None, becomes by an event; for explanations."""
        state = self.automaton.start if match is None else match[STATE]
        moves = self._moves_of(state, mask)
        return self._evaluate(state, mask, event, match, timestamp) if moves is None else moves

    def _over_since(self, match: PartialMatch) -> int | None:
        """Return the timestamp at which the time of a partial match has passed; None for never."""
        over = None if self._window_ms is None else match[START_TIME] + self._window_ms
        between = self._state_windows[match[STATE]]
        if between is not None and (over is None or match[LAST_TIME] + between < over):
            over = match[LAST_TIME] + between
        return over

    def _move(
        self,
        match: PartialMatch,
        moves: tuple[Move, ...],
        occurrence: tuple[UserRecord, int, int],
        partial: list[PartialMatch],
        candidates: list[PartialMatch],
    ) -> None:
        """Add what a partial match becomes to the partial matches and to the matches.

        Args:
            occurrence: (event, timestamp, number of the event).
        """
        event, timestamp, number = occurrence
        state, node, start_time, start, last_time = match
        remaining: list[PartialMatch] = []
        is_stopped = False
        for takes, target, kind, step, final in moves:
            if takes:
                moved = target, (step, number, event, node), start_time, start, timestamp
            else:
                moved = target, node, start_time, start, last_time
            if kind is _FINAL:
                candidates.append(moved)
            elif kind is StateKind.STOP:
                is_stopped = True
            else:
                remaining.append(moved)
            if final >= 0:
                candidates.append((final, *moved[1:]))
        if is_stopped:
            self.stopped[state] += 1
        else:
            partial += remaining

    def _begin(
        self,
        occurrence: tuple[UserRecord, int, int],
        mask: int,
        partial: list[PartialMatch],
        candidates: list[PartialMatch],
    ) -> None:
        """Begin the matches whose first event this is; see `_move`."""
        event, timestamp, number = occurrence
        moves = self._moves_of(self.automaton.start, mask)
        if moves is None:
            moves = self._evaluate(self.automaton.start, mask, event, None, timestamp)
        for takes, target, kind, step, final in moves:
            if not takes:
                continue
            moved = target, (step, number, event, None), timestamp, number, timestamp
            if kind is _FINAL:
                candidates.append(moved)
            else:
                partial.append(moved)
            if final >= 0:
                candidates.append((final, *moved[1:]))

    def _emit(self, matches: KeyMatches, candidates: list[PartialMatch]) -> list[Node]:
        """Return the last nodes of the matches that may be emitted, and drop what the skip strategy drops."""
        completed = matches.completed
        if not self._skip.is_skip_strategy and len(candidates) == 1:
            return [candidates[0][NODE]]
        for match in candidates:
            push(completed, match)
        emitted: list[Node] = []
        while completed:
            if self._skip.is_skip_strategy:
                if matches.partial and matches.partial[0][START] < completed[0][START]:
                    break  # the earlier partial match may still drop it
                match = pop(completed)
                self._prune(matches, match)
            else:
                match = pop(completed)
            emitted.append(match[NODE])
        return emitted

    def _prune(self, matches: KeyMatches, match: PartialMatch) -> None:
        limit = first_kept(self._skip, match, self.automaton.steps)
        if limit is not None:
            matches.partial = [other for other in matches.partial if other[START] >= limit]
            drop(matches.completed, lambda other: other[START] < limit)

    def _staying(self, state: int) -> tuple[Move, ...]:
        return (Move(False, state, self.automaton.states[state].kind, self.automaton.states[state].step, -1),)

    def _moves_of(self, state: int, mask: int) -> tuple[Move, ...] | None:
        """Return the moves of a state for a mask; None where they depend on the partial match or the mask is UNKNOWN.

        Those of the start state are only the ones that take the event.
        """
        table = self._table(mask)
        moves = table[state]
        if moves is _UNSEEN:
            try:
                moves = self._resolve(state, lambda edge: _known(edge, mask))
            except _Undecided:
                moves = None
            table[state] = moves
        return moves

    def _table(self, mask: int) -> list[tuple[Move, ...] | None]:
        """Return the moves by state for a mask, those that were not worked out yet as `_UNSEEN`."""
        table = self._tables.get(mask)
        if table is None:
            filler = None if mask == UNKNOWN else _UNSEEN
            table = self._tables[mask] = [filler for _ in self.automaton.states]
        return table

    def _evaluate(
        self, state: int, mask: int, event: UserRecord, match: PartialMatch | None, timestamp: int
    ) -> tuple[Move, ...]:
        """Return the moves of a state, with all conditions evaluated that the mask does not decide."""
        evaluator = self._evaluator
        context = MatchSoFar(match, timestamp, self.automaton.steps, evaluator.now_ms)
        answers: dict[int, bool] = {}

        def unit(index: int) -> bool:
            if mask != UNKNOWN:
                return bool(mask >> index & 1)
            answer = answers.get(index)
            if answer is None:
                answer = answers[index] = evaluator.unit(index, event)
            return answer

        def test(index: int) -> bool:
            answer = answers.get(~index)
            if answer is None:
                answer = answers[~index] = evaluator.test(index, event, context)
            return answer

        return self._resolve(state, lambda edge: evaluate(edge.logic, unit, test))

    def _resolve(self, state: int, holds: Callable[[Edge], bool]) -> tuple[Move, ...]:
        """Return the moves along the edges that hold, in the order in which Flink looks at them."""
        states = self.automaton.states
        moves: list[Move] = []
        unvisited = [state]
        while unvisited:
            source = states[unvisited.pop()]
            for edge in source.edges:
                if not holds(edge):
                    continue
                if edge.action is Action.PROCEED:
                    unvisited.append(edge.target)
                elif edge.action is Action.TAKE:
                    final = self._final_behind(edge.target, holds)
                    moves.append(Move(True, edge.target, states[edge.target].kind, source.step, final))
                elif state != self.automaton.start:
                    moves.append(Move(False, edge.target, states[edge.target].kind, source.step, -1))
        return tuple(moves)

    def _final_behind(self, state: int, holds: Callable[[Edge], bool]) -> int:
        """Return the final state that is reached from a state by PROCEED edges alone; -1 for none."""
        states = self.automaton.states
        unvisited = [state]
        while unvisited:
            for edge in states[unvisited.pop()].edges:
                if edge.action is Action.PROCEED and holds(edge):
                    if states[edge.target].kind is StateKind.FINAL:
                        return edge.target
                    unvisited.append(edge.target)
        return -1


class EndingMatcher(Matcher):
    """Lets partial matches go on to their ends; no match begins."""

    def may_start(self, mask: int) -> bool:
        return False


class _Undecided(Exception):
    """A mask does not decide an edge."""


_UNSEEN: tuple[Move, ...] = (Move(False, -1, StateKind.NORMAL, -1, -1),)
"""Stands for moves that were not worked out yet."""


def _known(edge: Edge, mask: int) -> bool:
    answer = decide(edge.logic, mask)
    if answer is None:
        raise _Undecided
    return answer


class MatchSoFar(ConditionContext):
    """The context of an iterative condition."""

    __slots__ = ("_events", "_match", "_now_ms", "_steps", "_timestamp")

    def __init__(
        self, match: PartialMatch | None, timestamp: int, steps: tuple[str, ...], now_ms: Callable[[], int]
    ) -> None:
        self._match, self._timestamp, self._steps, self._now_ms = match, timestamp, steps, now_ms
        self._events: dict[str, list[Any]] | None = None

    @property
    def last_node(self) -> Node | None:
        """The node of the last event of the partial match; None where it has none yet."""
        return None if self._match is None else self._match[NODE]

    def get_events_for_pattern(self, name: str) -> list[Any]:
        if name not in self._steps:
            problem = f"a condition asked for the events of the step {name!r:.60}, which the pattern does not have"
            raise MalformedPatternException(problem, f"its steps are {', '.join(self._steps)}")
        if self._events is None:
            self._events = events_of(None if self._match is None else self._match[NODE], self._steps)
        return list(self._events.get(name, ()))

    def timestamp(self) -> int:
        return self._timestamp

    def current_processing_time(self) -> int:
        return self._now_ms()


def first_kept(skip: AfterMatchSkipStrategy, match: PartialMatch, steps: tuple[str, ...]) -> int | None:
    """Return the number of the first event that other matches may begin with, once `match` is emitted.

    None: the strategy drops nothing.

    Raises:
        SkipFailed: the match has no event to skip to, and the strategy fails then.
    """
    if skip.skip_to is SkipTo.NEXT:
        return match[START] + 1
    if skip.skip_to is SkipTo.PAST_LAST:
        return int(match[NODE][1]) + 1
    numbers = []
    node = match[NODE]
    while node is not None:
        if steps[node[0]] == skip.pattern_name:
            numbers.append(node[1])
        node = node[3]
    limit = None if not numbers else numbers[-1 if skip.skip_to is SkipTo.FIRST else 0]
    if skip.fails_on_miss and (limit is None or limit == match[START]):
        problem = f"no event of {skip.pattern_name!r} to skip to" if limit is None else "the first event is skipped to"
        raise SkipFailed(problem, shorten(events_of(match[NODE], steps)))
    return limit


__all__ = ["UNKNOWN", "EndingMatcher", "Evaluator", "MatchSoFar", "Matcher", "Move", "TimedOut", "first_kept"]
