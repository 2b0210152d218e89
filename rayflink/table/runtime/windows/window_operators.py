"""The window operators of SQL plans, each a composition of parts.

| step of a plan | function | parts |
|---|---|---|
| LocalWindowAggregate | `local_window_aggregate` | `SliceReduction` |
| GlobalWindowAggregate | `global_window_aggregate` | `SlicedWindows` of `ArrivingPartialRows` and `AggregateFiring` |
| WindowAggregate | `one_phase_window_aggregate` | `SlicedWindows` of `RawRows` and `AggregateFiring` |
| WindowAggregate of sessions | `session_window_aggregate` | `SessionWindows` of `PlainRows` |
| WindowAggregate with early or late results | `emitting_window_aggregate` | `EmittingWindows` |
| WindowTableFunction of sessions | `session_table.session_table` | `SessionWindows` of `PackedRows` |
| WindowRank | `ranks.window_rank.window_rank` | `SlicedWindows` of `ArrivingRankedRows` and `RankFiring` |
"""

from __future__ import annotations

from ...plan.logical import Emission
from ..aggregates.own_aggregates import OwnAggregates
from ..aggregates.partial_aggregates import PartialAggregates
from ..aggregates.window_spec import WindowAggregation
from .aggregate_firing import AggregateFiring
from .emitting_windows import EmittingWindows
from .local_phase import LocalPhaseOperator
from .local_slices import SliceReduction
from .session_windows import PlainRows, SessionWindows
from .slice_inputs import ArrivingPartialRows, RawRows
from .sliced_windows import SlicedWindows
from .slicing import Slicing
from .table_window_operator import TableWindowOperator


def local_window_aggregate(aggregation: WindowAggregation) -> LocalPhaseOperator:
    """Return the first phase: it makes partial rows of a key and a slice, before rows are partitioned by key.

    Args:
        aggregation: what is computed, over windows of event time that are not sessions.
    """
    return LocalPhaseOperator(aggregation.input, SliceReduction(aggregation), _functions_of(aggregation))


def global_window_aggregate(aggregation: WindowAggregation) -> TableWindowOperator:
    """Return the second phase: it merges the partial rows of the first, partitioned by their `key_names`.

    Args:
        aggregation: as for the first phase.
    """
    partials, slicing = PartialAggregates(aggregation), Slicing(aggregation.window)
    firing = AggregateFiring(aggregation, partials, slicing.assigner)
    windows = SlicedWindows(slicing, partials, ArrivingPartialRows(), firing)
    return TableWindowOperator(aggregation.window, windows, _functions_of(aggregation))


def one_phase_window_aggregate(aggregation: WindowAggregation) -> TableWindowOperator:
    """Return both phases in one operator: it takes rows that are partitioned by the key.

    Args:
        aggregation: what is computed, over windows that are not sessions, of event or processing time.
    """
    partials, slicing = PartialAggregates(aggregation), Slicing(aggregation.window)
    rows = RawRows(aggregation, partials, slicing)
    firing = AggregateFiring(aggregation, partials, slicing.assigner)
    windows = SlicedWindows(slicing, partials, rows, firing)
    return TableWindowOperator(aggregation.window, windows, _functions_of(aggregation))


def session_window_aggregate(aggregation: WindowAggregation) -> TableWindowOperator:
    """Return an operator over sessions of rows that are partitioned by the key.

    Args:
        aggregation: what is computed, over sessions.
    """
    windows = SessionWindows(aggregation, PlainRows(aggregation.input))
    return TableWindowOperator(aggregation.window, windows, _functions_of(aggregation))


def emitting_window_aggregate(aggregation: WindowAggregation, emission: Emission) -> TableWindowOperator:
    """Return an operator that emits results before the end of windows, and again for late rows, as changes.

    Args:
        aggregation: what is computed, over windows that are not sessions; rows are partitioned by the key.
        emission: when results are emitted in addition to the end of a window.
    """
    windows = EmittingWindows(aggregation, emission)
    return TableWindowOperator(aggregation.window, windows, _functions_of(aggregation))


def _functions_of(aggregation: WindowAggregation) -> OwnAggregates:
    """Return the user's functions of an operator; it opens them."""
    return OwnAggregates(aggregation.aggregates)


__all__ = [
    "emitting_window_aggregate", "global_window_aggregate", "local_window_aggregate", "one_phase_window_aggregate",
    "session_window_aggregate",
]  # fmt: skip
