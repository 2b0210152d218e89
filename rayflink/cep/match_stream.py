"""Streams whose events are matched with patterns: how they are matched, and what becomes of matches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar

from rayflink.common.functions.function_classes import KeyBy, NullByteKeySelector
from rayflink.common.output_tag import OutputTag
from rayflink.common.user_code.call_sites import call_site
from rayflink.datastream.streams.keyed import KeyedStream
from rayflink.datastream.streams.stream import DataStream
from rayflink.datastream.streams.unfinished import tag_of
from rayflink.graph.transformations import Transformation
from rayflink.user_types import TypeHint, UserCode

from .errors import MalformedPatternException
from .functions import FlatSelection, Selection
from .runtime.matching_operator import MatchOptions

Event = TypeVar("Event")
Stream = TypeVar("Stream", bound="MatchStream[Any]")


class MatchStream(ABC, Generic[Event]):
    """A stream whose events are matched with patterns.

    Args:
        stream: keyed.
        options: how events are matched.
    """

    def __init__(self, stream: KeyedStream[Event, Any], options: MatchOptions) -> None:
        self._stream, self._options = stream, options

    def in_event_time(self: Stream) -> Stream:
        """Match events in the order of their timestamps, as it is without this call."""
        return self._with(replace(self._options, is_processing_time=False))

    def in_processing_time(self: Stream) -> Stream:
        """Match events as they arrive, with the times of the wall clock."""
        return self._with(replace(self._options, is_processing_time=True))

    def side_output_late_data(self: Stream, tag: OutputTag[Event]) -> Stream:
        """Send events that come behind the watermark to a side output; without this call they are counted alone."""
        return self._with(replace(self._options, late_tag=tag_of("side_output_late_data", tag).tag_id))

    def with_comparator(self: Stream, comparator: Callable[[Event, Event], int]) -> Stream:
        """Order events of one time.

        Args:
            comparator: (event, event) -> negative, 0 or positive; equal ones are in order of arrival. The job fails
                where it gives no number, or raises.
        Raises:
            MalformedPatternException: the comparator is no callable.
        """
        ensure_comparator("with_comparator", comparator)
        return self._with(replace(self._options, comparator=comparator, comparator_site=call_site()))

    def max_partial_matches(
        self: Stream, number: int, side_output: OutputTag[dict[str, list[Event]]] | None = None
    ) -> Stream:
        """Limit the partial matches of a key. Beyond the limit those that began first are dropped and counted.

        Args:
            number: at least 1.
            side_output: where the dropped ones go, each as a dict of its events; None: nowhere.
        Raises:
            MalformedPatternException: the number is below 1.
        """
        if not isinstance(number, int) or number < 1:
            raise MalformedPatternException(
                f"max_partial_matches() was passed {number!r:.100}", "pass a whole number of at least 1", call_site()
            )
        tag = None if side_output is None else tag_of("max_partial_matches", side_output).tag_id
        return self._with(replace(self._options, max_partial_matches=number, dropped_tag=tag))

    def process(self, function: UserCode, output_type: TypeHint = None) -> DataStream[Any]:
        """Apply a function to each match.

        Args:
            function: a PatternProcessFunction, which may also be a TimedOutPartialMatchHandler; or a callable of match
                and context. They return or yield results.
            output_type: what every result must be; None: anything.
        """
        return self._build(function, output_type)

    def select(
        self,
        select_function: UserCode,
        output_type: TypeHint = None,
        *,
        timeout_tag: OutputTag[Any] | None = None,
        timeout_function: UserCode | None = None,
    ) -> DataStream[Any]:
        """Apply a function with one result to each match.

        Args:
            select_function: a PatternSelectFunction, or a callable of the match: names of steps -> lists of events.
            output_type: what every result must be; None: anything.
            timeout_tag, timeout_function: a side output, and a PatternTimeoutFunction or a callable of match and
                timestamp, whose results for partial matches that timed out go there.
        """
        return self._build(Selection(select_function, timeout_function, timeout_tag), output_type)

    def flat_select(
        self,
        flat_select_function: UserCode,
        output_type: TypeHint = None,
        *,
        timeout_tag: OutputTag[Any] | None = None,
        timeout_function: UserCode | None = None,
    ) -> DataStream[Any]:
        """Apply a function with any number of results to each match.

        Args:
            flat_select_function: a PatternFlatSelectFunction, or a callable of the match.
            output_type, timeout_tag, timeout_function: as of `select`; here the functions return or yield results.
        """
        return self._build(FlatSelection(flat_select_function, timeout_function, timeout_tag), output_type)

    @abstractmethod
    def _with(self: Stream, options: MatchOptions) -> Stream:
        """Return the same stream with other options."""

    @abstractmethod
    def _record(self, function: UserCode, output_type: TypeHint) -> Transformation:
        """Add the operator to the program; return its step."""

    def _build(self, function: UserCode, output_type: TypeHint) -> DataStream[Any]:
        step = self._record(function, output_type)
        results: DataStream[Any] = DataStream(self._stream.get_execution_environment(), step)
        is_global = isinstance(KeyBy.of(self._stream.key_selector).selector, NullByteKeySelector)
        return results.force_non_parallel() if is_global else results


def ensure_comparator(step: str, comparator: UserCode) -> None:
    """Raise MalformedPatternException where a method was passed a comparator that is no callable."""
    if not callable(comparator):
        problem = f"{step}() was passed {comparator!r:.100} as its comparator"
        raise MalformedPatternException(problem, "pass a callable of two events, which gives a number", call_site())


__all__ = ["MatchStream", "ensure_comparator"]
