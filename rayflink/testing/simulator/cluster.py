"""A whole job in one thread, every choice drawn from a seed: who steps, what arrives when, and what goes wrong.

The decisions are those of the real runners: the same JobMaster, the same StreamTask. Time is virtual, so a run that
waits an hour takes no longer than its moves, and the same seed gives the same story.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from rayflink.actors.exchange.frames import Envelope, TaskAddress
from rayflink.actors.job.job_master import JobMaster
from rayflink.actors.local.in_process import REPORT_INTERVAL_MS
from rayflink.actors.local.task_executor import TaskExecutor
from rayflink.actors.messages.commands import (
    Answer,
    CancelRequested,
    JobResult,
    Request,
    RescaleRequested,
    SavepointRequested,
    SendToTask,
    SlotsAvailable,
    StopRequested,
    TaskGone,
)
from rayflink.actors.messages.messages import ToCoordinator, TriggerCheckpoint
from rayflink.actors.messages.states import ExecutionState, JobStatus
from rayflink.actors.task.slot_memory import SlotMemory
from rayflink.actors.task.task import StreamTask
from rayflink.common.ids import JobID
from rayflink.common.options.stop_mode import StopMode
from rayflink.common.records.batches import CheckpointBarrier
from rayflink.graph.job_graph import JobGraph
from rayflink.operators.feedback import forget_job

from ..faults import Fault
from ..simulated_storage import Operation, Outcome, SimulatedDisk, is_state
from .context import SimulationContext
from .coordinators import SimulatedCoordinators
from .hang_detector import HANG_TIMEOUT_MS, HangDetector
from .network import SimulatedNetwork
from .storage import SimulatedStorageWork
from .tasks import SimulatedTasks

MOST_MOVES = 200_000
"""Moves after which a run counts as endless."""


class SimulatedCluster:
    """One job, run to its end by moves that are drawn from a seed.

    The cluster owns a scheduler and the parts whose events that draws from: tasks, network, storage and coordinators.
    It carries what tasks send (`TaskCarrier`), and is what faults act on (`FaultTarget`).

    Args:
        graph: the job.
        seed: of all choices.
        faults: what goes wrong.
        disk: on which all checkpoint storages are; None: one of its own, which is empty.
        on_report: called with each message that a task sends its coordinator; None: nothing is.
    """

    def __init__(
        self,
        graph: JobGraph,
        seed: int,
        faults: Sequence[Fault] = (),
        disk: SimulatedDisk | None = None,
        on_report: Callable[[ToCoordinator], None] | None = None,
    ) -> None:
        self._context = context = SimulationContext(seed, faults)
        self.clock, self.story = context.clock, context.story
        self.disk = SimulatedDisk() if disk is None else disk
        self.disk.outcome = lambda operation: Outcome.DONE  # a job that cannot begin is no job
        graph = replace(graph, id=JobID(context.new_id()))
        self._executor = executor = TaskExecutor(
            graph.configuration, self.clock, self, self.disk.storage, has_disks=False
        )
        storage = SimulatedStorageWork(context, self.disk)
        self._tasks = SimulatedTasks(context, executor, self, storage)
        self._network = SimulatedNetwork(context, self._tasks)
        self._coordinators = SimulatedCoordinators(context, graph, self._tasks, self._network, storage, cluster=self)
        context.scheduler.add(self._tasks, self._network.calls, self._network.returns, self._network.commands)
        context.scheduler.add(self._coordinators.events, storage.writes, storage.file_work, self._coordinators)
        self.disk.outcome = self._outcome
        self._requests: set[str] = set()
        self._on_report = on_report
        self._hangs = HangDetector(self.clock.now_ms())
        self._last_report_ms = self.clock.now_ms()

    @property
    def job(self) -> JobMaster:
        """Return the decisions of the coordinator that leads, or did last."""
        return self._coordinators.latest.job

    @property
    def result(self) -> JobResult | None:
        """Return the job's result once it has ended."""
        return self.job.result

    @property
    def tasks(self) -> Mapping[TaskAddress, StreamTask]:
        """Return the tasks that run now, frozen ones too."""
        return self._tasks.running

    @property
    def memory(self) -> SlotMemory:
        """Return the memory that all tasks share."""
        return self._executor.memory

    @property
    def answers(self) -> Mapping[str, Answer]:
        """Return the answers to requests, by the request's id."""
        return self._coordinators.answers

    def run(self, on_progress: Callable[[], None] | None = None) -> JobResult:
        """Move until the job has ended and no task is left; `on_progress` is called after each move.

        Raises:
            AssertionError: nothing moves any more, or the run does not end; says what each task waits for.
        """
        forget_job(self.job.graph.id)
        self._coordinators.latest.start()
        scheduler, faults = self._context.scheduler, self._context.faults
        time_seen_ms = 0
        while self.result is None or not self._tasks.all_frozen:
            faults.inject(self, scheduler.move)
            if time_seen_ms != (now := self.clock.now_ms()):
                time_seen_ms = now
                self._pass_time(now)
            if scheduler.move >= MOST_MOVES:
                self._give_up(f"no end after {MOST_MOVES} moves")
            if not scheduler.perform_one():
                self._wait()
            if on_progress is not None:
                on_progress()
        if self._coordinators.leader is not None:
            self._coordinators.leader.finish_file_work()  # what the end of the job deletes
        self.story.result = self.result
        self._coordinators.savepoints.describe_in(self.story, self.answers)
        return self.result

    # a carrier for the tasks

    def deliver(self, envelope: Envelope) -> None:
        """Put a call between two tasks on its way."""
        self._network.deliver(envelope)

    def post(self, event: ToCoordinator) -> None:
        """Put a message of a task to its coordinator on its way."""
        if self._on_report is not None:
            self._on_report(event)
        self._coordinators.post(event)

    # what users do

    def cancel(self, by: str = "the user") -> None:
        """Request the job's cancellation."""
        self._coordinators.signal(CancelRequested(by))

    def stop(self) -> None:
        """Let the sources end."""
        self._coordinators.signal(StopRequested())

    def request(self, request: Request) -> None:
        """Ask for something, once; `answers` has the outcome under the request's id."""
        if request.request_id not in self._requests:
            self._requests.add(request.request_id)
            self._coordinators.signal(request)

    def slots_available(self, slots: int) -> None:
        """Let the coordinator know how many slots there are for the job, for reactive mode."""
        self._coordinators.signal(SlotsAvailable(slots))

    def savepoint(self, directory: str, stop: StopMode | None) -> bool:
        """Request a savepoint, and again where it failed; return False until there is one, or the job has ended."""
        savepoints, now = self._coordinators.savepoints, self.clock.now_ms()
        if self.result is not None or savepoints.is_taken(stop, self.answers):
            return True
        if self._coordinators.leader is not None and savepoints.is_due(stop, self.answers, now):
            request_id = self._context.new_id()
            savepoints.add(stop, request_id, now)
            self.request(SavepointRequested(request_id, directory, stop))
        return False

    def rescale(self, parallelism: Mapping[str, int]) -> bool:
        """Request other parallelisms; return False until all tasks run, or the job has ended."""
        leader = self._coordinators.leader
        if (
            leader is None
            or leader.job.status is not JobStatus.RUNNING
            or isinstance(leader.job.checkpoints.plan(), str)
        ):
            return self.result is not None
        self.request(RescaleRequested(self._context.new_id(), parallelism))
        return True

    # what faults do

    def kill_named(self, name: str) -> bool:
        """Kill tasks by a part of their name; return False when none runs now."""
        return self._kill(self._tasks.named(name))

    def kill_slot(self, index: int) -> bool:
        """Kill all tasks of one slot, counted among those with tasks; return False when there is none."""
        return self._kill(self._tasks.in_slot(index))

    def _kill(self, attempts: Sequence[TaskAddress]) -> bool:
        for attempt in attempts:
            self._context.note("kill", self._tasks.names[attempt])
            self._tasks.drop(attempt)
            self._coordinators.post(TaskGone(attempt, "the simulation killed it"))
        return bool(attempts)

    def kill_coordinator(self, zombie_ms: int = 0) -> bool:
        """Let another coordinator take over; return False while there is none to kill, or the job has ended."""
        return self.result is None and self._coordinators.kill_leader(zombie_ms)

    def freeze_named(self, name: str, for_ms: int | None = None) -> bool:
        """Let tasks do nothing, for a time or for ever; return False when none runs now."""
        attempts = self._tasks.named(name)
        for attempt in attempts:
            self._tasks.freeze(attempt, for_ms)
        return bool(attempts)

    def lose_file(self, part: str) -> bool:
        """Delete a file of a checkpoint whose path has that part; return False when there is none."""
        paths = [path for path in self.disk.files if (part in path if part else is_state(path))]
        if not paths:
            return False
        lost = self._context.draw.choice(sorted(paths))
        self._context.note("lose", "the storage", lost)
        del self.disk.files[lost]
        return True

    def trigger_checkpoint(self, number: int) -> bool:
        """Send the barrier to all sources; return False until every source runs."""
        sources = [execution for execution in self.job.executions.values() if execution.vertex.is_input]
        if any(source.state is not ExecutionState.RUNNING for source in sources):
            return all(source.state.is_terminal for source in sources)
        barrier = CheckpointBarrier(number, self.clock.now_ms())
        for source in sources:
            self._coordinators.latest.send_to_task(SendToTask(source.attempt, TriggerCheckpoint(barrier)))
        return True

    def _outcome(self, operation: Operation) -> Outcome:
        outcome = self._context.faults.storage_outcome(operation)
        if outcome is not Outcome.DONE:
            self._context.note("lose", "the storage", f"{operation.action} {operation.path} {outcome.value}")
        return outcome

    # time

    def _pass_time(self, now_ms: int) -> None:
        """Do what happens at a time by itself: some tasks and coordinators end, all others report and are ticked."""
        job_is_over = self.result is not None
        self._coordinators.end_zombies(now_ms, job_is_over)
        self._tasks.pass_time(now_ms, job_is_over, self._coordinators.has_given_up)
        if now_ms - self._last_report_ms < REPORT_INTERVAL_MS:
            self._coordinators.tick_those_due(now_ms)
            return
        self._last_report_ms = now_ms
        for report in self._tasks.reports():
            self.post(report)
        self._coordinators.tick()

    def _wait(self) -> None:
        """Advance to the next time at which something is due, when nothing is now."""
        now = self.clock.now_ms()
        for until_ms in self._tasks.step_times():
            self._hangs.allow_wait(now, until_ms)
        self._context.scheduler.wait([self._last_report_ms + REPORT_INTERVAL_MS])
        if self._hangs.is_hung(self.clock.now_ms(), self._work_done):
            self._give_up(f"no progress for {HANG_TIMEOUT_MS} ms of virtual time")

    def _work_done(self) -> int:
        return self._tasks.work_done + self._coordinators.task_state_changes

    def _give_up(self, reason: str) -> NoReturn:
        status = f"the job is {self.job.status.value}, restarts: {self.job.restarts.count}"
        newest = [f"  failed before that: {entry.failure.message}" for entry in list(self.job.exceptions)[-1:]]
        problem = "\n".join([f"{reason}; {status}", *newest, *self._tasks.describe_waits()])
        raise AssertionError(self.story.describe(problem))


__all__ = ["SimulatedCluster"]
