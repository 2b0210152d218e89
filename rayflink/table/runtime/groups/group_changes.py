"""Rows of a stream that change the results of their groups, and the changes of these results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.common.records.row_kinds import kinds_of, without_kinds

from ..aggregates.aggregates import Aggregate
from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import to_arrow, to_numpy
from ..keyed_state.frame_memory import Columns
from ..keyed_state.key_rows import take_rows
from ..keyed_state.record_layout import KEY_HEAP
from .group_accumulators import GroupAccumulators
from .group_rows import DistinctArgument, signs_of
from .overflow_table import BatchGroups
from .result_changes import ResultChanges, Shown
from .running_sums import GroupRows, RunningValue
from .segments import Segments, first_of_runs
from .sequence_overflow import SequenceOverflow
from .table_state import FoundKeys, TableState
from .user_views import UserViews
from .value_overflow import ValueOverflow

if TYPE_CHECKING:
    from .segments import Numbers, Truths

_LISTED_ROWS = 512
"""Rows that are worked together where each result contains all values of its group."""


@dataclass(frozen=True)
class GroupSpec:
    """The groups of a stream, and what is computed of them.

    Args:
        columns: types of the input's columns.
        keys: numbers of the columns to group by; none: all rows are one group.
        aggregates: may be none; then a group is shown when it comes and when it goes.
        ttl_ms: how long a group is known whose rows do not come; 0: for ever.
        retracts: whether rows may be taken back.
        with_before: whether an update includes the row before.
        state_identity: which rows of the query the state belongs to.
    """

    columns: tuple[pa.DataType, ...]
    keys: tuple[int, ...]
    aggregates: tuple[Aggregate, ...]
    ttl_ms: int = 0
    retracts: bool = False
    with_before: bool = True
    state_identity: str = ""


def distinct_arguments(spec: GroupSpec) -> list[list[DistinctArgument]]:
    """Return the arguments of DISTINCT aggregates, those of the same values together.

    Behind the columns of rows come the weights of these arguments, in this order.
    """
    arguments = GroupAccumulators(spec.aggregates, spec.columns, spec.retracts).distinct
    return [list(alike) for _, alike in groupby(arguments, lambda argument: (argument.column, argument.keeps_nulls))]


class GroupChanges:
    """Adds rows to their groups, and computes the changes of the results.

    Without `is_folded` each row is worked by itself, as in Flink without mini-batches: a result that is replaced within
    a batch is shown. A group is forgotten when its last row is taken back. A row that is taken back from a group that
    is not known is dropped: the group has expired.

    Args:
        spec: what is computed.
        schema: of the result: keys, then aggregates.
        is_folded: the changes of a group in a batch are one.
    """

    def __init__(self, spec: GroupSpec, schema: pa.Schema, is_folded: bool) -> None:
        self._spec, self._is_folded = spec, is_folded
        self._changes = ResultChanges(schema, spec.ttl_ms > 0, spec.with_before)
        self._accumulators = accumulators = GroupAccumulators(spec.aggregates, spec.columns, spec.retracts)
        kinds = [spec.columns[key] for key in spec.keys]
        self.state = state_of_groups(kinds, accumulators, spec)
        partition = self.state.partition_types
        values = [ValueOverflow(slot, partition, kind) for slot, kind in accumulators.extremes.items()]
        sequences = [SequenceOverflow(slot, partition, kind) for slot, kind in accumulators.earliest.items()]
        views = [UserViews(slot, partition) for slot in accumulators.users]
        self._overflows: dict[RunningValue, ValueOverflow | SequenceOverflow | UserViews] = {
            **dict(zip(accumulators.users, views, strict=True)),
            **dict(zip(accumulators.extremes, values, strict=True)),
            **dict(zip(accumulators.earliest, sequences, strict=True)),
        }
        self.state.put_beside({f"values {number}": overflow.table for number, overflow in enumerate(values)})
        self.state.put_beside({f"views {number}": overflow.table for number, overflow in enumerate(views)})
        self.state.put_beside({f"sequence {number}": overflow.table for number, overflow in enumerate(sequences)})
        self.state.table.expiring = self._forget

    def _forget(self, rows: Numbers) -> None:
        """Forget the values of groups that expire beyond those that are stored with the group."""
        if self._overflows and any(len(overflow.table) for overflow in self._overflows.values()):
            table = self.state.table
            records = table.records.take(rows)
            keys = table.comparable(table.keys_of(records, lambda _: table.key_heap.take(records[KEY_HEAP])))
            for overflow in self._overflows.values():
                overflow.forget(keys)

    def _run(
        self, groups: BatchGroups, slot: RunningValue, base: Columns, rows: GroupRows
    ) -> tuple[Columns, Columns]:  # fmt: skip
        overflow = self._overflows.get(slot)
        return slot.run(base, rows) if overflow is None else overflow.run(base, rows, groups)

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the changes that rows make, in their order."""
        kinds, rows = kinds_of(batch), without_kinds(batch)
        weights = signs_of(kinds, rows.num_rows)
        step = rows.num_rows
        if self._accumulators.is_listed and not self._is_folded:
            step = _LISTED_ROWS
        for first in range(0, rows.num_rows, max(step, 1)):
            changes = self._add(rows.slice(first, step), weights[first : first + step])
            if changes.num_rows:
                yield changes

    def _add(self, rows: pa.RecordBatch, weights: Numbers) -> pa.RecordBatch:
        now_ms = self.state.now_ms
        keys = self.state.keys_of([rows.column(key) for key in self._spec.keys], rows.num_rows)
        groups = self.state.find(keys, rows.num_rows, now_ms)
        order = np.argsort(groups.codes, kind="stable")
        codes, weights = groups.codes[order], weights[order]
        is_first = first_of_runs(codes)
        running = np.zeros(len(groups.rows), dtype=np.int64)
        running[groups.rows >= 0] = to_numpy(groups.stored[0])
        if self._spec.retracts:
            weights, counts, is_new = _counted(weights, Segments(is_first), running[codes[is_first]])
            segments = Segments(is_new)
        else:
            segments = Segments(is_first)
            counts = segments.sums(weights, running[codes[is_first]])
        has_base = is_first[segments.starts] & (groups.rows[codes[segments.starts]] >= 0)
        base = stored_before(groups, codes[segments.starts], has_base)[1:]
        sorted_rows = rows.take(pa.array(order))
        begins, ends = np.flatnonzero(is_first), np.flatnonzero(np.append(is_first[1:], True))  # rows of each group
        first_segments, last_segments = segments.codes[begins], segments.codes[ends]
        is_emptied, is_left = np.minimum.reduceat(counts, begins) == 0, counts[ends] > 0
        run = partial(self._run, BatchGroups(groups.keys, first_segments, last_segments, is_emptied, is_left, now_ms))
        results, state = self._accumulators.run(base, sorted_rows, weights, segments, self._is_folded, run)
        places = np.empty(len(ends), dtype=np.int64)
        places[codes[ends]] = np.arange(len(ends))
        final = [column.take(pa.array(last_segments[places])) for column in state]
        left = counts[ends][places]
        if self._overflows:
            self.state.share_memory()
        self.state.store(groups, left > 0, [to_arrow(left, pa.int64()), *final], now_ms)
        earlier = self._accumulators.results(base)
        if self._is_folded:
            shown = Shown(take_rows(results, last_segments), take_rows(earlier, first_segments),
                           counts[ends] > 0, has_base[first_segments], order[begins])  # fmt: skip
        else:
            shown = _each_row(results, earlier, counts > 0, has_base, segments, order)
        return self._changes.of([rows.column(key) for key in self._spec.keys], shown)


def _each_row(
    results: Columns, earlier: Columns, has_result: Truths, has_base: Truths, segments: Segments, order: Numbers
) -> Shown:
    """Return the results behind each row, and those of the row before it or of the state."""
    count = segments.rows
    previous = np.arange(count) - 1
    previous[segments.starts] = count + np.arange(len(segments))
    has_before = np.ones(count, dtype=np.bool_)
    has_before[segments.starts] = has_base
    both = concatenated([results, earlier]) if results else []
    return Shown(results, take_rows(both, previous), has_result, has_before, order)


def state_of_groups(keys: Sequence[pa.DataType], accumulators: GroupAccumulators, spec: GroupSpec) -> TableState:
    """Return the state of groups: by key the number of rows, and the accumulators."""
    about = f"groups of {accumulators.describe()}: {spec.state_identity}"
    return TableState(keys, [], [pa.int64(), *accumulators.types], spec.ttl_ms, about)


def _counted(weights: Numbers, groups: Segments, before: Numbers) -> tuple[Numbers, Numbers, Truths]:
    """Return the weights of rows, the number of rows of the group behind each, and which rows begin a group anew.

    A row that is taken back from an empty group is dropped: its weight is 0. A group begins anew behind
    the row that emptied it.
    """
    totals = groups.sums(weights, before)
    least = groups.accumulated(np.minimum, totals, np.zeros(len(groups), dtype=np.int64))
    previous = np.append(0, least[:-1])
    previous[groups.starts] = 0
    is_dropped = least < previous
    counts = totals - least
    is_new = np.append(True, counts[:-1] == 0)
    is_new[groups.starts] = True
    return np.where(is_dropped, 0, weights), counts, is_new


def stored_before(groups: FoundKeys, wanted: Numbers, has_base: Truths) -> Columns:
    """Return what is stored of some groups, nulls where nothing is."""
    numbers = np.cumsum(groups.rows >= 0) - 1
    places = np.where(has_base, numbers[wanted], 0)
    return [column.take(pa.array(places, mask=~has_base)) for column in groups.stored]


__all__ = ["GroupChanges", "GroupSpec", "distinct_arguments", "state_of_groups", "stored_before"]
