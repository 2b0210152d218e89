"""The requests for the checkpoints of a job: statistics of all, details of one, and how they are taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from rayflink.actors.messages.checkpoint_settings import CheckpointSettings
from rayflink.common.configuration import reading
from rayflink.common.errors import ConfigError
from rayflink.common.options import registry as options
from rayflink.common.options.option_values import (
    CheckpointingMode,
    ExternalizedCheckpointRetention,
    StateBackendType,
)
from rayflink.serving.json_requests import JsonRequest, Refusal, Role, Route

from ..jobs.cluster_job import ClusterJobs, Document
from .job_lookup import JobLookup, number
from .typed_requests import TypedEndpoint, hex_id, versioned

__all__ = ["CheckpointEndpoints", "Spread", "spread"]

NEVER_MS = 2**63 - 1
"""The interval of a job that takes no checkpoints by itself: Flink's largest number."""
MATERIALIZATION_MS = 600_000
"""Flink's interval of state changelogs, which there are none of."""
NOT_A_NUMBER: Literal["NaN"] = "NaN"
_BACKENDS = {StateBackendType.HASHMAP: "HashMapStateBackend", StateBackendType.ROCKSDB: "EmbeddedRocksDBStateBackend"}
_FIGURES = ("checkpointed_size", "state_size", "end_to_end_duration", "alignment_buffered", "processed_data",
            "persisted_data")  # fmt: skip
Quantile = float | Literal["NaN"]


class Spread(TypedDict):
    """The spread of a figure; NaN where nothing was measured."""

    min: int
    max: int
    avg: int
    p50: Quantile
    p90: Quantile
    p95: Quantile
    p99: Quantile
    p999: Quantile


class Counts(TypedDict):
    """The numbers of checkpoints."""

    restored: int
    total: int
    in_progress: int
    completed: int
    failed: int


class _Amounts(TypedDict):
    id: int
    status: str
    latest_ack_timestamp: int
    checkpointed_size: int
    state_size: int
    end_to_end_duration: int
    alignment_buffered: int
    processed_data: int
    persisted_data: int
    num_subtasks: int
    num_acknowledged_subtasks: int


class _Entry(_Amounts):
    className: str
    is_savepoint: bool
    savepointFormat: str | None
    trigger_timestamp: int
    checkpoint_type: str
    tasks: dict[str, _Amounts]


class Checkpoint(_Entry, total=False):
    """A checkpoint; where it is, or why there is none, once that is known."""

    external_path: str
    discarded: bool
    failure_timestamp: int
    failure_message: str


class Restored(TypedDict):
    """The checkpoint from which a job has started."""

    id: int
    restore_timestamp: int
    is_savepoint: bool
    external_path: str


class Latest(TypedDict):
    """The newest checkpoint of each kind."""

    completed: Checkpoint | None
    savepoint: Checkpoint | None
    failed: Checkpoint | None
    restored: Restored | None


class CheckpointStatistics(TypedDict):
    """The checkpoints of a job, the newest first."""

    counts: Counts
    summary: dict[str, Spread]
    latest: Latest
    history: list[Checkpoint]


class Alignment(TypedDict):
    """The alignment of the barriers in a subtask: bytes, and milliseconds."""

    buffered: int
    processed: int
    persisted: int
    duration: int


class SubtaskCheckpoint(TypedDict, total=False):
    """The part of a subtask; of one that has not acknowledged only its number is known."""

    className: str
    index: int
    status: str
    ack_timestamp: int
    end_to_end_duration: int
    checkpointed_size: int
    state_size: int
    checkpoint: dict[str, int]
    alignment: Alignment
    start_delay: int
    unaligned_checkpoint: bool
    aborted: bool


class VertexCheckpoint(_Amounts):
    """The part of a vertex, with those of its subtasks."""

    summary: dict[str, Any]
    subtasks: list[SubtaskCheckpoint]


class Externalization(TypedDict):
    """The end of checkpoints whose job is cancelled: they stay, or are deleted."""

    enabled: bool
    delete_on_cancellation: bool


class CheckpointConfiguration(TypedDict):
    """The settings of a job's checkpoints; times in milliseconds."""

    mode: str
    interval: int
    timeout: int
    min_pause: int
    max_concurrent: int
    externalization: Externalization
    state_backend: str
    checkpoint_storage: str
    unaligned_checkpoints: bool
    tolerable_failed_checkpoints: int
    aligned_checkpoint_timeout: int
    checkpoints_after_tasks_finish: bool
    state_changelog_enabled: bool
    changelog_periodic_materialization_interval: int
    changelog_storage: str


class CheckpointEndpoints:
    """Answers requests about checkpoints.

    Args:
        jobs: of the cluster.

    Source: apache/flink CheckpointingStatisticsHandler, CheckpointStatisticDetailsHandler,
        TaskCheckpointStatisticDetailsHandler, CheckpointConfigHandler.
    """

    def __init__(self, jobs: ClusterJobs) -> None:
        self._lookup = JobLookup(jobs)

    def routes(self) -> list[Route]:
        """Return the functions of the requests."""
        path = "/jobs/{jobid}/checkpoints"
        details = f"{path}/details/{{checkpointid}}"
        return [
            *versioned("GET", path, TypedEndpoint(self._statistics), Role.READ),
            *versioned("GET", f"{path}/config", TypedEndpoint(self._configuration), Role.READ),
            *versioned("GET", details, TypedEndpoint(self._details), Role.READ),
            *versioned("GET", f"{details}/subtasks/{{vertexid}}", TypedEndpoint(self._of_vertex), Role.READ),
        ]

    def _statistics(self, request: JsonRequest) -> CheckpointStatistics:
        """Return statistics of all checkpoints of a job."""
        statistics = self._lookup.view(request).checkpoints()
        return _statistics(_NONE if statistics is None else statistics)

    def _configuration(self, request: JsonRequest) -> CheckpointConfiguration:
        """Return how the checkpoints of a job are taken."""
        return _configuration(self._lookup.view(request).description()["configuration"])

    def _details(self, request: JsonRequest) -> Checkpoint:
        """Return a checkpoint, with the part of each vertex."""
        details = self._known(request)
        checkpoint = _checkpoint(details)
        checkpoint["tasks"] = {vertex: _amounts(part) for vertex, part in details["tasks"].items()}
        return checkpoint

    def _of_vertex(self, request: JsonRequest) -> VertexCheckpoint:
        """Return the part of a vertex in a checkpoint, with those of its subtasks."""
        vertex_id, details = hex_id(request, "vertexid"), self._known(request)
        part = details["tasks"].get(vertex_id)
        if part is None:
            remedy = f"it has {', '.join(details['tasks'])}"
            raise Refusal(404, f"There is no checkpoint statistics for task {vertex_id}.", remedy)
        return {
            **_amounts(part),
            "summary": _vertex_summary(part["summary"], bool(part["subtasks"])),
            "subtasks": _subtasks(part, details["unaligned"]),
        }

    def _known(self, request: JsonRequest) -> Document:
        checkpoint_id, view = number(request, "checkpointid"), self._lookup.view(request)
        details = view.checkpoints(checkpoint_id)
        if details is None:
            problem = f"Could not find checkpointing statistics for checkpoint {checkpoint_id}."
            remedy = f"the newest are remembered, as many as {options.CHECKPOINT_HISTORY.key} says"
            raise Refusal(404, problem, remedy)
        return details


_NONE: Document = {
    "counts": dict.fromkeys(("restored", "total", "in_progress", "completed", "failed"), 0),
    "summary": {},
    "latest": dict.fromkeys(("completed", "savepoint", "failed", "restored")),
    "history": [],
}
"""The statistics of a job that has taken none."""


def _statistics(statistics: Document) -> CheckpointStatistics:
    latest, counts = statistics["latest"], statistics["counts"]
    summary = {name: spread(statistics["summary"].get(name, {}), counts["completed"] > 0) for name in _FIGURES}
    return {
        "counts": counts,
        "summary": summary,
        "latest": {
            "completed": latest["completed"] and _checkpoint(latest["completed"]),
            "savepoint": latest["savepoint"] and _checkpoint(latest["savepoint"]),
            "failed": latest["failed"] and _checkpoint(latest["failed"]),
            "restored": latest["restored"],
        },
        "history": [_checkpoint(entry) for entry in statistics["history"]],
    }


def _checkpoint(entry: Document) -> Checkpoint:
    kind, amounts = entry["checkpoint_type"], _amounts(entry)
    checkpoint: Checkpoint = {
        "id": amounts["id"],
        "status": amounts["status"],
        "latest_ack_timestamp": amounts["latest_ack_timestamp"],
        "checkpointed_size": amounts["checkpointed_size"],
        "state_size": amounts["state_size"],
        "end_to_end_duration": amounts["end_to_end_duration"],
        "alignment_buffered": amounts["alignment_buffered"],
        "processed_data": amounts["processed_data"],
        "persisted_data": amounts["persisted_data"],
        "num_subtasks": amounts["num_subtasks"],
        "num_acknowledged_subtasks": amounts["num_acknowledged_subtasks"],
        "className": entry["status"].lower(),
        "is_savepoint": entry["is_savepoint"],
        "savepointFormat": "CANONICAL" if entry["is_savepoint"] else None,
        "trigger_timestamp": entry["trigger_timestamp"],
        "checkpoint_type": "UNALIGNED_CHECKPOINT" if kind == "CHECKPOINT" and entry["unaligned"] else kind,
        "tasks": {},
    }
    if "external_path" in entry:
        checkpoint["external_path"] = entry["external_path"] or "<checkpoint-not-externally-addressable>"
        checkpoint["discarded"] = entry["discarded"]
    if "failure_timestamp" in entry:
        checkpoint["failure_timestamp"] = entry["failure_timestamp"]
        checkpoint["failure_message"] = entry["failure_message"]
    return checkpoint


def _amounts(entry: Document) -> _Amounts:
    return {
        "id": entry["id"],
        "status": entry["status"],
        "latest_ack_timestamp": entry["latest_ack_timestamp"],
        "checkpointed_size": entry["checkpointed_size"],
        "state_size": entry["state_size"],
        "end_to_end_duration": entry["end_to_end_duration"],
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": entry["persisted_data"],
        "num_subtasks": entry["num_subtasks"],
        "num_acknowledged_subtasks": entry["num_acknowledged_subtasks"],
    }


def spread(measured: Mapping[str, float], is_measured: bool) -> Spread:
    """Return the spread of a figure, from its minimum, maximum, mean and quantiles by name."""

    def quantile(name: str) -> Quantile:
        return float(measured.get(name, 0.0)) if is_measured else NOT_A_NUMBER

    return {
        "min": int(measured.get("min", 0)),
        "max": int(measured.get("max", 0)),
        "avg": int(measured.get("avg", 0)),
        "p50": quantile("p50"),
        "p90": quantile("p90"),
        "p95": quantile("p95"),
        "p99": quantile("p99"),
        "p999": quantile("p999"),
    }


def _vertex_summary(summary: Document, is_measured: bool) -> dict[str, Any]:
    def of(measured: Mapping[str, float]) -> Spread:
        return spread(measured, is_measured)

    duration, alignment = summary["checkpoint_duration"], summary["alignment"]
    return {
        "checkpointed_size": of(summary["checkpointed_size"]),
        "state_size": of(summary["state_size"]),
        "end_to_end_duration": of(summary["end_to_end_duration"]),
        "checkpoint_duration": {"sync": of(duration["sync"]), "async": of(duration["async"])},
        "alignment": {
            "buffered": of({}),
            "processed": of({}),
            "persisted": of(alignment["persisted"]),
            "duration": of(alignment["duration"]),
        },
        "start_delay": of(summary["start_delay"]),
    }


def _subtasks(part: Document, is_unaligned: bool) -> list[SubtaskCheckpoint]:
    acknowledged: list[SubtaskCheckpoint] = [
        {
            "className": "completed",
            "index": subtask["index"],
            "ack_timestamp": subtask["ack_timestamp"],
            "end_to_end_duration": subtask["end_to_end_duration"],
            "checkpointed_size": subtask["checkpointed_size"],
            "state_size": subtask["state_size"],
            "checkpoint": dict(subtask["checkpoint"]),
            "alignment": {
                "buffered": 0,
                "processed": 0,
                "persisted": subtask["alignment"]["persisted"],
                "duration": subtask["alignment"]["duration"],
            },
            "start_delay": subtask["start_delay"],
            "unaligned_checkpoint": is_unaligned,
            "aborted": False,
            "status": "completed",
        }
        for subtask in part["subtasks"]
    ]
    others: list[SubtaskCheckpoint] = [
        {"className": "pending", "index": index, "status": "pending_or_failed"} for index in part["pending_subtasks"]
    ]
    return sorted([*acknowledged, *others], key=lambda subtask: subtask["index"])


def _configuration(configuration: Mapping[str, str]) -> CheckpointConfiguration:
    try:
        settings = CheckpointSettings.of(configuration)
        backend = reading(configuration).get(options.STATE_BACKEND)
    except ConfigError:  # a value that is hidden, as a secret
        settings, backend = CheckpointSettings(), StateBackendType.ROCKSDB
    retention = settings.retention
    takes_none = settings.interval_ms is None
    return {
        "mode": "exactly_once" if settings.mode is CheckpointingMode.EXACTLY_ONCE else "at_least_once",
        "interval": NEVER_MS if settings.interval_ms is None else settings.interval_ms,
        "timeout": settings.timeout_ms,
        "min_pause": settings.min_pause_ms,
        "max_concurrent": settings.max_concurrent,
        "externalization": {
            "enabled": not takes_none and retention is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS,
            "delete_on_cancellation": retention is not ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION,
        },
        "state_backend": _BACKENDS[backend],
        "checkpoint_storage": "FileSystemCheckpointStorage" if settings.directory else "JobManagerCheckpointStorage",
        "unaligned_checkpoints": settings.unaligned,
        "tolerable_failed_checkpoints": settings.tolerable_failures,
        "aligned_checkpoint_timeout": settings.aligned_timeout_ms,
        "checkpoints_after_tasks_finish": True,
        "state_changelog_enabled": False,
        "changelog_periodic_materialization_interval": MATERIALIZATION_MS,
        "changelog_storage": "memory",
    }
