"""The changes of a join's result that the changes of one side make.

Rows of an outer side without a partner are in the result with nulls, those of an ANTI join as they are. When a first
partner comes to a stored one, it leaves the result before the pair comes; when the last one goes, it comes back after
the pair has left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch
from rayflink.common.records.row_kinds import with_kinds
from rayflink.common.types import RowKind

from ...plan.joins import JoinKind
from ..keyed_state.frame_memory import Columns
from ..keyed_state.runs import first_of_runs, stable_order
from .join_pairs import BLOCK_PAIRS, Matches
from .join_rows import JoinRows, JoinSpec
from .stored_side import StoredSide

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Kinds = NDArray[np.int8]

_INSERT, _BEFORE, _DELETE = RowKind.INSERT.value, RowKind.UPDATE_BEFORE.value, RowKind.DELETE.value
_FIRST, _PAIR, _LAST, _PHASES = 0, 1, 2, 4
"""Order of the changes of a row: what leaves the result, pairs and the row by itself, what comes back."""


@dataclass
class Probe:
    """The changes of a side in a batch.

    Args:
        side: its number.
        columns: of the rows, in the order of the side.
        signs: 1 for each row that comes, -1 for each that is taken back.
        kinds: of the rows; None: all come.
        now_ms: processing time.
    """

    side: int
    columns: Columns
    signs: Numbers
    kinds: Kinds | None
    now_ms: int
    matches: Numbers = field(init=False)
    """The number of partners of each row, as far as they were looked for."""

    def __post_init__(self) -> None:
        self.matches = np.zeros(len(self.signs), dtype=np.int64)

    @property
    def own_kinds(self) -> Kinds:
        """Return the kinds of the rows: int8[n]."""
        return np.zeros(len(self.signs), dtype=np.int8) if self.kinds is None else self.kinds

    @property
    def plain_kinds(self) -> Kinds:
        """Return +I and -D in place of updates."""
        kinds: Kinds = np.where(self.signs > 0, np.int8(_INSERT), np.int8(_DELETE))
        return kinds


@dataclass(frozen=True)
class _Events:
    """Changes of the result.

    Args:
        rows: of the probe, by which changes are ordered.
        phases: order of the changes of one row.
        own: the row of the probe that is in the change; -1: none is.
        other: the row of the other side that is in it, a number of a pair; -1: none is.
        kinds: of the changes.
    """

    rows: Numbers
    phases: Numbers
    own: Numbers
    other: Numbers
    kinds: Kinds

    @staticmethod
    def of(rows: Numbers, phase: int, own: Numbers | None, other: Numbers | None, kinds: Kinds) -> _Events:
        """Return changes of one phase."""
        none = np.full(len(rows), -1, dtype=np.int64)
        phases = np.full(len(rows), phase, dtype=np.int64)
        return _Events(rows, phases, none if own is None else own, none if other is None else other, kinds)

    @staticmethod
    def merged(parts: list[_Events]) -> _Events:
        """Return all changes in their order."""
        columns = [
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("rows", "phases", "own", "other", "kinds")
        ]
        order = stable_order(columns[0] * _PHASES + columns[1])
        return _Events(*(column[order] for column in columns))


class JoinChanges:
    """Computes the changes of a join's result.

    Args:
        spec: of the join.
        rows: evaluates its condition.
        with_before: whether updates may be UPDATE_BEFORE and UPDATE_AFTER.
    """

    def __init__(self, spec: JoinSpec, rows: JoinRows, with_before: bool) -> None:
        self._kind, self._rows, self._result, self._with_before = spec.kind, rows, spec.result, with_before
        self._is_outer = spec.kind.keeps_left, spec.kind.keeps_right
        width = len(spec.left.schema)
        self._types = self._result.types[:width], self._result.types[width:]

    def of(self, probe: Probe, other: StoredSide, matches: Matches) -> Iterator[ArrowBatch]:
        """Yield the changes, and set the numbers of partners of the probe.

        Args:
            other: the side that does not change, but for the numbers of its partners.
            matches: its rows with the keys of the probe.
        """
        done = 0
        for rows, stored in matches.pairs(BLOCK_PAIRS):
            is_over = other.rows.is_over(stored, probe.now_ms)
            if is_over.any():
                rows, stored = rows[~is_over], stored[~is_over]
            taken = other.take(stored)
            rows, places = self._matching(probe, taken, rows)
            counts = other.rows.counts(stored[places])
            if self._kind is not JoinKind.INNER:
                np.add.at(probe.matches, rows, 1 if counts is None else counts)
            events = self._pair_events(probe, rows, places, counts)
            if other.has_matches and len(rows):
                events += self._partner_events(probe, other, rows, places, stored[places], counts)
            if len(rows):
                stop = int(rows[-1])  # it may have more pairs
                events.append(self._alone(probe, done, stop))
                done = stop
            yield from self._emitted(probe, taken, events)
        yield from self._emitted(probe, None, [self._alone(probe, done, len(probe.signs))])

    def _matching(self, probe: Probe, taken: Columns, rows: NDArray[np.intp]) -> tuple[Numbers, Numbers]:
        """Return the pairs for which the condition is true: rows of the probe, and places in what was taken."""
        places = np.arange(len(rows))
        if probe.side == 0:
            return self._rows.matching(probe.columns, taken, (rows, places))
        taken_places, own = self._rows.matching(taken, probe.columns, (places, rows))
        return own, taken_places

    def _pair_events(self, probe: Probe, rows: Numbers, places: Numbers, counts: Numbers | None) -> list[_Events]:
        """Return the changes of pairs, each as often as there are equal rows."""
        if self._kind.is_of_left:
            return []
        kinds = probe.own_kinds if self._kind is JoinKind.INNER else self._kinds_of_pairs(probe)
        if counts is not None and (counts != 1).any():
            rows, places = np.repeat(rows, counts), np.repeat(places, counts)
        return [_Events.of(rows, _PAIR, rows, places, kinds[rows])]

    def _kinds_of_pairs(self, probe: Probe) -> Kinds:
        """Return the kinds of the pairs of each row: only a row that goes keeps its kind, and of an inner side."""
        plain = probe.plain_kinds
        return plain if self._is_outer[probe.side] else np.where(probe.signs > 0, plain, probe.own_kinds)

    def _partner_events(
        self, probe: Probe, other: StoredSide, rows: Numbers, places: Numbers, stored: Numbers, counts: Numbers | None
    ) -> list[_Events]:
        """Count the partners of stored rows, and return the changes of those that get a first, or lose the last."""
        order = stable_order(stored)
        ordered, signs = stored[order], probe.signs[rows][order]
        is_first = first_of_runs(ordered)
        starts, sums = np.flatnonzero(is_first), np.cumsum(signs)
        before = sums[starts] - signs[starts]
        after = sums + (other.rows.matches(ordered[starts]) - before)[np.cumsum(is_first) - 1]
        other.rows.put_matches(ordered[starts], after[np.append(starts[1:], len(after)) - 1], probe.now_ms)
        events: list[_Events] = []
        for sign, is_change in ((1, (signs > 0) & (after == 1)), (-1, (signs < 0) & (after == 0))):
            chosen = np.sort(order[is_change])
            if not len(chosen):
                continue
            if counts is not None:
                chosen = np.repeat(chosen, counts[chosen])
            own = rows[chosen]
            kinds, phase = self._kinds_of_partners(probe, own, sign)
            events.append(_Events.of(own, phase, None, places[chosen], kinds))
        return events

    def _kinds_of_partners(self, probe: Probe, rows: Numbers, sign: int) -> tuple[Kinds, int]:
        """Return the kinds of stored rows by themselves, and their place among the changes of a row.

        Args:
            rows: of the probe, each of which is the first partner, or was the last one.
            sign: 1: the first ones came; -1: the last ones went.
        """
        if self._kind is JoinKind.SEMI:
            return probe.own_kinds[rows], _PAIR
        kind, phase = (_DELETE, _FIRST) if sign > 0 else (_INSERT, _LAST)
        return np.full(len(rows), kind, dtype=np.int8), phase

    def _alone(self, probe: Probe, start: int, stop: int) -> _Events:
        """Return the changes of rows [start, stop) of the probe by themselves; all their partners are known."""
        rows = np.arange(start, stop)
        if self._kind is JoinKind.SEMI and probe.side == 0:
            rows = rows[probe.matches[start:stop] > 0]
        elif self._is_outer[probe.side] or (self._kind is JoinKind.ANTI and probe.side == 0):
            rows = rows[probe.matches[start:stop] == 0]
        else:
            rows = rows[:0]
        kinds = probe.own_kinds if self._kind.is_of_left else probe.plain_kinds
        return _Events.of(rows, _PAIR, rows, None, kinds[rows])

    def _emitted(self, probe: Probe, taken: Columns | None, parts: list[_Events]) -> Iterator[ArrowBatch]:
        """Yield changes as a batch.

        Args:
            taken: columns of the other side; None: no change has any.
        """
        parts = [part for part in parts if len(part.rows)]
        if not parts:
            return
        events = parts[0] if len(parts) == 1 else _Events.merged(parts)
        sides = ((probe.columns, events.own), (taken, events.other))
        columns = self._columns(sides if probe.side == 0 else sides[::-1])
        batch = pa.RecordBatch.from_arrays(columns, schema=self._result)
        kinds = events.kinds
        if not self._with_before:
            kinds = np.where(kinds == _BEFORE, np.int8(_DELETE), kinds)
        yield ArrowBatch(with_kinds(batch, kinds) if kinds.any() else batch)

    def _columns(self, sides: Sequence[tuple[Columns | None, Numbers]]) -> Columns:
        """Return the columns of the result, of rows of the left and the right side, null where there is none."""
        columns: Columns = []
        for (source, rows), kinds in zip(sides, self._types, strict=True):
            is_missing = rows < 0
            if source is None or is_missing.all():
                columns += [pa.nulls(len(rows), kind) for kind in kinds]
                continue
            chosen = pa.array(rows, mask=is_missing) if is_missing.any() else pa.array(rows)
            columns += [column.take(chosen) for column in source[: len(kinds)]]
        return columns


__all__ = ["JoinChanges", "Probe"]
