"""The operators that aggregate whole tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..plan.groups import GroupAggregate
from ..plan.logical import AggregateCall, WindowKind
from ..runtime.aggregates.aggregates import Aggregate, AggregateKind
from ..runtime.aggregates.window_spec import WindowAggregation, WindowSpec
from ..runtime.windows.group_aggregate import GroupAggregateOperator, LocalGroupAggregate
from .physical_ranks import row_of

_NONE = WindowSpec(WindowKind.TUMBLE, size_ms=1, is_event_time=False)
"""In place of windows, where there are none."""


def aggregates_of(calls: Sequence[AggregateCall]) -> tuple[Aggregate, ...]:
    """Return calls of a plan as the runtime knows them."""
    return tuple(
        Aggregate(
            AggregateKind(call.name),
            call.arguments[0] if call.arguments else None,
            call.type,
            call.filter,
            call.distinct,
            **_options(call),
        )
        for call in calls
    )


def _options(call: AggregateCall) -> dict[str, Any]:
    if call.name == AggregateKind.PERCENTILE.value:
        return {"percentages": call.options}
    return {"separator": str(call.options[0])} if call.options else {}


def phases(plan: GroupAggregate) -> tuple[tuple[str, ...], Factory, Factory]:
    """Return the columns by which partial rows are partitioned, and what makes the operators before and behind."""
    names = tuple(f"c{at}" for at in range(len(plan.grouping) + len(plan.calls)))
    aggregation = WindowAggregation(row_of(plan.input), plan.grouping, aggregates_of(plan.calls), _NONE, names)
    whole = Factory(GroupAggregateOperator, aggregation, arrow_schema(plan.schema))
    return aggregation.key_names, Factory(LocalGroupAggregate, aggregation), whole


__all__ = ["aggregates_of", "phases"]
