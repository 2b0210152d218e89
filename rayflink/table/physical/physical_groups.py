"""The steps that aggregate whole tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..plan.groups import GroupAggregate
from ..plan.logical import AggregateCall, WindowKind
from ..runtime.aggregates.aggregates import Aggregate, AggregateKind
from ..runtime.aggregates.window_spec import WindowAggregation, WindowSpec
from ..runtime.windows.group_aggregate import GroupAggregateOperator, local_group_aggregate
from .translation import Translation, add_keyed_operator, hash_partition, row_type

_NO_WINDOWS = WindowSpec(WindowKind.TUMBLE, size_ms=1, is_event_time=False)
"""In place of windows, where there are none."""


def aggregates_of(calls: Sequence[AggregateCall]) -> tuple[Aggregate, ...]:
    """Translate the calls of a plan to aggregates of the runtime."""
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


def translate_group_aggregate(translation: Translation, plan: GroupAggregate) -> StreamBuilder:
    """Aggregate groups at the end of their table; in two phases the rows are aggregated before they are sent, too."""
    names = tuple(f"c{index}" for index in range(len(plan.grouping) + len(plan.calls)))
    calls = aggregates_of(plan.calls)
    aggregation = WindowAggregation(row_type(plan.input), plan.grouping, calls, _NO_WINDOWS, names)
    local = Factory(local_group_aggregate, aggregation)
    final = Factory(GroupAggregateOperator, aggregation, arrow_schema(plan.schema))
    rows, line = translation.stream(plan.input), plan.explain_line()
    if plan.is_one_phase:
        keys = [plan.input.names[key] for key in plan.grouping]
        partial = add_keyed_operator(hash_partition(rows, keys), "LocalGroupAggregate", local, keys)
        step = partial.add_operator("GroupAggregate", final).set_description(line)
        return step if keys else step.set_parallelism(1)
    partial = rows.add_operator("LocalGroupAggregate", local).set_description(line)
    partitioned = hash_partition(partial, aggregation.key_names)
    return add_keyed_operator(partitioned, "GroupAggregate", final, aggregation.key_names).set_description(line)


__all__ = ["aggregates_of", "translate_group_aggregate"]
