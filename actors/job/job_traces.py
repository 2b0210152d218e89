"""The traces of a job: checkpoints and savepoints, starts, failures, restarts and changes of its parallelism. Pure.

Nothing is collected where traces are off.

Source: apache/flink DefaultCheckpointStatsTracker, JobFailureMetricReporter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rayflink.common.metrics.span import Attribute, Span, Trace
from rayflink.common.metrics.trace_settings import TraceSettings
from rayflink.graph.job_graph import JobGraph

from ..checkpoints.history import CheckpointRecord
from ..messages.executions import Execution
from ..messages.messages import TaskFailure
from ..messages.states import ExecutionState, JobStatus
from .attempts import Attempts
from .checkpoint_spans import checkpoint_span
from .failures.job_restarts import JobRestarts
from .job_checkpoints import JobCheckpoints
from .job_lifecycle import JobLifecycle
from .recovery_times import last_recovery

__all__ = ["JobTraces"]

CHECKPOINTS = "org.apache.flink.runtime.checkpoint.CheckpointStatsTracker"
FAILURES = "org.apache.flink.runtime.scheduler.adaptive.JobFailureMetricReporter"
RESTARTS = "rayflink.actors.job.JobTraces"
MOST_PENDING = 256
"""Traces that wait for the runner to take them; it does so after each event."""
_MESSAGE_CHARACTERS = 1_000
_RAN = (ExecutionState.RUNNING.value, ExecutionState.FINISHED.value)


class JobTraces:
    """Collects the traces of one job from its parts.

    Args:
        life: its status and failures.
        attempts: the present ones, with the job's graph.
        checkpoints: of the job; their ends are noted from now on.
        restarts: of its tasks.
        settings: of its traces; None: they are off.
    """

    def __init__(
        self,
        life: JobLifecycle,
        attempts: Attempts,
        checkpoints: JobCheckpoints,
        restarts: JobRestarts,
        settings: TraceSettings | None,
    ) -> None:
        self._life, self._attempts, self._checkpoints, self._restarts = life, attempts, checkpoints, restarts
        self._settings = settings
        self._pending: deque[Trace] = deque(maxlen=MOST_PENDING)
        self._begun_ms: int | None = None
        self._failures = 0
        self._rescaled: Mapping[str, Attribute] | None = None
        if settings is not None:
            checkpoints.history.on_end = self._checkpoint_ended

    @property
    def are_on(self) -> bool:
        """Return whether traces are collected."""
        return self._settings is not None

    def take(self) -> Iterator[Trace]:
        """Return the traces that were not taken yet, once."""
        while self._pending:
            yield self._pending.popleft()

    def _add(self, scope: str, subject: str, root: Span) -> None:
        self._pending.append(Trace(scope, str(self._attempts.graph.id), subject, root))

    def _checkpoint_ended(self, record: CheckpointRecord) -> None:
        assert self._settings is not None, "it is called where traces are on"
        names = {str(vertex.id): vertex.name for vertex in self._attempts.graph.vertices}
        span = checkpoint_span(record, names, self._settings.detail)
        self._add(CHECKPOINTS, f"checkpoint/{record.checkpoint_id}", span)

    def failed(self, task: str, failure: TaskFailure, can_restart: bool, is_global: bool) -> None:
        """Note a failure.

        Args:
            task: name of the task, or "coordinator".
            can_restart: whether the job goes on.
            is_global: whether all of it restarts.
        """
        if not self.are_on:
            return
        attributes: dict[str, Attribute] = {
            "canRestart": can_restart, "isGlobalFailure": is_global, "task": task, "exception": failure.kind,
        }  # fmt: skip
        now_ms, self._failures = self._life.now_ms, self._failures + 1
        span = Span("JobFailure", now_ms, now_ms, attributes, (), failure.message[:_MESSAGE_CHARACTERS])
        self._add(FAILURES, f"failure/{now_ms}/{self._failures}", span)

    def rescaled(self, before: JobGraph, after: JobGraph) -> None:
        """Note that the restart that begins now is for other parallelisms."""
        if self.are_on:
            parallelisms = {vertex.id: vertex.parallelism for vertex in before.vertices}
            changed = [v for v in after.vertices if parallelisms.get(v.id) != v.parallelism]
            changes = (f"{v.name}: {parallelisms.get(v.id, 0)} -> {v.parallelism}" for v in changed)
            self._rescaled = {"changes": "; ".join(changes)}

    def observe(self) -> None:
        """Note a start or restart once all its tasks run, or once it has failed; called after each event."""
        if not self.are_on:
            return
        running_ms = self._life.timestamps.get(JobStatus.RUNNING.value)
        if running_ms is None or running_ms == self._begun_ms:
            return
        new = [e for e in self._attempts if e.timestamps.get(ExecutionState.DEPLOYING.value, -1) >= running_ms]
        if not new or any(e.state is ExecutionState.CREATED for e in self._attempts):
            return
        if all(any(state in e.timestamps for state in _RAN) for e in new):
            self._started(running_ms, new, "COMPLETED")
        elif self._life.status is not JobStatus.RUNNING or any(e.state is ExecutionState.FAILED for e in new):
            self._started(running_ms, new, "FAILED")

    def _started(self, running_ms: int, new: Sequence[Execution], status: str) -> None:
        self._begun_ms = running_ms
        failure = "" if status == "COMPLETED" else "a task did not reach RUNNING"
        initialization = self._initialization(running_ms, new, status, failure)
        restored_bytes = self._checkpoints.restored_bytes
        recovery = last_recovery(self._life.timestamps, self._attempts, restored_bytes, self._restarts.ended_ms)
        if recovery is None or status != "COMPLETED":
            self._add(CHECKPOINTS, f"initialization/{running_ms}", initialization)
            return
        began_ms: int = recovery["began"]
        ended_ms = began_ms + recovery["cancelled_ms"]
        is_rescale, attributes = self._rescaled is not None, dict(self._rescaled or {})
        attributes |= {"tasks": len(new), "restoredBytes": restored_bytes, "restarts": self._restarts.count}
        children = (
            Span("Cancel", began_ms, ended_ms, {}),
            Span("Delay", ended_ms, running_ms, {}),
            initialization,
        )
        root = Span("JobRescale" if is_rescale else "JobRestart", began_ms, initialization.end_ms, attributes, children)
        self._rescaled = None
        self._add(RESTARTS, f"{'rescale' if is_rescale else 'restart'}/{began_ms}", root)

    def _initialization(self, running_ms: int, new: Sequence[Execution], status: str, failure: str) -> Span:
        spans = [_task(execution, running_ms, self._life.now_ms) for execution in new]
        starts = [span.children[0].end_ms - span.start_ms for span in spans]
        states = [span.end_ms - span.children[0].end_ms for span in spans]
        attributes: dict[str, Attribute] = {
            "initializationStatus": status,
            "maxMailboxStartDurationMs": max(starts), "sumMailboxStartDurationMs": sum(starts),
            "maxInitializeStateDurationMs": max(states), "sumInitializeStateDurationMs": sum(states),
        }  # fmt: skip
        restored = self._checkpoints.history.restored_from
        if restored is not None and restored.restored_ms >= running_ms:
            attributes |= {"checkpointId": restored.checkpoint_id, "fullSize": restored.size_bytes}
        end_ms = max((span.end_ms for span in spans), default=running_ms)
        return Span("JobInitialization", running_ms, end_ms, attributes, tuple(spans), failure)


def _task(execution: Execution, running_ms: int, now_ms: int) -> Span:
    """Return the start of one attempt: until its program is loaded, then until its state is restored."""
    moments = execution.timestamps
    end_ms = _first(moments, _RAN, now_ms)
    loaded_ms = _first(moments, (ExecutionState.INITIALIZING.value,), end_ms)
    attributes: dict[str, Attribute] = {
        "jobVertexId": str(execution.vertex.id), "taskName": execution.vertex.name,
        "subtaskId": execution.subtask, "attempt": execution.number,
    }  # fmt: skip
    children = Span("Deploy", running_ms, loaded_ms, {}), Span("Restore", loaded_ms, end_ms, {})
    return Span("JobInitialization_Subtask", running_ms, end_ms, attributes, children)


def _first(moments: Mapping[str, int], states: Iterable[str], otherwise: int) -> int:
    return min((moments[state] for state in states if state in moments), default=otherwise)
