"""A stream with a pattern to look for: what becomes of its matches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar

from rayflink.common.functions.function_classes import KeyBy, NullByteKeySelector
from rayflink.common.output_tag import OutputTag
from rayflink.datastream.streams.keyed import KeyedStream
from rayflink.datastream.streams.recording import record_operator
from rayflink.datastream.streams.step import transformation_of
from rayflink.datastream.streams.stream import DataStream
from rayflink.datastream.streams.unfinished import tag_of
from rayflink.operators.factory import Factory
from rayflink.user_types import TypeHint, UserCode

from .errors import MalformedPatternException
from .functions import FlatSelection, Selection
from .pattern import Pattern
from .runtime.cep_operator import CepOperator, MatchOptions

Event = TypeVar("Event")


class PatternStream(Generic[Event]):
    """A stream and a pattern. Each call returns a new pattern stream, or the stream of results.

    Args:
        stream: keyed; of a stream without keys `CEP.pattern` makes one of a single key.
        pattern: what to look for.
        options: how events are matched.
    """

    def __init__(
        self, stream: KeyedStream[Event, Any], pattern: Pattern[Event], options: MatchOptions | None = None
    ) -> None:
        self._stream, self._pattern = stream, pattern
        self._options = MatchOptions() if options is None else options

    def in_event_time(self) -> PatternStream[Event]:
        """Match events in the order of their timestamps, as it is without this call."""
        return self._with(replace(self._options, is_processing_time=False))

    def in_processing_time(self) -> PatternStream[Event]:
        """Match events as they arrive, with the times of the wall clock."""
        return self._with(replace(self._options, is_processing_time=True))

    def side_output_late_data(self, tag: OutputTag[Event]) -> PatternStream[Event]:
        """Send events that come behind the watermark to a side output; without this call they are counted alone."""
        return self._with(replace(self._options, late_tag=tag_of("side_output_late_data", tag).tag_id))

    def with_comparator(self, comparator: Callable[[Event, Event], int]) -> PatternStream[Event]:
        """Order events of one time.

        Args:
            comparator: (event, event) -> negative, 0 or positive; equal ones are in order of arrival.
        """
        return self._with(replace(self._options, comparator=comparator))

    def max_partial_matches(
        self, number: int, side_output: OutputTag[dict[str, list[Event]]] | None = None
    ) -> PatternStream[Event]:
        """Limit the partial matches of a key. Beyond the limit those that began first are dropped and counted.

        Args:
            number: at least 1.
            side_output: where the dropped ones go, each as a dict of its events; None: nowhere.
        Raises:
            MalformedPatternException: the number is below 1.
        """
        if number < 1:
            raise MalformedPatternException(
                f"max_partial_matches() was passed {number}", "pass a number of at least 1", self._pattern.line
            )
        tag = None if side_output is None else tag_of("max_partial_matches", side_output).tag_id
        return self._with(replace(self._options, max_partial_matches=number, dropped_tag=tag))

    def drop_partial_matches_on_change(self) -> PatternStream[Event]:
        """Begin without partial matches when a snapshot of another pattern is restored.

        Without this call such a restore is an error. Conditions may change in any case, as long as the steps do not.
        """
        return self._with(replace(self._options, drops_on_change=True))

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

    def _with(self, options: MatchOptions) -> PatternStream[Event]:
        return PatternStream(self._stream, self._pattern, options)

    def _build(self, function: UserCode, output_type: TypeHint) -> DataStream[Any]:
        selector = self._stream.key_selector
        factory = Factory(CepOperator, selector, self._pattern, function, self._options)
        env = self._stream.get_execution_environment()
        step = record_operator(env, transformation_of(self._stream), "CEP", factory, output_type, selector)
        results: DataStream[Any] = DataStream(env, step)
        is_global = isinstance(KeyBy.of(selector).selector, NullByteKeySelector)
        return results.force_non_parallel() if is_global else results


__all__ = ["PatternStream"]
