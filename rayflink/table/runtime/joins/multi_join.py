"""Joins of several changing inputs with a common key, which store the rows of the inputs and nothing else.

A batch is of one input, so the others do not change meanwhile. Its changes are joined with their stored rows, from the
first input to the last one: those before it give partial rows, the changes are joined with these, and the result with
the inputs behind it. Where a left join joins the input, a row before it leaves the result with nulls when its first
partner comes, and comes back when the last one goes; partners are counted in the state of the input.

Source: apache/flink StreamingMultiJoinOperator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from rayflink.common.records.batches import ArrowBatch, Element
from rayflink.common.records.row_kinds import kinds_of, with_kinds, without_kinds
from rayflink.common.types import RowKind

from ..changes import signs_of
from ..keyed_state.frame_memory import Columns
from ..keyed_state.key_rows import take_rows
from ..keyed_state.running_counts import running_counts
from ..keyed_state.runs import stable_order
from .join_pairs import BLOCK_PAIRS, Matches
from .multi_join_rows import MISSING, InputRows, MultiJoinRows, MultiJoinSpec, PartialRows, StepSpec
from .stored_side import StoredSide
from .stored_sides import StoredSidesOperator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Kinds = NDArray[np.int8]
    Truths = NDArray[np.bool_]

_INSERT, _BEFORE, _DELETE = RowKind.INSERT.value, RowKind.UPDATE_BEFORE.value, RowKind.DELETE.value
_FIRST, _PAIR, _LAST, _PHASES = 0, 1, 2, 4
"""Order of the changes that a row makes: what leaves the result, pairs, what comes back."""
_LEAST_LOOK, _MORE = 16, 8
"""Stored rows that are looked at for a partner at first, and how many times more each time that they are too few."""


@dataclass(frozen=True)
class _Probe:
    """The changes of an input in a batch.

    Args:
        input: its number.
        columns: of the rows, in the order of the side.
        signs: 1 for each row that comes, -1 for each that is taken back.
        kinds: of the changes of the result.
        matches: of each input the stored rows with the keys of these rows; of their own input: none.
        now_ms: processing time.
    """

    input: int
    columns: Columns
    signs: Numbers
    kinds: Kinds
    matches: tuple[Matches | None, ...]
    now_ms: int


_MOST = 1 << 62


class MultiJoinOperator(StoredSidesOperator):
    """Joins rows of several changing inputs, which are partitioned by their common key.

    Args:
        spec: of the join.
    """

    def __init__(self, spec: MultiJoinSpec) -> None:
        self._rows, self._with_before, self._has_left = MultiJoinRows(spec), spec.with_before, spec.has_left
        self._steps = (StepSpec(False), *spec.steps)
        sides = [
            StoredSide(side, state, (False,) * len(side.keys))
            for side, state in zip(spec.sides, spec.states, strict=True)
        ]  # fmt: skip
        super().__init__(self._rows, sides, [f"input {number}" for number in range(len(sides))])

    def join(self, batch: ArrowBatch, number: int) -> Iterator[Element]:
        own = self.sides[number]
        kinds, rows = kinds_of(batch.data), without_kinds(batch.data)
        columns, signs = own.state_columns(rows), signs_of(kinds, rows.num_rows)
        result_kinds = self._kinds(signs, kinds)
        can_match = own.can_match(columns)
        if can_match is not None and number:  # they are in no result
            chosen = np.flatnonzero(can_match)
            columns, signs, result_kinds = take_rows(columns, chosen), signs[chosen], result_kinds[chosen]
            can_match = None
        matches = tuple(
            None if other is own else other.find(columns, can_match) for other in self.sides
        )  # fmt: skip
        probe = _Probe(number, own.from_state(columns), signs, result_kinds, matches, int(self.ctx.clock.now_ms()))
        own.rows.table.beside = sum(other.rows.table.size for other in self.sides if other is not own)
        if not (number and self._steps[number].is_left):
            whole = range(len(signs))
            yield from self._inner(probe, whole)
            self._store(own, columns, probe, whole, can_match)
            return
        for part in _parts(probe):
            yield from self._left(probe, part, columns)
            self._store(own, columns, probe, part, None)

    def _kinds(self, signs: Numbers, kinds: Kinds | None) -> Kinds:
        """Return the kinds of changes of the result: updates are those of an inner join alone."""
        if self._has_left:
            plain: Kinds = np.where(signs > 0, np.int8(_INSERT), np.int8(_DELETE))
            return plain
        own = np.zeros(len(signs), dtype=np.int8) if kinds is None else kinds
        return own if self._with_before else np.where(own == _BEFORE, np.int8(_DELETE), own)

    def _store(self, own: StoredSide, columns: Columns, probe: _Probe, part: range, can_match: Truths | None) -> None:
        signs = probe.signs[part.start : part.stop]
        rows = [column.slice(part.start, len(part)) for column in columns]
        if can_match is not None:
            chosen = np.flatnonzero(can_match[part.start : part.stop])
            rows, signs = take_rows(rows, chosen), signs[chosen]
        own.rows.change(rows, signs, None, probe.now_ms)

    # joins

    def _inner(self, probe: _Probe, part: range) -> Iterator[ArrowBatch]:
        """Yield the changes of the result where each change of the input is one of the rows up to it."""
        step = self._steps[probe.input]
        for partial in self._before(probe, part):
            pairs = self._with_changes(partial, probe, step)
            yield from self._results(pairs, probe)

    def _left(self, probe: _Probe, part: range, columns: Columns) -> Iterator[ArrowBatch]:
        """Yield the changes of the result where rows before the input may be there without one of it."""
        own, step = self.sides[probe.input], self._steps[probe.input]
        rows = [column.slice(part.start, len(part)) for column in columns]
        effects = own.rows.effects(rows, probe.signs[part.start : part.stop], probe.now_ms)
        partners = own.find(rows, None)
        for partial in self._before(probe, part):
            pairs = self._with_changes(partial, probe, step)
            if len(pairs):
                yield from self._results(self._events(pairs, probe, part.start, effects, partners), probe)

    def _before(self, probe: _Probe, part: range) -> Iterator[PartialRows]:
        """Yield the rows of the inputs before that of the changes, for each of these."""
        changes = np.arange(part.start, part.stop)
        yield from self._joined(PartialRows((), changes, probe.kinds[part.start : part.stop]), probe, probe.input)

    def _with_changes(self, partial: PartialRows, probe: _Probe, step: StepSpec) -> PartialRows:
        """Return partial rows with the changes from which they come, as far as they match."""
        partial = partial.where(partial.has(step.required))
        pairs = partial.beside(InputRows(probe.columns, partial.probe, np.full(len(partial), MISSING)))
        return pairs.where(self._rows.fulfilling(pairs, step.condition))

    def _results(self, partial: PartialRows, probe: _Probe) -> Iterator[ArrowBatch]:
        """Yield changes of the result, from rows up to the input that changes."""
        for whole in self._joined(partial, probe, len(self.sides)):
            rows = whole.repeated()
            batch = self._rows.batch(rows)
            yield ArrowBatch(with_kinds(batch, rows.kinds) if rows.kinds.any() else batch)

    def _joined(self, partial: PartialRows, probe: _Probe, stop: int) -> Iterator[PartialRows]:
        """Yield partial rows with the stored rows of further inputs, up to that of this number."""
        if not len(partial):
            return
        if len(partial.inputs) == stop:
            yield partial
            return
        for wider in self._next_input(partial, probe):
            yield from self._joined(wider, probe, stop)

    def _next_input(self, partial: PartialRows, probe: _Probe) -> Iterator[PartialRows]:
        """Yield partial rows with the stored rows of the next input: in one part if there are no more than a block."""
        number = len(partial.inputs)
        step, matches = self._steps[number], cast("Matches", probe.matches[number])
        matches = _of_partial(matches, partial, partial.has(step.required))
        has_partner = np.zeros(len(partial), dtype=np.bool_)
        done, left = 0, int(matches.count.sum())
        for rows, stored in matches.pairs(BLOCK_PAIRS):
            left -= len(rows)
            stop = int(rows[-1]) if left else len(partial)  # the last one may have more pairs
            pairs, chosen = self._pairs(partial, number, rows, stored, probe.now_ms)
            if not step.is_left:
                yield pairs
                continue
            has_partner[chosen] = True
            alone = done + np.flatnonzero(~has_partner[done:stop])
            done = stop
            yield _with_missing(partial, pairs, chosen, alone)
        if step.is_left and done < len(partial):
            rest = partial.take(done + np.flatnonzero(~has_partner[done:]))
            missing = np.full(len(rest), MISSING)
            yield rest.beside(InputRows(self.sides[number].no_rows(), missing, missing))

    def _pairs(
        self, partial: PartialRows, number: int, rows: Numbers, stored: Numbers, now_ms: int
    ) -> tuple[PartialRows, Numbers]:
        """Return partial rows with stored rows, as far as they match, and which of the former these are."""
        side = self.sides[number]
        is_over = side.rows.is_over(stored, now_ms)
        if is_over.any():
            rows, stored = rows[~is_over], stored[~is_over]
        further = InputRows(side.take(stored), np.arange(len(stored)), stored)
        pairs = partial.take(rows).beside(further, side.rows.counts(stored))
        mask = self._rows.fulfilling(pairs, self._steps[number].condition)
        return pairs.where(mask), rows if mask is None else rows[mask]

    # left joins

    def _events(
        self, pairs: PartialRows, probe: _Probe, start: int, effects: Numbers, partners: Matches
    ) -> PartialRows:
        """Return pairs, and rows without a partner that leave the result before them, or come back after them.

        Args:
            pairs: rows up to the input, with its changes.
            start: the first of the changes.
            effects: what each change from there on does to the number of stored rows.
            partners: the stored rows of the input with the keys of these changes.
        """
        codes, firsts = _distinct([rows.stored for rows in pairs.inputs[:-1]])
        most = np.bincount(codes, minlength=len(firsts)) + 1
        before = self._partners(pairs.take(firsts), probe, start, partners, most)
        own_effects = effects[pairs.probe - start]
        after = running_counts(codes, own_effects, before).after
        leaving = np.flatnonzero((own_effects > 0) & (after == 1))
        coming = np.flatnonzero((probe.signs[pairs.probe] < 0) & (after == 0))
        chosen = np.concatenate([leaving, np.arange(len(pairs)), coming])
        phases = np.repeat([_FIRST, _PAIR, _LAST], [len(leaving), len(pairs), len(coming)])
        order = stable_order(pairs.probe[chosen] * _PHASES + phases)
        events, phases = pairs.take(chosen[order]), phases[order]
        changes = events.inputs[-1]
        missing = replace(changes, places=np.where(phases == _PAIR, changes.places, MISSING))
        kinds = np.where(phases == _FIRST, _DELETE, np.where(phases == _LAST, _INSERT, events.kinds))
        return replace(events, inputs=(*events.inputs[:-1], missing), kinds=kinds.astype(np.int8))

    def _partners(
        self, rows: PartialRows, probe: _Probe, start: int, partners: Matches, most: Numbers
    ) -> Numbers:  # fmt: skip
        """Return how many stored rows of the input that changes match partial rows, or no fewer than `most` of them."""
        number, before = probe.input, replace(rows, inputs=rows.inputs[:-1], times=None)
        side, changes = self.sides[number], rows.probe - start
        first, count = partners.first[changes], partners.count[changes]
        if self._steps[number].condition is not None:

            def matching(which: Numbers, stored: Numbers) -> tuple[Numbers, Numbers | None]:
                pairs, chosen = self._pairs(before, number, which, stored, probe.now_ms)
                return chosen, pairs.times

            return _counted(Matches(partners.order, first, count), most, matching)
        if side.is_each_row_once:
            return count

        def present(which: Numbers, stored: Numbers) -> tuple[Numbers, Numbers | None]:
            is_known = ~side.rows.is_over(stored, probe.now_ms)
            return which[is_known], side.rows.counts(stored[is_known])

        _, firsts, keys = np.unique(np.where(count > 0, first, MISSING), return_index=True, return_inverse=True)
        most_of_keys = np.zeros(len(firsts), dtype=np.int64)
        np.maximum.at(most_of_keys, keys, most)
        return _counted(Matches(partners.order, first[firsts], count[firsts]), most_of_keys, present)[keys]


def _counted(
    matches: Matches, most: Numbers, matching: Callable[[Numbers, Numbers], tuple[Numbers, Numbers | None]]
) -> Numbers:
    """Return how many stored rows match each row, or no fewer than `most`, without looking at many more.

    Args:
        matches: stored rows that may match.
        matching: returns of pairs the rows that match, and how often each pair is there; None: once.
    """
    counts = np.zeros(len(most), dtype=np.int64)
    open_rows, offset, look = np.arange(len(most)), 0, max(_LEAST_LOOK, int(most.max(initial=0)))
    while len(open_rows):
        looked = np.minimum(matches.count[open_rows] - offset, look)
        for chosen, stored in Matches(matches.order, matches.first[open_rows] + offset, looked).pairs(BLOCK_PAIRS):
            which, times = matching(open_rows[chosen], stored)
            np.add.at(counts, which, 1 if times is None else times)
        offset, look = offset + look, look * _MORE
        open_rows = open_rows[(counts[open_rows] < most[open_rows]) & (matches.count[open_rows] > offset)]
    return counts


def _distinct(columns: Sequence[Numbers]) -> tuple[Numbers, Numbers]:
    """Return the number of the distinct row that each row is equal to, and the first row that is equal to each.

    Args:
        columns: of the rows, numbers from MISSING on.
    """
    codes, width = columns[0] - MISSING, int(columns[0].max()) - MISSING + 1
    for numbers in columns[1:]:
        span = int(numbers.max()) - MISSING + 1
        if width * span > _MOST:
            codes = np.unique(codes, return_inverse=True)[1]
            width = int(codes.max()) + 1
        codes, width = codes * span + numbers - MISSING, width * span
    _, firsts, codes = np.unique(codes, return_index=True, return_inverse=True)
    return codes, firsts


def _of_partial(matches: Matches, partial: PartialRows, can_match: Truths | None) -> Matches:
    """Return the matches of the changes from which partial rows come.

    Args:
        can_match: which partial rows may match; None: all.
    """
    count = matches.count[partial.probe]
    return Matches(
        matches.order, matches.first[partial.probe], count if can_match is None else np.where(can_match, count, 0)
    )


def _with_missing(partial: PartialRows, pairs: PartialRows, chosen: Numbers, alone: Numbers) -> PartialRows:
    """Return partial rows with a further input, and those without a partner, in their order.

    Args:
        pairs: those with a partner.
        chosen: which of the partial rows these are.
        alone: the others.
    """
    if not len(alone):
        return pairs
    missing = np.full(len(alone), MISSING)
    order = stable_order(np.concatenate([chosen, alone]))
    further = pairs.inputs[-1]
    places, stored = (np.concatenate([numbers, missing])[order] for numbers in (further.places, further.stored))
    both = partial.take(np.concatenate([chosen, alone])[order]).beside(InputRows(further.columns, places, stored))
    if pairs.times is None:
        return both
    single = np.ones(len(alone), dtype=np.int64) if partial.times is None else partial.times[alone]
    return replace(both, times=np.concatenate([pairs.times, single])[order])


def _parts(probe: _Probe) -> Iterator[range]:
    """Yield ranges of changes, whose partial rows before their input are no more than a block, or of one change."""
    weights = np.ones(len(probe.signs))
    for number in range(probe.input):
        count = cast("Matches", probe.matches[number]).count
        weights *= np.maximum(count, 1) if number else count
    totals, start = np.cumsum(weights), 0
    while start < len(weights):
        most = (totals[start - 1] if start else 0.0) + BLOCK_PAIRS
        stop = max(int(np.searchsorted(totals, most, side="right")), start + 1)
        yield range(start, stop)
        start = stop


__all__ = ["MultiJoinOperator", "MultiJoinSpec"]
