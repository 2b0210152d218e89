"""A whole job in one thread, every choice drawn from a seed: who steps, what arrives when, and what goes wrong.

The decisions are those of the real runners: the same JobMaster, the same StreamTask. Time is virtual, so a run that
waits an hour takes no longer than its moves, and the same seed gives the same story.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rayflink.actors.checkpoints.files import OpenStorage
from rayflink.actors.exchange.frames import Envelope, TaskAddress
from rayflink.actors.job.job_master import JobMaster
from rayflink.actors.job.recovery import recover_or_start
from rayflink.actors.local.in_process import REPORT_INTERVAL_MS, InProcessCluster
from rayflink.actors.messages.commands import (
    CheckpointPublished,
    CommandLost,
    DeployTask,
    DiscardFiles,
    JobResult,
    PublishCheckpoint,
    RescaleRequested,
    SavepointRequested,
    Signal,
    TaskGone,
    Tick,
)
from rayflink.actors.messages.messages import TaskReport, TaskStateChanged, ToCoordinator, ToTask, TriggerCheckpoint
from rayflink.actors.messages.states import ExecutionState, JobStatus
from rayflink.actors.task.task import StreamTask
from rayflink.common.ids import JobID
from rayflink.common.options import registry as options
from rayflink.common.options.stop_mode import StopMode
from rayflink.common.records.batches import CheckpointBarrier
from rayflink.graph.job_graph import JobGraph
from rayflink.operators.feedback import forget_job
from rayflink.state.clock import ManualClock
from rayflink.state.storage.ledger import Fenced, LedgerEnded
from rayflink.state.storage.storage import StorageError

from .faults import Call, CommandFate, Fault, faults_overriding
from .hang_detector import HANG_TIMEOUT_MS, HangDetector
from .random_slicer import RandomSlicer
from .requested_savepoints import RequestedSavepoints
from .scheduled_task import FOR_EVER, ScheduledTask
from .simulated_storage import Operation, Outcome, SimulatedDisk, is_state
from .story import Happening, Story

MOST_MOVES = 200_000
"""Moves after which a run counts as endless."""

Move = tuple[Callable[..., None], tuple[Any, ...]]


class SimulatedCluster(InProcessCluster):
    """One job, run to its end by moves that are drawn from a seed.

    Coordinators are numbered: each that takes over has the next epoch. An event goes to the coordinator that deployed
    the task from which it comes, if that one still lives.

    Args:
        graph: the job.
        seed: of all choices.
        faults: what goes wrong.
        disk: on which all checkpoint storages are; None: one of its own, which is empty.
    """

    def __init__(
        self, graph: JobGraph, seed: int, faults: Sequence[Fault] = (), disk: SimulatedDisk | None = None
    ) -> None:
        self.draw = random.Random(seed)
        self.story = Story(seed)
        self.disk = SimulatedDisk() if disk is None else disk
        self.disk.outcome = lambda operation: Outcome.DONE  # a job that cannot begin is none
        self._faults = list(faults)
        self._reorders = any(fault.reorders for fault in faults)
        self._slow_steps = faults_overriding("step_ms", faults)
        self._slow_storage = faults_overriding("storage_ms", faults)
        self._slow_commands = faults_overriding("command_ms", faults)
        self._senders = faults_overriding("sent", faults)
        self._counts: Counter[tuple[int, str]] = Counter()
        clock = ManualClock(1_000_000)
        self._cached = dict(graph.user_artifacts)
        graph = replace(graph, id=JobID(self._id()))
        super().__init__(graph, clock, lambda ms: None, self._cached, self._id)
        self.clock: ManualClock = clock
        self.disk.outcome = self._outcome
        self._waiting_faults = list(faults)
        self._calls: list[Call] = []
        self._returns: list[tuple[TaskAddress, TaskAddress]] = []
        self._commands: dict[TaskAddress, deque[tuple[int, ToTask]]] = {}
        self._mailroom: dict[tuple[int, str], deque[ToCoordinator | Signal]] = {}
        self._names: dict[TaskAddress, str] = {}
        self._stepped: dict[TaskAddress, ScheduledTask] = {}
        self._writes: list[tuple[int, TaskAddress, Callable[[], None]]] = []
        self._file_work: dict[int, deque[tuple[int, PublishCheckpoint | DiscardFiles]]] = {}
        self._epoch = self._acting = 0
        self._masters: dict[int, JobMaster] = {0: self.job}
        self._zombies: dict[int, int] = {}
        self._epochs: dict[TaskAddress, int] = {}
        self._asked = RequestedSavepoints()
        self._move = 0
        self._last_report_ms = clock.now_ms()
        self._patience = HangDetector(clock.now_ms())
        self._ticked: dict[int, int] = {}
        self._passed_ms = self._states_seen = 0

    def make_job(self, graph: JobGraph, new_id: Callable[[], str], cached_files: Mapping[str, str]) -> JobMaster:
        """Create the job's coordinator; it starts from the checkpoint of the disk that `execution.state-recovery.path`
        names.
        """
        beginning = recover_or_start(graph, new_id, self.disk.storage)
        self._files = {0: beginning.files}
        return JobMaster(graph, new_id, cached_files, self.draw, beginning.start)

    def storage_opener(self, graph: JobGraph) -> OpenStorage:
        """Return the function that opens the checkpoint storage at an address, on the simulated disk."""
        return self.disk.storage

    def run(self, on_progress: Callable[[], None] | None = None) -> JobResult:
        """Move until the job has ended and no task is left.

        Raises:
            AssertionError: nothing moves any more, or the run does not end; says what each task waits for.
        """
        forget_job(self.job.graph.id)
        self.start()
        draw, advance = self.draw, self.clock.advance
        while self.result is None or not all(stepped.frozen_until_ms for stepped in self._stepped.values()):
            if self._waiting_faults:
                self._strike()
            if self._passed_ms != (now := self.clock.now_ms()):
                self._passed_ms = now
                self._pass_time(now)
            moves = self._moves()
            if moves:
                act, given = moves[int(draw.random() * len(moves))]
                self._next_move()
                act(*given)
                if draw.random() < 0.1:
                    advance(1)
            else:
                self._wait_for_something()
            if on_progress is not None:
                on_progress()
        while self._file_work.get(self._epoch):  # what the end of the job deletes
            self._work_on_files(self._epoch)
        self.story.result = self.result
        self._asked.tell(self.story, self.answers)
        return self.result

    # the moves there are now

    def _moves(self) -> list[Move]:
        now = self.clock.now_ms()
        moves: list[Move] = []
        for attempt, stepped in self._stepped.items():
            if not stepped.has_started:
                moves.append((self._start, (attempt, stepped)))
            elif stepped.frozen_until_ms or stepped.busy_until_ms > now:
                continue
            elif stepped.is_awake or stepped.mailbox or stepped.due_ms <= now:
                moves.append((self._step, (attempt, stepped)))
        if self._calls:  # most are empty most of the time, and this is called before each move
            moves += [(self._arrive, (call,)) for call in self._deliverable(now)]
        if self._returns:
            moves += [(self._return, pair) for pair in self._returns]
        if self._commands:
            moves += [(self._command, (to,)) for to, sent in self._commands.items() if sent[0][0] <= now]
        if self._mailroom:
            moves += [(self._event, (source,)) for source in self._mailroom]
        if self._writes:
            moves += [(self._write, (write,)) for write in self._writes if write[0] <= now]
        moves += [(self._work_on_files, (of,)) for of, work in self._file_work.items() if work and work[0][0] <= now]
        if self._epoch not in self._masters:
            moves.append((self._take_over, ()))
        return moves

    def _deliverable(self, now: int) -> list[Call]:
        if self._reorders:
            return [call for call in self._calls if call.due_ms <= now]
        seen: set[tuple[str, str]] = set()
        arrived = []
        for call in self._calls:
            pair = (call.sender, call.receiver)
            if pair not in seen:
                seen.add(pair)
                if call.due_ms <= now:
                    arrived.append(call)
        return arrived

    # what a move does

    def _start(self, attempt: TaskAddress, stepped: ScheduledTask) -> None:
        stepped.has_started = stepped.is_awake = True
        self._tell_story("start", self._names[attempt])
        task = self.tasks[attempt]
        super().start_task(task)
        for report in task.reports():
            self.post(report)

    def _step(self, attempt: TaskAddress, stepped: ScheduledTask) -> None:
        name, task = self._names[attempt], self.tasks[attempt]
        before = task.records_taken
        stepped.is_awake = self.step(attempt, task)
        self._tell_story("step", name, "busy" if stepped.is_awake else stepped.slept(task))
        self.story.most_held[name] = max(self.story.most_held.get(name, 0), task.buffers_held)
        if self._slow_steps:
            records = task.records_taken - before
            extra = sum(fault.step_ms(name, records, self.draw) for _, fault in self._slow_steps)
            stepped.busy_until_ms = self.clock.now_ms() + extra
        if attempt not in self.tasks:
            del self._stepped[attempt]

    def _arrive(self, call: Call) -> None:
        self._calls.remove(call)
        content = f"{call.envelope.sequence}: {call.frames}"
        self._tell_story("deliver" if call.deliver else "lose", f"{call.sender} -> {call.receiver}", content)
        receiver = self.tasks.get(call.attempt)
        if receiver is not None and call.deliver:
            receiver.mail(call.envelope)
        if call.is_answered:
            self._returns.append((call.envelope.sender, call.attempt))

    def _return(self, sender: TaskAddress, receiver: TaskAddress) -> None:
        self._returns.remove((sender, receiver))
        task = self.tasks.get(sender)
        if task is not None:
            task.returned(receiver)
            self._stepped[sender].is_awake = True

    def _command(self, attempt: TaskAddress) -> None:
        _, message = self._commands[attempt].popleft()
        if not self._commands[attempt]:
            del self._commands[attempt]
        self._tell_story("command", self._names[attempt], repr(message))
        super().tell(attempt, message)

    def _event(self, source: tuple[int, str]) -> None:
        event = self._mailroom[source].popleft()
        if not self._mailroom[source]:
            del self._mailroom[source]
        epoch, who = source
        if not isinstance(event, TaskReport | Tick):
            state = event.state.value if isinstance(event, TaskStateChanged) else ""
            self._tell_story("event", self._names.get(TaskAddress(who), who), f"{type(event).__name__} {state}")
        master = self._masters.get(epoch)
        if master is None:
            return
        self._acting = epoch
        was_running = master.status is JobStatus.RUNNING
        self._carry_out(master.handle(event, self.clock.now_ms()))
        self.story.restarts += was_running and master.status is JobStatus.RESTARTING
        self._acting = self._epoch

    def _write(self, write: tuple[int, TaskAddress, Callable[[], None]]) -> None:
        self._writes.remove(write)
        _, attempt, act = write
        self._tell_story("write", self._names[attempt])
        act()

    def _work_on_files(self, epoch: int) -> None:
        _, command = self._file_work[epoch].popleft()
        if isinstance(command, DiscardFiles):
            self._tell_story("discard", f"of coordinator {epoch}", f"{command.base} {command.folder} {command.paths}")
            self._files[epoch].discard(command)
            return
        answer = self._files[epoch].publish(command)
        self._tell_story("publish", f"of coordinator {epoch}", f"{command.path} {type(answer).__name__}")
        self._acting = epoch
        self.post(answer)
        self._acting = self._epoch
        if isinstance(answer, CheckpointPublished):
            self.story.completed.append(command.checkpoint_id)
            for fault in self._faults:
                fault.published(self, len(self.story.completed) - 1)

    # what the runner hands over waits here until its move comes

    def deliver(self, envelope: Envelope) -> None:
        """Put a call on its way, as the faults will have it."""
        sender, receiver = self._names[envelope.sender], self._names[envelope.receiver]
        calls = [Call(envelope, sender, receiver, self.clock.now_ms(), envelope.receiver)]
        for index, fault in self._senders:
            changed: list[Call] = []
            for each in calls:
                if not fault.concerns(each):
                    changed.append(each)
                    continue
                changed += fault.sent(each, self._nth(index, "call"), self.draw)
            calls = changed
        self._calls += calls

    def tell(self, attempt: TaskAddress, message: ToTask) -> None:
        """Queue a command, subject to the faults; those for one task keep their order."""
        what, receiver = type(message).__name__, self._names[attempt]
        due = self.clock.now_ms() + sum(fault.command_ms(self.draw) for _, fault in self._slow_commands)
        for index, fault in enumerate(self._faults):
            if not fault.concerns_command(what, receiver):
                continue
            fate = fault.command(self._nth(index, "command"))
            if fate is CommandFate.ARRIVES:
                continue
            self._tell_story("lose", receiver, f"{what} {fate.value}")
            self.post(CommandLost(attempt, what, "the simulation broke the connection"))
            if fate is CommandFate.LOST:
                return
        self._commands.setdefault(attempt, deque()).append((due, message))

    def post(self, event: ToCoordinator | Signal) -> None:
        """Queue an event; those of one task keep their order."""
        self._states_seen += isinstance(event, TaskStateChanged)
        attempt: TaskAddress | None = getattr(event, "attempt", None)
        if attempt is None:
            source = (self._acting, "cluster")
        else:
            source = (self._epochs[attempt], str(attempt))
            self.story.heard(event, self._names[attempt])
        self._mailroom.setdefault(source, deque()).append(event)

    def start_task(self, task: StreamTask) -> None:
        """Do nothing: a later move starts the task."""

    def work_on_files(self, command: PublishCheckpoint | DiscardFiles) -> None:
        """Queue the work; that of one coordinator keeps its order."""
        due = self.clock.now_ms() + sum(fault.storage_ms(self.draw) for _, fault in self._slow_storage)
        self._file_work.setdefault(self._acting, deque()).append((due, command))

    def end_job(self) -> None:
        """Drop the tasks of the coordinator that ends it."""
        for attempt in self._attempts_of(self._acting):
            self._drop(attempt)

    def make_task(self, command: DeployTask) -> StreamTask:
        """Return a task whose slices and batches are of random size."""
        deployment = command.deployment
        attempt = deployment.attempt
        self._names[attempt], self._epochs[attempt] = deployment.name, self._acting
        self._stepped[attempt] = stepped = ScheduledTask(command.slot)
        drawn = {
            options.BATCH_MAX_ROWS.key: self.draw.choice((1, 2, 5, 100, 16_384)),
            options.BATCH_MAX_BYTES.key: self.draw.choice(("100 bytes", "400 bytes", "10 kb", "1 mb")),
            options.MAX_IN_FLIGHT_CALLS.key: self.draw.choice((1, 2, 3)),
        }
        deployment = replace(deployment, config={**drawn, **deployment.config})
        slicer = RandomSlicer(self.clock, self.draw)

        def write_later(write: Callable[[], None]) -> None:
            slow = sum(fault.storage_ms(self.draw) for _, fault in self._slow_storage)
            self._writes.append((self.clock.now_ms() + slow, attempt, write))

        services = replace(self.services(), background=write_later, new_name=self._id)
        return StreamTask(deployment, self.clock, stepped.mailbox, slicer, services)

    # what faults do

    def kill_named(self, name: str) -> bool:
        """Kill the tasks; return False when none runs now."""
        return self._kill_all([attempt for attempt in self.tasks if name in self._names[attempt]])

    def kill_slot(self, index: int) -> bool:
        """Kill all tasks of one slot, counted among those with tasks; return False when there is none."""
        slots = sorted({stepped.slot for stepped in self._stepped.values()})
        if not slots:
            return False
        return self._kill_all([a for a, each in self._stepped.items() if each.slot == slots[index % len(slots)]])

    def _kill_all(self, victims: list[TaskAddress]) -> bool:
        for attempt in victims:
            self._tell_story("kill", self._names[attempt])
            self._stepped[attempt].dies_at_ms = None
            self.kill(attempt, "the simulation killed it")
        return bool(victims)

    def kill_coordinator(self, zombie_ms: int = 0) -> bool:
        """Let another coordinator take over; False while there is none, or the job has ended."""
        if self._epoch not in self._masters or self.result is not None:
            return False
        now = self.clock.now_ms()
        self._tell_story("kill", f"coordinator {self._epoch}", f"goes on for {zombie_ms} ms" if zombie_ms else "")
        if zombie_ms:
            self._zombies[self._epoch] = now + zombie_ms
        else:
            self._bury(self._epoch)
        self._epoch += 1
        return True

    def freeze_named(self, name: str, for_ms: int | None = None) -> bool:
        """Let the tasks do nothing, for a time or for ever; False when none runs now."""
        victims = [attempt for attempt in self.tasks if name in self._names[attempt]]
        now = self.clock.now_ms()
        for attempt in victims:
            self._tell_story("freeze", self._names[attempt])
            stepped = self._stepped[attempt]
            stepped.frozen_until_ms = FOR_EVER if for_ms is None else now + for_ms
            if for_ms is not None:
                stepped.dies_at_ms = now + 2 * for_ms
        return bool(victims)

    def lose_file(self, part: str) -> bool:
        """Delete a file of a checkpoint whose path has that part; False when there is none."""
        chosen = (lambda path: part in path) if part else is_state
        found = list(filter(chosen, self.disk.files))
        if not found:
            return False
        lost = self.draw.choice(sorted(found))
        self._tell_story("lose", "the storage", lost)
        del self.disk.files[lost]
        return True

    def savepoint(self, directory: str, stop: StopMode | None) -> bool:
        """Ask for a savepoint, and again where it failed; False until there is one, or the job has ended."""
        if self.result is not None or self._asked.is_there(stop, self.answers):
            return True
        now = self.clock.now_ms()
        if self._epoch in self._masters and self._asked.is_due(stop, self.answers, now):
            self.request(SavepointRequested(self._asked.note(stop, self._id(), now), directory, stop))
        return False

    def rescale(self, parallelism: Mapping[str, int]) -> bool:
        """Ask for other parallelisms; False until all tasks run, or the job has ended."""
        job = self.job
        may_ask = self._epoch in self._masters and job.status is JobStatus.RUNNING
        may_ask = may_ask and not isinstance(job.checkpoints.plan(), str)
        if may_ask:
            self.request(RescaleRequested(self._id(), parallelism))
        return may_ask or self.result is not None

    def trigger_checkpoint(self, number: int) -> bool:
        """Send the barrier to all sources; False until every source runs."""
        sources = [e for e in self.job.executions.values() if e.vertex.is_input]
        if any(e.state is not ExecutionState.RUNNING for e in sources):
            return all(e.state.is_terminal for e in sources)
        barrier = CheckpointBarrier(number, self.clock.now_ms())
        for execution in sources:
            self.tell(execution.attempt, TriggerCheckpoint(barrier))
        return True

    def kill(self, attempt: TaskAddress, reason: str) -> None:
        """Kill a task without notice; messages it sent earlier still arrive. A task that is cut off only counts as
        dead.
        """
        stepped = self._stepped.get(attempt)
        if stepped is not None and stepped.dies_at_ms is not None:
            self.post(TaskGone(attempt, reason))
        else:
            super().kill(attempt, reason)

    def _drop(self, attempt: TaskAddress) -> None:
        del self._stepped[attempt]
        self._writes = [write for write in self._writes if write[1] != attempt]
        super()._drop(attempt)

    # coordinators

    def _attempts_of(self, epoch: int) -> list[TaskAddress]:
        return [attempt for attempt in self.tasks if self._epochs[attempt] == epoch]

    def _bury(self, epoch: int) -> None:
        """Kill a coordinator with its tasks; its last request to the storage is carried out, or is not."""
        del self._masters[epoch]
        self._zombies.pop(epoch, None)
        for attempt in self._attempts_of(epoch):
            self._drop(attempt)
        self._mailroom = {source: events for source, events in self._mailroom.items() if source[0] != epoch}
        for _, command in self._file_work.pop(epoch, ()):
            if self.draw.random() < 0.5:
                break
            files = self._files[epoch]
            _ = files.publish(command) if isinstance(command, PublishCheckpoint) else files.discard(command)

    def _take_over(self) -> None:
        """Start a new coordinator from the contents of the storage."""
        graph = self.job.graph
        try:
            beginning = recover_or_start(graph, self._id, self.disk.storage)
        except (StorageError, Fenced, LedgerEnded) as error:
            self._tell_story("take over", f"coordinator {self._epoch}", f"cannot begin: {error}")
            return
        start, self._files[self._epoch] = beginning.start, beginning.files
        self._tell_story("take over", f"coordinator {self._epoch}", str([c.checkpoint_id for c in start.completed]))
        self.job = self._masters[self._epoch] = JobMaster(graph, self._id, self._cached, self.draw, start)
        self._acting = self._epoch
        self._asked.forget()
        self.story.coordinators += 1
        self.start()

    # time

    def _strike(self) -> None:
        left = [fault for fault in self._waiting_faults if not fault.strikes(self, self._move)]
        self._waiting_faults = left

    def _pass_time(self, now: int) -> None:
        for epoch, until in list(self._zombies.items()):
            if now >= until or self.result is not None:
                self._tell_story("end", f"coordinator {epoch}")
                self._bury(epoch)
        for attempt, stepped in list(self._stepped.items()):
            if stepped.frozen_until_ms and now >= stepped.frozen_until_ms:
                self._tell_story("thaw", self._names[attempt])
                stepped.frozen_until_ms, stepped.is_awake = 0, True
            if stepped.dies_at_ms is not None and (now >= stepped.dies_at_ms or self.result is not None):
                stepped.dies_at_ms = None
                if self._is_given_up(attempt):
                    self._tell_story("end", self._names[attempt])
                    self._drop(attempt)
        self._report_in_time(now)

    def _is_given_up(self, attempt: TaskAddress) -> bool:
        master = self._masters.get(self._epochs[attempt])
        execution = None if master is None else master.executions.get(attempt)
        return execution is None or execution.state.is_terminal

    def _report_in_time(self, now: int) -> None:
        if now - self._last_report_ms < REPORT_INTERVAL_MS:
            for epoch, master in self._masters.items():
                due = master.next_tick_ms
                if due is not None and due <= now and self._ticked.get(epoch) != due:
                    self._ticked[epoch] = due
                    self._tick(epoch)
            return
        self._last_report_ms = now
        for attempt, stepped in self._stepped.items():
            if stepped.has_started and not stepped.frozen_until_ms:
                self.post(self.tasks[attempt].report())
                stepped.is_awake = True  # deadlines of what never came are looked at
        for epoch in self._masters:
            self._tick(epoch)

    def _tick(self, epoch: int) -> None:
        self._mailroom.setdefault((epoch, "cluster"), deque()).append(Tick())

    def _wait_for_something(self) -> None:
        """Advance to the next moment at which a move is possible, when none is now."""
        now = self.clock.now_ms()
        times = [call.due_ms for call in self._calls] + [self._last_report_ms + REPORT_INTERVAL_MS]
        times += [master.next_tick_ms or 0 for master in self._masters.values()]
        times += [sent[0][0] for sent in self._commands.values()]
        times += [write[0] for write in self._writes]
        times += [work[0][0] for work in self._file_work.values() if work]
        times += self._zombies.values()
        for stepped in self._stepped.values():
            times += (stepped.frozen_until_ms, stepped.dies_at_ms or 0)
            due = stepped.next_ms()
            times.append(due)
            if due < FOR_EVER:
                self._patience.has_said(now, due)
        self.clock.advance(max(1, min(time for time in times if time > now) - now))
        if self._patience.is_over(self.clock.now_ms(), self._work_done):
            self._give_up(f"no progress for {HANG_TIMEOUT_MS} ms of virtual time")

    def _work_done(self) -> int:
        return sum(task.work_done for task in self.tasks.values()) + self._states_seen

    def _next_move(self) -> None:
        self._move += 1
        if self._move > MOST_MOVES:
            self._give_up(f"no end after {MOST_MOVES} moves")

    def _give_up(self, why: str) -> None:
        waits = [f"  {self._names[attempt]} {task.waits_for()}" for attempt, task in self.tasks.items()]
        newest = [f"  failed before that: {entry.failure.message}" for entry in list(self.job.exceptions)[-1:]]
        said = [f"{why}; the job is {self.job.status.value}, restarts: {self.job.restarts.count}", *newest, *waits]
        raise AssertionError(self.story.describe("\n".join(said)))

    # the story, and chance

    def _tell_story(self, what: str, who: str, detail: str = "") -> None:
        self.story.happenings.append(Happening(self._move, self.clock.now_ms(), what, who, detail))

    def _outcome(self, operation: Operation) -> Outcome:
        for index, fault in enumerate(self._faults):
            if fault.concerns_file(operation):
                outcome = fault.outcome(operation, self._nth(index, "file"), self.draw)
                if outcome is not Outcome.DONE:
                    self._tell_story("lose", "the storage", f"{operation.action} {operation.path} {outcome.value}")
                    return outcome
        return Outcome.DONE

    def _nth(self, fault: int, of: str) -> int:
        nth = self._counts[fault, of]
        self._counts[fault, of] += 1
        return nth

    def _id(self) -> str:
        return f"{self.draw.getrandbits(128):032x}"


__all__ = ["SimulatedCluster"]
