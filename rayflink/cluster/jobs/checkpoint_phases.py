"""The phases of a checkpoint by vertex: which subtask was the slowest, and in what."""

from __future__ import annotations

from typing import TypeAlias

from .cluster_job import Document

__all__ = ["describe_phases"]

Phases: TypeAlias = "list[dict[str, object]]"


def describe_phases(details: Document) -> Phases:
    """Return an entry for each vertex, with the phases of the subtask that acknowledged last.

    Args:
        details: of a checkpoint, as `JobView.checkpoints(id)` gives them.

    Returns: "id", "status", "acknowledged", "subtasks" (their number), "end_to_end_duration", "checkpointed_size",
        "state_size", "persisted_data", and "slowest": "index", "start_delay", "alignment", "sync", "async" and
        "end_to_end_duration", in milliseconds; null where no subtask has acknowledged. "pending" are the indexes of
        the others.
    """
    entries: Phases = []
    for vertex_id, entry in details.get("tasks", {}).items():
        subtasks = [subtask for subtask in entry.get("subtasks", ()) if "ack_timestamp" in subtask]
        last = max(subtasks, key=lambda subtask: int(subtask["end_to_end_duration"]), default=None)
        entries.append({
            "id": str(vertex_id),
            "status": entry["status"],
            "acknowledged": entry["num_acknowledged_subtasks"],
            "subtasks": entry["num_subtasks"],
            "end_to_end_duration": entry["end_to_end_duration"],
            "checkpointed_size": entry["checkpointed_size"],
            "state_size": entry["state_size"],
            "persisted_data": entry.get("persisted_data", 0),
            "slowest": None if last is None else _phases(last),
            "pending": entry.get("pending_subtasks", []),
        })  # fmt: skip
    return entries


def _phases(subtask: Document) -> dict[str, object]:
    return {
        "index": subtask["index"],
        "start_delay": max(subtask["start_delay"], 0),
        "alignment": subtask["alignment"]["duration"],
        "sync": subtask["checkpoint"]["sync"],
        "async": subtask["checkpoint"]["async"],
        "end_to_end_duration": subtask["end_to_end_duration"],
    }
