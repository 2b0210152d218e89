"""Joins of streams whose rows come and go: each change of a side makes changes of the result.

A batch is of one side, so the rows of the other one do not change meanwhile: its changes are joined with them as
columns. The side that is in the result by itself where it has no partner (`join_changes.py`) stores with each row the
number of its partners.

Source: apache/flink StreamingJoinOperator, StreamingSemiAntiJoinOperator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rayflink.common.records.batches import ArrowBatch, Element
from rayflink.common.records.row_kinds import kinds_of, without_kinds

from ..changes import signs_of
from ..keyed_state.key_rows import take_rows
from .join_changes import JoinChanges, Probe
from .join_rows import JoinRows, JoinSpec
from .stored_side import SideState, StoredSide
from .stored_sides import StoredSidesOperator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

NAMES = ("left", "right")


@dataclass(frozen=True)
class StreamJoinSpec:
    """Specification of a join of streams.

    Args:
        join: which rows match, and the rows of the result.
        left, right: how the rows of the sides are stored.
        with_before: whether updates may be UPDATE_BEFORE and UPDATE_AFTER; otherwise the former are deletions.
    """

    join: JoinSpec
    left: SideState
    right: SideState
    with_before: bool = True


class StreamJoinOperator(StoredSidesOperator):
    """Joins rows of two changing inputs, which are partitioned by key.

    Args:
        spec: of the join.
    """

    def __init__(self, spec: StreamJoinSpec) -> None:
        join = spec.join
        rows, states = JoinRows(join), (spec.left, spec.right)
        sides = [StoredSide(side, state, join.nulls_match) for side, state in zip(join.sides, states, strict=True)]
        super().__init__(rows, sides, NAMES)
        self._changes = JoinChanges(join, rows, spec.with_before)

    def join(self, batch: ArrowBatch, index: int) -> Iterator[Element]:
        own, other = self.sides[index], self.sides[1 - index]
        kinds, rows = kinds_of(batch.data), without_kinds(batch.data)
        columns = own.state_columns(rows)
        can_match, signs = own.can_match(columns), signs_of(kinds, rows.num_rows)
        now_ms = int(self.ctx.clock.now_ms())
        probe = Probe(index, own.from_state(columns), signs, kinds, now_ms)
        yield from self._changes.of(probe, other, other.find(columns, can_match))
        matches = probe.matches if own.has_matches else None
        if can_match is not None:
            chosen = np.flatnonzero(can_match)
            columns, signs = take_rows(columns, chosen), signs[chosen]
            matches = None if matches is None else matches[chosen]
        own.rows.table.beside = other.rows.table.size
        own.rows.change(columns, signs, matches, now_ms)


__all__ = ["StreamJoinOperator", "StreamJoinSpec"]
