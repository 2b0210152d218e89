"""One subtask: mailbox, input gate, chain of operators, result partitions; no thread, actor or clock of its own.

`step()` does one bounded piece of work: the mails that are there, then one slice of input (`rayflink.task.time-slice`
long). A runner calls it again and again, delivers what `outgoing()` gives, and puts what arrives into `mail()`. Between
two steps mails, timers, barriers and buffer timeouts have their turn: no function that returns blocks them for long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

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
from rayflink.operators.base import OperatorContext
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
    StopTask,
    TaskDeployment,
    TaskFailure,
    TaskReport,
    TaskStateChanged,
    ToCoordinator,
    ToTask,
    TriggerCheckpoint,
    WatermarkAnnounced,
)
from ..messages.settings import MemorySplit, TaskSettings
from ..messages.states import ExecutionState, IllegalTransition, InvalidStart
from .chain_lifecycle import ChainLifecycle
from .failures import describe_failure, is_out_of_memory
from .in_flight_capture import restore_in_flight
from .polled_source import PolledSource
from .progress import Mail, Progress
from .satisfaction import Satisfaction
from .services import TaskServices
from .slicing import MOST_POLLED, Slicer
from .snapshot_storage import restored_snapshots, snapshot_reader, snapshot_writing
from .snapshot_writing import SnapshotWritten
from .supersteps import BlockingSupersteps
from .task_checkpoints import TaskCheckpoints
from .task_folders import remove_older_spills, remove_spills
from .task_metrics import TaskMetrics
from .waiting import reasons_to_wait
from .wiring import assign_buffers, make_chain, make_gate, make_writers, operator_context

log = get_logger(__name__)


class StreamTask:
    """Runs one execution attempt.

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
        self.state = ExecutionState.CREATED
        log.info("Received task %s.", deployment.title)
        self._mailbox: deque[Mail] = deque() if mailbox is None else mailbox
        self._reports: deque[ToCoordinator] = deque()
        self.metrics = TaskMetrics(deployment, clock)
        self.accumulators: dict[str, Any] = {}
        settings = TaskSettings.of(deployment.config)
        self._services = services = services or TaskServices()
        self._halt = services.halt if settings.exit_on_out_of_memory else None
        self._managed = services.managed or MemoryManager(MemorySplit.of(deployment.config).managed_bytes)
        self._writers = make_writers(deployment, settings, self._managed)
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
        self._life = ChainLifecycle(self._chain.links, self._writers, self.metrics.closing_failed)
        self._writing = snapshot_writing(deployment, services, clock, self.mail)
        self._checkpoints = TaskCheckpoints(
            deployment, self._chain, self._gate, self._writers, self._reports.append, self._writing
        )
        self.metrics.measures_checkpoints(self._checkpoints)
        self._supersteps = BlockingSupersteps(self._gate, settings.in_batches)
        self._buffer = CurrentBuffer(self._gate)
        self._ended_inputs: dict[int, set[int]] = {}
        self._quiesced = False
        self._timers_turn = self._works_turn = False
        self._closed = False
        self._result_lost = False
        self._ending = False
        self._drained_by: CheckpointBarrier | None = None
        head = self._chain.links[0].operator
        self._source = None if deployment.inputs else PolledSource(head, deployment.operators[0].name)
        self._satisfaction = Satisfaction(deployment, self._chain, self._source)

    # what a runner calls

    def mail(self, message: Mail) -> None:
        """Leave a message; may be called from another thread."""
        self._mailbox.append(message)
        if isinstance(message, SnapshotWritten) and self._services.wake is not None:
            self._services.wake()

    def start(self, tell: Callable[[], object] = int) -> None:
        """Set up, restore and open the operators, and ask the producers for their data.

        A task that was cancelled by then opens nothing, and one that is cancelled meanwhile does not begin to run.
        `tell` is called for reports that should not wait for the restore.

        Raises:
            InvalidStart: it was started before.
        """
        if self._cancel_waits():
            self._cancel()
        if self.state.is_terminal:
            return
        if self.state is not ExecutionState.CREATED:
            raise InvalidStart(self.deployment.title, self.state.value)
        self._become(ExecutionState.DEPLOYING)
        try:
            remove_older_spills(self.deployment)
            assign_buffers(self.deployment, self._writers, self._gate)
            self._become(ExecutionState.INITIALIZING)
            tell()
            reader = snapshot_reader(self.deployment, self._services, self._writing.copies)
            self._life.open(self._context_of, restored_snapshots(self.deployment, reader))
            restore_in_flight(self.deployment.in_flight, reader.read, self._gate, self._writers)
            for producer, frame in self._gate.request_partitions():
                self._peers.say(producer, frame)
            if self._cancel_waits():
                self._cancel()
                return
            self._become(ExecutionState.RUNNING)
            if self.deployment.finished:
                self._pass_end()
        except (Exception, SystemExit) as error:
            self._fail(error)

    def step(self) -> Progress:
        """Do one bounded piece of work."""
        try:
            self._read_mail()
            if self._closed:
                return self._after_end()
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
        except (Exception, SystemExit) as error:
            self._fail(error)
            return self._after_end()

    def outgoing(self) -> list[Envelope]:
        """What may be sent now; the runner calls `returned` when each has been delivered."""
        try:
            return self._peers.outgoing()
        except Exception as error:  # what has been spilled cannot be read again
            self._fail(error)
            return self._peers.outgoing()

    def give_up(self, failure: TaskFailure) -> None:
        """End as failed, also by what happened outside a step: operators are closed, and the consumers are told.

        One that has finished and serves its consumers stays FINISHED, and reports that its result is lost.
        """
        if self.state is ExecutionState.FINISHED and not self._result_lost:
            self._result_lost = True
            self._peers.release(failure.message)
            self._reports.append(TaskStateChanged(self.deployment.attempt, ExecutionState.FAILED, failure))
        elif not self.state.is_terminal:
            self._abandon(cause=failure.message)
            self._become(ExecutionState.FAILED, failure)

    def returned(self, peer: TaskAddress) -> None:
        """A call to `peer` has returned."""
        self._peers.returned(peer)

    def reports(self) -> list[ToCoordinator]:
        """Messages for the coordinator since the last call."""
        reports = list(self._reports)
        self._reports.clear()
        return reports

    def report(self) -> TaskReport:
        """A heartbeat with the counters as they are."""
        return TaskReport(
            self.deployment.attempt,
            self.metrics.snapshot(self._chain.links, self._writers, self._gate, self._valve, self._peers),
        )

    def deadline_ms(self) -> int | None:
        """When `step` has something to do without a mail: a timer, a buffer timeout, a source's next poll."""
        if self._closed:  # what is left to do comes by mail; operators that never were opened know no times
            return None
        times = [self._peers.deadline_ms(), *(writer.deadline_ms() for writer in self._writers)]
        times.append(self._checkpoints.deadline_ms())
        if not self._room.is_full() and not self._checkpoints.last.stands_still:  # else nothing is served
            if not self._quiesced:
                times.append(self._chain.next_processing_ms())
                if self._chain.idle and self._chain.takes_records():
                    times.append(self._idle_advance.next_ms)
            times.append(self._chain.next_completion_ms())
            if self._source is not None and not self._checkpoints.last.is_suspended:
                times.append(self._source.next_poll_ms())
        return min((due for due in times if due is not None), default=None)

    def waits_for(self) -> str:
        """What keeps the task from going on, besides time (`deadline_ms`), for people."""
        if self.state is not ExecutionState.RUNNING:
            return f"is {self.state.value}"
        reasons = reasons_to_wait(self._room.is_full(), self._chain, self._gate, self._checkpoints.last)
        if self._closed:
            unsent = [str(w.partition.id) for w in self._writers if not w.partition.fully_consumed]
            reasons = [f"has finished, waits until {len(unsent)} partitions are fetched"]
        elif self._source is not None:
            reasons.append("waits for its source to give records")
        return "; ".join(reasons)

    @property
    def buffers_held(self) -> int:
        """Batches waiting to be sent, and batches and events received and not yet taken."""
        return self._gate.queued + sum(sub.backlog for w in self._writers for sub in w.partition.subpartitions)

    @property
    def work_done(self) -> int:
        """Grows whenever something was received, worked or sent."""
        worked = sum(link.records_in + link.records_out for link in self._chain.links)
        received = sum(channel.next_sequence for channel in self._gate.channels)
        return worked + received + sum(s.sequence for w in self._writers for s in w.partition.subpartitions)

    @property
    def records_taken(self) -> int:
        """Records that the head of its chain was given."""
        return self._chain.links[0].records_in

    @property
    def has_mail(self) -> bool:
        """Whether a mail waits."""
        return bool(self._mailbox)

    # one step

    def _take_turn(self, now: int) -> Progress:
        """Begin a checkpoint, or work: in turns, for others may have been triggered before the work's next step."""
        if self._works_turn:
            self._works_turn = False
            self._work(now)
            return Progress.BUSY
        self._works_turn = self._begin_checkpoint(now)
        return Progress.BUSY if self._works_turn else self._work(now)

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
        """Whether nothing is to be done but to finish."""
        last = self._checkpoints.last
        return self._ending and (last.is_done or not last.awaited and not self._checkpoints.has_triggered)

    def _work(self, now: int) -> Progress:
        last = self._checkpoints.last
        if self._chain.outside and not self._room.is_full() and not last.stands_still:
            self._chain.emit_completed()
        if not self._chain.idle:
            return self._run_chain()
        if self._room.is_full():
            return Progress.BACK_PRESSURED
        quiet = self._quiesced or last.stands_still
        self._timers_turn = not (self._timers_turn or quiet) and self._chain.fire_processing_time(now)
        if self._timers_turn:  # the next turn is the input's, even when timers are due again
            self._slicer.expect(0)
            return self._run_chain()
        if not self._buffer.empty:
            return self._next_slice() if self._chain.takes_records() else Progress.IDLE
        if self._is_done:
            self._finish()
            return Progress.BUSY
        if last.is_suspended or not self._chain.takes_records():
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
        """Nothing comes: where the sources are idle too, event time may go on by the clock."""
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
        buffer, head = self._buffer, self._chain.links[0].operator
        rows_ahead, input_index = head.reads_ahead, buffer.input_index
        if rows_ahead and (ahead := buffer.announce(rows_ahead)) is not None:
            head.read_ahead(ahead, input_index)
        is_announced = buffer.rows_announced > 0
        batch = buffer.take_slice(self._room.rows(self._slicer.rows(buffer.rows_at_hand)))
        if rows_ahead and not is_announced:
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
            self._quiesced = self._ending = True
            self._slicer.expect(0)
            self._chain.emit(0, source.last_elements())
            self._checkpoints.data_over()
            if self._drained_by is not None:
                self._checkpoints.trigger(self._drained_by)
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
        if self._checkpoints.last.cut and not isinstance(event, CheckpointBarrier | EndOfPartition):
            return
        if isinstance(event, Watermark):
            self._feed(self._valve.watermark(channel, event.timestamp))
        elif isinstance(event, WatermarkStatus):
            self._feed(self._valve.status(channel, event.idle, event.relayed))
        elif isinstance(event, LatencyMarker):
            self._chain.feed(event)
        elif isinstance(event, CheckpointBarrier):
            self._checkpoints.barrier(channel, event, now)
        elif isinstance(event, CancelCheckpointMarker):
            self._checkpoints.cancel(channel, event)
        elif isinstance(event, EndOfSuperstep):
            self._feed(self._supersteps.arrived(channel, event))
        elif isinstance(event, EndOfData):
            self._input_ended(channel, input_index)
            self._feed(self._supersteps.ended(channel))
        elif isinstance(event, EndOfPartition):
            self._checkpoints.end(channel, now)
            if not self._checkpoints.last.cut:
                self._feed([*self._valve.end(channel)])
            if self._gate.is_finished:
                self._ending = True
        else:
            raise ExchangeError(f"Unexpected event: {event!r} on channel {channel}; run one version on all nodes")
        if isinstance(event, Watermark | WatermarkStatus | EndOfPartition):
            self._idle_advance.seen(self._valve.sources_are_idle, self._valve.current, now)

    def _pass_end(self) -> None:
        """All was done before the checkpoint that the task starts from: its consumers are told, and that is all."""
        for writer in self._writers:
            writer.broadcast(Watermark(MAX_TIMESTAMP))
            writer.broadcast(EndOfData())
        self._quiesced = True
        if self._source is not None:
            self._source.ended = self._ending = True

    def _input_ended(self, channel: int, input_index: int) -> None:
        ended = self._ended_inputs.setdefault(input_index, set())
        ended.add(channel)
        specs = self.deployment.inputs
        of_input = sum(1 for spec in specs if spec.input_index == input_index)
        if len(ended) < of_input:
            return
        if sum(map(len, self._ended_inputs.values())) == len(specs):
            self._quiesced = True  # timers of processing time that are not due yet never fire
            self._chain.feed(EndOfData())
            self._checkpoints.data_over()
        else:
            self._chain.emit(0, self._chain.links[0].operator.end_input(input_index))

    def _feed(self, events: list[Any]) -> None:
        for event in reversed(events):
            self._chain.feed(event)

    # mail

    def _read_mail(self) -> None:
        while self._mailbox and not self._closed:
            message = self._mailbox.popleft()
            if isinstance(message, Envelope):
                self._peers.take(message, self.clock.now_ms())
            else:
                self._take_command(message)

    def _take_command(self, command: ToTask | SnapshotWritten) -> None:
        if isinstance(command, CancelTask):
            self._cancel()
        elif isinstance(command, StopTask):
            self._own_source(command).stop()
        elif isinstance(command, SnapshotWritten):
            self._checkpoints.written(command)
        elif isinstance(command, AssignSplits):
            if self._drained_by is None and not self._checkpoints.hold_back(command):  # else the savepoint has them
                self._own_source(command).assign(command)
        elif isinstance(command, WatermarkAnnounced):
            self._own_source(command).watermark_announced(command.max_allowed)
        elif isinstance(command, TriggerCheckpoint):
            self._trigger(command.barrier)
        else:
            self._checkpoints.hear(command)
            if self._source is not None and self._checkpoints.last.cut:
                self._ending = True

    def _trigger(self, barrier: CheckpointBarrier) -> None:
        """A savepoint that drains the job begins at the end of the data, which it makes."""
        if self.state is not ExecutionState.RUNNING:
            self._checkpoints.decline(barrier.checkpoint_id, f"the task is {self.state.value}", is_failure=False)
        elif barrier.stop is StopMode.DRAIN and self._source is not None and not self._source.ended:
            self._source.stop()
            self._drained_by = barrier
        else:
            self._checkpoints.trigger(barrier)

    def _own_source(self, command: ToTask) -> PolledSource:
        assert self._source is not None, f"a task without a source was sent {command}"
        return self._source

    # life cycle

    def _context_of(self, index: int) -> OperatorContext:
        shared: dict[str, Any] = {
            "clock": self.clock,
            "metrics": self.metrics.group,
            "accumulators": self.accumulators,
            "managed": self._managed,
            "services": self._services,
        }
        return operator_context(self.deployment, index, shared, self._reports.append)

    def _finish(self) -> None:
        """All input is worked: close, say that nothing follows, and wait until it has been fetched."""
        self._ending = False
        self._life.close(quiet=False)
        for writer in self._writers:
            writer.finish()
        self._closed = True

    def _after_end(self) -> Progress:
        """Serve the consumers until everything is sent.

        The attempt is FINISHED when all has been sent, or when all is complete in a blocking partition, which is served
        on until it has been read or the job ends.
        """
        if self.state in (ExecutionState.RUNNING, ExecutionState.FINISHED) and not self._result_lost:
            self._serve()
        if not self.state.is_terminal:
            return Progress.IDLE
        if self.state is ExecutionState.FINISHED and not self._all_fetched():
            return Progress.IDLE
        self._mailbox.clear()
        if not remove_spills(self.deployment):
            self.metrics.closing_failed()
        if not self._peers.silent:
            return Progress.IDLE
        log.info("Freeing task resources for %s.", self.deployment.title)
        self.metrics.close()
        return Progress.DONE

    def _serve(self) -> None:
        while self._mailbox:
            message = self._mailbox.popleft()
            if isinstance(message, Envelope):
                self._peers.take(message, self.clock.now_ms())
            elif isinstance(message, CancelTask):
                self._peers.release(None)
                self._cancel()
                return
            elif isinstance(message, TriggerCheckpoint):
                self._checkpoints.decline(message.barrier.checkpoint_id, "the task has finished", is_failure=False)
        pipelined = [writer.partition for writer in self._writers if not writer.partition.blocking]
        delivered = all(partition.fully_consumed for partition in pipelined) and self._peers.silent
        if self.state is ExecutionState.RUNNING and (not pipelined or delivered):
            self._become(ExecutionState.FINISHED)

    def _all_fetched(self) -> bool:
        return all(writer.partition.fully_consumed for writer in self._writers)

    def _cancel_waits(self) -> bool:
        return any(isinstance(mail, CancelTask) for mail in tuple(self._mailbox))

    def _cancel(self) -> None:
        if self.state.is_terminal:
            return
        if self.state is ExecutionState.CREATED:
            self._closed = True
            self._become(ExecutionState.CANCELED)
            return
        self._become(ExecutionState.CANCELING)
        self._abandon()
        self._become(ExecutionState.CANCELED)

    def _fail(self, error: BaseException) -> None:
        if self._halt is not None and is_out_of_memory(error) and not self.state.is_terminal:
            self._halt(error)
        self.give_up(describe_failure(error, self.deployment))

    def _abandon(self, cause: str | None = None) -> None:
        self._chain.abandon()
        self._buffer.drop()
        self._checkpoints.abandon()
        self._life.close(quiet=True)
        self._peers.release(cause)
        self._closed = True

    def _become(self, state: ExecutionState, failure: TaskFailure | None = None) -> None:
        begins = (self.state, state) == (ExecutionState.CREATED, ExecutionState.DEPLOYING)
        if not begins and not self.state.may_become(state):
            raise IllegalTransition(f"task {self.deployment.name}", self.state.value, state.value)
        self.state = state
        totals = dict(self.accumulators) if state.is_terminal else {}
        if state.is_terminal:
            self._reports.append(self.report())
        self._reports.append(TaskStateChanged(self.deployment.attempt, state, failure, totals))
