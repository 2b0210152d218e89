"""Matches patterns that change while the job runs, or from one run of a program to the next.

Rules are broadcast state: each subtask has all that are in effect, and those that wait for their time. A rule with a
timestamp that the watermark has not reached waits, and applies to events from this time on; all others apply at once,
to the events that wait for the watermark, too. A rule that replaces another one leaves it to the subtasks whose keys
have partial matches of the old version, until these have ended; they are in a list in snapshots, of which every
subtask receives all.

A rule that is disabled, as a condition of it has failed, remains the one in effect, without an automaton: only a newer
version replaces it. Each subtask decides for itself, so that a restart gives the same results as no failure; with
another parallelism a rule is disabled everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from operator import itemgetter

from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.errors import described, shorten
from rayflink.common.records.batches import MIN_TIMESTAMP, Batch, Element
from rayflink.common.text_output.logs import get_logger
from rayflink.operators.base import OperatorSnapshot, UserCodeError
from rayflink.operators.capabilities import BroadcastInput
from rayflink.operators.event_time.pacing import paced
from rayflink.operators.output_buffer import OutputBuffer
from rayflink.operators.user_function import list_of, timestamps_of
from rayflink.state.descriptors import ListStateDescriptor, MapStateDescriptor
from rayflink.state.errors import StateError
from rayflink.user_types import UserCode, UserRecord

from ..errors import MalformedPatternException
from ..functions import Match
from ..nfa.column_units import check_columns
from ..nfa.compiler import compile_pattern
from ..nfa.partial_matches import Node
from ..rules import PatternMatch, PatternRule, RejectedRule, RuleName, UnreadableRule
from .match_state import RULES, refuse_other_call, signature, state_names
from .matching_operator import MatchOptions
from .pattern_runs import PatternRun, RunName
from .patterns_operator import PatternsOperator
from .rule_book import PendingRule, RuleBook

log = get_logger(__name__)
_entry = itemgetter(0)
_CURRENT: MapStateDescriptor[str, PatternRule] = MapStateDescriptor(RULES)
_PENDING: MapStateDescriptor[tuple[int, str, int], PatternRule] = MapStateDescriptor("cep/pending-rules")
_OLD: ListStateDescriptor[PatternRule] = ListStateDescriptor("cep/old-rules")
_DISABLED: ListStateDescriptor[tuple[str, int, int, int]] = ListStateDescriptor("cep/disabled-rules")
"""(id of a pattern, its version, subtask, number of subtasks)."""


class RuleConflict(StateError):
    """The program and the snapshot have different patterns of one id and version, or the program has an older one.

    Args:
        operator: its uid or name.
        problem: the difference.
    """

    def __init__(self, operator: str, problem: str) -> None:
        super().__init__(operator, problem)
        self.operator, self.problem = operator, problem

    def __str__(self) -> str:
        return (
            f"operator {self.operator!r}: {self.problem}; give a changed pattern a version greater than all before, "
            "so that partial matches of the old one go on to their ends, or are dropped by "
            "drop_partial_matches_on_change()"
        )


class FixedRulesOperator(PatternsOperator):
    """Emits the results of a function for each match of the patterns of the program's rules.

    Args:
        key_selector: a KeySelector or a callable.
        rules: of the program, of several ids.
        function: a PatternProcessFunction, or a callable of match and context; a match is a `PatternMatch`.
        options: see `MatchOptions`.
        rejected_tag: side output of rules without effect; None: they are counted and logged alone.
    """

    def __init__(
        self,
        key_selector: UserCode,
        rules: Sequence[PatternRule],
        function: UserCode,
        options: MatchOptions,
        rejected_tag: str | None = None,
    ) -> None:
        super().__init__(key_selector, function, options)
        self._program_rules = tuple(rules)
        self.book = RuleBook()
        self._rules: dict[RuleName, PatternRule] = {}
        """The rules of `runs`."""
        self._rejected_tag = rejected_tag
        self.rejected = 0
        self._rejections: list[RejectedRule] = []
        self._replayed: dict[RuleName, tuple[str | None, PatternRun | None]] | None = None
        """In batch mode the automata of rules that take effect for one key after the other; else None."""

    # state

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        refuse_other_call(self.ctx.label, snapshots, has_rules=True)
        super().initialize_state(snapshots)
        store = self.function_state.store
        self._current = store.get_broadcast_state(_CURRENT)
        self._pending = store.get_broadcast_state(_PENDING)
        self._old = store.get_union_list_state(_OLD)
        self._disabled = store.get_union_list_state(_DISABLED)
        pending = [PendingRule(entry[0], rule) for entry, rule in sorted(self._pending.items(), key=_entry)]
        self.book = RuleBook(dict(self._current.items()), pending, self._restored_disabled())
        known = {rule.name: rule for rule in (*self._old, *(each.rule for each in pending), *self._current.values())}
        self._take_program_rules(known)
        self.book.forget_disabled()
        self._restore_runs(known)
        if self.ctx.subtask != 0:  # the first one reports them, as soon as it can
            self._take_without_effect()
        self._write_rules()
        self._show_counts()

    def _restored_disabled(self) -> set[RuleName]:
        place = self.ctx.subtask, self.ctx.parallelism
        return {
            (pattern_id, version)
            for pattern_id, version, subtask, parallelism in self._disabled
            if parallelism != place[1] or subtask == place[0]
        }

    def _take_program_rules(self, known: dict[RuleName, PatternRule]) -> None:
        """Let the rules of the program take the place of older ones, and of those of their versions.

        Args:
            known: the rules of the snapshot; changed in place.
        Raises:
            RuleConflict: the program has another pattern under an id and version of the snapshot, or an older version.
        """
        current = self.book.current
        if self.are_fixed:
            ids = {rule.pattern_id for rule in self._program_rules}
            for pattern_id in current.keys() - ids:
                del current[pattern_id]
        for rule in self._program_rules:
            before = current.get(rule.pattern_id)
            if before is not None and rule.version < before.version:
                if self.are_fixed:
                    versions = f"version {rule.version} in the program, and version {before.version} in the snapshot"
                    raise RuleConflict(self.ctx.label, f"the pattern {rule.pattern_id!r} has {versions}")
                continue
            if before is None or rule.version > before.version or not before.removes:
                self._ensure_alike(rule, known.get(rule.name))
                known[rule.name] = current[rule.pattern_id] = rule

    def _ensure_alike(self, rule: PatternRule, stored: PatternRule | None) -> None:
        """Refuse a pattern with other states than the stored one of its version; conditions may be others."""
        if stored is None or rule == stored:
            return
        declared, written = (signature(compile_pattern(each.pattern())) for each in (rule, stored))
        if declared != written:
            problem = f"version {rule.version} of the pattern {rule.pattern_id!r} has the states "
            states = f"{state_names(declared)} in the program, and {state_names(written)} in the snapshot"
            raise RuleConflict(self.ctx.label, problem + states)

    def _restore_runs(self, known: dict[RuleName, PatternRule]) -> None:
        """Make the automata of the rules in effect, and of those of which the keys have partial matches."""
        self.count_keys()
        current: dict[RunName, None] = {rule.name: None for rule in self.book.current.values() if not rule.removes}
        for name in self.book.disabled:
            current.pop(name, None)
        self.drop_matches_of(self.book.disabled)
        if self.options.drops_on_change:
            waiting = {pending.rule.name for pending in self.book.pending}
            self.drop_matches_of([name for name in self.keys_with if name not in current and name not in waiting])
        for name in {**current, **dict.fromkeys(self.keys_with)}:
            rule = known.get(name)
            if rule is None:
                problem = f"the snapshot has partial matches of {name}, and no rule of this id and version"
                raise RuleConflict(self.ctx.label, problem)
            self._rules[rule.name] = rule
        self.set_runs(self._run_of(rule, rule.name in current) for rule in self._rules.values())

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot | None:
        current, book = self.book.current, self.book
        # barriers may overtake watermarks, so that another subtask has changed rules already: see `changes_soon`
        self._old.update(
            rule
            for name, rule in self._rules.items()
            if self.keys_with[name]
            and (name[0] not in current or current[name[0]].name != name or book.changes_soon(name))
        )
        self._disabled.update((*name, self.ctx.subtask, self.ctx.parallelism) for name in sorted(book.disabled))
        return super().snapshot_state(checkpoint_id)

    def _write_rules(self) -> None:
        self._current.clear()
        self._current.put_all(self.book.current)
        self._pending.clear()
        for pending in self.book.pending:
            self._pending.put((pending.timestamp, *pending.rule.name), pending.rule)

    # rules

    def _run_of(self, rule: PatternRule, begins: bool = True) -> PatternRun:
        return PatternRun(rule.name, compile_pattern(rule.pattern()), self, begins)

    def _take_effect(self, rule: PatternRule, run: PatternRun | None) -> None:
        """Let a rule replace the one of its id, whose partial matches go on or are dropped."""
        before = self.book.current.get(rule.pattern_id)
        self.book.current[rule.pattern_id] = rule
        if self._replayed is None:
            self.book.forget_disabled()
        runs = dict(self.runs)
        if before is not None and before.name in runs:
            if self.options.drops_on_change:
                self.drop_matches_of([name for name in runs if name[0] == rule.pattern_id and name != rule.name])
            runs[before.name] = runs[before.name].ending()
        if run is not None:
            runs[run.name] = run
            self._rules[rule.name] = rule
            self._show_counts_of(rule.pattern_id)
        self.set_runs(runs.values())
        self.forget_ended()

    def release(self, run: PatternRun) -> None:
        self._rules.pop(run.name, None)
        super().release(run)

    # rules without effect

    def fire(self, until: int, out: OutputBuffer) -> Iterator[None]:
        self._reject_without_effect(out)
        yield from super().fire(until, out)

    def match_at_once(self, batch: Batch, out: OutputBuffer) -> Iterator[None]:
        self._reject_without_effect(out)
        yield from super().match_at_once(batch, out)

    def _reject_without_effect(self, out: OutputBuffer) -> None:
        """Reject the rules that wait for their time in vain."""
        rejected = self._take_without_effect()
        if not rejected:
            return
        if self.ctx.subtask == 0:  # all subtasks have them
            for each in rejected:
                self._reject(each, out)
        self._write_rules()

    def _take_without_effect(self) -> list[RejectedRule]:
        """Remove and return the rules that wait for their time in vain, each with the reason."""
        book = self.book
        if not book.pending:
            return []
        rejected = [RejectedRule(rule, str(book.refusal(rule))) for rule in book.take_outdated()]
        if self.are_fixed or self.options.is_processing_time:
            reason = "has no stream of rules any more" if self.are_fixed else "matches in processing time now"
            waiting, book.pending = book.pending, []
            rejected += [
                RejectedRule(pending.rule, f"{pending.rule!r} waits for its event time, and the program {reason}")
                for pending in waiting
            ]
        return rejected

    def _reject(self, rejected: RejectedRule, out: OutputBuffer) -> None:
        if self._replayed is not None:
            if rejected in self._rejections:
                return
            self._rejections.append(rejected)
        self.rejected += 1
        log.warning("a rule is rejected: %s", rejected.reason)
        self._report(rejected, out)

    def _report(self, rejected: RejectedRule, out: OutputBuffer) -> None:
        if self._rejected_tag is not None:
            out.add_side(self._rejected_tag, rejected, None)

    def on_failure(self, run: PatternRun, error: UserCodeError, out: OutputBuffer) -> None:
        if not self.options.disables_on_error:
            raise error
        pattern_id, version = run.name
        self.book.disabled.add((pattern_id, version))
        if self._replayed is not None:
            self._replayed.setdefault((pattern_id, version), (None, run))
        failure = f"{error.where}, which is at {error.call_site}, failed on record {error.record}"
        rejected = RejectedRule(self._rules[run.name], f"{failure}: {described(error.__cause__ or error)}")
        log.warning("a rule is disabled: %s", rejected.reason)
        self._report(rejected, out)

    # results

    def match_of(self, run: PatternRun, node: Node) -> Match:
        return PatternMatch(super().match_of(run, node), *run.name)

    def _show_counts(self) -> None:
        group, counts = self.ctx.metrics, self.counts
        if group is None:
            return
        group.gauge("numMatches", counts.matches.total)
        group.gauge("numEventsSkipped", lambda: counts.skipped)
        group.gauge("numPartialMatchesTimedOut", counts.timed_out.total)
        group.gauge("numPartialMatchesDropped", counts.dropped.total)
        group.gauge("numPatterns", lambda: sum(run.begins for run in self.runs.values()))
        group.gauge("numOldPatterns", lambda: sum(not run.begins for run in self.runs.values()))
        group.gauge("numRulesRejected", lambda: self.rejected)
        group.gauge("numRulesDisabled", lambda: len(self.book.disabled))
        group.gauge("numRulesPending", lambda: len(self.book.pending))
        for pattern_id in self.book.current:
            self._show_counts_of(pattern_id)

    def _show_counts_of(self, pattern_id: str) -> None:
        if self.ctx.metrics is None:
            return
        group, counts = self.ctx.metrics.add_group("pattern", pattern_id), self.counts
        group.gauge("numMatches", partial(counts.matches.__getitem__, pattern_id))
        group.gauge("numPartialMatchesTimedOut", partial(counts.timed_out.__getitem__, pattern_id))
        group.gauge("numPartialMatchesDropped", partial(counts.dropped.__getitem__, pattern_id))


class DynamicRulesOperator(FixedRulesOperator, BroadcastInput):
    """A `FixedRulesOperator` whose second input, which is broadcast, has rules that change its patterns.

    Args:
        key_selector, rules, function, options, rejected_tag: as of `FixedRulesOperator`.
        declared: type of the events, against which conditions on columns are checked; None: unknown.
    """

    are_fixed = False

    def __init__(
        self,
        key_selector: UserCode,
        rules: Sequence[PatternRule],
        function: UserCode,
        options: MatchOptions,
        rejected_tag: str | None = None,
        declared: TypeInformation | None = None,
    ) -> None:
        super().__init__(key_selector, rules, function, options, rejected_tag)
        self._declared = declared

    def read_ahead(self, batch: Batch, input_index: int) -> None:
        if input_index != self.broadcast_input:
            super().read_ahead(batch, input_index)

    def process(self, batch: Batch, input_index: int) -> Iterator[Element]:
        if input_index != self.broadcast_input:
            return super().process(batch, input_index)
        out = OutputBuffer()
        return paced(self._change_rules(batch, out), out, self.ctx.clock)

    def on_event_time(self, until: int) -> Iterator[Element]:
        out = OutputBuffer()
        return paced(self._fire_between_changes(until, out), out, self.ctx.clock)

    def end_of_keys(self) -> Iterable[Element]:
        """Fire all timers of the keys so far; in batch mode the rules change for each key again, from the beginning."""
        book = RuleBook(dict(self.book.current), list(self.book.pending), self.book.disabled)
        rules, runs = dict(self._rules), self.runs
        self._replayed = {} if self._replayed is None else self._replayed
        if self.book.pending:  # what waits for the events behind a rule has timers, which would be refused below
            yield from self.on_event_time(self.book.pending[-1].timestamp)
        yield from super().end_of_keys()
        self.book, self._rules = book, rules
        self.keys_with.clear()
        self.set_runs(run for run in runs.values() if run.name not in book.disabled)

    def release(self, run: PatternRun) -> None:
        if self._replayed is None:
            super().release(run)
        else:
            self._rules.pop(run.name, None)

    def close(self) -> None:
        if self._replayed:
            self.set_runs({**self.runs, **{run.name: run for _, run in self._replayed.values() if run}}.values())
        super().close()

    def _fire_between_changes(self, until: int, out: OutputBuffer) -> Iterator[None]:
        if not self.options.is_processing_time:
            while (change := self.book.next_change()) is not None and change <= until:
                yield from self.fire(change - 1, out)
                for rule in self.book.take_due(change):
                    self._change(rule, out)
                self._write_rules()
                yield
        yield from self.fire(until, out)

    def _change_rules(self, batch: Batch, out: OutputBuffer) -> Iterator[None]:
        """Let rules take effect, now or at their times."""
        stamps: Iterable[int] = timestamps_of(batch) or repeat(MIN_TIMESTAMP)
        for rule, stamp in zip(list_of(batch), stamps, strict=False):
            waits = stamp > self.watermark and not self.options.is_processing_time
            if waits and isinstance(rule, PatternRule):
                self.book.wait(rule, stamp)
            else:
                self._change(rule, out)
            yield
        self._write_rules()

    def _change(self, record: UserRecord, out: OutputBuffer) -> None:
        """Let a rule take effect now, or reject it."""
        if isinstance(record, PatternRule):
            refusal, run = self.book.refusal(record), None
            if refusal is None and not record.removes:
                refusal, run = self._open_run(record)
            if refusal is None:
                self._take_effect(record, run)
                self._reject_without_effect(out)
                return
        else:
            refusal = f"found {shorten(record)}, wanted a PatternRule"
        if self.ctx.subtask == 0:  # all subtasks reject it
            self._reject(RejectedRule(record, refusal), out)

    def _open_run(self, rule: PatternRule) -> tuple[str | None, PatternRun | None]:
        """Return an automaton, ready to match events; or why that fails."""
        if self._replayed is None:
            return self._new_run(rule)
        if rule.name in self.book.disabled:
            return None, None
        if rule.name not in self._replayed:
            self._replayed[rule.name] = self._new_run(rule)
        return self._replayed[rule.name]

    def _new_run(self, rule: PatternRule) -> tuple[str | None, PatternRun | None]:
        try:
            run = self._run_of(rule)
            check_columns(run.automaton, self._declared)
        except MalformedPatternException as error:
            return str(error), None
        except UnreadableRule as error:
            return f"the pattern of {error.rule} cannot be read: {error.problem}", None
        try:
            run.open(self.runtime_context())
        except Exception as error:  # a user's open may raise anything
            return f"open of a condition of {rule!r} raised {described(error)}", None
        return None, run


__all__ = ["DynamicRulesOperator", "FixedRulesOperator", "RuleConflict"]
