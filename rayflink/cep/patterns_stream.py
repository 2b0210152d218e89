"""A stream with several patterns to look for, which may change while the job runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from rayflink.common.output_tag import OutputTag
from rayflink.datastream.streams.keyed import KeyedStream
from rayflink.datastream.streams.recording import record_operator, record_two_inputs
from rayflink.datastream.streams.step import transformation_of
from rayflink.datastream.streams.stream import DataStream
from rayflink.datastream.streams.unfinished import tag_of
from rayflink.graph.transformations import Transformation
from rayflink.operators.factory import Factory
from rayflink.user_types import TypeHint, UserCode

from .match_stream import MatchStream
from .rules import PatternRule, RejectedRule
from .runtime.dynamic_operator import DynamicRulesOperator, FixedRulesOperator
from .runtime.matching_operator import MatchOptions

Event = TypeVar("Event")


class PatternsStream(MatchStream[Event]):
    """A stream and rules with patterns. Each call returns a new one, or the stream of results.

    A match is a `PatternMatch`: a dict of events by the names of steps, with the attributes `pattern_id` and
    `version`.

    Args:
        stream: keyed; of a stream without keys `CEP.patterns` makes one of a single key.
        rules: of the program.
        changes: a stream of further rules; None: there are none.
        options: how events are matched.
        rejected_tag: side output of rules without effect.
    """

    def __init__(
        self,
        stream: KeyedStream[Event, Any],
        rules: tuple[PatternRule, ...],
        changes: DataStream[PatternRule] | None = None,
        options: MatchOptions | None = None,
        rejected_tag: str | None = None,
    ) -> None:
        super().__init__(stream, MatchOptions() if options is None else options)
        self._rules, self._changes, self._rejected_tag = rules, changes, rejected_tag

    def drop_partial_matches_on_change(self) -> PatternsStream[Event]:
        """Drop the partial matches of a pattern when a newer version takes its place, or it is removed.

        They are counted (`numPartialMatchesDropped`). Without this call they go on to their ends as the old version
        has it, and no new ones of it begin.
        """
        return self._with(replace(self._options, drops_on_change=True))

    def disable_rules_on_error(self) -> PatternsStream[Event]:
        """Disable a rule when one of its conditions raises or gives no bool; without this call the job fails.

        Its partial matches are dropped and counted (`numPartialMatchesDropped`). The rule is counted
        (`numRulesDisabled`), logged, and sent with the error to the side output of rejected rules. It matches nothing
        until a newer version takes its place, also after a restart. Each subtask disables a rule when it fails there;
        a job that is restored with another parallelism has it disabled in all.
        """
        return self._with(replace(self._options, disables_on_error=True))

    def side_output_rejected_rules(self, tag: OutputTag[RejectedRule]) -> PatternsStream[Event]:
        """Send rules without effect to a side output, each as a `RejectedRule` with the reason.

        They are those whose version is not newer than that in effect, whose pattern cannot be made or matched, that
        wait for their time in vain, and records that are no rules; and the disabled ones. Without this call they are
        counted (`numRulesRejected`, `numRulesDisabled`) and logged alone.
        """
        rejected = tag_of("side_output_rejected_rules", tag).tag_id
        return PatternsStream(self._stream, self._rules, self._changes, self._options, rejected)

    def _with(self, options: MatchOptions) -> PatternsStream[Event]:
        return PatternsStream(self._stream, self._rules, self._changes, options, self._rejected_tag)

    def _record(self, function: UserCode, output_type: TypeHint) -> Transformation:
        env, selector, events = self._stream.get_execution_environment(), self._stream.key_selector, self._stream
        if self._changes is None:
            fixed = Factory(FixedRulesOperator, selector, self._rules, function, self._options, self._rejected_tag)
            return record_operator(env, transformation_of(events), "CEP", fixed, output_type, selector)
        steps = transformation_of(events), transformation_of(self._changes.broadcast())
        tag, declared = self._rejected_tag, steps[0].declared_type()
        dynamic = Factory(DynamicRulesOperator, selector, self._rules, function, self._options, tag, declared)
        return record_two_inputs(env, steps, "CEP", dynamic, output_type, (selector, None))


__all__ = ["PatternsStream"]
