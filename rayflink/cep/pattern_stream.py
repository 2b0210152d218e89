"""A stream with a pattern to look for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from rayflink.common.errors import shorten
from rayflink.common.user_code.call_sites import call_site
from rayflink.datastream.streams.keyed import KeyedStream
from rayflink.datastream.streams.recording import record_operator
from rayflink.datastream.streams.step import transformation_of
from rayflink.graph.transformations import Transformation
from rayflink.operators.factory import Factory
from rayflink.user_types import TypeHint, UserCode

from .errors import MalformedPatternException
from .match_stream import MatchStream
from .nfa.compiler import compile_pattern
from .pattern import Pattern
from .runtime.cep_operator import CepOperator
from .runtime.finishing_operator import FinishingOperator
from .runtime.match_state import signature
from .runtime.matching_operator import MatchOptions

Event = TypeVar("Event")


class PatternStream(MatchStream[Event]):
    """A stream and a pattern. Each call returns a new pattern stream, or the stream of results.

    Args:
        stream: keyed; of a stream without keys `CEP.pattern` makes one of a single key.
        pattern: what to look for.
        options: how events are matched.
        old_patterns: whose partial matches go on after a restore.
    """

    def __init__(
        self,
        stream: KeyedStream[Event, Any],
        pattern: Pattern[Event],
        options: MatchOptions | None = None,
        old_patterns: tuple[Pattern[Event], ...] = (),
    ) -> None:
        super().__init__(stream, MatchOptions() if options is None else options)
        self._pattern, self._old_patterns = pattern, old_patterns

    def drop_partial_matches_on_change(self) -> PatternStream[Event]:
        """Begin without partial matches when a snapshot of another pattern is restored.

        Without this call or `finish_partial_matches_of` such a restore is an error. Conditions may change in any case,
        as long as the steps do not.
        """
        return self._with(replace(self._options, drops_on_change=True))

    def finish_partial_matches_of(self, old_pattern: Pattern[Event]) -> PatternStream[Event]:
        """Let the partial matches of an earlier pattern go on to their ends after a restore; no new ones begin.

        Once none is left, `numKeysWithOldMatches` is 0 and a savepoint also restores without this call. Of several
        calls each names one earlier pattern.

        Args:
            old_pattern: as it was when the snapshot was taken.
        Raises:
            MalformedPatternException: it has the same steps as the pattern, whose partial matches go on with the
                conditions of the pattern in any case.
        """
        if not isinstance(old_pattern, Pattern):
            problem = f"finish_partial_matches_of() was passed {shorten(old_pattern, 100)}"
            raise MalformedPatternException(problem, "pass the pattern as it was", call_site())
        if signature(compile_pattern(old_pattern)) == signature(compile_pattern(self._pattern)):
            raise MalformedPatternException(
                "finish_partial_matches_of() was passed a pattern of the same steps",
                "leave it out: partial matches go on, with the conditions of the new pattern; to let them go on with "
                "the old conditions name a step otherwise, or use CEP.patterns with versions",
                call_site(),
            )
        return PatternStream(self._stream, self._pattern, self._options, (*self._old_patterns, old_pattern))

    def _with(self, options: MatchOptions) -> PatternStream[Event]:
        return PatternStream(self._stream, self._pattern, options, self._old_patterns)

    def _record(self, function: UserCode, output_type: TypeHint) -> Transformation:
        selector, old = self._stream.key_selector, self._old_patterns
        factory = Factory(CepOperator, selector, self._pattern, function, self._options)
        if old:
            factory = Factory(FinishingOperator, selector, self._pattern, old, function, self._options)
        env = self._stream.get_execution_environment()
        return record_operator(env, transformation_of(self._stream), "CEP", factory, output_type, selector)


__all__ = ["PatternStream"]
