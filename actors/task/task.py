"""One subtask: mailbox, input gate, chain of operators, result partitions; no thread, actor or clock of its own.

`step()` does one bounded piece of work: the mails that are there, then one slice of input (`rayflink.task.time-slice`
long). A runner calls it again and again, delivers what `outgoing()` gives, and puts what arrives into `mail()`. Between
two steps mails, timers, barriers and buffer timeouts have their turn: no function that returns blocks them for long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from rayflink.common.errors import assert_never
from rayflink.common.managed_memory import MemoryManager
from rayflink.common.metrics.accumulator_entries import ACCUMULATORS, accumulator_entries
from rayflink.common.metrics.waits import WAITS
from rayflink.common.options.stop_mode import StopMode
from rayflink.common.records.batches import (
    CheckpointBarrier,
)
from rayflink.common.text_output.logs import get_logger
from rayflink.state.clock import Clock

from ..exchange.current_buffer import CurrentBuffer
from ..exchange.endpoint import ExchangeEndpoint
from ..exchange.frames import Envelope, TaskAddress
from ..exchange.output_room import OutputRoom
from ..messages.messages import (
    AssignSplits,
    CancelTask,
    CheckpointAborted,
    CheckpointAnnounced,
    CheckpointComplete,
    StopTask,
    TaskDeployment,
    TaskFailure,
    TaskReport,
    ToCoordinator,
    ToTask,
    TriggerCheckpoint,
    WatermarkAnnounced,
)
from ..messages.settings import MemorySplit, TaskSettings
from ..messages.states import ExecutionState
from .data_loop import DataLoop
from .polled_source import PolledSource
from .progress import Mail, Progress
from .satisfaction import Satisfaction
from .services import TaskServices
from .slicing import Slicer
from .snapshot_storage import snapshot_writing
from .snapshot_writing import SnapshotWritten
from .task_checkpoints import TaskCheckpoints
from .task_lifecycle import TaskLifecycle, TaskParts, TaskPhase
from .task_metrics import TaskMetrics
from .task_statistics import TaskStatistics
from .waits import Wait, WaitTimes, reasons_to_wait
from .wiring import make_chain, make_gate, make_writers

log = get_logger(__name__)


_WORKING = (TaskPhase.RUNNING, TaskPhase.DRAINING, TaskPhase.AWAITING_FINAL_CHECKPOINT)
_READING = (TaskPhase.STARTING, *_WORKING)


class StreamTask:
    """One execution attempt: works its input in slices, and everything else between two slices.

    `DataLoop` works the input; `TaskLifecycle` starts, ends and releases the task and has its phase. Here are the
    mailbox and what a runner calls.

    Args:
        deployment: what to run.
        clock: `now_ms()` and `monotonic()`.
        mailbox: mails that came before the task was made, and where later ones may be left.
        slicer: sizes the slices of input; None learns from the clock what takes `rayflink.task.time-slice`.
        services: what the process lends it; None: nothing.
    """

    def __init__(
        self,
        deployment: TaskDeployment,
        clock: Clock,
        mailbox: deque[Mail] | None = None,
        slicer: Slicer | None = None,
        services: TaskServices | None = None,
    ) -> None:
        self.deployment, self.identity = deployment, deployment.identity
        self.clock = clock
        log.info("Received task %s.", deployment.title)
        self._mailbox: deque[Mail] = deque() if mailbox is None else mailbox
        self._reports: deque[ToCoordinator] = deque()
        self.metrics = TaskMetrics(deployment, clock)
        settings = TaskSettings.of(deployment.config)
        self._services = services = services or TaskServices()
        managed = services.managed or MemoryManager(MemorySplit.of(deployment.config).managed_bytes)
        self._writers = make_writers(deployment, settings, managed)
        self._room = OutputRoom(self._writers)
        self._gate = make_gate(deployment, settings, clock)
        partitions = [writer.partition for writer in self._writers]
        limits = settings.max_in_flight, settings.gap_timeout_ms
        self._peers = ExchangeEndpoint(deployment.attempt, self._gate, partitions, *limits)
        self._slicer = Slicer(clock, settings.slice_ms) if slicer is None else slicer
        self._chain = make_chain(deployment, self._writers, self._room.is_full, settings)
        writing = snapshot_writing(deployment, services, clock, self.mail)
        self._checkpoints = TaskCheckpoints(
            deployment, self._chain, self._gate, self._writers, self._reports.append, writing
        )
        self.metrics.measures_checkpoints(self._checkpoints)
        self._buffer = CurrentBuffer(self._gate)
        head = self._chain.links[0].operator
        source = None if deployment.inputs else PolledSource(head, deployment.operators[0].name)
        self._satisfaction = Satisfaction(deployment, self._chain, source)
        parts = TaskParts(
            deployment, clock, self._mailbox, services, managed, self.metrics, self._gate, self._chain, self._writers,
            self._peers, self._buffer, writing, self._checkpoints, settings.exit_on_out_of_memory,
        )  # fmt: skip
        self._life = TaskLifecycle(parts, self._reports, self.report)
        self._wait_times = WaitTimes()
        self._loop = DataLoop(parts, self._life, source, self._room, self._slicer, settings)

    # what a runner calls

    def mail(self, message: Mail) -> None:
        """Put a message into the mailbox; may be called from another thread."""
        self._mailbox.append(message)
        if isinstance(message, SnapshotWritten) and self._services.wake is not None:
            self._services.wake()

    def start(self, send_reports: Callable[[], object] | None = None) -> None:
        """Set up, restore and open the operators, and request the partitions of the producers.

        A task that was cancelled before opens nothing, and one that is cancelled meanwhile does not begin to run.

        Args:
            send_reports: called before the restore, so that the reports until then do not wait for it.

        Raises:
            InvalidStart: it was started before.
        """
        if self._life.start(send_reports) and self.deployment.finished:
            try:
                self._loop.forward_end()
            except (Exception, SystemExit) as error:
                self._life.fail(error)

    def step(self) -> Progress:
        """Do one bounded piece of work: what depends on the phase; see `TaskPhase`."""
        try:
            self._read_mail()
            return self._step_of_phase()
        except (Exception, SystemExit) as error:
            self._life.fail(error)
            return self._step_of_phase()

    def _step_of_phase(self) -> Progress:
        match self._life.phase:
            case TaskPhase.RUNNING | TaskPhase.DRAINING | TaskPhase.AWAITING_FINAL_CHECKPOINT:
                return self._step_of_work()
            case TaskPhase.SERVING:
                return self._life.serve()
            case TaskPhase.RELEASING:
                return self._life.release()
            case TaskPhase.STARTING:
                return Progress.IDLE
            case TaskPhase.DONE:
                return self._life.drop_mail()

    def _step_of_work(self) -> Progress:
        now = self.clock.now_ms()
        for writer in self._writers:
            writer.tick(now)
        self._checkpoints.look_on(now)
        self._peers.check(now)
        self._reports.extend(self._satisfaction.news())
        progress = self._loop.take_turn(now)
        if self._loop.source is None:
            idle = progress is Progress.IDLE and self._buffer.empty and self._chain.idle
            self._gate.end_step(idle, progress is Progress.BACK_PRESSURED)
        return progress

    @property
    def state(self) -> ExecutionState:
        """Return the state of the attempt, as the coordinator sees it."""
        return self._life.state

    @property
    def phase(self) -> TaskPhase:
        """Return the phase, which determines the next step."""
        return self._life.phase

    @property
    def accumulators(self) -> dict[str, Any]:
        """Return the accumulators of the task's functions, by name."""
        return self._life.accumulators

    def outgoing(self) -> list[Envelope]:
        """Return what may be sent now; the runner calls `returned` when each envelope has been delivered."""
        try:
            return self._peers.outgoing()
        except Exception as error:  # what has been spilled cannot be read again
            self._life.fail(error)
            return self._peers.outgoing()

    def give_up(self, failure: TaskFailure) -> None:
        """End as failed, also by what happened outside a step: operators are closed, and the consumers get the cause.

        A task that has finished and serves its consumers stays FINISHED, and reports that its result is lost.
        """
        self._life.give_up(failure)

    def returned(self, peer: TaskAddress) -> None:
        """Note that a call to `peer` has returned, so that the next envelope may go."""
        self._peers.returned(peer)

    def reports(self) -> list[ToCoordinator]:
        """Return the messages for the coordinator since the last call."""
        reports = list(self._reports)
        self._reports.clear()
        return reports

    def report(self) -> TaskReport:
        """Return a heartbeat with the current counters, and what the task waits for if it does."""
        metrics = self.metrics.snapshot(self._chain.links, self._writers, self._gate, self._loop.valve, self._peers)
        if waits := self._wait_times.report(self._waits(), self.clock.monotonic()):
            metrics[WAITS] = waits
        if entries := accumulator_entries(self._life.accumulators):
            metrics[ACCUMULATORS] = entries
        return TaskReport(self.deployment.attempt, metrics)

    def deadline_ms(self) -> int | None:
        """Return when `step` has work without a mail: a timer, a buffer timeout, a source's next poll."""
        if self._life.phase not in _WORKING:  # what is left to do comes by mail
            return None
        times = [self._peers.deadline_ms(), *(writer.deadline_ms() for writer in self._writers)]
        times += [self._checkpoints.deadline_ms(), self._loop.deadline_ms()]
        return min((due for due in times if due is not None), default=None)

    def waits_for(self) -> str:
        """Describe what the task waits for, apart from time (`deadline_ms`)."""
        if self.state is not ExecutionState.RUNNING:
            return f"is {self.state.value}"
        reasons = [wait.reason for wait in self._waits()]
        if self._life.phase is TaskPhase.SERVING:
            unsent = [str(w.partition.id) for w in self._writers if not w.partition.fully_consumed]
            reasons = [f"has finished, waits until {len(unsent)} partitions are fetched"]
        elif self._loop.source is not None:
            reasons.append("waits for its source to give records")
        return "; ".join(reasons)

    def _waits(self) -> list[Wait]:
        if self._life.phase not in _WORKING:
            return []
        is_idle = self._chain.idle and self._buffer.empty
        is_full = self._room.is_full()
        return reasons_to_wait(is_full, is_idle, self.work_done, self._chain, self._gate, self._checkpoints)

    def statistics(self) -> TaskStatistics:
        """Return the sizes of all queues, pools and buffers of the task."""
        writers = tuple(writer.statistics() for writer in self._writers)
        received = self._gate.statistics(), self._buffer.statistics()
        return TaskStatistics(len(self._mailbox), *received, writers, self._peers.statistics())

    @property
    def buffers_held(self) -> int:
        """Return the number of batches waiting to be sent, and of batches and events received but not yet taken."""
        return self._gate.queued + sum(sub.backlog for w in self._writers for sub in w.partition.subpartitions)

    @property
    def work_done(self) -> int:
        """Return a count that grows whenever something was received, worked or sent."""
        worked = sum(link.records_in + link.records_out for link in self._chain.links)
        received = sum(channel.next_sequence for channel in self._gate.channels)
        return worked + received + sum(s.sequence for w in self._writers for s in w.partition.subpartitions)

    @property
    def records_taken(self) -> int:
        """Return the number of records that the head of the chain has received."""
        return self._chain.links[0].records_in

    @property
    def has_mail(self) -> bool:
        """Return whether a mail waits."""
        return bool(self._mailbox)

    # mail

    def _read_mail(self) -> None:
        while self._mailbox and self._life.phase in _READING:
            message = self._mailbox.popleft()
            if isinstance(message, Envelope):
                self._peers.take(message, self.clock.now_ms())
            else:
                self._take_command(message)

    def _take_command(self, command: ToTask | SnapshotWritten) -> None:
        match command:
            case CancelTask():
                self._life.cancel()
            case StopTask():
                self._loop.source_for(command).stop()
            case SnapshotWritten():
                self._checkpoints.written(command)
            case AssignSplits():
                # A savepoint that drains the job includes them already; a checkpoint that was triggered does not.
                if not self._loop.is_draining and not self._checkpoints.hold_back(command):
                    self._loop.source_for(command).assign(command)
            case WatermarkAnnounced():
                self._loop.source_for(command).watermark_announced(command.max_allowed)
            case TriggerCheckpoint():
                self._trigger(command.barrier)
            case CheckpointAnnounced():
                self._checkpoints.announced(command.checkpoint_id)
            case CheckpointComplete():
                self._checkpoints.complete(command.checkpoint_id)
                self._loop.end_if_stopped()
            case CheckpointAborted():
                self._checkpoints.aborted(command.checkpoint_id)
            case _:
                assert_never(command)

    def _trigger(self, barrier: CheckpointBarrier) -> None:
        """Begin a checkpoint; a savepoint that drains the job stops the source, and begins at the end of its data."""
        if self.state is not ExecutionState.RUNNING:
            self._checkpoints.decline(barrier.checkpoint_id, f"the task is {self.state.value}", is_failure=False)
        elif barrier.stop is not StopMode.DRAIN or not self._loop.drain(barrier):
            self._checkpoints.trigger(barrier)


__all__ = ["StreamTask"]
