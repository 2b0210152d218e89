"""A whole job in one thread, every choice drawn from a seed: who steps, what arrives when, and what goes wrong.

The decisions are those of the real runners: the same JobMaster, the same StreamTask. Time is virtual, so a run that
waits an hour takes no longer than its moves, and the same seed tells the same story.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rayflink.actors.commands import DeployTask, JobResult, Signal, Tick
from rayflink.actors.exchange.frames import Envelope, TaskAddress
from rayflink.actors.in_process import REPORT_INTERVAL_MS, InProcessCluster
from rayflink.actors.messages import (
    CheckpointAcknowledged,
    CheckpointDeclined,
    TaskReport,
    TaskStateChanged,
    ToCoordinator,
    ToTask,
    TriggerCheckpoint,
)
from rayflink.actors.slicing import Slicer
from rayflink.actors.states import ExecutionState
from rayflink.actors.task import StreamTask
from rayflink.common import options
from rayflink.common.batches import CheckpointBarrier
from rayflink.graph.job_graph import JobGraph
from rayflink.state.clock import ManualClock
from rayflink.state.memory_storage import MemoryStorage
from rayflink.state.storage import Storage

from .faults import Call, Fault
from .story import Happening, Story

PATIENCE_MS = 240_000
"""Virtual time without progress after which a run counts as hung; above every timeout that ends a wait by itself."""
MOST_MOVES = 200_000
"""Moves after which a run counts as endless."""
_LONG_WAIT_MS = 1_000


class RandomSlicer(Slicer):
    """Slices of random size that stop at random, whatever the records cost."""

    def __init__(self, clock: Any, draw: random.Random) -> None:
        super().__init__(clock)
        self._draw = draw

    def rows(self, available: int) -> int:
        return min(available, self._draw.choice((1, 2, 3, 7, 64, 1024)))

    def may_continue(self) -> bool:
        return self._draw.random() < 0.8


class SimulatedCluster(InProcessCluster):
    """One job, run to its end by moves that are drawn from a seed.

    Args:
        graph: the job.
        seed: of all choices.
        faults: what goes wrong.
        storages: what is at the addresses of checkpoint storages; None: nothing yet.
    """

    def __init__(
        self,
        graph: JobGraph,
        seed: int,
        faults: Sequence[Fault] = (),
        storages: dict[str, Storage] | None = None,
    ) -> None:
        self.draw = random.Random(seed)
        self.story = Story(seed)
        clock = ManualClock(1_000_000)
        super().__init__(graph, clock, lambda ms: None, dict(graph.user_artifacts), self._id)
        self.clock: ManualClock = clock
        self.storages = {} if storages is None else storages
        self.open_storage = self._storage
        self._faults = list(faults)
        self._waiting_faults = list(faults)
        self._counts: Counter[int] = Counter()
        self._calls: list[Call] = []
        self._returns: list[tuple[TaskAddress, TaskAddress]] = []
        self._unstarted: list[StreamTask] = []
        self._commands: dict[TaskAddress, deque[ToTask]] = {}
        self._mailroom: dict[str, deque[ToCoordinator | Signal]] = {}
        self._names: dict[TaskAddress, str] = {}
        self._writes: list[tuple[str, Callable[[], None]]] = []
        self._awake: dict[TaskAddress, bool] = {}
        self._busy_until: dict[TaskAddress, int] = {}
        self._frozen: set[TaskAddress] = set()
        self._move = 0
        self._last_progress_ms = clock.now_ms()
        self._last_report_ms = clock.now_ms()
        self._patient_until = 0
        self._work_done = -1
        self._states_seen = 0

    def run(self, on_progress: Callable[[], None] | None = None) -> JobResult:
        """Move until the job has ended and no task is left.

        Raises:
            AssertionError: nothing moves any more, or the run does not end; says what each task waits for.
        """
        self.start()
        while self.result is None or any(attempt not in self._frozen for attempt in self.tasks):
            self._strike()
            self._report_in_time()
            moves = self._moves()
            if moves:
                act = moves[self.draw.randrange(len(moves))]
                self._next_move()
                act()
                if self.draw.random() < 0.1:
                    self.clock.advance(1)
            else:
                self._wait_for_something()
            if on_progress is not None:
                on_progress()
        self.story.result = self.result
        return self.result

    # the moves there are now

    def _moves(self) -> list[Callable[[], None]]:
        now = self.clock.now_ms()
        moves: list[Callable[[], None]] = []
        moves += [partial(self._start, task) for task in self._unstarted]
        moves += [partial(self._step, a, task) for a, task in self.tasks.items() if self._may_step(a, task, now)]
        moves += [partial(self._arrive, call) for call in self._deliverable(now)]
        moves += [partial(self._return, *pair) for pair in self._returns]
        moves += [partial(self._command, attempt) for attempt, commands in self._commands.items() if commands]
        moves += [partial(self._event, source) for source, events in self._mailroom.items() if events]
        moves += [partial(self._write, place) for place in range(len(self._writes))]
        return moves

    def _may_step(self, attempt: TaskAddress, task: StreamTask, now: int) -> bool:
        if task in self._unstarted or attempt in self._frozen or self._busy_until.get(attempt, 0) > now:
            return False
        if self._awake.get(attempt, True) or task.has_mail:
            return True
        due = task.deadline_ms()
        return due is not None and due <= now

    def _deliverable(self, now: int) -> list[Call]:
        arrived = [call for call in self._calls if call.due_ms <= now]
        if any(fault.reorders for fault in self._faults):
            return arrived
        first: dict[tuple[str, str], Call] = {}
        for call in self._calls:
            first.setdefault((call.sender, call.receiver), call)
        return [call for call in arrived if first[call.sender, call.receiver] is call]

    # what a move does

    def _start(self, task: StreamTask) -> None:
        self._unstarted.remove(task)
        self._tell_story("start", task.deployment.name)
        super().start_task(task)
        for report in task.reports():
            self.post(report)

    def _step(self, attempt: TaskAddress, task: StreamTask) -> None:
        name = self._names[attempt]
        self._awake[attempt] = self.step(attempt, task)
        self._tell_story("step", name, "busy" if self._awake[attempt] else task.waits_for())
        self.story.most_held[name] = max(self.story.most_held.get(name, 0), task.buffers_held)
        extra = sum(fault.step_ms(name) for fault in self._faults)
        if extra:
            self._busy_until[attempt] = self.clock.now_ms() + extra

    def _arrive(self, call: Call) -> None:
        self._calls.remove(call)
        told = f"{call.envelope.sequence}: {call.frames}"
        self._tell_story("deliver" if call.deliver else "lose", f"{call.sender} -> {call.receiver}", told)
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
            self._awake[sender] = True

    def _command(self, attempt: TaskAddress) -> None:
        message = self._commands[attempt].popleft()
        self._tell_story("command", self._names[attempt], repr(message))
        super().tell(attempt, message)

    def _event(self, source: str) -> None:
        event = self._mailroom[source].popleft()
        if not isinstance(event, TaskReport | Tick):
            state = event.state.value if isinstance(event, TaskStateChanged) else ""
            self._tell_story("event", self._names.get(TaskAddress(source), source), f"{type(event).__name__} {state}")
        self._events.append(event)
        self._handle_events()

    def _write(self, place: int) -> None:
        name, write = self._writes.pop(place)
        self._tell_story("write", name)
        write()

    # what the runner hands over waits here until its move comes

    def deliver(self, envelope: Envelope) -> None:
        """Put a call on its way, as the faults will have it."""
        call = Call(
            envelope,
            self._names[envelope.sender],
            self._names[envelope.receiver],
            self.clock.now_ms(),
            envelope.receiver,
        )
        calls = [call]
        for index, fault in enumerate(self._faults):
            changed: list[Call] = []
            for each in calls:
                if not fault.concerns(each):
                    changed.append(each)
                    continue
                changed += fault.sent(each, self._counts[index], self.draw)
                self._counts[index] += 1
            calls = changed
        self._calls += calls

    def tell(self, attempt: TaskAddress, message: ToTask) -> None:
        """Queue a command; those for one task keep their order."""
        self._commands.setdefault(attempt, deque()).append(message)

    def post(self, event: ToCoordinator | Signal) -> None:
        """Queue an event; those of one task keep their order."""
        self._keep(event)
        source = str(getattr(event, "attempt", "cluster"))
        self._mailroom.setdefault(source, deque()).append(event)

    def start_task(self, task: StreamTask) -> None:
        """Let the task start at some later move."""
        self._unstarted.append(task)

    def make_task(self, command: DeployTask) -> StreamTask:
        """A task whose slices and batches are of random size."""
        deployment = command.deployment
        self._names[deployment.attempt] = deployment.name
        drawn = {
            options.BATCH_MAX_ROWS.key: self.draw.choice((1, 2, 5, 100, 16_384)),
            options.BATCH_MAX_BYTES.key: self.draw.choice(("100 bytes", "400 bytes", "10 kb", "1 mb")),
            options.MAX_IN_FLIGHT_CALLS.key: self.draw.choice((1, 2, 3)),
        }
        deployment = replace(deployment, config={**drawn, **deployment.config})
        slicer = RandomSlicer(self.clock, self.draw)
        lent = replace(
            self.facilities(), background=lambda write: self._writes.append((deployment.name, write)), new_name=self._id
        )
        return StreamTask(deployment, self.clock, slicer=slicer, facilities=lent)

    # what faults do

    def kill_named(self, name: str) -> bool:
        """Kill the tasks; False when none runs now."""
        victims = [attempt for attempt in self.tasks if name in self._names[attempt]]
        for attempt in victims:
            self._tell_story("kill", self._names[attempt])
            self._unstarted = [task for task in self._unstarted if task.deployment.attempt != attempt]
            self.kill(attempt, "the simulation killed it")
        return bool(victims)

    def freeze_named(self, name: str) -> bool:
        """Let the tasks do nothing any more; False when none runs now."""
        victims = [attempt for attempt in self.tasks if name in self._names[attempt]]
        for attempt in victims:
            self._tell_story("freeze", self._names[attempt])
        self._frozen.update(victims)
        return bool(victims)

    def trigger_checkpoint(self, number: int) -> bool:
        """Send the barrier to all sources; False until every source runs."""
        sources = [e for e in self.job.executions.values() if e.vertex.is_input]
        if any(e.state is not ExecutionState.RUNNING for e in sources):
            return all(e.state.is_terminal for e in sources)
        barrier = CheckpointBarrier(number, self.clock.now_ms())
        for execution in sources:
            self.tell(execution.attempt, TriggerCheckpoint(barrier))
        return True

    def cancel(self, by: str = "the user") -> None:
        """Ask for the job's cancellation."""
        super().cancel(by)
        self._handle_events()

    def stop(self) -> None:
        """Let the sources end."""
        super().stop()
        self._handle_events()

    def kill(self, attempt: TaskAddress, reason: str) -> None:
        """A task dies without a word; what it said before still arrives."""
        self._frozen.discard(attempt)
        super().kill(attempt, reason)

    # time

    def _strike(self) -> None:
        self._waiting_faults = [fault for fault in self._waiting_faults if not fault.strikes(self, self._move)]

    def _report_in_time(self) -> None:
        now = self.clock.now_ms()
        if now - self._last_report_ms < REPORT_INTERVAL_MS:
            if self.tick_is_due(now):
                self.post(Tick())
            return
        self._last_report_ms = now
        for attempt, task in self.tasks.items():
            if attempt not in self._frozen and task not in self._unstarted:
                self.post(task.report())
                self._awake[attempt] = True  # deadlines of what never came are looked at
        self.post(Tick())

    def _wait_for_something(self) -> None:
        """Nobody can move now: go to the next moment at which somebody can."""
        now = self.clock.now_ms()
        times = [call.due_ms for call in self._calls] + [self._last_report_ms + REPORT_INTERVAL_MS]
        next_tick = self.job.next_tick_ms
        if next_tick is not None and next_tick > now:
            times.append(next_tick)
        for attempt, task in self.tasks.items():
            if attempt in self._frozen:
                continue
            due = max(task.deadline_ms() or 0, self._busy_until.get(attempt, 0))
            if due > now:
                times.append(due)
                if due - now >= _LONG_WAIT_MS:  # it said for how long it will wait: that is no hang
                    self._patient_until = max(self._patient_until, due)
        self.clock.advance(max(1, min(times) - now))
        self._look_for_hangs()

    def _look_for_hangs(self) -> None:
        now = self.clock.now_ms()
        done = sum(task.work_done for task in self.tasks.values()) + self._states_seen
        if done != self._work_done:
            self._work_done, self._last_progress_ms = done, now
        if now - max(self._last_progress_ms, self._patient_until) > PATIENCE_MS:
            self._give_up(f"no progress for {PATIENCE_MS} ms of virtual time")

    def _next_move(self) -> None:
        self._move += 1
        if self._move > MOST_MOVES:
            self._give_up(f"no end after {MOST_MOVES} moves")

    def _give_up(self, why: str) -> None:
        waits = [f"  {self._names[attempt]} {task.waits_for()}" for attempt, task in self.tasks.items()]
        raise AssertionError(self.story.told("\n".join([f"{why}; the job is {self.job.status.value}", *waits])))

    # the story

    def _tell_story(self, what: str, who: str, detail: str = "") -> None:
        self.story.happenings.append(Happening(self._move, self.clock.now_ms(), what, who, detail))

    def _keep(self, event: ToCoordinator | Signal) -> None:
        if isinstance(event, TaskStateChanged):
            self._states_seen += 1
        elif isinstance(event, CheckpointAcknowledged):
            parts = self.story.acknowledged.setdefault(event.checkpoint_id, {})
            parts[self._names[event.attempt]] = event
        elif isinstance(event, CheckpointDeclined):
            self.story.declined.append(event)

    def _storage(self, url: str) -> Storage:
        """What is at an address; every address is one of its own."""
        return self.storages.setdefault(url, MemoryStorage(url))

    def _id(self) -> str:
        return f"{self.draw.getrandbits(128):032x}"


def simulate(program: Any, seed: int = 0, faults: Sequence[Fault] = ()) -> Story:
    """Run a job from a seed, with faults.

    >>> from rayflink.connectors.collection import CollectSink
    >>> from rayflink.datastream import StreamExecutionEnvironment
    >>> from rayflink.testing import DuplicateCalls, KillTask, simulate
    >>> env = StreamExecutionEnvironment()
    >>> counts = env.from_collection(["a", "b", "a"]).map(lambda word: (word, 1)).key_by(0).sum(1)
    >>> sink = counts.sink_to(CollectSink())
    >>> job = env.get_job_graph()
    >>> simulate(job, seed=7, faults=[DuplicateCalls()]).collected()
    [('a', 1), ('b', 1), ('a', 2)]
    >>> simulate(job, seed=7, faults=[KillTask("Map", at=10)]).status.value
    'FAILED'

    Args:
        program: a JobGraph, or an environment with a program written.
        seed: the same one tells the same story.
        faults: of `rayflink.testing.faults`.
    Raises:
        AssertionError: the run hangs, or breaks a rule of the runtime; shows the seed and the last moves.
    """
    graph = program if isinstance(program, JobGraph) else program.get_job_graph()
    cluster = SimulatedCluster(graph, seed, faults)
    try:
        cluster.run()
    except AssertionError as error:
        if str(error).startswith("seed "):
            raise
        raise AssertionError(cluster.story.told(f"AssertionError: {error}")) from error
    except Exception as error:
        raise AssertionError(cluster.story.told(f"{type(error).__name__}: {error}")) from error
    return cluster.story
