"""Statistics of a job's checkpoints as plain data, under the names of Flink's REST API; nothing here reads a clock.

Sizes are in bytes, durations in milliseconds, moments in epoch milliseconds. Of Flink's fields two are left out:
`alignment_buffered`, which is always 0 there, and `processed_data`, which no task measures here.

Source: apache/flink CheckpointStatsTracker, CheckpointingStatistics, CheckpointStatsHistory.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rayflink.common.metrics import metric_names as names
from rayflink.common.metrics.histogram import Histogram
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.state.storage.manifest import CheckpointManifest
from rayflink.state.storage.state_report import describe_state

from ..messages.checkpoint_statistics import CheckpointMetrics

IN_PROGRESS, COMPLETED, FAILED = "IN_PROGRESS", "COMPLETED", "FAILED"
_REMEMBERED = 10_000
"""Completed checkpoints whose figures the summary is made of (Flink's DescriptiveStatistics window)."""
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


@dataclass(frozen=True, slots=True)
class SubtaskRecord:
    """The report of one subtask when it acknowledged a checkpoint."""

    acknowledged_ms: int
    metrics: CheckpointMetrics


@dataclass
class CheckpointRecord:
    """One checkpoint, from its trigger on.

    Args:
        kind: CHECKPOINT, SAVEPOINT or SYNC_SAVEPOINT.
        awaited: vertex id -> indexes of its subtasks that acknowledge.
        subtasks: vertex id -> index of a subtask -> its report; replaced by each report, never changed.
        manifest: of the newest completed ones, until somebody asks for the sizes of their state.
    """

    checkpoint_id: int
    triggered_ms: int
    kind: str
    unaligned: bool
    awaited: Mapping[str, Collection[int]]
    status: str = IN_PROGRESS
    ended_ms: int = 0
    reason: str = ""
    path: str = ""
    discarded: bool = False
    subtasks: Mapping[str, Mapping[int, SubtaskRecord]] = field(default_factory=dict)
    manifest: CheckpointManifest | None = None
    _state: dict[str, Any] | None = None

    def state(self) -> dict[str, Any] | None:
        """Return the sizes of its state, see `describe_state`; None where it is not complete, or not the newest."""
        manifest = self.manifest
        if manifest is not None:
            self._state, self.manifest = describe_state(manifest), None
        return self._state

    def forget_state(self) -> None:
        """Forget the sizes of its state: there is a newer one."""
        self._state = self.manifest = None

    def acknowledged(self, vertex: str, subtask: int, metrics: CheckpointMetrics, now_ms: int) -> None:
        """Record that a subtask has acknowledged; other threads may read `subtasks` meanwhile, so it is replaced."""
        of_vertex = {**self.subtasks.get(vertex, {}), subtask: SubtaskRecord(now_ms, metrics)}
        self.subtasks = {**self.subtasks, vertex: of_vertex}

    @property
    def is_savepoint(self) -> bool:
        """Return whether the checkpoint is a savepoint, which its requester owns."""
        return self.kind != "CHECKPOINT"

    @property
    def all_subtasks(self) -> list[SubtaskRecord]:
        """Return the records of all subtasks of all vertices."""
        return [record for records in self.subtasks.values() for record in records.values()]

    @property
    def duration_ms(self) -> int:
        """Return the time from the trigger to the end, or to the last acknowledgement while it is under way."""
        if self.status != IN_PROGRESS:
            return self.ended_ms - self.triggered_ms
        return max((r.acknowledged_ms for r in self.all_subtasks), default=self.triggered_ms) - self.triggered_ms

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the whole checkpoint."""
        return _sizes(self.all_subtasks)

    def summary(self) -> dict[str, Any]:
        """Return the checkpoint's entry in the history."""
        records = self.all_subtasks
        description: dict[str, Any] = {
            "id": self.checkpoint_id,
            "status": self.status,
            "is_savepoint": self.is_savepoint,
            "checkpoint_type": self.kind,
            "unaligned": self.unaligned,
            "trigger_timestamp": self.triggered_ms,
            "latest_ack_timestamp": max((r.acknowledged_ms for r in records), default=-1),
            "end_to_end_duration": self.duration_ms,
            **self.sizes(),
            "num_subtasks": sum(map(len, self.awaited.values())),
            "num_acknowledged_subtasks": len(records),
        }
        if self.status == COMPLETED:
            description |= {"external_path": self.path, "discarded": self.discarded}
        if self.status == FAILED:
            description |= {"failure_timestamp": self.ended_ms, "failure_message": self.reason}
        return description

    def details(self) -> dict[str, Any]:
        """Return the entry with one of each vertex."""
        return self.summary() | {"tasks": {str(vertex): self._vertex(vertex) for vertex in self.awaited}}

    def _vertex(self, vertex: str) -> dict[str, Any]:
        records = self.subtasks.get(vertex, {}).values()
        last = max((r.acknowledged_ms for r in records), default=-1)
        return {
            "id": self.checkpoint_id,
            "status": COMPLETED if len(records) == len(self.awaited[vertex]) else self.status,
            "latest_ack_timestamp": last,
            "end_to_end_duration": last - self.triggered_ms if records else -1,
            **_sizes(records),
            "num_subtasks": len(self.awaited[vertex]),
            "num_acknowledged_subtasks": len(records),
        }

    def of_vertex(self, vertex: str) -> dict[str, Any]:
        """Return the entry of a vertex with one of each acknowledged subtask, a summary of these, and the others.

        `pending_subtasks` are the indexes of the subtasks that have not acknowledged, in ascending order.
        """
        acknowledged = self.subtasks.get(vertex, {})
        subtasks = [self._subtask(index, record) for index, record in sorted(acknowledged.items())]
        pending = sorted(set(self.awaited[vertex]) - acknowledged.keys())

        def over(*path: str) -> dict[str, float]:
            return _spread([_at(entry, path) for entry in subtasks])

        amounts = {
            "checkpointed_size": over("checkpointed_size"),
            "state_size": over("state_size"),
            "end_to_end_duration": over("end_to_end_duration"),
            "checkpoint_duration": {"sync": over("checkpoint", "sync"), "async": over("checkpoint", "async")},
            "alignment": {"persisted": over("alignment", "persisted"), "duration": over("alignment", "duration")},
            "start_delay": over("start_delay"),
        }
        return self._vertex(vertex) | {"summary": amounts, "subtasks": subtasks, "pending_subtasks": pending}

    def _subtask(self, index: int, record: SubtaskRecord) -> dict[str, Any]:
        measured = record.metrics
        return {
            "index": index,
            "status": "completed",
            "ack_timestamp": record.acknowledged_ms,
            "end_to_end_duration": record.acknowledged_ms - self.triggered_ms,
            "checkpointed_size": measured.written_bytes,
            "state_size": measured.state_bytes,
            "checkpoint": {"sync": measured.sync_ms, "async": measured.async_ms},
            "alignment": {"persisted": measured.in_flight_bytes, "duration": measured.alignment_ms},
            "start_delay": measured.start_delay_ms,
        }


def _sizes(records: Iterable[SubtaskRecord]) -> dict[str, int]:
    measured = [record.metrics for record in records]
    return {
        "checkpointed_size": sum(m.written_bytes for m in measured),
        "state_size": sum(m.state_bytes for m in measured),
        "persisted_data": sum(m.in_flight_bytes for m in measured),
    }


def _at(entry: Mapping[str, Any], path: tuple[str, ...]) -> float:
    value: Any = entry
    for name in path:
        value = value[name]
    return float(value)


def _spread(values: Iterable[float]) -> dict[str, float]:
    histogram = Histogram(_REMEMBERED)
    for value in values:
        histogram.update(value)
    return _describe(histogram)


def _describe(histogram: Histogram) -> dict[str, float]:
    """Return minimum, maximum, mean and quantiles; zeros where nothing was measured, as JSON has no NaN."""
    if not histogram.get_count():
        return dict.fromkeys(("min", "max", "avg", *_QUANTILES), 0.0)
    known = histogram.statistics()
    quantiles = {name: histogram.quantile(fraction) for name, fraction in _QUANTILES.items()}
    return {"min": known["min"], "max": known["max"], "avg": known["mean"], **quantiles}


@dataclass(frozen=True, slots=True)
class RestoredRecord:
    """A checkpoint the job has started from."""

    checkpoint_id: int
    restored_ms: int
    is_savepoint: bool
    path: str
    size_bytes: int = 0

    def describe(self) -> dict[str, Any]:
        """Return the record as it stands in the overview."""
        return {
            "id": self.checkpoint_id,
            "restore_timestamp": self.restored_ms,
            "is_savepoint": self.is_savepoint,
            "external_path": self.path,
        }


class CheckpointHistory:
    """Counts all checkpoints of a job, remembers the newest, and measures those that were completed.

    Args:
        length: how many it remembers, in addition to those under way; at least 0.
    """

    def __init__(self, length: int) -> None:
        self.not_triggered = ""
        """Reason why the last checkpoint that was due could not be triggered; "" when it could."""
        self.on_end: Callable[[CheckpointRecord], None] = lambda record: None
        """Is called with each checkpoint that has ended, completed or not."""
        self._records: deque[CheckpointRecord] = deque(maxlen=length)
        self._under_way: dict[int, CheckpointRecord] = {}
        self._latest: dict[str, CheckpointRecord] = {}
        self._restored: RestoredRecord | None = None
        self._counts: Counter[str] = Counter()
        spread = ("checkpointed_size", "state_size", "end_to_end_duration", "persisted_data")
        self._spread = {name: Histogram(_REMEMBERED) for name in spread}

    def triggered(self, record: CheckpointRecord) -> None:
        """Record that a checkpoint has begun."""
        self._under_way[record.checkpoint_id] = record
        self._counts["total"] += 1

    def under_way(self, checkpoint_id: int) -> CheckpointRecord:
        """Return the record of a checkpoint that has not ended."""
        return self._under_way[checkpoint_id]

    def completed(
        self, checkpoint_id: int, path: str, now_ms: int, manifest: CheckpointManifest | None = None
    ) -> None:
        """Record that it is durable.

        Args:
            path: to restore from; "" where it is in memory.
            manifest: of its state.
        """
        record = self._ended(checkpoint_id, COMPLETED, now_ms)
        record.path, record.manifest = path, manifest
        kind = "savepoint" if record.is_savepoint else "completed"
        if kind in self._latest:
            self._latest[kind].forget_state()
        self._latest[kind] = record
        for name, value in (record.sizes() | {"end_to_end_duration": record.duration_ms}).items():
            self._spread[name].update(value)
        self.on_end(record)

    def failed(self, checkpoint_id: int, reason: str, now_ms: int) -> None:
        """Record that it was aborted."""
        record = self._ended(checkpoint_id, FAILED, now_ms)
        record.reason = reason
        self._latest["failed"] = record
        self.on_end(record)

    def _ended(self, checkpoint_id: int, status: str, now_ms: int) -> CheckpointRecord:
        record = self._under_way.pop(checkpoint_id)
        record.status, record.ended_ms = status, now_ms
        self._counts[status] += 1
        self._records.append(record)
        return record

    def discarded(self, checkpoint_id: int) -> None:
        """Record that a completed checkpoint was deleted."""
        for record in [*self._records, *self._latest.values()]:
            if record.checkpoint_id == checkpoint_id:
                record.discarded = True

    @property
    def restored_bytes(self) -> int:
        """Return the size of the state the job has started from; 0 where it started from nothing."""
        return self._restored.size_bytes if self._restored else 0

    @property
    def restored_from(self) -> RestoredRecord | None:
        """Return the checkpoint the job has started from last; None where it started from nothing."""
        return self._restored

    def restored(self, record: RestoredRecord) -> None:
        """Record that the job has started from a checkpoint."""
        self._restored = record
        self._counts["restored"] += 1

    def counts(self) -> dict[str, int]:
        """Return the number of checkpoints of each kind."""
        return {
            "restored": self._counts["restored"],
            "total": self._counts["total"],
            "in_progress": len(self._under_way),
            "completed": self._counts[COMPLETED],
            "failed": self._counts[FAILED],
        }

    def overview(self) -> dict[str, Any]:
        """Return the answer of `/jobs/:jobid/checkpoints`; the newest checkpoint stands first in the history.

        `not_triggered`, which Flink does not have, is why the last checkpoint that was due could not be triggered.
        """
        newest = sorted([*self._records, *self._under_way.values()], key=lambda r: -r.checkpoint_id)
        latest: dict[str, Any] = {
            kind: self._latest[kind].summary() if kind in self._latest else None
            for kind in ("completed", "savepoint", "failed")
        }
        return {
            "counts": self.counts(),
            "summary": {name: _describe(histogram) for name, histogram in self._spread.items()},
            "latest": latest | {"restored": None if self._restored is None else self._restored.describe()},
            "history": [record.summary() for record in newest],
            "not_triggered": self.not_triggered or None,
        }

    def details(self, checkpoint_id: int) -> dict[str, Any] | None:
        """Return the answer of `/jobs/:jobid/checkpoints/details/:checkpointid`; None when it is not remembered."""
        record = self._remembered(checkpoint_id)
        return None if record is None else record.details()

    def describe(self, checkpoint_id: int | None) -> dict[str, Any] | None:
        """Return all that is known of one checkpoint, each vertex with its subtasks; None when it is not remembered.

        The newest ones have the sizes of their state as "state", see `describe_state`; it is null for the others.

        Args:
            checkpoint_id: its number; None: the overview of all.
        """
        if checkpoint_id is None:
            return self.overview()
        record = self._remembered(checkpoint_id)
        if record is None:
            return None
        details = record.details()
        tasks = {name: entry | record.of_vertex(name) for name, entry in details["tasks"].items()}
        return details | {"tasks": tasks, "state": record.state()}

    def of_vertex(self, checkpoint_id: int, vertex: str) -> dict[str, Any] | None:
        """Return the answer of `.../details/:checkpointid/subtasks/:vertexid`; None when there is no such subtask."""
        record = self._remembered(checkpoint_id)
        return None if record is None or vertex not in record.awaited else record.of_vertex(vertex)

    def _remembered(self, checkpoint_id: int) -> CheckpointRecord | None:
        known = {r.checkpoint_id: r for r in (*self._latest.values(), *self._records, *self._under_way.values())}
        return known.get(checkpoint_id)

    def measure(self, group: MetricGroup) -> None:
        """Register Flink's metrics of a job's checkpoints; -1 and "n/a" stand for what there is not yet."""

        def newest() -> CheckpointRecord | None:
            done = [self._latest[kind] for kind in ("completed", "savepoint") if kind in self._latest]
            return max(done, key=lambda r: r.checkpoint_id, default=None)

        def size(name: str) -> int:
            record = newest()
            return -1 if record is None else record.sizes()[name]

        def duration() -> int:
            record = newest()
            return -1 if record is None else record.duration_ms

        def number() -> int:
            record = newest()
            return -1 if record is None else record.checkpoint_id

        def completed() -> int:
            record = newest()
            return -1 if record is None else record.ended_ms

        def path() -> str:
            record = newest()
            return (record.path if record else "") or "n/a"

        gauge = group.gauge
        gauge(names.LAST_CHECKPOINT_DURATION, duration)
        gauge(names.LAST_CHECKPOINT_SIZE, lambda: size("checkpointed_size"))
        gauge(names.LAST_CHECKPOINT_FULL_SIZE, lambda: size("state_size"))
        gauge(names.LAST_CHECKPOINT_PERSISTED_DATA, lambda: size("persisted_data"))
        gauge(names.LAST_COMPLETED_CHECKPOINT_ID, number)
        gauge(names.LAST_CHECKPOINT_COMPLETED_TIMESTAMP, completed)
        gauge(names.LAST_CHECKPOINT_EXTERNAL_PATH, path)
        gauge(names.LAST_CHECKPOINT_RESTORE_TIMESTAMP, lambda: self._restored.restored_ms if self._restored else -1)
        gauge(names.NUMBER_OF_COMPLETED_CHECKPOINTS, lambda: self._counts[COMPLETED])
        gauge(names.NUMBER_OF_FAILED_CHECKPOINTS, lambda: self._counts[FAILED])
        gauge(names.NUMBER_OF_IN_PROGRESS_CHECKPOINTS, lambda: len(self._under_way))
        gauge(names.TOTAL_NUMBER_OF_CHECKPOINTS, lambda: self._counts["total"])


__all__ = ["IN_PROGRESS", "CheckpointHistory", "CheckpointRecord", "RestoredRecord", "SubtaskRecord"]
