"""The entry of complex event processing: a stream and a pattern make a pattern stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rayflink.common.functions.function_classes import NullByteKeySelector
from rayflink.common.user_code.call_sites import call_site, warn_user
from rayflink.datastream.streams.keyed import KeyedStream
from rayflink.datastream.streams.step import transformation_of
from rayflink.datastream.streams.stream import DataStream, ensure_stream

from .errors import MalformedPatternException
from .growth import growth_of
from .nfa.column_units import check_columns
from .nfa.compiler import compile_pattern
from .pattern import Pattern
from .pattern_stream import PatternStream

Event = TypeVar("Event")


class CEP:
    """Looks for patterns in streams.

    >>> from rayflink.common import WatermarkStrategy
    >>> from rayflink.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "local"})
    >>> times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: event[1])
    >>> events = env.from_collection([("login", 1), ("failed", 2), ("failed", 3), ("login", 4), ("failed", 5)])
    >>> events = events.assign_timestamps_and_watermarks(times)
    >>> failures = Pattern.begin("failures").where(lambda event: event[0] == "failed").times(2).consecutive()
    >>> matches = CEP.pattern(events, failures).select(lambda match: [time for _, time in match["failures"]])
    >>> list(matches.execute_and_collect())
    [[2, 3]]
    """

    @staticmethod
    def pattern(
        stream: DataStream[Event],
        pattern: Pattern[Event],
        comparator: Callable[[Event, Event], int] | None = None,
    ) -> PatternStream[Event]:
        """Return the pattern stream of a stream and a pattern.

        Args:
            stream: of a keyed stream each key is matched on its own; of another all events are, in one subtask.
            pattern: the last step of what to look for.
            comparator: the order of events of one time, see `PatternStream.with_comparator`.

        Raises:
            PlanError: the first argument is no stream.
            MalformedPatternException: the second is no pattern, or one that cannot be matched.
        """
        ensure_stream(stream, "CEP.pattern")
        if not isinstance(pattern, Pattern):
            raise MalformedPatternException(
                f"CEP.pattern() was passed {pattern!r:.100}",
                "pass a Pattern, which begins with Pattern.begin(name)",
                call_site(),
            )
        if comparator is not None and not callable(comparator):
            problem = f"CEP.pattern() was passed {comparator!r:.100} as its comparator"
            raise MalformedPatternException(problem, "pass a callable of two events, which gives a number", call_site())
        check_columns(compile_pattern(pattern), transformation_of(stream).declared_type())
        growth = growth_of(pattern)
        if growth is not None and growth.explodes:
            warn_user(
                f"the pattern {pattern!r} may have up to {growth} partial matches of a key after n events; call "
                "within(...) to bound them by time, or max_partial_matches(...) on the pattern stream by number"
            )
        keyed = stream if isinstance(stream, KeyedStream) else stream.key_by(NullByteKeySelector())
        pattern_stream: PatternStream[Event] = PatternStream(keyed, pattern)
        return pattern_stream if comparator is None else pattern_stream.with_comparator(comparator)


__all__ = ["CEP"]
