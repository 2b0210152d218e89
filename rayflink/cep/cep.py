"""The entry of complex event processing: a stream and a pattern make a pattern stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rayflink.common.errors import shorten
from rayflink.common.functions.function_classes import NullByteKeySelector
from rayflink.common.user_code.call_sites import call_site, warn_user
from rayflink.datastream.streams.keyed import KeyedStream
from rayflink.datastream.streams.step import transformation_of
from rayflink.datastream.streams.stream import DataStream, ensure_stream

from .errors import MalformedPatternException
from .growth import growth_of
from .match_stream import ensure_comparator
from .nfa.column_units import check_columns
from .nfa.compiler import compile_pattern
from .pattern import AnyPattern, Pattern
from .pattern_stream import PatternStream
from .patterns_stream import PatternsStream
from .rules import PatternRule

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
        if comparator is not None:
            ensure_comparator("CEP.pattern", comparator)
        check_columns(compile_pattern(pattern), transformation_of(stream).declared_type())
        _warn_of_growth(pattern)
        pattern_stream: PatternStream[Event] = PatternStream(_keyed(stream), pattern)
        return pattern_stream if comparator is None else pattern_stream.with_comparator(comparator)

    @staticmethod
    def patterns(
        stream: DataStream[Event],
        rules: Sequence[PatternRule] = (),
        changes: DataStream[PatternRule] | None = None,
    ) -> PatternsStream[Event]:
        """Return the pattern stream of a stream and several patterns, each with an id and a version.

        Conditions on an event alone that are equal are evaluated once for all patterns.

        Args:
            stream: as of `pattern`.
            rules: those that are in effect from the beginning. A program that is restored with a newer version of one
                replaces it.
            changes: a stream of rules that replace and remove patterns while the job runs; every subtask receives all.
                A rule with a timestamp applies to events from that time on, another one as soon as it arrives.

        Raises:
            PlanError: the first argument is no stream, or the third one is none.
            MalformedPatternException: the second is no list of rules, two of them have one id, one removes a pattern,
                or there are no patterns at all.

        >>> from rayflink.common import WatermarkStrategy
        >>> from rayflink.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "local"})
        >>> times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda number, _: number)
        >>> numbers = env.from_collection([2, 15, 30, 40]).assign_timestamps_and_watermarks(times)
        >>> def above(limit): return Pattern.begin("above").where(lambda number: number > limit)
        >>> changes = env.from_collection([(20, PatternRule("large", 2, above(35)))]).assign_timestamps_and_watermarks(
        ...     WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda change, _: change[0])
        ... )
        >>> matches = CEP.patterns(numbers, [PatternRule("large", 1, above(10))], changes.map(lambda change: change[1]))
        >>> list(matches.select(lambda match: (match["above"], match.version)).execute_and_collect())
        [([15], 1), ([40], 2)]
        """
        ensure_stream(stream, "CEP.patterns")
        if changes is not None:
            ensure_stream(changes, "CEP.patterns, as the changes of rules,")
        program_rules = _checked(rules, changes)
        for rule in program_rules:
            check_columns(compile_pattern(rule.pattern()), transformation_of(stream).declared_type())
            _warn_of_growth(rule.pattern())
        return PatternsStream(_keyed(stream), program_rules, changes)


def _checked(rules: Sequence[PatternRule], changes: DataStream[PatternRule] | None) -> tuple[PatternRule, ...]:
    """Return the rules of a program."""
    remedy = "pass a list of PatternRule(id, version, pattern), and a stream of rules as changes"
    if isinstance(rules, DataStream) or not isinstance(rules, Sequence):
        raise MalformedPatternException(f"CEP.patterns() was passed {shorten(rules, 100)}", remedy, call_site())
    ids: set[str] = set()
    for rule in rules:
        if not isinstance(rule, PatternRule):
            raise MalformedPatternException(f"CEP.patterns() was passed {shorten(rule, 100)}", remedy, call_site())
        if rule.removes:
            remedy = "leave it out: a pattern that the program does not have is removed"
            raise MalformedPatternException(f"{rule!r} removes a pattern", remedy, call_site())
        if rule.pattern_id in ids:
            remedy = "give each pattern an id of its own, and of each pattern the newest version"
            raise MalformedPatternException(f"two rules have the id {rule.pattern_id!r}", remedy, call_site())
        ids.add(rule.pattern_id)
    if not ids and changes is None:
        raise MalformedPatternException("CEP.patterns() was passed no rules", remedy, call_site())
    return tuple(rules)


def _keyed(stream: DataStream[Event]) -> KeyedStream[Event, Any]:
    return stream if isinstance(stream, KeyedStream) else stream.key_by(NullByteKeySelector())


def _warn_of_growth(pattern: AnyPattern) -> None:
    growth = growth_of(pattern)
    if growth is not None and growth.explodes:
        warn_user(
            f"the pattern {pattern!r} may have up to {growth} partial matches of a key after n events; call "
            "within(...) to bound them by time, or max_partial_matches(...) on the pattern stream by number"
        )


__all__ = ["CEP"]
