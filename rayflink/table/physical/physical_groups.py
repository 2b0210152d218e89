"""The steps that aggregate whole tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rayflink.common.errors import ConfigError
from rayflink.common.options import registry as options
from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..errors import SqlError
from ..plan.aggregate_call import AggregateCall
from ..plan.changelog import Change
from ..plan.groups import GroupAggregate, MiniBatch
from ..plan.lineage import all_of, groups_of, lineage
from ..plan.logical import Schema, WindowKind
from ..plan.typed import Place
from ..runtime.aggregates.aggregates import Aggregate, AggregateKind
from ..runtime.aggregates.window_spec import WindowAggregation, WindowSpec
from ..runtime.groups.distinct_values import DistinctValuesOperator
from ..runtime.groups.group_changes import GroupSpec, distinct_arguments
from ..runtime.groups.group_operators import (
    GlobalGroupOperator,
    LocalGroupOperator,
    MiniBatchGroupOperator,
    StreamGroupOperator,
)
from ..runtime.groups.group_phases import part_names
from ..runtime.windows.group_aggregate import GroupAggregateOperator, local_group_aggregate
from ..types import DataType, Root
from ..user_functions.aggregate_kernels import UserAggregation, kernel_of
from .translation import Translation, add_keyed_operator, hash_partition, line_with_ttl, row_type

_NO_WINDOWS = WindowSpec(WindowKind.TUMBLE, size_ms=1, is_event_time=False)
"""In place of windows, where there are none."""
_STORED_ONE_BY_ONE = {AggregateKind.ARRAY_AGG.value, AggregateKind.FIRST_VALUE.value, AggregateKind.LAST_VALUE.value}
"""Aggregates that find the value of a row that is taken back among those of its group."""


def aggregates_of(calls: Sequence[AggregateCall], schema: Schema) -> tuple[Aggregate, ...]:
    """Translate the calls of a plan to aggregates of the runtime.

    Args:
        schema: the columns that they read.
    """
    return tuple(
        Aggregate(
            AggregateKind.USER if call.function is not None else AggregateKind(call.name),
            call.arguments[0] if call.arguments else None,
            call.type,
            call.filter,
            call.distinct,
            **_options(call, schema),
        )
        for call in calls
    )


def _columns_of(call: AggregateCall, schema: Schema) -> tuple[DataType, ...]:
    """Return the types of the arguments that are no constants; several are the fields of one column."""
    kinds = tuple(schema[argument].type for argument in call.arguments)
    is_struct = call.options.count(None) > 1 and len(kinds) == 1
    return tuple(field.type for field in kinds[0].fields) if is_struct else kinds


def _options(call: AggregateCall, schema: Schema) -> dict[str, Any]:
    if call.function is not None:
        return {"user": UserAggregation(kernel_of(call.function), call.options, call.type, _columns_of(call, schema))}
    if call.name == AggregateKind.PERCENTILE.value:
        return {"percentages": call.options}
    return {"separator": str(call.options[0])} if call.options else {}


def translate_group_aggregate(translation: Translation, plan: GroupAggregate) -> StreamBuilder:
    """Aggregate groups at the end of their table; in two phases the rows are aggregated before they are sent, too."""
    names = tuple(f"c{index}" for index in range(len(plan.grouping) + len(plan.calls)))
    calls = aggregates_of(plan.calls, plan.input.schema)
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


def translate_stream_groups(translation: Translation, plan: GroupAggregate) -> StreamBuilder:
    """Change the results of groups with each row of a stream, or with each mini-batch."""
    ensure_keeps_no_columns(plan.calls, "GROUP BY over a stream without a window", plan.place)
    ttl_ms = translation.ttl_ms(plan)
    changes, limits = translation.changes(plan.input), mini_batch_limits(translation)
    retracts = bool(changes & (Change.UPDATE | Change.DELETE))
    if retracts:
        _ensure_values_can_be_taken_back(plan)
    spec = GroupSpec(
        tuple(column.type.to_arrow() for column in plan.input.schema),
        plan.grouping,
        aggregates_of(plan.calls, plan.input.schema),
        ttl_ms,
        retracts,
        translation.wants_before(plan),
        groups_of(plan),
    )
    names = [plan.input.names[key] for key in plan.grouping]
    rows = translation.stream(plan.input)
    if not plan.splits_distinct and not plan.has_local_phase:
        rows = hash_partition(rows, names)
    rows = _find_distinct_values(rows, spec, names, plan)
    schema, line = arrow_schema(plan.schema), plan.explain_line()
    factory = Factory(StreamGroupOperator, spec, schema)
    if plan.has_local_phase:
        assert limits is not None, "there are two phases with mini-batches only"
        local = rows.add_operator("LocalGroupAggregate", Factory(LocalGroupOperator, spec, limits))
        rows = translation.keep_order(plan.input, rows, local).set_description(f"Local{line}")
        names, line = part_names(len(names)), f"Global{line}"
        factory = Factory(GlobalGroupOperator, spec, schema, limits.of_parts())
    elif limits is not None:
        factory = Factory(MiniBatchGroupOperator, spec, schema, limits)
    if plan.splits_distinct or plan.has_local_phase:
        rows = hash_partition(rows, names)
    step = add_keyed_operator(rows, "GroupAggregate", factory, names, f"groups: {spec.state_identity}")
    return step.set_description(line_with_ttl(line, ttl_ms))


def ensure_keeps_no_columns(calls: Sequence[AggregateCall], described: str, place: Place | None) -> None:
    """Check that no function is called with all values of a group that has no end.

    Raises:
        SqlError: one is.
    """
    for call in calls:
        if call.function is not None and (kernel := kernel_of(call.function)).takes_columns:
            problem = f"{call.name} is given columns of {kernel.kind} with all rows, which {described} never has"
            remedy = "write an AggregateFunction, aggregate windows or bounded frames, or run it in batch mode"
            raise SqlError(problem, remedy, "", place)


def _ensure_values_can_be_taken_back(plan: GroupAggregate) -> None:
    """Check that values which are stored one by one can be found again.

    Raises:
        SqlError: they cannot be compared.
    """
    for call in plan.calls:
        if call.function is not None and not kernel_of(call.function).retracts:
            problem = f"{call.name} has no method retract, and its input has rows that are taken back"
            remedy = "write retract(accumulator, *args), which undoes accumulate, or give it rows that only come"
            raise SqlError(problem, remedy, "", plan.place)
        kinds = [plan.input.schema[argument].type for argument in call.arguments]
        if call.name in _STORED_ONE_BY_ONE and any(kind.items or kind.root is Root.ROW for kind in kinds):
            problem = f"{call.name} of {kinds[0]} over rows that may be taken back: its values cannot be compared"
            raise SqlError(problem, "aggregate a part of them, or CAST them to STRING", "", plan.place)


def mini_batch_limits(translation: Translation) -> MiniBatch | None:
    """Return the size of mini-batches; None: each row is worked by itself.

    Raises:
        ConfigError: they are enabled, and their size or latency is not set.
    """
    limits = translation.settings.mini_batch
    if limits is None:
        return None
    for option, value in ((options.MINI_BATCH_LATENCY, limits.latency_ms), (options.MINI_BATCH_SIZE, limits.rows)):
        if value <= 0:
            remedy = f"set it, or reset {options.MINI_BATCH.key}"
            raise ConfigError(option.key, str(value), "more than 0", remedy)
    return limits


def _find_distinct_values(
    rows: StreamBuilder, spec: GroupSpec, names: Sequence[str], plan: GroupAggregate
) -> StreamBuilder:
    """Add a step for each column of DISTINCT aggregates, which adds a column to rows for each of its filters.

    Rows are partitioned by group, or, where they are not yet, by group and value.
    """
    for arguments in distinct_arguments(spec):
        column, is_split = arguments[0].column, plan.splits_distinct
        conditions = ["" if argument.filter is None else f" where {lineage(plan.input, argument.filter)}"
                      for argument in arguments]  # fmt: skip
        described = f"{lineage(plan.input, column)}{' and'.join(conditions)}"
        identity = f"{described} by {all_of(plan.input, spec.keys) or 'nothing'}"
        value = plan.input.names[column]
        factory = Factory(
            DistinctValuesOperator, spec.columns, spec.keys, arguments, spec.ttl_ms, spec.retracts, identity, is_split
        )
        uid = f"distinct values: {identity}"
        if is_split:
            keys = list(dict.fromkeys([*names, value]))
            step = add_keyed_operator(hash_partition(rows, keys), "DistinctValues", factory, keys, f"split {uid}")
        else:
            step = add_keyed_operator(rows, "DistinctValues", factory, names, uid)
        rows = step.set_description(f"DistinctValues(value=[{value}]{', split=[true]' if is_split else ''})")
    return rows


__all__ = [
    "aggregates_of", "ensure_keeps_no_columns", "mini_batch_limits", "translate_group_aggregate",
    "translate_stream_groups",
]  # fmt: skip
