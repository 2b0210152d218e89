"""The data loop of a task: one slice of input, one event, one timer or one checkpoint at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from rayflink.common.records.batches import (
    MAX_TIMESTAMP,
    ArrowBatch,
    CancelCheckpointMarker,
    CheckpointBarrier,
    Element,
    EndOfData,
    EndOfPartition,
    EndOfSuperstep,
    Event,
    LatencyMarker,
    RowBatch,
    Watermark,
    WatermarkStatus,
)
from rayflink.operators.event_time.idle_advance import IdleAdvance
from rayflink.operators.event_time.watermark_valve import InputWatermarks

from ..exchange.output_room import OutputRoom
from ..exchange.subpartition import ExchangeError
from ..messages.messages import ToTask
from ..messages.settings import TaskSettings
from .polled_source import PolledSource
from .progress import Progress
from .slicing import MOST_POLLED, Slicer
from .supersteps import BlockingSupersteps
from .task_lifecycle import TaskLifecycle, TaskParts, TaskPhase


class DataLoop:
    """Takes data from the input gate or the source, runs the chain of operators, and keeps its place between steps.

    Args:
        parts: of the task.
        life: its phase, which changes at the end of the input.
        source: what a task without inputs polls; None where there are inputs.
        room: what the outputs have room for.
        slicer: sizes the slices of input.
        settings: of the task.
    """

    def __init__(
        self,
        parts: TaskParts,
        life: TaskLifecycle,
        source: PolledSource | None,
        room: OutputRoom,
        slicer: Slicer,
        settings: TaskSettings,
    ) -> None:
        self._deployment, self._chain, self._gate, self._writers = (
            parts.deployment, parts.chain, parts.gate, parts.writers
        )  # fmt: skip
        self._buffer, self._checkpoints, self._life = parts.buffer, parts.checkpoints, life
        self.source, self._room, self._slicer = source, room, slicer
        inputs = parts.deployment.inputs
        self.valve = InputWatermarks([spec.input_index for spec in inputs] or [0])
        """Combines the watermarks of all channels."""
        advances = settings.advance_when_idle_ms if inputs and not settings.in_batches else None
        self._idle_advance = IdleAdvance(advances, settings.watermark_interval_ms or 200)
        self._supersteps = BlockingSupersteps(parts.gate, settings.in_batches)
        self._ended_inputs: dict[int, set[int]] = {}
        self._checkpoint_had_turn = self._timers_had_turn = False
        self._drain_barrier: CheckpointBarrier | None = None

    def take_turn(self, now: int) -> Progress:
        """Begin a checkpoint or work, in turns: several checkpoints may be triggered before the next piece of work.

        Returns:
            What the runner does next; a step with work is never longer than a slice of input.
        """
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
            self.source_for(splits).assign(splits)
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
        if self.source is not None:
            return self._poll(self.source)
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
        self._feed(self.valve.advance_to(timestamp))
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
        if rows_ahead and head is not None and (ahead := buffer.look_ahead(rows_ahead)) is not None:
            head.read_ahead(ahead, input_index)
        is_read_ahead = buffer.rows_ahead > 0
        batch = buffer.take_slice(self._room.rows(self._slicer.rows(buffer.rows_at_hand)))
        if rows_ahead and head is not None and not is_read_ahead:
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
                self._feed(self.valve.watermark(channel, event.timestamp))
            case WatermarkStatus():
                self._feed(self.valve.status(channel, event.idle, event.relayed))
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
                    self._feed(self.valve.end(channel))
                if self._gate.is_finished:
                    self._life.end_input()
            case _:
                raise _unknown_event(event, channel)
        if isinstance(event, Watermark | WatermarkStatus | EndOfPartition):
            self._idle_advance.seen(self.valve.sources_are_idle, self.valve.current, now)

    def forward_end(self) -> None:
        """Mark the end of the data for the consumers: all of it was worked before the checkpoint that is restored."""
        for writer in self._writers:
            writer.broadcast(Watermark(MAX_TIMESTAMP))
            writer.broadcast(EndOfData())
        self._life.enter(TaskPhase.DRAINING, "all its data was worked before the restored checkpoint")
        if self.source is not None:
            self.source.ended = True
            self._life.end_input()

    def _input_ended(self, channel: int, input_index: int) -> None:
        ended = self._ended_inputs.setdefault(input_index, set())
        ended.add(channel)
        specs = self._deployment.inputs
        of_input = sum(1 for spec in specs if spec.input_index == input_index)
        if len(ended) < of_input:
            return
        if sum(map(len, self._ended_inputs.values())) == len(specs):
            self._life.enter(TaskPhase.DRAINING, "all inputs have delivered their end of data")
            self._chain.feed(EndOfData())
            self._checkpoints.data_over()
        else:
            self._chain.end_input(input_index)

    def _feed(self, events: Sequence[Element]) -> None:
        for event in reversed(events):
            self._chain.feed(event)

    # commands of the coordinator

    def drain(self, barrier: CheckpointBarrier) -> bool:
        """Stop the source, and begin the savepoint of `barrier` at the end of its data; False without such a source."""
        if self.source is None or self.source.ended:
            return False
        self.source.stop()
        self._drain_barrier = barrier
        return True

    @property
    def is_draining(self) -> bool:
        """Return whether a savepoint that drains the job waits for the end of the source's data."""
        return self._drain_barrier is not None

    def end_if_stopped(self) -> None:
        """End a source in the middle of its data when the savepoint that suspends the job is complete."""
        if self._life.phase is TaskPhase.RUNNING and self.source is not None and self._checkpoints.final.skips_data:
            self._life.end_input()

    def source_for(self, command: ToTask) -> PolledSource:
        """Return the source that a command is for."""
        assert self.source is not None, f"a task without a source was sent {command}"
        return self.source

    def deadline_ms(self) -> int | None:
        """Return when a timer, the result of asynchronous work or the source's next poll is due; None: none is."""
        final = self._checkpoints.final
        if self._room.is_full() or final.is_quiescent:  # nothing is served
            return None
        times = [self._chain.next_completion_ms()]
        if self._life.phase is TaskPhase.RUNNING:
            times.append(self._chain.next_processing_ms())
            if self._chain.idle and self._chain.accepts_records():
                times.append(self._idle_advance.next_ms)
        if self.source is not None and not final.is_suspended:
            times.append(self.source.next_poll_ms())
        return min((due for due in times if due is not None), default=None)


def _unknown_event(event: NoReturn, channel: int) -> ExchangeError:
    """Return the error for what is no event: mypy rejects the call while an event has no case, and a peer of another
    version may send one.
    """
    return ExchangeError(f"Unexpected event: {event!r} on channel {channel}; run one version on all nodes")


__all__ = ["DataLoop"]
