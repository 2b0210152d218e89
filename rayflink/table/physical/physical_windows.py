"""The windows of a plan as the runtime's operators take them."""

from __future__ import annotations

from ..plan.lineage import aggregation_of
from ..plan.logical import WindowAggregate, Windowing, WindowKind
from ..runtime.aggregates.window_spec import WindowAggregation, WindowSpec
from ..types import DataType
from .physical_groups import aggregates_of
from .physical_ranks import row_of


def window_aggregation(plan: WindowAggregate, zone: str) -> WindowAggregation:
    """Return what the operators of a window aggregate compute; `zone` is the session's time zone."""
    calls = aggregates_of(plan.calls)
    names = tuple(f"c{index}" for index in range(len(plan.grouping) + len(calls)))
    return WindowAggregation(
        row_of(plan.input), plan.grouping, calls, _windows_of(plan, zone), names, aggregation_of(plan)
    )


def _windows_of(plan: WindowAggregate, zone: str) -> WindowSpec:
    time_type = plan.schema[-1].type
    if plan.windowing is not None:
        return assigned_windows(plan.windowing, time_type, zone)
    assert plan.bounds is not None
    inner = plan.input.schema[plan.bounds[0]].windowing
    assert inner is not None
    return attached_windows(plan.bounds, inner, time_type, zone)


def assigned_windows(windowing: Windowing, time_type: DataType, zone: str) -> WindowSpec:
    """Return windows that the operator assigns rows to."""
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
    """Return windows that rows bring along; `bounds` are the columns of their start and end."""
    return WindowSpec(
        WindowKind.TUMBLE,
        size_ms=inner.size_ms if inner.kind is not WindowKind.SESSION else 1,
        start_column=bounds[0],
        end_column=bounds[1],
        zone=zone,
        time_type=time_type,
        is_event_time=inner.is_event_time,
    )


__all__ = ["assigned_windows", "attached_windows", "window_aggregation"]
