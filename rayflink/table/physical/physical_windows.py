"""The steps of windows: window functions as tables, and aggregates of windows."""

from __future__ import annotations

from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..plan.lineage import aggregation_of, lineage, rows_of
from ..plan.logical import WindowAggregate, Windowing, WindowKind, WindowTable
from ..runtime.aggregates.window_spec import WindowAggregation, WindowSpec
from ..runtime.windows.session_table import session_table
from ..runtime.windows.window_operators import (
    emitting_window_aggregate,
    global_window_aggregate,
    local_window_aggregate,
    one_phase_window_aggregate,
    session_window_aggregate,
)
from ..runtime.windows.window_table import WindowTableOperator
from ..types import DataType
from .physical_groups import aggregates_of
from .translation import Translation, add_keyed_operator, hash_partition, row_type


def translate_window_table(translation: Translation, plan: WindowTable) -> StreamBuilder:
    """Put each row into each of its windows; sessions need all rows of a key in one subtask."""
    if plan.windowing.kind is WindowKind.SESSION:
        return _session_table(translation, plan)
    factory = Factory(WindowTableOperator, plan.windowing, arrow_schema(plan.schema), translation.session)
    step = translation.stream(plan.input).add_operator("WindowTableFunction", factory)
    return step.set_description(plan.explain_line())


def _session_table(translation: Translation, plan: WindowTable) -> StreamBuilder:
    keys = plan.windowing.partition
    names = [plan.input.names[key] for key in keys]
    spec = _assigned_windows(plan.windowing, plan.schema[-1].type, translation.session.zone)
    state_identity = f"{rows_of(plan.input, keys)} in sessions by {lineage(plan.input, plan.windowing.time)}"
    factory = Factory(session_table, row_type(plan.input), keys, spec, arrow_schema(plan.schema), state_identity)
    partitioned = hash_partition(translation.stream(plan.input), names)
    step = add_keyed_operator(partitioned, "WindowTableFunction", factory, names, state_identity)
    return step.set_description(plan.explain_line())


def translate_window_aggregate(translation: Translation, plan: WindowAggregate) -> StreamBuilder:
    """Aggregate by keys and window; in two phases rows are aggregated before they are sent, too."""
    aggregation = _window_aggregation(plan, translation.session.zone)
    rows, line, identity = translation.stream(plan.input), plan.explain_line(), aggregation.state_identity
    if not plan.has_local_phase or not translation.settings.two_phase:
        names = [plan.input.names[key] for key in plan.grouping]
        factory = _one_phase(plan, aggregation)
        step = add_keyed_operator(hash_partition(rows, names), "WindowAggregate", factory, names, identity)
        return step.set_description(line)
    local = rows.add_operator("LocalWindowAggregate", Factory(local_window_aggregate, aggregation))
    names = list(aggregation.key_names)
    partitioned = hash_partition(local.set_description(line), names)
    factory = Factory(global_window_aggregate, aggregation)
    step = add_keyed_operator(partitioned, "GlobalWindowAggregate", factory, names, identity)
    return step.set_description(line)


def _one_phase(plan: WindowAggregate, aggregation: WindowAggregation) -> Factory:
    if plan.emission is not None:
        return Factory(emitting_window_aggregate, aggregation, plan.emission)
    if aggregation.window.kind is WindowKind.SESSION:
        return Factory(session_window_aggregate, aggregation)
    return Factory(one_phase_window_aggregate, aggregation)


def _window_aggregation(plan: WindowAggregate, zone: str) -> WindowAggregation:
    """Describe what the operators of a window aggregate compute; `zone` is the session's time zone."""
    calls = aggregates_of(plan.calls, plan.input.schema)
    names = tuple(f"c{index}" for index in range(len(plan.grouping) + len(calls)))
    return WindowAggregation(
        row_type(plan.input), plan.grouping, calls, _window_spec(plan, zone), names, aggregation_of(plan)
    )


def _window_spec(plan: WindowAggregate, zone: str) -> WindowSpec:
    time_type = plan.schema[-1].type
    if plan.windowing is not None:
        return _assigned_windows(plan.windowing, time_type, zone)
    assert plan.bounds is not None
    inner = plan.input.schema[plan.bounds[0]].windowing
    assert inner is not None
    return attached_windows(plan.bounds, inner, time_type, zone)


def _assigned_windows(windowing: Windowing, time_type: DataType, zone: str) -> WindowSpec:
    """Return the windows that an operator assigns rows to."""
    is_session = windowing.kind is WindowKind.SESSION
    return WindowSpec(
        windowing.kind,
        size_ms=0 if is_session else windowing.size_ms,
        slide_ms=windowing.slide_ms,
        offset_ms=windowing.offset_ms,
        gap_ms=windowing.size_ms if is_session else 0,
        time_column=windowing.time if windowing.is_event_time else None,
        zone=zone,
        time_type=time_type,
        is_event_time=windowing.is_event_time,
    )


def attached_windows(bounds: tuple[int, int], inner: Windowing, time_type: DataType, zone: str) -> WindowSpec:
    """Return the windows in which rows already are; `bounds` are the columns of their start and end."""
    return WindowSpec(
        WindowKind.TUMBLE,
        size_ms=inner.size_ms if inner.kind is not WindowKind.SESSION else 1,
        start_column=bounds[0],
        end_column=bounds[1],
        zone=zone,
        time_type=time_type,
        is_event_time=inner.is_event_time,
    )


__all__ = ["attached_windows", "translate_window_aggregate", "translate_window_table"]
