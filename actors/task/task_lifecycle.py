"""The life of one execution attempt: the phases of its task, their legal moves, and its start, end and release."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rayflink.common.managed_memory import MemoryManager
from rayflink.common.text_output.logs import get_logger
from rayflink.operators.base import OperatorContext
from rayflink.operators.chain import OperatorChain
from rayflink.state.clock import Clock

from ..exchange.current_buffer import CurrentBuffer
from ..exchange.endpoint import ExchangeEndpoint
from ..exchange.frames import Envelope
from ..exchange.gate import InputGate
from ..exchange.writer import RecordWriter
from ..messages.messages import (
    CancelTask,
    TaskDeployment,
    TaskFailure,
    TaskReport,
    TaskStateChanged,
    ToCoordinator,
    TriggerCheckpoint,
)
from ..messages.states import ExecutionState, InvalidStart, MoveHistory
from .chain_lifecycle import ChainLifecycle
from .failures import describe_failure, is_out_of_memory
from .in_flight_capture import restore_in_flight
from .progress import Mail, Progress
from .services import TaskServices
from .snapshot_storage import restored_snapshots, snapshot_reader
from .snapshot_writing import SnapshotWriting
from .task_checkpoints import TaskCheckpoints
from .task_folders import remove_older_spills, remove_spills
from .task_metrics import TaskMetrics
from .wiring import TaskResources, assign_buffers, operator_context

log = get_logger(__name__)


class TaskPhase(Enum):
    """The phases of a task, each with its permitted actions. A phase goes forward only; `TASK_MOVES` has every legal
    move.

    The `ExecutionState` beside it is what the coordinator hears: it says how the attempt stands, not what its next step
    does.
    """

    STARTING = "starting"
    """Operators are being set up, restored and opened. Mail is collected; checkpoints are declined."""
    RUNNING = "running"
    """Input is worked, timers fire, checkpoints are taken."""
    DRAINING = "draining"
    """All inputs have delivered their end of data, and the channels are still open: barriers come until each has
    delivered its end of partition. No processing-time timer fires any more."""
    AWAITING_FINAL_CHECKPOINT = "awaiting final checkpoint"
    """No input comes any more, or none is worked because a savepoint stopped the job. The chain works what it still
    holds, and the task finishes as soon as no final checkpoint is awaited or in progress."""
    SERVING = "serving"
    """The operators are closed. Consumers are served until they have fetched every partition; checkpoints are declined.
    The attempt is FINISHED when its pipelined partitions are sent; blocking ones are served after that."""
    RELEASING = "releasing"
    """The attempt was cancelled or has failed, or its finished result was lost: operators and partitions are released,
    and the task stays until its last calls to its peers have returned."""
    DONE = "done"
    """Nothing is left to do, and the runner drops the task. Late mail is dropped; checkpoints are declined."""


_P = TaskPhase
TASK_MOVES: dict[TaskPhase, frozenset[TaskPhase]] = {
    _P.STARTING: frozenset({_P.RUNNING, _P.RELEASING}),
    _P.RUNNING: frozenset({_P.DRAINING, _P.AWAITING_FINAL_CHECKPOINT, _P.RELEASING}),
    _P.DRAINING: frozenset({_P.AWAITING_FINAL_CHECKPOINT, _P.RELEASING}),
    _P.AWAITING_FINAL_CHECKPOINT: frozenset({_P.SERVING, _P.RELEASING}),
    _P.SERVING: frozenset({_P.RELEASING, _P.DONE}),
    _P.RELEASING: frozenset({_P.DONE}),
    _P.DONE: frozenset(),
}
"""Phase of a task -> the phases that may follow it; every phase before DONE may end in RELEASING.

- STARTING: the operators are open, and the partitions of the producers requested.
- RUNNING: all inputs have delivered their end of data, or the source has; DRAINING is left out by a source, and where a
  savepoint that stops the job ends the work in mid-data.
- DRAINING: every channel has delivered its end of partition.
- AWAITING_FINAL_CHECKPOINT: the chain is empty, and no final checkpoint is awaited any more.
- SERVING: consumers have fetched all, or the result is lost before they have.
- RELEASING: the last calls to the peers have returned.
- DONE: the runner drops the task.
"""


@dataclass(frozen=True, slots=True)
class TaskParts:
    """The parts of a task that its lifecycle opens, closes or releases.

    Args:
        deployment: the attempt and its job vertex.
        clock: `now_ms()` and `monotonic()`.
        mailbox: mails for the task, in the order of their arrival.
        services: what the process lends the task.
        managed: the managed memory of its slot.
        metrics: of the task.
        gate: its inputs.
        chain: its operators.
        writers: its outputs.
        endpoint: its peers on the network.
        buffer: the batch that is being worked.
        writing: writes its snapshots.
        checkpoints: its part in checkpoints.
        halts_process: a task that runs out of memory ends its process, where the process allows it.
    """

    deployment: TaskDeployment
    clock: Clock
    mailbox: deque[Mail]
    services: TaskServices
    managed: MemoryManager
    metrics: TaskMetrics
    gate: InputGate
    chain: OperatorChain
    writers: list[RecordWriter]
    endpoint: ExchangeEndpoint
    buffer: CurrentBuffer
    writing: SnapshotWriting
    checkpoints: TaskCheckpoints
    halts_process: bool


class TaskLifecycle:
    """Moves one task through its phases and its attempt through its states; every move is checked.

    Args:
        parts: of the task.
        reports: takes messages for the coordinator.
        final_report: gives the last heartbeat, with the counters as they are.
    """

    def __init__(self, parts: TaskParts, reports: deque[ToCoordinator], final_report: Callable[[], TaskReport]) -> None:
        self.phase = TaskPhase.STARTING
        self.state = ExecutionState.CREATED
        self.accumulators: dict[str, Any] = {}
        self._parts, self._reports, self._final_report = parts, reports, final_report
        self._deployment, self._mailbox, self._endpoint = parts.deployment, parts.mailbox, parts.endpoint
        title = f"task {parts.deployment.name}"
        self._phases, self._states = MoveHistory(title), MoveHistory(title)
        links = parts.chain.links
        self._operators = ChainLifecycle(links, parts.writers, parts.metrics.closing_failed)

    # moves

    def enter(self, phase: TaskPhase, cause: str = "") -> None:
        """Go on to the next phase.

        Args:
            cause: why, in a few words, for the error of a later move that is not legal.

        Raises:
            IllegalTransition: there is no such move.
        """
        if phase not in TASK_MOVES[self.phase]:
            raise self._phases.refusal(self.phase.value, phase.value, cause)
        self._phases.add(self.phase.value, phase.value, self._parts.clock.now_ms(), cause)
        self.phase = phase

    def end_input(self) -> None:
        """Enter AWAITING_FINAL_CHECKPOINT, unless a savepoint that stops the job brought the task there before."""
        if self.phase is not TaskPhase.AWAITING_FINAL_CHECKPOINT:
            self.enter(TaskPhase.AWAITING_FINAL_CHECKPOINT, "its input has ended")

    def _become(self, state: ExecutionState, failure: TaskFailure | None = None) -> None:
        """Change the state of the attempt, and report it.

        Raises:
            IllegalTransition: there is no such move.
        """
        begins = (self.state, state) == (ExecutionState.CREATED, ExecutionState.DEPLOYING)
        if not begins and not self.state.may_become(state):
            raise self._states.refusal(self.state.value, state.value, f"phase: {self.phase.value}")
        self._states.add(self.state.value, state.value, self._parts.clock.now_ms(), f"phase: {self.phase.value}")
        self.state = state
        totals = dict(self.accumulators) if state.is_terminal else {}
        if state.is_terminal:
            self._reports.append(self._final_report())
        self._reports.append(TaskStateChanged(self._deployment.attempt, state, failure, totals))

    # start

    def start(self, send_reports: Callable[[], object] | None) -> bool:
        """Set up, restore and open the operators, request the partitions of the producers, and enter RUNNING.

        Returns:
            Whether the task runs; not if it was cancelled before or meanwhile.

        Raises:
            InvalidStart: it was started before.
        """
        if self._is_cancel_requested():
            self.cancel()
        if self.state.is_terminal:
            return False
        if self.state is not ExecutionState.CREATED:
            raise InvalidStart(self._deployment.title, self.state.value)
        self._become(ExecutionState.DEPLOYING)
        try:
            return self._open(send_reports)
        except (Exception, SystemExit) as error:
            self.fail(error)
            return False

    def _open(self, send_reports: Callable[[], object] | None) -> bool:
        parts, deployment = self._parts, self._deployment
        remove_older_spills(deployment)
        assign_buffers(deployment, parts.writers, parts.gate)
        self._become(ExecutionState.INITIALIZING)
        if send_reports is not None:
            send_reports()
        reader = snapshot_reader(deployment, parts.services, parts.writing.copies)
        self._operators.open(self._context_of, restored_snapshots(deployment, reader))
        restore_in_flight(deployment.in_flight, reader.read, parts.gate, parts.writers)
        for producer, frame in parts.gate.request_partitions():
            self._endpoint.say(producer, frame)
        if self._is_cancel_requested():
            self.cancel()
            return False
        self.enter(TaskPhase.RUNNING, "its operators are open")
        self._become(ExecutionState.RUNNING)
        return True

    def _context_of(self, index: int) -> OperatorContext:
        parts = self._parts
        resources = TaskResources(parts.clock, parts.metrics.group, self.accumulators, parts.managed, parts.services)
        return operator_context(self._deployment, index, resources, self._reports.append)

    def _is_cancel_requested(self) -> bool:
        return any(isinstance(mail, CancelTask) for mail in tuple(self._mailbox))

    # end

    def finish(self) -> None:
        """Close the operators after all input is worked, and mark the end of every partition."""
        self._operators.close(quiet=False)
        for writer in self._parts.writers:
            writer.finish()
        self.enter(TaskPhase.SERVING, "its operators are closed")

    def cancel(self) -> None:
        """End as canceled, unless the attempt has ended already."""
        if self.state.is_terminal:
            return
        if self.state is ExecutionState.CREATED:
            self.enter(TaskPhase.RELEASING, "cancelled")
            self._become(ExecutionState.CANCELED)
            return
        self._become(ExecutionState.CANCELING)
        self._abandon("cancelled")
        self._become(ExecutionState.CANCELED)

    def fail(self, error: BaseException) -> None:
        """End as failed by an exception; one of memory that has run out may end the process."""
        halt = self._parts.services.halt if self._parts.halts_process else None
        if halt is not None and is_out_of_memory(error) and not self.state.is_terminal:
            halt(error)
        self.give_up(describe_failure(error, self._deployment))

    def give_up(self, failure: TaskFailure) -> None:
        """End as failed: operators are closed, and the consumers receive the cause.

        A task that has finished and serves its consumers stays FINISHED, and reports that its result is lost.
        """
        if self.state is ExecutionState.FINISHED:
            if self.phase is TaskPhase.SERVING:
                self.enter(TaskPhase.RELEASING, failure.kind)
                self._endpoint.release(failure.message)
                self._reports.append(TaskStateChanged(self._deployment.attempt, ExecutionState.FAILED, failure))
        elif not self.state.is_terminal:
            self._abandon(failure.kind, failure.message)
            self._become(ExecutionState.FAILED, failure)

    def _abandon(self, cause: str, message: str | None = None) -> None:
        """Give up all work; with a `message`, the consumers fail with it."""
        self._parts.chain.abandon()
        self._parts.buffer.drop()
        self._parts.checkpoints.abandon()
        self._operators.close(quiet=True)
        self._endpoint.release(message)
        self.enter(TaskPhase.RELEASING, cause)

    # after the end

    def serve(self) -> Progress:
        """Serve the consumers until every partition is fetched; DONE then."""
        while self._mailbox:
            match message := self._mailbox.popleft():
                case Envelope():
                    self._endpoint.take(message, self._parts.clock.now_ms())
                case CancelTask():
                    self._endpoint.release(None)
                    self.cancel()
                    return self.release()
                case _:
                    self._decline(message)
        if self.state is ExecutionState.RUNNING and self._is_pipelined_data_sent():
            self._become(ExecutionState.FINISHED)
        return self.release()

    def _decline(self, message: Mail) -> None:
        if isinstance(message, TriggerCheckpoint):
            number = message.barrier.checkpoint_id
            self._parts.checkpoints.decline(number, "the task has finished", is_failure=False)

    def drop_mail(self) -> Progress:
        """Drop what arrives after the task is done, and decline checkpoints that are triggered."""
        while self._mailbox:
            self._decline(self._mailbox.popleft())
        return Progress.DONE

    def _is_pipelined_data_sent(self) -> bool:
        pipelined = [writer.partition for writer in self._parts.writers if not writer.partition.blocking]
        return not pipelined or all(partition.fully_consumed for partition in pipelined) and self._endpoint.silent

    def release(self) -> Progress:
        """Free what the attempt holds once it has ended and nothing is fetched any more; DONE when its peers know."""
        if not self.state.is_terminal:
            return Progress.IDLE
        if self.state is ExecutionState.FINISHED and not self._is_all_fetched():
            return Progress.IDLE
        self._mailbox.clear()
        if not remove_spills(self._deployment):
            self._parts.metrics.closing_failed()
        if not self._endpoint.silent:
            return Progress.IDLE
        log.info("Freeing task resources for %s.", self._deployment.title)
        self._parts.metrics.close()
        self.enter(TaskPhase.DONE, "its peers have answered")
        return Progress.DONE

    def _is_all_fetched(self) -> bool:
        return all(writer.partition.fully_consumed for writer in self._parts.writers)


__all__ = ["TASK_MOVES", "TaskLifecycle", "TaskParts", "TaskPhase"]
