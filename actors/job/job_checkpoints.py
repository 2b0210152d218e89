"""The checkpoints of one job beside its attempts: the only door to their coordinator. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from rayflink.common.configuration import reading
from rayflink.common.errors import assert_never
from rayflink.common.options import registry as options
from rayflink.graph.attributes import NodeKind
from rayflink.graph.job_graph import JobGraph
from rayflink.state.errors import DamagedFileError, SnapshotMismatch, UnresolvedClassError, VersionMismatch
from rayflink.state.storage.storage import MissingFileError

from ..checkpoints.completed import CompletedCheckpoint
from ..checkpoints.coordinator import CheckpointCoordinator, Decision
from ..checkpoints.history import CheckpointHistory
from ..checkpoints.master_hooks import MasterHooks
from ..checkpoints.plan import CheckpointedJob, CheckpointPlan, OperatorPlace
from ..exchange.frames import TaskAddress
from ..messages.checkpoint_settings import CheckpointSettings
from ..messages.commands import (
    CheckpointNotPublished,
    CheckpointPublished,
    CheckpointRequested,
    CheckpointsLeft,
    SavepointRequested,
    SendToTask,
)
from ..messages.executions import Execution
from ..messages.messages import (
    CheckpointAcknowledged,
    CheckpointAnnounced,
    CheckpointDeclined,
    LastCheckpointAwaited,
    TaskDeployment,
    TaskFailure,
)
from ..messages.states import ExecutionState, JobStatus
from .attempts import Attempts
from .enumeration import Enumerators
from .history.job_history import JobHistory
from .restoring import Restoring

CheckpointEvent: TypeAlias = (
    SavepointRequested
    | CheckpointRequested
    | CheckpointAcknowledged
    | CheckpointDeclined
    | LastCheckpointAwaited
    | CheckpointPublished
    | CheckpointNotPublished
)
_UNREADABLE = (DamagedFileError.__name__, MissingFileError.__name__)
_UNFIT = (SnapshotMismatch.__name__, UnresolvedClassError.__name__, VersionMismatch.__name__)
MOST_LEAD_MS = 500
"""A checkpoint is announced so long before its trigger, or for half of the interval."""


@dataclass(frozen=True, slots=True)
class JobStart:
    """The start of a job that continues from earlier state.

    Args:
        epoch: of its coordinator, one more with each that takes over.
        completed: the checkpoints an earlier coordinator left, or the one the user named.
        next_number: of its first checkpoint, at least.
        past: of the job under earlier coordinators.
        began_ms: when the job began, epoch milliseconds; 0: it begins now.
    """

    epoch: int = 0
    completed: Sequence[CompletedCheckpoint] = ()
    next_number: int = 1
    past: JobHistory = JobHistory()
    began_ms: int = 0


def takes_checkpoints(graph: JobGraph) -> bool:
    """Return whether a job takes checkpoints by the clock."""
    return CheckpointSettings.of(graph.configuration).interval_ms is not None and not _refused(graph)


def _refused(graph: JobGraph) -> str:
    """Return why a job can have no checkpoints; "" where it can."""
    in_batches = reading(graph.configuration).get(options.RUNTIME_MODE).name == "BATCH"
    return "a job in batch mode has none" if in_batches else ""


class JobCheckpoints:
    """The checkpoints of one job: who takes part in them, what attempts start from, and their coordinator.

    Args:
        graph: the job.
        start: from which checkpoints it begins.
        enumerators: of its sources; their state is part of checkpoints.
        attempts: the present ones.
        new_id: gives 32 fresh hex digits a call.
    """

    def __init__(
        self,
        graph: JobGraph,
        start: JobStart,
        enumerators: Enumerators,
        attempts: Attempts,
        new_id: Callable[[], str],
    ) -> None:
        self._graph, self._attempts, self._enumerators = graph, attempts, enumerators
        config = reading(graph.configuration)
        settings = CheckpointSettings.of(graph.configuration)
        self._refused = _refused(graph)
        loops = any(node.kind is NodeKind.ITERATION_HEAD for vertex in graph.vertices for node in vertex.operators)
        if loops and not config.get(options.CHECKPOINT_FORCE_UNALIGNED):
            settings = replace(settings, unaligned=False)
        if self._refused:
            settings = replace(settings, interval_ms=None)
        self._settings = settings
        self._ignore_unclaimed = config.get(options.IGNORE_UNCLAIMED_STATE)
        self._epoch = start.epoch
        job = CheckpointedJob(graph.id, graph.name, start.epoch)
        hooks = MasterHooks(graph.master_hooks)
        self._coordinator = CheckpointCoordinator(job, settings, self.plan, enumerators.snapshot, new_id, hooks)
        self._coordinator.restored(start.completed, start.next_number)
        self._restoring: Restoring | None = None
        self._at_the_end: set[TaskAddress] = set()
        self._announced_for: int | None = None

    # the door to the coordinator

    def handle(self, event: CheckpointEvent, now_ms: int) -> list[Decision]:
        """Return what follows from a request, from the answer of a task, or from the answer of the storage."""
        coordinator = self._coordinator
        match event:
            case SavepointRequested():
                return coordinator.savepoint(event, now_ms)
            case CheckpointRequested():
                return coordinator.checkpoint(event, now_ms)
            case CheckpointAcknowledged():
                return coordinator.acknowledge(event, now_ms)
            case CheckpointDeclined():
                return coordinator.decline(event, now_ms)
            case LastCheckpointAwaited():
                return self._await_final(event.attempt, now_ms)
            case CheckpointPublished():
                return coordinator.published(event.checkpoint_id, now_ms)
            case CheckpointNotPublished():
                number, reason = event.checkpoint_id, event.reason
                return coordinator.not_published(number, reason, now_ms, event.exists, event.in_doubt)
            case _:
                assert_never(event)

    @property
    def settings(self) -> CheckpointSettings:
        """Return the options of the job's checkpoints, as far as the job can follow them."""
        return self._settings

    @property
    def history(self) -> CheckpointHistory:
        """Return statistics of the checkpoints so far."""
        return self._coordinator.history

    @property
    def latest(self) -> CompletedCheckpoint | None:
        """Return the checkpoint from which the job would restart now."""
        return self._coordinator.latest

    @property
    def completed(self) -> tuple[CompletedCheckpoint, ...]:
        """Return all retained checkpoints, from the oldest to the newest."""
        return self._coordinator.completed

    @property
    def left(self) -> CheckpointsLeft:
        """Return the checkpoints that are left after the end of the job."""
        return self._coordinator.left

    @property
    def next_id(self) -> int:
        """Return the id of the next checkpoint."""
        return self._coordinator.next_id

    @property
    def are_pending(self) -> bool:
        """Return whether a checkpoint is under way."""
        return bool(self._coordinator.pending)

    @property
    def are_undecided(self) -> bool:
        """Return whether a checkpoint is being published: until that is resolved nothing is restored or deleted."""
        return bool(self._coordinator.undecided)

    @property
    def is_stopping(self) -> bool:
        """Return whether a savepoint that stops the job is under way or complete."""
        return self._coordinator.is_stopping

    @property
    def next_tick_ms(self) -> int | None:
        """Return when `tick` or `announcement` is due, in epoch milliseconds; None: neither is."""
        times = (self.announced_ms, self._coordinator.next_tick_ms)
        return min((time for time in times if time is not None), default=None)

    def trigger_now(self, now_ms: int) -> list[Decision]:
        """Trigger a checkpoint as soon as possible, whatever the interval and the pause."""
        return self._coordinator.trigger_now(now_ms)

    def resume(self, now_ms: int) -> list[Decision]:
        """Take checkpoints from now on: the tasks are deployed."""
        return self._coordinator.resume(now_ms)

    def suspend(self, now_ms: int, reason: str) -> list[Decision]:
        """Take no checkpoints until `resume`: tasks are started anew."""
        return self._coordinator.suspend(now_ms, reason)

    def task_ended(self, attempt: TaskAddress, now_ms: int) -> list[Decision]:
        """Abort the checkpoints that wait for an attempt that has ended."""
        return self._coordinator.task_ended(attempt, now_ms)

    def job_ended(self, status: JobStatus, now_ms: int) -> list[Decision]:
        """Abort what is under way, and drop the checkpoints that do not outlive a job with this status."""
        return self._coordinator.job_ended(status, now_ms)

    def expire(self, now_ms: int, stalled: Callable[[TaskAddress], str]) -> list[Decision]:
        """Abort what takes too long; `stalled` describes the function of a task that has not returned for long."""
        return self._coordinator.expire(now_ms, stalled)

    def tick(self, now_ms: int) -> list[Decision]:
        """Abort what takes too long, and trigger what is due."""
        return self._coordinator.tick(now_ms)

    # facts

    @property
    def restored_bytes(self) -> int:
        """Return the size of the state the job has started from; 0 where it started from nothing."""
        return self._coordinator.history.restored_bytes

    @property
    def are_periodic(self) -> bool:
        """Return whether checkpoints are taken by the clock."""
        return self._settings.interval_ms is not None

    def plan(self) -> CheckpointPlan | str:
        """Return the participants of a checkpoint now, or the reason why there can be none."""
        if self._refused:
            return self._refused
        executions = list(self._attempts)
        live = [e for e in executions if e.state is not ExecutionState.FINISHED]
        if not live:
            return "all tasks have finished"
        waiting = [e for e in live if e.state is not ExecutionState.RUNNING]
        if waiting:
            return f"not all required tasks are running: {waiting[0].name} is {waiting[0].state.value}"
        over = {e.vertex.id for e in live}
        begin = [e for e in live if not any(edge.source in over for edge in e.vertex.inputs)]
        finished: dict[str, set[int]] = {}
        for execution in executions:
            if execution.state is ExecutionState.FINISHED:
                for node in execution.vertex.operators:
                    finished.setdefault(node.operator_id, set()).add(execution.subtask)
        everybody = tuple(e.attempt for e in live)
        return CheckpointPlan(
            tuple(e.attempt for e in begin),
            {e.attempt: (e.vertex.id, e.subtask) for e in live},
            everybody,
            {operator: frozenset(subtasks) for operator, subtasks in finished.items()},
            self._places,
        )

    @property
    def _places(self) -> tuple[OperatorPlace, ...]:
        return tuple(
            OperatorPlace(
                node.operator_id, node.uid or "", node.name, vertex.parallelism, vertex.max_parallelism, vertex.id
            )
            for vertex in self._graph.vertices
            for node in vertex.operators
        )

    # restart

    def adopt(self, graph: JobGraph) -> None:
        """Adopt the graph of a job that goes on with other parallelisms."""
        self._graph = graph

    def restore(self, now_ms: int) -> tuple[Mapping[str, bytes], list[Decision]]:
        """Start the job from its newest checkpoint, if it has one; return the states of its enumerators.

        Raises:
            RestoreError: it does not fit the job.
            HookError: a hook of the program fails.
        """
        self._at_the_end &= {execution.attempt for execution in self._attempts}  # regions that run on still wait
        checkpoint, commands = self._coordinator.restore(now_ms)
        self._restoring = None
        if checkpoint is None:
            return {}, commands
        self._restoring = Restoring(checkpoint.manifest, checkpoint.base, self._graph, self._ignore_unclaimed)
        return self._restoring.enumerators, commands

    def goes_back(self, failure: TaskFailure, execution: Execution) -> bool:
        """Return whether a failed attempt may begin again.

        Not where it could not read the only checkpoint there is, nor where what it read does not fit the program.
        """
        if self._restoring is not None and failure.kind in _UNFIT:
            return False
        has_begun = ExecutionState.RUNNING.value in execution.timestamps
        if self._restoring is None or has_begun or failure.kind not in _UNREADABLE:
            return True
        return self._coordinator.unreadable(self._restoring.manifest.checkpoint_id)

    def equipped(self, deployment: TaskDeployment, execution: Execution) -> TaskDeployment:
        """Return the deployment with what the attempt starts from."""
        deployment = replace(
            deployment,
            checkpoint_base=self._coordinator.base,
            checkpointing=self.are_periodic,
            epoch=self._epoch,
        )
        if self._restoring is None:
            return deployment
        return replace(
            deployment,
            restore=self._restoring.snapshots_of(execution.vertex, execution.subtask),
            restore_base=self._restoring.base,
            in_flight=self._restoring.in_flight(execution.vertex, execution.subtask),
            finished=self.begins_finished(execution),
        )

    def begins_finished(self, execution: Execution) -> bool:
        """Return whether the attempt's whole work was done before the checkpoint that it starts from."""
        return self._restoring is not None and self._restoring.is_finished(execution.vertex, execution.subtask)

    # the time before a checkpoint

    @property
    def announced_ms(self) -> int | None:
        """Return when the next checkpoint is announced, so that tasks begin to write parts of its snapshot."""
        due = self._coordinator.due_ms
        if due is None or due == self._announced_for:
            return None
        return due - min(MOST_LEAD_MS, (self._settings.interval_ms or 0) // 2)

    def announcement(self, now_ms: int) -> list[Decision]:
        """Return the decisions that announce a checkpoint to the tasks, if one comes."""
        due_ms = self.announced_ms
        if due_ms is None or now_ms < due_ms:
            return []
        self._announced_for = self._coordinator.due_ms
        plan = self.plan()
        if isinstance(plan, str):
            return []
        message = CheckpointAnnounced(self._coordinator.next_id)
        return [SendToTask(attempt, message) for attempt in plan.commit_to]

    # the end of the data

    def _await_final(self, attempt: TaskAddress, now_ms: int) -> list[Decision]:
        """Record that a task has worked all its data and waits for its final checkpoint; trigger it if it is due."""
        self._at_the_end.add(attempt)
        return self.final_if_due(now_ms)

    def final_if_due(self, now_ms: int) -> list[Decision]:
        """Trigger the final checkpoint at once if no source has data any more."""
        if not self._at_the_end or self._coordinator.pending:
            return []
        plan = self.plan()
        if isinstance(plan, str) or not self._at_the_end.issuperset(plan.trigger):
            return []
        return self._coordinator.trigger_now(now_ms)


__all__ = ["JobCheckpoints", "JobStart", "takes_checkpoints"]
