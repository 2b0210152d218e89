"""Compiles a pattern to an automaton, from its last step to its first.

The states and edges are those of Flink's compiler, so that both find the same matches in the same order:

- a step that occurs once is one state with a TAKE edge; an optional one also has a PROCEED edge;
- a step that loops is a state with a TAKE edge to itself and a PROCEED edge to what follows, behind as many single
  states as it has occurrences at least;
- events that may lie between are an IGNORE edge, behind which an optional or looping step has a state of its own, so
  that the PROCEED edge is looked at only once;
- a step that must not occur is a PROCEED edge to a stop state. As the last step it is a pending state, which becomes a
  match when its time has passed;
- a group is expanded into the states of its steps.

Source: apache/flink NFACompiler.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..conditions import AllOf, Always, Condition, Negation, Test, tests_of
from ..errors import MalformedPatternException
from ..quantifier import ConsumingStrategy, Repetition, Times, WithinType
from ..skip_strategies import AfterMatchSkipStrategy
from .automaton import Action, Automaton, Edge, State, StateKind, Unit
from .logic import TRUTH, Bit, Both, Either, Inverse, Logic, MatchTest

if TYPE_CHECKING:
    from ..pattern import AnyPattern

_END = "$endState$"


def compile_pattern(pattern: AnyPattern | None) -> Automaton:
    """Return the automaton of a pattern; that of None matches nothing.

    Raises:
        MalformedPatternException: two steps have one name, the skip strategy names none, the last step is
            `not_followed_by` without `within`, a time between two events is longer than that of the match, a match may
            begin with a step that must not occur, or a group that loops has optional steps alone.

    >>> from rayflink.cep.pattern import Pattern
    >>> automaton = compile_pattern(Pattern.begin("a").where(lambda n: n > 0).followed_by("b"))
    >>> [(state.name, state.kind.value) for state in automaton.states]
    [('$endState$', 'final'), ('b', 'normal'), ('a', 'start')]
    """
    if pattern is None:
        return Automaton((), -1, (), (), (), None, AfterMatchSkipStrategy())
    steps = _all_steps(pattern)
    _check_names(steps)
    _check_skip_strategy(pattern, steps)
    steps_and_groups = _with_groups(pattern)
    window_ms = _shortest_window(steps_and_groups)
    _check_windows(steps_and_groups, window_ms)
    _check_last_negatives(pattern, steps_and_groups, window_ms)
    return _Compiler(pattern, [step.name for step in steps], window_ms).compile()


@dataclass(eq=False)
class _State:
    """A state that is being built."""

    name: str
    step: int
    kind: StateKind
    edges: list[_Edge] = field(default_factory=list)
    window_ms: int | None = None

    def add(self, action: Action, target: _State, logic: Logic) -> None:
        self.edges.append(_Edge(action, target, logic))


@dataclass(eq=False)
class _Edge:
    action: Action
    target: _State
    logic: Logic


class _Logics:
    """The conditions of a pattern as bits of a mask and tests."""

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.tests: list[Test] = []
        self._logics: dict[int, Logic] = {}

    def logic_of(self, condition: Condition, step: str) -> Logic:
        """Return the logic of a condition; what depends on the event alone is one bit, or one for what is on columns
        and one for what is not.
        """
        logic = self._logics.get(id(condition))
        if logic is None:
            logic = self._logics[id(condition)] = self._make(condition, step)
        return logic

    def _make(self, condition: Condition, step: str) -> Logic:
        if isinstance(condition, Always):
            return TRUTH
        tests = tuple(tests_of(condition))
        is_alike = len({test.columns is None for test in tests}) == 1
        if is_alike and not any(test.is_iterative for test in tests):
            self.units.append(Unit(tests, condition, step))
            return Bit(len(self.units) - 1)
        if isinstance(condition, Test):
            self.tests.append(condition)
            return MatchTest(len(self.tests) - 1)
        if isinstance(condition, Negation):
            return Inverse(self.logic_of(condition.condition, step))
        parts = self.logic_of(condition.first, step), self.logic_of(condition.second, step)
        return Both(*parts) if isinstance(condition, AllOf) else Either(*parts)


class _Compiler:
    """Builds the states of one pattern. `_current` is the step that is being converted."""

    def __init__(self, pattern: AnyPattern, names: list[str], window_ms: int | None) -> None:
        self._current = self._last = pattern
        self._steps = {name: index for index, name in enumerate(names)}
        self._window_ms = window_ms
        self._logics = _Logics()
        self._following: AnyPattern | None = None
        self._group: AnyPattern | None = None
        self._is_first_of_loop: dict[int, bool] = {}
        self._states: list[_State] = []
        self._names: set[str] = set()
        self._stop_states: dict[str, _State] = {}
        self._copies_for_until: dict[int, _State] = {}

    def compile(self) -> Automaton:
        end = self._new_state(_END, StateKind.FINAL)
        start = self._convert(self._convert_behind_first(end))
        start.kind = StateKind.START
        self._refuse_negative_start(start)
        index = {id(state): place for place, state in enumerate(self._states)}
        states = tuple(
            State(
                state.name,
                state.step,
                state.kind,
                tuple(Edge(edge.action, index[id(edge.target)], edge.logic) for edge in state.edges),
                state.window_ms,
            )
            for state in self._states
        )
        return Automaton(
            states,
            index[id(start)],
            tuple(self._steps),
            tuple(self._logics.units),
            tuple(self._logics.tests),
            self._window_ms,
            self._last.skip_strategy,
        )

    def _refuse_negative_start(self, start: _State) -> None:
        """Refuse a pattern whose steps before one that must not occur may all be absent."""
        unvisited, visited = [start], {id(start)}
        while unvisited:
            for edge in unvisited.pop().edges:
                if edge.action is not Action.PROCEED or id(edge.target) in visited:
                    continue
                if edge.target.kind in (StateKind.STOP, StateKind.PENDING):
                    raise MalformedPatternException(
                        f"a match may begin with the step {edge.target.name.partition(':')[0]!r}, which must not occur",
                        "make a step before it one that is not optional",
                        self._last.line,
                    )
                visited.add(id(edge.target))
                unvisited.append(edge.target)

    def _convert_behind_first(self, sink: _State) -> _State:
        """Convert the steps from the current one back to the second; return the state that the first leads to."""
        while self._current.previous is not None:
            strategy = self._current.quantifier.strategy
            if strategy is ConsumingStrategy.NOT_FOLLOW:
                if sink.kind is StateKind.FINAL:
                    sink = self._pending_state()
            elif strategy is ConsumingStrategy.NOT_NEXT:
                sink = self._not_next_state(sink)
            else:
                sink = self._convert(sink)
            self._following, self._current = self._current, self._current.previous
        return sink

    def _pending_state(self) -> _State:
        state = self._taking_state(StateKind.PENDING)
        condition = self._take_logic(self._current)
        state.add(Action.PROCEED, self._stop_state(condition, self._current.name), condition)
        state.add(Action.IGNORE, state, Inverse(condition))
        self._add_stop_edges(state)
        return state

    def _not_next_state(self, sink: _State) -> _State:
        # No event at all may come behind steps that must not occur, if they are the last ones.
        state = self._taking_state(sink.kind if sink.kind is StateKind.PENDING else StateKind.NORMAL)
        condition = self._take_logic(self._current)
        stop = self._stop_state(condition, self._current.name)
        # An event has to come before the match is one, so the edge to the end is none that PROCEEDs.
        action = Action.IGNORE if sink.kind is StateKind.FINAL else Action.PROCEED
        state.add(action, sink, Inverse(condition))
        state.add(Action.PROCEED, stop, condition)
        return state

    def _convert(self, sink: _State) -> _State:
        """Convert the current step; return its first state."""
        quantifier, times = self._current.quantifier, self._current.times_range
        if quantifier.repetition is Repetition.LOOPING:
            assert times is not None, "a step that loops has numbers of times"
            self._mark_first_of_loop(False)
            looping = self._looping_state(self._without_nots(sink))
            self._mark_first_of_loop(True)
            first = self._times_states(looping, sink, times)
        elif quantifier.repetition is Repetition.TIMES:
            assert times is not None, "a step that repeats has numbers of times"
            first = self._times_states(sink, sink, times)
        else:
            first = self._single_state(
                sink, sink, self._take_logic(self._current), self._ignore_logic(), quantifier.is_optional
            )
        self._add_stop_edges(first)
        return first

    def _times_states(self, sink: _State, proceed: _State, times: Times) -> _State:
        """Return the first of the states of a step that occurs several times."""
        self._mark_first_of_loop(False)
        until = self._until_logic()
        ignore = _unless(until, self._inner_ignore_logic())
        take = self._take_logic(self._current)
        take = take if until is None else Both(Inverse(until), take)
        if self._current.quantifier.is_greedy and times.least != times.most:
            if until is not None:
                self._copies_for_until[id(sink)] = self._copy(sink)
            _restrict(sink, take)
        for _ in range(times.least, times.most):
            sink = self._single_state(sink, proceed, take, ignore, is_optional=True)
            self._add_stop_edges_of_following(sink)
        for _ in range(times.least - 1):
            sink = self._single_state(sink, proceed, take, ignore, is_optional=False)
            self._add_stop_edges_of_following(sink)
        self._mark_first_of_loop(True)
        return self._single_state(sink, proceed, take, self._ignore_logic(), self._current.quantifier.is_optional)

    def _looping_state(self, sink: _State) -> _State:
        """Return a state that takes events again and again, and proceeds to `sink`."""
        if self._current.group is not None:
            return self._looping_group(self._current, sink)
        until = self._until_logic()
        ignore = _unless(until, self._inner_ignore_logic())
        take = self._take_logic(self._current)
        take = take if until is None else Both(Inverse(until), take)
        proceed = self._proceed_logic()
        state = self._taking_state()
        if self._current.quantifier.is_greedy:
            if until is not None:
                copy = self._copies_for_until[id(sink)] = self._copy(sink)
                state.add(Action.PROCEED, copy, Both(proceed, until))
                proceed = Both(proceed, Inverse(until))
            state.add(Action.PROCEED, sink, proceed)
            _restrict(sink, self._take_logic(self._current))
        else:
            state.add(Action.PROCEED, sink, proceed)
        state.add(Action.TAKE, state, take)
        self._add_stop_edges_of_following(state)
        if ignore is not None:
            ignoring = self._new_state(self._current.name)
            ignoring.window_ms = state.window_ms
            ignoring.add(Action.TAKE, state, take)
            ignoring.add(Action.IGNORE, ignoring, ignore)
            state.add(Action.IGNORE, ignoring, ignore)
            self._add_stop_edges_of_following(ignoring)
        return state

    def _single_state(
        self, sink: _State, proceed: _State, take: Logic, ignore: Logic | None, is_optional: bool
    ) -> _State:
        """Return a state that takes one event, and proceeds to `proceed` where it is optional."""
        if self._current.group is not None:
            return self._group_states(self._current, sink, proceed, is_optional)
        state = self._taking_state()
        sink = self._without_nots(sink)
        state.add(Action.TAKE, sink, take)
        if is_optional:
            logic, until = self._proceed_logic(), self._until_logic()
            if self._current.quantifier.is_greedy and until is not None:
                copy = self._copies_for_until.get(id(proceed), proceed)
                state.add(Action.PROCEED, copy, Both(logic, until))
                logic = Both(logic, Inverse(until))
            state.add(Action.PROCEED, proceed, logic)
        if ignore is not None:
            ignoring = state
            if is_optional or self._is_head_of_optional_group():
                ignoring = self._new_state(self._current.name)
                ignoring.window_ms = state.window_ms
                ignoring.add(Action.TAKE, sink, take)
                ignoring.add(Action.IGNORE, ignoring, ignore)
                self._add_stop_edges(ignoring)
            state.add(Action.IGNORE, ignoring, ignore)
        return state

    def _group_states(self, group: AnyPattern, sink: _State, proceed: _State, is_optional: bool) -> _State:
        """Return the first of the states of a group."""
        logic = self._proceed_logic()
        outside = self._enter(group)
        first = self._convert(self._convert_behind_first(sink))
        if is_optional:
            first.add(Action.PROCEED, proceed, logic)
        self._current, self._following, self._group = outside
        return first

    def _looping_group(self, group: AnyPattern, sink: _State) -> _State:
        """Return the first of the states of a group that loops."""
        logic = self._proceed_logic()
        end_of_loop = self._taking_state()
        outside = self._enter(group)
        first = self._convert(self._convert_behind_first(end_of_loop))
        if _may_be_passed(first, end_of_loop):
            raise MalformedPatternException(
                "a group that repeats without an upper bound has optional steps alone",
                "make one of its steps one that is not optional, and the group optional() where it may be absent",
                group.line,
            )
        first.add(Action.PROCEED, sink, logic)
        end_of_loop.add(Action.PROCEED, first, logic)
        self._current, self._following, self._group = outside
        return first

    def _enter(self, group: AnyPattern) -> tuple[AnyPattern, AnyPattern | None, AnyPattern | None]:
        outside = self._current, self._following, self._group
        assert group.group is not None, "a group has a sequence"
        self._current, self._group = group.group, group
        return outside

    def _new_state(self, base: str, kind: StateKind = StateKind.NORMAL) -> _State:
        name, number = base, 0
        while name in self._names:
            name, number = f"{base}:{number}", number + 1
        self._names.add(name)
        state = _State(name, self._steps.get(base.partition(":")[0], -1), kind)
        self._states.append(state)
        return state

    def _taking_state(self, kind: StateKind = StateKind.NORMAL) -> _State:
        """Return a new state of the current step, with the time that may pass before its event."""
        step = self._current
        state = self._new_state(step.name, kind)
        if step.times_range is None:
            state.window_ms = step.window_ms(WithinType.PREVIOUS_AND_CURRENT)
        elif ":" in state.name:
            state.window_ms = step.times_range.window_ms
        return state

    def _stop_state(self, condition: Logic, name: str) -> _State:
        state = self._stop_states.get(name)
        if state is None:
            state = self._stop_states[name] = self._new_state(name, StateKind.STOP)
            state.add(Action.TAKE, state, condition)
        return state

    def _without_nots(self, sink: _State) -> _State:
        """Return the sink for an optional step that has taken an event: steps that must not occur before it are over.

        In a, not b, c optional, d the events a c b d are a match, and a b d are none.
        """
        nots = {name for _, name in self._nots_before()}
        if not nots or not self._current.quantifier.is_optional:
            return sink
        copy = self._new_state(sink.name, sink.kind)
        copy.window_ms = sink.window_ms
        for edge in sink.edges:
            target = edge.target
            if edge.action is not Action.PROCEED:
                target = copy if target is sink else target
            elif target.kind is not StateKind.STOP:
                target = self._without_nots(target)
            elif target.name in nots:
                continue
            copy.add(edge.action, target, edge.logic)
        return copy

    def _copy(self, state: _State) -> _State:
        copy = self._new_state(state.name.partition(":")[0], state.kind)
        copy.window_ms = state.window_ms
        for edge in state.edges:
            copy.add(edge.action, copy if edge.target is state else edge.target, edge.logic)
        return copy

    def _nots_before(self) -> list[tuple[Logic, str]]:
        """Return the steps that must not occur directly before the current one, or before optional steps before it."""
        nots: list[tuple[Logic, str]] = []
        step = self._current.previous
        while step is not None:
            if step.quantifier.strategy is ConsumingStrategy.NOT_FOLLOW:
                nots.append((self._take_logic(step), step.name))
            elif step.quantifier.strategy is not ConsumingStrategy.NOT_NEXT and not step.quantifier.is_optional:
                break
            step = step.previous
        return nots

    def _add_stop_edges(self, state: _State) -> None:
        for condition, name in self._nots_before():
            state.add(Action.PROCEED, self._stop_state(condition, name), condition)

    def _add_stop_edges_of_following(self, state: _State) -> None:
        following = self._following
        if following is not None and following.quantifier.strategy is ConsumingStrategy.NOT_FOLLOW:
            condition = self._take_logic(following)
            state.add(Action.PROCEED, self._stop_state(condition, following.name), condition)

    def _take_logic(self, step: AnyPattern) -> Logic:
        logic = self._logics.logic_of(step.take_condition, step.name)
        until = self._group_until()
        return logic if until is None else Both(Inverse(until), logic)

    def _until_logic(self) -> Logic | None:
        until = self._current.until_condition
        return None if until is None else self._logics.logic_of(until, self._current.name)

    def _group_until(self) -> Logic | None:
        if self._group is None or self._group.until_condition is None:
            return None
        return self._logics.logic_of(self._group.until_condition, self._group.name)

    def _proceed_logic(self) -> Logic:
        until = self._group_until()
        return TRUTH if until is None else Both(Inverse(until), TRUTH)

    def _inner_ignore_logic(self) -> Logic | None:
        """Return the condition of events that may lie between two occurrences; None for no events."""
        group = self._group_of_head()
        return self._gap_logic((self._current if group is None else group).quantifier.inner_strategy)

    def _ignore_logic(self) -> Logic | None:
        """Return the condition of events that may lie before the current step; None for no events."""
        group = self._group_of_head()
        if group is None:
            return self._gap_logic(self._current.quantifier.strategy)
        quantifier = group.quantifier
        is_first = self._is_first_of_loop.get(id(group), True)
        return self._gap_logic(quantifier.strategy if is_first else quantifier.inner_strategy)

    def _gap_logic(self, strategy: ConsumingStrategy) -> Logic | None:
        logic: Logic | None = None
        if strategy is ConsumingStrategy.SKIP_TILL_NEXT:
            logic = Inverse(self._logics.logic_of(self._current.take_condition, self._current.name))
        elif strategy is ConsumingStrategy.SKIP_TILL_ANY:
            logic = TRUTH
        return _unless(self._group_until(), logic)

    def _group_of_head(self) -> AnyPattern | None:
        """Return the group whose first step is the current one; None where it is no first step of a group."""
        return self._group if self._current.previous is None else None

    def _is_head_of_optional_group(self) -> bool:
        group = self._group_of_head()
        return group is not None and self._is_first_of_loop.get(id(group), True) and group.quantifier.is_optional

    def _mark_first_of_loop(self, is_first: bool) -> None:
        if self._current.group is not None:
            self._is_first_of_loop[id(self._current)] = is_first


def _unless(until: Logic | None, logic: Logic | None) -> Logic | None:
    return logic if until is None or logic is None else Both(Inverse(until), logic)


def _may_be_passed(first: _State, end: _State) -> bool:
    """Return whether PROCEED edges lead from a state to another one."""
    unvisited, visited = [first], {id(first)}
    while unvisited:
        state = unvisited.pop()
        if state is end:
            return True
        targets = [edge.target for edge in state.edges if edge.action is Action.PROCEED]
        unvisited += [target for target in targets if id(target) not in visited]
        visited.update(map(id, targets))
    return False


def _restrict(sink: _State, take: Logic) -> None:
    """Let the edges of what follows a greedy step wait until the step takes no more."""
    for edge in sink.edges:
        edge.logic = Both(edge.logic, Inverse(take))


def _all_steps(pattern: AnyPattern) -> list[AnyPattern]:
    """Return the steps of a pattern and those within its groups, in order, without the groups."""
    steps: list[AnyPattern] = []
    for step in pattern.steps():
        steps += [step] if step.group is None else _all_steps(step.group)
    return steps


def _with_groups(pattern: AnyPattern) -> list[AnyPattern]:
    """Return the steps of a pattern, its groups, and the steps within them."""
    steps: list[AnyPattern] = []
    for step in pattern.steps():
        steps += [step] if step.group is None else [step, *_with_groups(step.group)]
    return steps


def _check_names(steps: list[AnyPattern]) -> None:
    lines: dict[str, str] = {_END: "the end of each pattern"}
    for step in steps:
        if step.name in lines:
            raise MalformedPatternException(
                f"two steps of a pattern are called {step.name!r} (the first: {lines[step.name] or 'unknown line'})",
                "give each step a name of its own",
                step.line,
            )
        if ":" in step.name:
            raise MalformedPatternException(
                f"the step {step.name!r} has a colon in its name", "leave it out: states have such names", step.line
            )
        lines[step.name] = step.line


def _check_skip_strategy(pattern: AnyPattern, steps: list[AnyPattern]) -> None:
    name = pattern.skip_strategy.pattern_name
    if name and name not in {step.name for step in steps}:
        raise MalformedPatternException(
            f"the skip strategy names the step {name!r}, which the pattern does not have",
            f"name one of {', '.join(step.name for step in steps)}",
            pattern.line,
        )


def _shortest_window(steps: list[AnyPattern]) -> int | None:
    windows = [step.window_ms() for step in steps]
    return min((window for window in windows if window is not None), default=None)


def _check_windows(steps: list[AnyPattern], window_ms: int | None) -> None:
    for step in steps:
        repeats = None if step.times_range is None else step.times_range.window_ms
        between = [step.window_ms(WithinType.PREVIOUS_AND_CURRENT), repeats]
        for length in between:
            if length is not None and window_ms is not None and length > window_ms:
                raise MalformedPatternException(
                    f"{length} ms may pass before an event of {step.name!r}, and {window_ms} ms within the match",
                    "shorten the time between the events",
                    step.line,
                )


def _check_last_negatives(pattern: AnyPattern, steps: list[AnyPattern], window_ms: int | None) -> None:
    """Refuse a step that must not occur where nothing says until when: last in the pattern, or in a group."""
    last = pattern
    while last.group is not None and last.quantifier.repetition is Repetition.SINGLE:
        last = last.group
    is_negative = last.quantifier.strategy is ConsumingStrategy.NOT_FOLLOW
    if is_negative and window_ms is None and last.window_ms(WithinType.PREVIOUS_AND_CURRENT) is None:
        raise MalformedPatternException(
            f"NotFollowedBy is not supported as a last part of a Pattern without within: {last.name!r}",
            "call within(...) behind not_followed_by, which says when the event is known not to have come",
            last.line,
        )
    for step in steps:
        inner = step.group
        if inner is not None and inner is not last and inner.quantifier.strategy is ConsumingStrategy.NOT_FOLLOW:
            raise MalformedPatternException(
                f"{inner.name!r} must not occur, as the last step of a group behind which the match goes on",
                "append not_followed_by to the group instead",
                inner.line,
            )


__all__ = ["compile_pattern"]
