"""The accumulators of the aggregates of groups, as columns of the state, and the results that they give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..aggregates.aggregate_results import accumulators, result
from ..aggregates.aggregates import MOMENTS, Aggregate, AggregateKind
from ..aggregates.reductions import to_numpy
from ..keyed_state.frame_memory import Columns
from .group_rows import Argument, DistinctArgument, counting_weights
from .present_values import (
    PresentEarliest,
    PresentExtreme,
    RunningBag,
    RunningList,
    RunningListWithNulls,
    RunningWeights,
)
from .running_choices import RunningEarliest, RunningExtreme
from .running_sums import GroupRows, RunningCount, RunningMoments, RunningSum, RunningValue, Stepwise
from .running_user_aggregates import RunningUserAggregate, RunningUserColumns
from .segments import Segments

if TYPE_CHECKING:
    from .segments import Numbers

Run = Callable[[RunningValue, Columns, GroupRows], tuple[Columns, Columns]]
"""Returns what `RunningValue.run` does."""

_LISTS: dict[AggregateKind, type[RunningBag | RunningList]] = {
    AggregateKind.ARRAY_AGG: RunningListWithNulls, AggregateKind.LISTAGG: RunningList,
    AggregateKind.COLLECT: RunningBag, AggregateKind.PERCENTILE: RunningWeights,
}  # fmt: skip


def _accumulator(aggregate: Aggregate, retracts: bool) -> RunningValue:
    """Return the accumulator of an aggregate other than COUNT."""
    kind, argument, filter_ = aggregate.kind, aggregate.argument, aggregate.filter
    if kind in (AggregateKind.MIN, AggregateKind.MAX):
        extreme = PresentExtreme if retracts else RunningExtreme
        return extreme(argument, filter_, False, retracts, kind is AggregateKind.MAX)
    distinct = aggregate.distinct
    if aggregate.user is not None:
        running = RunningUserColumns if aggregate.user.kernel.takes_columns else RunningUserAggregate
        return running(argument, filter_, distinct, retracts, aggregate.user)
    if kind in (AggregateKind.FIRST_VALUE, AggregateKind.LAST_VALUE):
        earliest = PresentEarliest if retracts else RunningEarliest
        return earliest(argument, filter_, distinct and retracts, retracts, kind is AggregateKind.LAST_VALUE)
    if kind is AggregateKind.COUNT:
        return RunningCount(argument, filter_, distinct, retracts)
    if kind in (AggregateKind.SUM, AggregateKind.AVG):
        return RunningSum(argument, filter_, distinct, retracts)
    if kind in MOMENTS:
        return RunningMoments(argument, filter_, distinct, retracts)
    return _LISTS[kind](argument, filter_, distinct, retracts)


class GroupAccumulators:
    """The accumulators of aggregates side by side; equal ones are one.

    Args:
        aggregates: what is computed.
        columns: types of the input's columns.
        retracts: whether rows may be taken back.
    """

    def __init__(self, aggregates: Sequence[Aggregate], columns: Sequence[pa.DataType], retracts: bool) -> None:
        self._aggregates = [(replace(aggregate, distinct=False), _accumulator(aggregate, retracts))
                            for aggregate in aggregates]  # fmt: skip
        self._width = len(columns)
        self._slots = list(dict.fromkeys(slot for _, slot in self._aggregates))
        kinds = [slot.types(None if slot.argument is None else columns[slot.argument]) for slot in self._slots]
        bounds = accumulate((len(kind) for kind in kinds), initial=0)
        self._spans = dict(zip(self._slots, pairwise(bounds), strict=True))
        self.types: list[pa.DataType] = [kind for slot in kinds for kind in slot]
        """The types of the columns of the state."""
        arguments = dict.fromkeys(_distinct_argument(slot) for slot in self._slots if slot.is_distinct)
        places = {value: place for place, value in enumerate(dict.fromkeys(map(_value_of, arguments)))}
        self.distinct = sorted(arguments, key=lambda argument: places[_value_of(argument)])
        """The values that are counted once, those of a column together; weights are further columns of the rows."""
        self.is_listed = any(slot.is_listed for slot in self._slots)
        """True if a result contains all values of a group."""
        self.merges = all(isinstance(slot, Stepwise) for slot in self._slots)
        """True if states of parts of the rows can be merged."""

    def describe(self) -> str:
        """Describe the accumulators without column numbers, which differ between plans."""
        return ", ".join(slot.describe() for slot in self._slots) or "nothing"

    @property
    def users(self) -> list[RunningUserAggregate]:
        """Return the accumulators of the user's own functions."""
        return [slot for slot in self._slots if isinstance(slot, RunningUserAggregate)]

    @property
    def extremes(self) -> dict[PresentExtreme, pa.DataType]:
        """Return the accumulators of the least and greatest values that may be taken back, and the values' types."""
        return {slot: self.types[first].value_type for slot, (first, _) in self._spans.items()
                if isinstance(slot, PresentExtreme)}  # fmt: skip

    @property
    def earliest(self) -> dict[PresentEarliest, pa.DataType]:
        """Return the accumulators of first and last values that may be taken back, and the values' types.

        Nested values are not among them: a table does not compare these.
        """
        kinds = {slot: self.types[first].value_type for slot, (first, _) in self._spans.items()
                 if isinstance(slot, PresentEarliest)}  # fmt: skip
        return {slot: kind for slot, kind in kinds.items() if not pa.types.is_nested(kind)}

    def run(
        self, base: Columns, rows: pa.RecordBatch, weights: Numbers, segments: Segments, is_folded: bool,
        run: Run = lambda slot, base, rows: slot.run(base, rows),
    ) -> tuple[Columns, Columns]:  # fmt: skip
        """Return the results of the aggregates behind each row, and the state behind each segment.

        Args:
            base: the state before each segment.
            rows: group by group; behind their columns the weights for each of `distinct`.
            weights: 1, -1, or 0 for rows that do not count.
            is_folded: results are wanted behind each segment only.
            run: called with each accumulator, its state before each segment, and the rows.
        """
        shown: dict[RunningValue, Columns] = {}
        state: Columns = []
        for slot in self._slots:
            first, stop = self._spans[slot]
            if slot.is_distinct:
                changes = to_numpy(rows.column(self._width + self.distinct.index(_distinct_argument(slot))))
                own = np.where(weights != 0, changes.astype(np.int64), 0)
            else:
                own = counting_weights(rows, Argument(slot.argument, slot.filter, slot.keeps_nulls), weights)
            values = None if slot.argument is None else rows.column(slot.argument)
            shown[slot], after = run(slot, base[first:stop], GroupRows(values, own, segments, is_folded))
            state += after
        return self._results(shown), state

    def no_rows(self, groups: int) -> Columns:
        """Return the states of groups without rows."""
        return [pa.nulls(groups, kind) for kind in self.types]

    def merge(self, base: Columns, partials: Columns, segments: Segments) -> Columns:
        """Return the state behind each segment, whose rows are states of parts of the rows; see `merges`."""
        state: Columns = []
        for slot, (first, stop) in self._spans.items():
            assert isinstance(slot, Stepwise), f"{slot} does not merge"
            state += slot.merge(base[first:stop], partials[first:stop], segments)
        return state

    def results(self, state: Columns) -> Columns:
        """Return the results of the aggregates for some states."""
        shown = {slot: slot.shown(state[first:stop]) for slot, (first, stop) in self._spans.items()}
        return self._results(shown)

    def _results(self, shown: dict[RunningValue, Columns]) -> Columns:
        return [shown[slot][0] if aggregate.user is not None
                else result(aggregate, parts := accumulators(aggregate, False), _by_parts(shown[slot], len(parts)))
                for aggregate, slot in self._aggregates]  # fmt: skip


def _by_parts(columns: Columns, parts: int) -> list[Columns]:
    """Return columns as those of an aggregate's accumulators: AVG has two, and the others one."""
    return [[column] for column in columns[:2]] if parts == 2 else [columns]


def _value_of(argument: DistinctArgument) -> tuple[int, bool]:
    return argument.column, argument.keeps_nulls


def _distinct_argument(slot: RunningValue) -> DistinctArgument:
    assert slot.argument is not None, "COUNT(*) counts no values"
    return DistinctArgument(slot.argument, slot.filter, slot.keeps_nulls)


__all__ = ["GroupAccumulators"]
