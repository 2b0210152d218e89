"""The trace of a checkpoint, from what its tasks have measured. Pure.

A task measures durations, the coordinator moments; so the parts of a subtask stand one after the other from the
trigger on, and none ends after the acknowledgement.

Source: apache/flink DefaultCheckpointStatsTracker, TraceOptions.CheckpointSpanDetailLevel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rayflink.common.metrics.span import Attribute, Span
from rayflink.common.options.option_values import SpanDetail

from ..checkpoints.history import CheckpointRecord, SubtaskRecord

__all__ = ["checkpoint_span"]

_MEASURED = {
    "StateSizeBytes": "state_bytes",
    "CheckpointedSizeBytes": "written_bytes",
    "CheckpointStartDelayMs": "start_delay_ms",
    "AlignmentDurationMs": "alignment_ms",
    "SyncCheckpointDurationMs": "sync_ms",
    "AsyncCheckpointDurationMs": "async_ms",
    "PersistedDataBytes": "in_flight_bytes",
}
"""Name of a figure -> attribute of `CheckpointMetrics`."""
_WITH_CHILDREN = (SpanDetail.CHILDREN_SPANS_PER_TASK, SpanDetail.CHILDREN_SPANS_PER_SUBTASK)
_PHASES = (
    ("StartDelay", "start_delay_ms"),
    ("Alignment", "alignment_ms"),
    ("Sync", "sync_ms"),
    ("Async", "async_ms"),
)


def checkpoint_span(record: CheckpointRecord, names: Mapping[str, str], detail: SpanDetail) -> Span:
    """Return the root span of a checkpoint that has ended.

    Args:
        record: of the checkpoint.
        names: vertex id -> name.
        detail: of its children.
    """
    sizes, subtasks = record.sizes(), record.all_subtasks
    attributes: dict[str, Attribute] = {
        "checkpointId": record.checkpoint_id,
        "fullSize": sizes["state_size"],
        "checkpointedSize": sizes["checkpointed_size"],
        "checkpointStatus": record.status,
        "isUnaligned": record.unaligned,
        "checkpointType": record.kind,
        **_figures(subtasks),
    }
    if detail is SpanDetail.SPAN_PER_CHECKPOINT_WITH_TASKS:
        attributes |= _of_tasks(record, names)
    children: list[Span] = []
    if detail in _WITH_CHILDREN:
        by_subtask = detail is SpanDetail.CHILDREN_SPANS_PER_SUBTASK
        children = [_task(record, vertex, names.get(vertex, vertex), by_subtask) for vertex in record.subtasks]
        children += _publish(record, subtasks)
    return Span("Checkpoint", record.triggered_ms, record.ended_ms, attributes, tuple(children), record.reason)


def _figures(subtasks: Sequence[SubtaskRecord]) -> dict[str, Attribute]:
    """Return the greatest and the sum of each figure."""
    figures: dict[str, Attribute] = {}
    for name, field in _MEASURED.items():
        values = [int(getattr(subtask.metrics, field)) for subtask in subtasks]
        figures |= {f"max{name}": max(values, default=0), f"sum{name}": sum(values)}
    return figures


def _of_tasks(record: CheckpointRecord, names: Mapping[str, str]) -> dict[str, Attribute]:
    """Return the figures of each task as one string, tasks in order of the graph."""
    tasks = {vertex: _figures(list(subtasks.values())) for vertex, subtasks in record.subtasks.items()}
    rows: dict[str, Attribute] = {"tasks": _listed(names.get(vertex, vertex) for vertex in tasks)}
    for figure in _figures([]):
        rows[f"perTask{figure[0].upper()}{figure[1:]}"] = _listed(str(of_task[figure]) for of_task in tasks.values())
    return rows


def _listed(values: Iterable[str]) -> str:
    return f"[{', '.join(values)}]"


def _task(record: CheckpointRecord, vertex: str, name: str, by_subtask: bool) -> Span:
    subtasks = record.subtasks[vertex]
    end_ms = max(subtask.acknowledged_ms for subtask in subtasks.values())
    attributes: dict[str, Attribute] = {
        "checkpointId": record.checkpoint_id, "jobVertexId": vertex, "taskName": name,
        **_figures(list(subtasks.values())),
    }  # fmt: skip
    ordered = sorted(subtasks.items()) if by_subtask else []
    children = tuple(_subtask(record, index, subtask) for index, subtask in ordered)
    return Span("Checkpoint_Task", record.triggered_ms, end_ms, attributes, children)


def _subtask(record: CheckpointRecord, index: int, subtask: SubtaskRecord) -> Span:
    figures = {f"{name[0].lower()}{name[1:]}": int(getattr(subtask.metrics, key)) for name, key in _MEASURED.items()}
    attributes: dict[str, Attribute] = {"checkpointId": record.checkpoint_id, "subtaskId": index, **figures}
    children, begin_ms = [], record.triggered_ms
    for name, field in _PHASES:
        end_ms = min(begin_ms + int(getattr(subtask.metrics, field)), max(subtask.acknowledged_ms, begin_ms))
        children.append(Span(name, begin_ms, end_ms, {}))
        begin_ms = end_ms
    return Span("Checkpoint_Subtask", record.triggered_ms, subtask.acknowledged_ms, attributes, tuple(children))


def _publish(record: CheckpointRecord, subtasks: Sequence[SubtaskRecord]) -> list[Span]:
    """Return the time from the last acknowledgement to the end; none where not all have acknowledged."""
    if len(subtasks) < sum(map(len, record.awaited.values())):
        return []
    acknowledged_ms = max((subtask.acknowledged_ms for subtask in subtasks), default=record.triggered_ms)
    return [Span("Publish", acknowledged_ms, record.ended_ms, {"path": record.path}, (), record.reason)]
