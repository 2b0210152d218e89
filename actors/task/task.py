"""One subtask: mailbox, input gate, chain of operators, result partitions; no thread, actor or clock of its own.

`step()` does one bounded piece of work: the mails that are there, then one slice of input (`rayflink.task.time-slice`
long). A runner calls it again and again, delivers what `outgoing()` gives, and puts what arrives into `mail()`. Between
two steps mails, timers, barriers and buffer timeouts have their turn: no function that returns blocks them for long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NoReturn

from rayflink.common.errors import assert_never
from rayflink.common.managed_memory import MemoryManager
from rayflink.common.options.stop_mode import StopMode
from rayflink.common.records.batches import (
    MAX_TIMESTAMP,
    ArrowBatch,
    CancelCheckpointMarker,
    CheckpointBarrier,
    EndOfData,
    EndOfPartition,
    EndOfSuperstep,
    Event,
    LatencyMarker,
    RowBatch,
    Watermark,
    WatermarkStatus,
)
from rayflink.common.text_output.logs import get_logger
from rayflink.operators.event_time.idle_advance import IdleAdvance
from rayflink.operators.event_time.watermark_valve import InputWatermarks

from ..exchange.current_buffer import CurrentBuffer
from ..exchange.endpoint import ExchangeEndpoint
from ..exchange.frames import Envelope, TaskAddress
from ..exchange.output_room import OutputRoom
from ..exchange.subpartition import ExchangeError
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
from .polled_source import PolledSource
from .progress import Mail, Progress, reasons_to_wait
from .satisfaction import Satisfaction
from .services import TaskServices
from .slicing import MOST_POLLED, Slicer
from .snapshot_storage import snapshot_writing
from .snapshot_writing import SnapshotWritten
from .supersteps import BlockingSupersteps
from .task_checkpoints import TaskCheckpoints
from .task_lifecycle import TaskLifecycle, TaskParts, TaskPhase
from .task_metrics import TaskMetrics
from .wiring import make_chain, make_gate, make_writers

log = get_logger(__name__)


_WORKING = (TaskPhase.RUNNING, TaskPhase.DRAINING, TaskPhase.AWAITING_FINAL_CHECKPOINT)
_READING = (TaskPhase.STARTING, *_WORKING)


class StreamTask:
    """One execution attempt: works its input in slices, and everything else between two slices.

    The data loop is here; `TaskLifecycle` starts, ends and releases the task and has its phase.

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
        clock: Any,
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
        self._valve = InputWatermarks([spec.input_index for spec in deployment.inputs] or [0])
        advances = settings.advance_when_idle_ms if deployment.inputs and not settings.in_batches else None
        self._idle_advance = IdleAdvance(advances, settings.watermark_interval_ms or 200)
        self._slicer = Slicer(clock, settings.slice_ms) if slicer is None else slicer
        self._chain = make_chain(deployment, self._writers, self._room.is_full, settings)
        writing = snapshot_writing(deployment, services, clock, self.mail)
        self._checkpoints = TaskCheckpoints(
            deployment, self._chain, self._gate, self._writers, self._reports.append, writing
        )
        self.metrics.measures_checkpoints(self._checkpoints)
        self._supersteps = BlockingSupersteps(self._gate, settings.in_batches)
        self._buffer = CurrentBuffer(self._gate)
        self._ended_inputs: dict[int, set[int]] = {}
        self._checkpoint_had_turn = self._timers_had_turn = False
        self._drain_barrier: CheckpointBarrier | None = None
        head = self._chain.links[0].operator
        self._source = None if deployment.inputs else PolledSource(head, deployment.operators[0].name)
        self._satisfaction = Satisfaction(deployment, self._chain, self._source)
        parts = TaskParts(
            deployment, clock, self._mailbox, services, managed, self.metrics, self._gate, self._chain, self._writers,
            self._peers, self._buffer, writing, self._checkpoints, settings.exit_on_out_of_memory,
        )  # fmt: skip
        self._life = TaskLifecycle(parts, self._reports, self.report)

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
                self._forward_end()
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
        progress = self._take_turn(now)
        if self._source is None:
            idle = progress is Progress.IDLE and self._buffer.empty and self._chain.idle
            self._gate.stepped(idle, progress is Progress.BACK_PRESSURED)
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
        """Return a heartbeat with the current counters."""
        return TaskReport(
            self.deployment.attempt,
            self.metrics.snapshot(self._chain.links, self._writers, self._gate, self._valve, self._peers),
        )

    def deadline_ms(self) -> int | None:
        """Return when `step` has work without a mail: a timer, a buffer timeout, a source's next poll."""
        if self._life.phase not in _WORKING:  # what is left to do comes by mail
            return None
        times = [self._peers.deadline_ms(), *(writer.deadline_ms() for writer in self._writers)]
        times.append(self._checkpoints.deadline_ms())
        if not self._room.is_full() and not self._checkpoints.final.is_quiescent:  # else nothing is served
            if self._life.phase is TaskPhase.RUNNING:
                times.append(self._chain.next_processing_ms())
                if self._chain.idle and self._chain.accepts_records():
                    times.append(self._idle_advance.next_ms)
            times.append(self._chain.next_completion_ms())
            if self._source is not None and not self._checkpoints.final.is_suspended:
                times.append(self._source.next_poll_ms())
        return min((due for due in times if due is not None), default=None)

    def waits_for(self) -> str:
        """Describe what the task waits for, apart from time (`deadline_ms`)."""
        if self.state is not ExecutionState.RUNNING:
            return f"is {self.state.value}"
        reasons = reasons_to_wait(self._room.is_full(), self._chain, self._gate, self._checkpoints.final)
        if self._life.phase is TaskPhase.SERVING:
            unsent = [str(w.partition.id) for w in self._writers if not w.partition.fully_consumed]
            reasons = [f"has finished, waits until {len(unsent)} partitions are fetched"]
        elif self._source is not None:
            reasons.append("waits for its source to give records")
        return "; ".join(reasons)

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

    # one step

    def _take_turn(self, now: int) -> Progress:
        """Begin a checkpoint or work, in turns: several checkpoints may be triggered before the next piece of work."""
        if self._checkpoint_had_turn:
            self._checkpoint_had_turn = False
            self._work(now)
            return Progress.BUSY
        self._checkpoint_had_turn = self._begin_checkpoint(now)
        return Progress.BUSY if self._checkpoint_had_turn else self._work(now)

    def _begin_checkpoint(self, now: int) -> bool:
        if self._is_done:
            return False
        if self._checkpoints.overtakes(now) and self._chain.overflow(self._room.is_flooded):
            self._checkpoints.overtake(self._buffer, now)
        elif not self._chain.idle or not self._buffer.empty or self._room.is_full():
            return False
        elif not self._checkpoints.begin_triggered(now):
            return False
        for splits in self._checkpoints.released():
            self._own_source(splits).assign(splits)
        return True

    @property
    def _is_done(self) -> bool:
        """Return whether the task only has to finish."""
        if self._life.phase is not TaskPhase.AWAITING_FINAL_CHECKPOINT:
            return False
        final = self._checkpoints.final
        return final.is_done or not final.awaited and not self._checkpoints.has_triggered

    def _work(self, now: int) -> Progress:
        final = self._checkpoints.final
        if self._chain.works_async and not self._room.is_full() and not final.is_quiescent:
            self._chain.emit_completed()
        if not self._chain.idle:
            return self._run_chain()
        if self._room.is_full():
            return Progress.BACK_PRESSURED
        may_fire = self._life.phase is TaskPhase.RUNNING and not (self._timers_had_turn or final.is_quiescent)
        self._timers_had_turn = may_fire and self._chain.fire_processing_time(now)
        if self._timers_had_turn:  # the next turn is the input's, even when timers are due again
            self._slicer.expect(0)
            return self._run_chain()
        if not self._buffer.empty:
            return self._next_slice() if self._chain.accepts_records() else Progress.IDLE
        if self._is_done:
            self._life.finish()
            return Progress.BUSY
        if final.is_suspended or not self._chain.accepts_records():
            return Progress.IDLE
        if self._source is not None:
            return self._poll(self._source)
        item = self._gate.next()
        if item is None:
            return self._advance_when_idle(now)
        if item.body is not None:
            self._buffer.load(item.body, item.channel, item.input_index)
            return self._next_slice()
        assert item.event is not None
        self._slicer.expect(0)
        self._take_event(item.channel, item.input_index, item.event, now)
        return Progress.BUSY if self._chain.idle else self._run_chain()

    def _advance_when_idle(self, now: int) -> Progress:
        """Advance event time by the clock if no input comes and the sources are idle."""
        timestamp = self._idle_advance.due(now)
        if timestamp is None:
            return Progress.IDLE
        self._slicer.expect(0)
        self._feed(self._valve.advance_to(timestamp))
        return self._run_chain()

    def _run_chain(self) -> Progress:
        self._slicer.begin()
        idle = self._chain.run(self._slicer.may_continue)
        self._slicer.end()
        if not idle and self._room.is_full():
            return Progress.BACK_PRESSURED
        return Progress.IDLE if self._chain.is_waiting else Progress.BUSY

    def _next_slice(self) -> Progress:
        buffer, head = self._buffer, self._chain.prefetch
        rows_ahead, input_index = 0 if head is None else head.reads_ahead, buffer.input_index
        if rows_ahead and head is not None and (ahead := buffer.announce(rows_ahead)) is not None:
            head.read_ahead(ahead, input_index)
        is_announced = buffer.rows_announced > 0
        batch = buffer.take_slice(self._room.rows(self._slicer.rows(buffer.rows_at_hand)))
        if rows_ahead and head is not None and not is_announced:
            head.read_ahead(batch, input_index)
        self._slicer.expect(len(batch))
        self._room.count_taken(len(batch))
        self._chain.feed(batch, input_index)
        return self._run_chain()

    def _poll(self, source: PolledSource) -> Progress:
        if source.ended:
            return Progress.IDLE
        rows = self._room.rows(self._slicer.rows(MOST_POLLED))
        self._slicer.begin()
        elements = source.poll(rows)
        if elements is None:
            self._life.end_input()
            self._slicer.expect(0)
            self._chain.emit(0, source.last_elements())
            self._checkpoints.data_over()
            if self._drain_barrier is not None:
                self._checkpoints.trigger(self._drain_barrier)
            return self._run_chain()
        if not elements:
            return Progress.IDLE
        polled = sum(len(e) for e in elements if isinstance(e, RowBatch | ArrowBatch))
        self._slicer.expect(polled)
        self._room.count_taken(polled)
        self._chain.emit(0, elements)
        idle = self._chain.run(self._slicer.may_continue)
        self._slicer.end()
        return Progress.BACK_PRESSURED if not idle and self._room.is_full() else Progress.BUSY

    def _take_event(self, channel: int, input_index: int, event: Event, now: int) -> None:
        if self._checkpoints.final.skips_data and not isinstance(event, CheckpointBarrier | EndOfPartition):
            return
        match event:
            case Watermark():
                self._feed(self._valve.watermark(channel, event.timestamp))
            case WatermarkStatus():
                self._feed(self._valve.status(channel, event.idle, event.relayed))
            case LatencyMarker():
                self._chain.feed(event)
            case CheckpointBarrier():
                self._checkpoints.barrier(channel, event, now)
            case CancelCheckpointMarker():
                self._checkpoints.cancel(channel, event)
            case EndOfSuperstep():
                self._feed(self._supersteps.arrived(channel, event))
            case EndOfData():
                self._input_ended(channel, input_index)
                self._feed(self._supersteps.ended(channel))
            case EndOfPartition():
                self._checkpoints.end(channel, now)
                if not self._checkpoints.final.skips_data:
                    self._feed([*self._valve.end(channel)])
                if self._gate.is_finished:
                    self._life.end_input()
            case _:
                raise _unknown_event(event, channel)
        if isinstance(event, Watermark | WatermarkStatus | EndOfPartition):
            self._idle_advance.seen(self._valve.sources_are_idle, self._valve.current, now)

    def _forward_end(self) -> None:
        """Mark the end of the data for the consumers: all of it was worked before the checkpoint that is restored."""
        for writer in self._writers:
            writer.broadcast(Watermark(MAX_TIMESTAMP))
            writer.broadcast(EndOfData())
        self._life.enter(TaskPhase.DRAINING)
        if self._source is not None:
            self._source.ended = True
            self._life.end_input()

    def _input_ended(self, channel: int, input_index: int) -> None:
        ended = self._ended_inputs.setdefault(input_index, set())
        ended.add(channel)
        specs = self.deployment.inputs
        of_input = sum(1 for spec in specs if spec.input_index == input_index)
        if len(ended) < of_input:
            return
        if sum(map(len, self._ended_inputs.values())) == len(specs):
            self._life.enter(TaskPhase.DRAINING)
            self._chain.feed(EndOfData())
            self._checkpoints.data_over()
        else:
            self._chain.end_input(input_index)

    def _feed(self, events: list[Any]) -> None:
        for event in reversed(events):
            self._chain.feed(event)

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
                self._own_source(command).stop()
            case SnapshotWritten():
                self._checkpoints.written(command)
            case AssignSplits():
                # A savepoint that drains the job includes them already; a checkpoint that was triggered does not.
                if self._drain_barrier is None and not self._checkpoints.hold_back(command):
                    self._own_source(command).assign(command)
            case WatermarkAnnounced():
                self._own_source(command).watermark_announced(command.max_allowed)
            case TriggerCheckpoint():
                self._trigger(command.barrier)
            case CheckpointAnnounced():
                self._checkpoints.announced(command.checkpoint_id)
            case CheckpointComplete():
                self._checkpoints.complete(command.checkpoint_id)
                self._end_if_stopped()
            case CheckpointAborted():
                self._checkpoints.aborted(command.checkpoint_id)
            case _:
                assert_never(command)

    def _end_if_stopped(self) -> None:
        """End a source in the middle of its data when the savepoint that suspends the job is complete."""
        if self._life.phase is TaskPhase.RUNNING and self._source is not None and self._checkpoints.final.skips_data:
            self._life.end_input()

    def _trigger(self, barrier: CheckpointBarrier) -> None:
        """Begin a checkpoint; a savepoint that drains the job stops the source, and begins at the end of its data."""
        if self.state is not ExecutionState.RUNNING:
            self._checkpoints.decline(barrier.checkpoint_id, f"the task is {self.state.value}", is_failure=False)
        elif barrier.stop is StopMode.DRAIN and self._source is not None and not self._source.ended:
            self._source.stop()
            self._drain_barrier = barrier
        else:
            self._checkpoints.trigger(barrier)

    def _own_source(self, command: ToTask) -> PolledSource:
        assert self._source is not None, f"a task without a source was sent {command}"
        return self._source


def _unknown_event(event: NoReturn, channel: int) -> ExchangeError:
    """Return the error for what is no event: mypy rejects the call while an event has no case, and a peer of another
    version may send one.
    """
    return ExchangeError(f"Unexpected event: {event!r} on channel {channel}; run one version on all nodes")
