"""Statuses and descriptions of jobs, as small as the figures of the dashboard need them."""

from __future__ import annotations

from typing import Any

NOW_MS = 1_800_000_000_000
IDS = {"source": "a" * 32, "count": "b" * 32, "sink": "c" * 32}


def subtask(number: int, read: float, busy: int, pressed: int, **metrics: Any) -> dict[str, Any]:
    """Return a running subtask that receives `read` records a second."""
    report = {
        "numRecordsIn": int(read * 10),
        "numRecordsInPerSecond": read,
        "numRecordsOutPerSecond": read,
        "numRecordsOut": int(read * 10),
        "busyTimeMsPerSecond": busy,
        "backPressuredTimeMsPerSecond": pressed,
        "operators": [],
        **metrics,
    }
    moments = {"SCHEDULED": NOW_MS - 61_000, "RUNNING": NOW_MS - 60_000}
    return {"subtask": number, "attempt": 0, "state": "RUNNING", "timestamps": moments, "metrics": report}


def operator(name: str, watermark: int | None = None, **metrics: Any) -> dict[str, Any]:
    """Return an operator's report."""
    marks = {"currentInputWatermark": watermark, "currentOutputWatermark": watermark}
    return {"id": name, "name": name, "numRecordsIn": 7, "numRecordsOut": 7, **marks, "metrics": {**marks, **metrics}}


def vertex(name: str, subtasks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a vertex of a status."""
    sums = {
        key: sum(own["metrics"][key] for own in subtasks) for key in ("numRecordsIn", "numRecordsOut")
    }
    head = {"id": IDS[name], "name": name, "parallelism": len(subtasks), "states": {"RUNNING": len(subtasks)}}
    return {**head, "numBytesIn": 0, "numBytesOut": 0, **sums, "subtasks": subtasks}


def status(*vertices: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the status of a job that has run for a minute."""
    moments = {"CREATED": NOW_MS - 62_000, "RUNNING": NOW_MS - 60_000}
    head = {"jid": "d" * 32, "name": "orders", "state": "RUNNING", "timestamps": moments}
    metrics = {"uptime": 60_000, "numRestarts": 0}
    return {**head, "vertices": [*vertices], "exceptions": [], "recovery": None, "metrics": metrics, **more}


def description(*edges: tuple[str, str], names: tuple[str, ...] = ("source", "count", "sink")) -> dict[str, Any]:
    """Return the plan of a job with edges from producers to consumers."""
    inputs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for producer, consumer in edges:
        inputs[consumer].append({"id": IDS[producer], "ship_strategy": "HASH", "exchange": "pipelined", "gate": 0})
    vertices = [{"id": IDS[name], "name": name, "max_parallelism": 128, "inputs": inputs[name]} for name in names]
    return {"jid": "d" * 32, "name": "orders", "mode": "STREAMING", "configuration": {}, "vertices": vertices}
