"""The Pattern API: a sequence of events to look for, as an immutable value.

Each call returns a new pattern and leaves the old one as it is. A pattern knows the one before it, so a sequence is
named by its last pattern.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar

from rayflink.common.time import Length, to_millis
from rayflink.common.user_code.call_sites import call_site
from rayflink.user_types import UserCode

from .conditions import ALWAYS, AllOf, AnyOf, Condition, SubtypeCondition, as_test
from .errors import MalformedPatternException
from .explain import explain_svg, explain_text
from .nfa.compiler import compile_pattern
from .quantifier import ConsumingStrategy, Quantifier, Repetition, Times, WithinType
from .skip_strategies import AfterMatchSkipStrategy

Event = TypeVar("Event")


@dataclass(frozen=True, eq=False, repr=False)
class Pattern(Generic[Event]):
    """One step of a sequence of events, and through `previous` all steps before it.

    A program begins with `Pattern.begin` and appends steps with `next`, `followed_by` and the like; it does not call
    the constructor.

    Args:
        name: of the step, unique in the sequence.
        previous: the step before; None for the first.
        quantifier: how often it occurs, and which events may lie before and between.
        condition: what its events have to meet; None for anything.
        until_condition: ends a loop; None for nothing.
        times: the numbers of occurrences; None where it does not repeat.
        windows: milliseconds that may pass, by `WithinType`.
        skip_strategy: what happens to overlapping matches; one for the sequence.
        line: of the program that made the step.
        group: the last step of the sequence within a `GroupPattern`; None for all others.

    >>> pattern = Pattern.begin("start").where(lambda n: n > 1).next("end").where(lambda n: n < 0)
    >>> [step.name for step in pattern.steps()]
    ['start', 'end']
    """

    name: str
    previous: Pattern[Event] | None = None
    quantifier: Quantifier = Quantifier()
    condition: Condition | None = None
    until_condition: Condition | None = None
    times_range: Times | None = None
    windows: tuple[tuple[WithinType, int], ...] = ()
    skip_strategy: AfterMatchSkipStrategy = AfterMatchSkipStrategy()
    line: str = ""
    group: Pattern[Event] | None = None

    @staticmethod
    def begin(name: str | Pattern[Event], skip_strategy: AfterMatchSkipStrategy | None = None) -> Pattern[Event]:
        """Begin a sequence.

        Args:
            name: of the first step; or a pattern, which becomes a group.
            skip_strategy: what happens to overlapping matches; NO_SKIP where it is None.

        Raises:
            MalformedPatternException: the name is no string or is empty, or the strategy is none.
        """
        if not isinstance(skip_strategy, AfterMatchSkipStrategy | None):
            problem = f"Pattern.begin() was passed {skip_strategy!r:.40} as its skip strategy"
            raise MalformedPatternException(problem, "pass AfterMatchSkipStrategy.no_skip() or another", call_site())
        skip = AfterMatchSkipStrategy() if skip_strategy is None else skip_strategy
        return _step(None, name, ConsumingStrategy.STRICT, skip)

    def next(self, name: str | Pattern[Event]) -> Pattern[Event]:
        """Append a step whose event comes directly after the event before it (strict contiguity).

        Args:
            name: of the step, or a pattern, which becomes a group.
        """
        return _step(self, name, ConsumingStrategy.STRICT, self.skip_strategy)

    def followed_by(self, name: str | Pattern[Event]) -> Pattern[Event]:
        """Append a step whose event comes after the one before, past events that do not match (relaxed contiguity).

        Args:
            name: of the step, or a pattern, which becomes a group.
        """
        return _step(self, name, ConsumingStrategy.SKIP_TILL_NEXT, self.skip_strategy)

    def followed_by_any(self, name: str | Pattern[Event]) -> Pattern[Event]:
        """Append a step whose event comes after the one before, past any events, those that match included.

        Each matching event gives a match of its own (non-deterministic relaxed contiguity).

        Args:
            name: of the step, or a pattern, which becomes a group.
        """
        return _step(self, name, ConsumingStrategy.SKIP_TILL_ANY, self.skip_strategy)

    def not_next(self, name: str) -> Pattern[Event]:
        """Append a step whose event must not come directly after the event before it.

        Raises:
            MalformedPatternException: the step before is optional.
        """
        self._refuse_optional_before("not_next")
        return _step(self, name, ConsumingStrategy.NOT_NEXT, self.skip_strategy)

    def not_followed_by(self, name: str) -> Pattern[Event]:
        """Append a step whose event must not come before the event of the next step.

        As the last step it needs `within`: the match is emitted when the time has passed without such an event.

        Raises:
            MalformedPatternException: the step before is optional.
        """
        self._refuse_optional_before("not_followed_by")
        return _step(self, name, ConsumingStrategy.NOT_FOLLOW, self.skip_strategy)

    def where(self, condition: UserCode) -> Pattern[Event]:
        """Require a condition; of several calls all have to be met.

        Args:
            condition: a callable of the event; a callable of the event and a context, or an `IterativeCondition`, which
                also see the events that the partial match has; a `SimpleCondition`; or an expression on columns, such
                as `col("price") > 800`, which is computed for many events at once.
        Raises:
            InvalidFunction: it is none of these.
        """
        test = as_test(condition, "where")
        return replace(self, condition=test if self.condition is None else AllOf(self.condition, test))

    def or_(self, condition: UserCode) -> Pattern[Event]:
        """Accept events that meet this condition, too.

        Args:
            condition: as of `where`.
        """
        test = as_test(condition, "or_")
        return replace(self, condition=test if self.condition is None else AnyOf(self.condition, test))

    def subtype(self, subtype: type) -> Pattern[Event]:
        """Require events of a class or its subclasses.

        Raises:
            MalformedPatternException: it is no class.
        """
        if not isinstance(subtype, type):
            raise MalformedPatternException(
                f"subtype() was passed {subtype!r:.100}, which is no class", "pass the class of the events", call_site()
            )
        test = as_test(SubtypeCondition(subtype), "subtype")
        return replace(self, condition=test if self.condition is None else AllOf(self.condition, test))

    def until(self, condition: UserCode) -> Pattern[Event]:
        """End the loop of a step that repeats without an upper bound: events that meet the condition are not taken.

        Args:
            condition: as of `where`.
        Raises:
            MalformedPatternException: the step does not loop, or has such a condition already.
        """
        if self.until_condition is not None:
            self._refuse("until() was called twice", "combine the two conditions in one function")
        if self.quantifier.repetition is not Repetition.LOOPING:
            self._refuse("until() needs a step that loops", "call one_or_more() or times_or_more() first")
        return replace(self, until_condition=as_test(condition, "until"))

    def within(self, time: Length, within_type: WithinType = WithinType.FIRST_AND_LAST) -> Pattern[Event]:
        """Limit the time of a match. The shortest limit of all steps is that of the sequence.

        Args:
            time: a Duration, Time, timedelta, or milliseconds; an event at its very end is too late.
            within_type: whether it is measured from the first event of the match, or between this step and the one
                before it.
        Raises:
            MalformedPatternException: it is no positive length of time, or the second argument is no WithinType.
        """
        window_ms = self._length(time, "within")
        if not isinstance(within_type, WithinType):
            problem = f"within() was passed {within_type!r:.40} as its type"
            self._refuse(problem, "pass WithinType.FIRST_AND_LAST or WithinType.PREVIOUS_AND_CURRENT")
        windows = tuple(pair for pair in self.windows if pair[0] is not within_type)
        return replace(self, windows=(*windows, (within_type, window_ms)))

    def optional(self) -> Pattern[Event]:
        """Let the step be absent from a match.

        Raises:
            MalformedPatternException: it is optional or negative, or the step before is greedy.
        """
        if self.previous is not None and self.previous.quantifier.is_greedy:
            self._refuse("an optional step cannot follow a greedy one", "leave out greedy() or optional()")
        return replace(self, quantifier=self.quantifier.optional())

    def one_or_more(self, window: Length | None = None) -> Pattern[Event]:
        """Let the step occur once or more often.

        Args:
            window: the time between two occurrences at most; None for any.
        """
        return self.times_or_more(1, window)

    def times_or_more(self, times: int, window: Length | None = None) -> Pattern[Event]:
        """Let the step occur this number of times, or more often.

        Args:
            times: at least 1.
            window: the time between two occurrences at most; None for any.
        """
        quantifier = self.quantifier.repeat(Repetition.LOOPING)
        return replace(self, quantifier=quantifier, times_range=self._range(times, times, window))

    def times(self, times: int, most: int | None = None, window: Length | None = None) -> Pattern[Event]:
        """Let the step occur this number of times, or any number from `times` to `most`.

        Args:
            times: at least 1; 0 with `most` makes the step optional.
            most: at least `times`; None for exactly `times`.
            window: the time between two occurrences at most; None for any.
        """
        quantifier = self.quantifier.repeat(Repetition.TIMES)
        if times == 0 and most is not None:
            quantifier, times = quantifier.optional(), 1
        return replace(
            self, quantifier=quantifier, times_range=self._range(times, times if most is None else most, window)
        )

    def greedy(self) -> Pattern[Event]:
        """Let a step that repeats take as many events as possible.

        Raises:
            MalformedPatternException: it does not repeat, or is a group.
        """
        return replace(self, quantifier=self.quantifier.greedy())

    def allow_combinations(self) -> Pattern[Event]:
        """Let any events, those that match included, lie between two occurrences of a step that repeats."""
        return replace(self, quantifier=self.quantifier.combinations())

    def consecutive(self) -> Pattern[Event]:
        """Let no events lie between two occurrences of a step that repeats."""
        return replace(self, quantifier=self.quantifier.consecutive())

    def steps(self) -> list[Pattern[Event]]:
        """Return all steps of the sequence, the first one first; a group is one step."""
        steps: list[Pattern[Event]] = []
        step: Pattern[Event] | None = self
        while step is not None:
            steps.append(step)
            step = step.previous
        return steps[::-1]

    def explain(self, form: str = "text") -> str:
        """Return the automaton of the pattern for people.

        Args:
            form: "text", or "svg" for a picture.
        Raises:
            MalformedPatternException: the pattern cannot be matched, or there is no such form.

        >>> print(Pattern.begin("a").followed_by_any("b").explain())
        pattern a -> b
          a (start)
            take a -> b
          b
            take b -> end
            ignore -> itself
          end (final)
        """
        forms = {"text": explain_text, "svg": explain_svg}
        if form not in forms:
            self._refuse(f"explain() was passed the form {form!r:.40}", "pass 'text' or 'svg'")
        return forms[form](compile_pattern(self))

    def window_ms(self, within_type: WithinType = WithinType.FIRST_AND_LAST) -> int | None:
        """Return the milliseconds that `within` was passed for this step, or None."""
        return dict(self.windows).get(within_type)

    @property
    def take_condition(self) -> Condition:
        """The condition of the step, `ALWAYS` where it has none."""
        return ALWAYS if self.condition is None else self.condition

    def __repr__(self) -> str:
        return f"Pattern({' -> '.join(step.name for step in self.steps())})"

    def _range(self, least: int, most: int, window: Length | None) -> Times:
        are_numbers = type(least) is int and type(most) is int
        if not are_numbers or least < 1 or most < least:
            numbers = f"{least!r:.40}" if least == most else f"{least!r:.40} to {most!r:.40}"
            self._refuse(f"a step cannot occur {numbers} times", "pass whole numbers from 1 on, the smaller one first")
        return Times(least, most, None if window is None else self._length(window, "a repetition"))

    def _length(self, time: Length, call: str) -> int:
        """Return a length of time in milliseconds; `call` is what it was passed to."""
        name = f"{call}()" if call == "within" else call
        try:
            window_ms = to_millis(time)
        except TypeError:
            problem = f"{name} was passed {time!r:.40} as a time"
            self._refuse(problem, "pass a Duration, such as Duration.of_minutes(5), a timedelta, or milliseconds")
        if window_ms <= 0:
            self._refuse(f"{name} was passed a time of {window_ms} ms", "pass a time of at least one millisecond")
        return window_ms

    def _refuse_optional_before(self, call: str) -> None:
        if self.quantifier.is_optional:
            self._refuse(
                f"{call}() cannot follow the optional step {self.name!r}",
                "write two patterns, one with the optional step and one without it",
            )

    def _refuse(self, problem: str, remedy: str) -> NoReturn:
        raise MalformedPatternException(f"{problem}: step {self.name!r}", remedy, call_site())


class GroupPattern(Pattern[Event]):
    """A step that is a sequence of its own: `Pattern.begin(pattern)`, `next(pattern)` and the like."""

    def where(self, condition: UserCode) -> Pattern[Event]:
        self._refuse_condition("where")
        return self

    def or_(self, condition: UserCode) -> Pattern[Event]:
        self._refuse_condition("or_")
        return self

    def subtype(self, subtype: type) -> Pattern[Event]:
        self._refuse_condition("subtype")
        return self

    def greedy(self) -> Pattern[Event]:
        self._refuse("greedy() cannot be applied to a group", "apply it to the steps within the group")
        return self

    def _refuse_condition(self, call: str) -> None:
        self._refuse(f"{call}() cannot be applied to a group", "give the condition to the steps within the group")


def _step(
    previous: Pattern[Event] | None,
    name: str | Pattern[Event],
    strategy: ConsumingStrategy,
    skip: AfterMatchSkipStrategy,
) -> Pattern[Event]:
    quantifier = Quantifier(strategy)
    if isinstance(name, Pattern):
        return GroupPattern("group", previous, quantifier, skip_strategy=skip, line=call_site(), group=name)
    if not isinstance(name, str) or not name:
        raise MalformedPatternException(
            f"a step of a pattern is called {name!r:.100}", "pass a non-empty string", call_site()
        )
    return Pattern(name, previous, quantifier, skip_strategy=skip, line=call_site())


AnyPattern: TypeAlias = Pattern[Any]
"""A pattern of events of any class."""

__all__ = ["AnyPattern", "GroupPattern", "Pattern"]
