"""The functions users write for matches, with Flink's names; a plain callable does as well as each select function."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeAlias

from rayflink.common.errors import InvalidFunction, shorten
from rayflink.common.functions.callables import UserFunction, as_single
from rayflink.common.functions.function_classes import Function, RuntimeContext
from rayflink.common.functions.type_variables import Input1, Output
from rayflink.common.output_tag import OutputTag
from rayflink.common.user_code.call_sites import call_site
from rayflink.user_types import UserCode, UserRecord, UserValue

Match: TypeAlias = dict[str, list[Any]]
"""The events of a match by the names of the pattern's steps, in the order of the pattern; steps without events are not
in it."""


class MatchContext(ABC):
    """Answers a function while it is called for a match. Times are epoch milliseconds."""

    @abstractmethod
    def timestamp(self) -> int:
        """Return the timestamp of the match: of its last event; of one that timed out, of the end of its time."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the time of the wall clock."""

    @abstractmethod
    def output(self, tag: OutputTag[Any], value: UserRecord) -> None:
        """Send a record to a side output, as `yield tag, value` does."""


class PatternProcessFunction(Function, Generic[Input1, Output]):
    """Any number of results for each match. It may inherit `TimedOutPartialMatchHandler`, too.

    >>> class Durations(PatternProcessFunction):
    ...     def process_match(self, match, ctx):
    ...         yield match["end"][0] - match["start"][0]
    """

    Context: TypeAlias = MatchContext

    @abstractmethod
    def process_match(
        self, match: dict[str, list[Input1]], ctx: MatchContext
    ) -> Iterable[Output | tuple[OutputTag[Any], Any]] | None:
        """Return the results for a match: an iterable or None; `yield tag, record` for a side output."""


class TimedOutPartialMatchHandler(ABC, Generic[Input1]):
    """A `PatternProcessFunction` that inherits this is called for partial matches whose time has passed, too."""

    @abstractmethod
    def process_timed_out_match(
        self, match: dict[str, list[Input1]], ctx: MatchContext
    ) -> Iterable[tuple[OutputTag[Any], Any]] | None:
        """Return the results for a partial match, an iterable of (tag, record) or None; or call `ctx.output`."""


class PatternSelectFunction(Function, Generic[Input1, Output]):
    """One result for each match."""

    @abstractmethod
    def select(self, match: dict[str, list[Input1]]) -> Output:
        """Return the result for a match."""


class PatternFlatSelectFunction(Function, Generic[Input1, Output]):
    """Any number of results for each match."""

    @abstractmethod
    def flat_select(self, match: dict[str, list[Input1]]) -> Iterable[Output] | None:
        """Return the results for a match: an iterable or None."""


class PatternTimeoutFunction(Function, Generic[Input1, Output]):
    """One result for each partial match whose time has passed."""

    @abstractmethod
    def timeout(self, match: dict[str, list[Input1]], timeout_timestamp: int) -> Output:
        """Return the result for a partial match.

        Args:
            timeout_timestamp: at which its time had passed, in epoch milliseconds.
        """


class PatternFlatTimeoutFunction(Function, Generic[Input1, Output]):
    """Any number of results for each partial match whose time has passed."""

    @abstractmethod
    def timeout(self, match: dict[str, list[Input1]], timeout_timestamp: int) -> Iterable[Output] | None:
        """Return the results for a partial match: an iterable or None."""


def as_match_function(function: UserCode, step: str = "process") -> UserFunction:
    """Return `(match, context) -> iterable or None`, from a PatternProcessFunction or a callable of both.

    Raises:
        InvalidFunction: it is neither.
    """
    return as_single(function, "process_match", "a PatternProcessFunction", step, 2)


class Selection(PatternProcessFunction[Any, Any], TimedOutPartialMatchHandler[Any]):
    """Calls select functions for matches and for partial matches whose time has passed.

    Args:
        select: a PatternSelectFunction, or a callable of the match.
        timeout: a PatternTimeoutFunction, or a callable of match and timestamp; None: such matches are dropped.
        tag: the side output of its results; None where there is no such function.
    """

    many = False
    """Whether the functions give iterables of results."""

    def __init__(self, select: UserCode, timeout: UserCode | None = None, tag: OutputTag[Any] | None = None) -> None:
        if (timeout is None) != (tag is None):
            raise InvalidFunction(
                f"{self._step()}() was passed {'a timeout tag' if timeout is None else 'a timeout function'} alone",
                "pass both, timeout_function and timeout_tag, or neither",
                call_site(),
            )
        kinds = ("a PatternFlatSelectFunction", "a PatternFlatTimeoutFunction")
        if not self.many:
            kinds = ("a PatternSelectFunction", "a PatternTimeoutFunction")
        self._select = as_single(select, self._step(), kinds[0], self._step(), 1)
        self._timeout = None if timeout is None else as_single(timeout, "timeout", kinds[1], self._step(), 2)
        self._tag = tag
        self.wrapped_functions = tuple(part for part in (select, timeout) if part is not None)

    def open(self, runtime_context: RuntimeContext) -> None:
        self._select.open(runtime_context)
        if self._timeout is not None:
            self._timeout.open(runtime_context)

    def close(self) -> None:
        self._select.close()
        if self._timeout is not None:
            self._timeout.close()

    @property
    def handles_timeouts(self) -> bool:
        """Return whether partial matches whose time has passed are wanted."""
        return self._timeout is not None

    def process_match(self, match: Match, ctx: MatchContext) -> Iterable[Any] | None:
        return self._results(self._select.call(match))

    def process_timed_out_match(self, match: Match, ctx: MatchContext) -> Iterable[tuple[OutputTag[Any], Any]] | None:
        assert self._timeout is not None and self._tag is not None, "called only where there is such a function"
        tag = self._tag
        return [(tag, result) for result in self._results(self._timeout.call(match, ctx.timestamp())) or ()]

    def _results(self, answer: UserValue) -> Iterable[Any] | None:
        return (answer,)

    @classmethod
    def _step(cls) -> str:
        return "select"


class FlatSelection(Selection):
    """Calls functions that give any number of results; see `Selection`."""

    many = True

    def _results(self, answer: UserValue) -> Iterable[Any] | None:
        if answer is None or isinstance(answer, Iterable) and not isinstance(answer, str | bytes):
            return answer
        raise TypeError(
            f"a function of flat_select gave {shorten(answer, 80)}, which is no iterable of results; "
            "yield the results, or use select for one result a match"
        )

    @classmethod
    def _step(cls) -> str:
        return "flat_select"


def timeout_handler(function: UserCode) -> Callable[[Match, MatchContext], Any] | None:
    """Return the function's call for partial matches whose time has passed; None where it has none."""
    if isinstance(function, Selection) and not function.handles_timeouts:
        return None
    if inspect.isroutine(function):
        return None
    call: Callable[[Match, MatchContext], Any] | None = getattr(function, "process_timed_out_match", None)
    return call


__all__ = [
    "FlatSelection", "Match", "MatchContext", "PatternFlatSelectFunction", "PatternFlatTimeoutFunction",
    "PatternProcessFunction", "PatternSelectFunction", "PatternTimeoutFunction", "Selection",
    "TimedOutPartialMatchHandler", "as_match_function", "timeout_handler",
]  # fmt: skip
