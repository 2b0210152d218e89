"""A call between coordinator and task that fails is noticed by its caller and ends the attempt, and nobody waits."""

from __future__ import annotations

import inspect
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from rayflink.actors.exchange.envelopes import join_envelope
from rayflink.actors.exchange.frames import ErrorResponse, PartitionId, PartitionRequest, TaskAddress
from rayflink.actors.messages.commands import CommandLost, KillTask, TaskGone
from rayflink.actors.messages.messages import (
    AssignSplits,
    CancelTask,
    SplitRequest,
    TaskDeployment,
    TaskReport,
    TaskStateChanged,
)
from rayflink.actors.messages.scheduling import Slot
from rayflink.actors.messages.states import ExecutionState, JobStatus
from rayflink.actors.on_ray.driver.terminal import Printed
from rayflink.actors.on_ray.reports import read_reports
from rayflink.actors.task.progress import Progress
from rayflink.actors.task.task import StreamTask
from rayflink.common.errors import TaskLost
from rayflink.common.text_output.logs import bound
from rayflink.launch import raise_if_failed
from tests.actors.job.job_events import Job, failure, three_vertices
from tests.actors.task.task_bench import CONSUMER, DATASET, Logged, TaskBench

ME = TaskAddress("1" * 32)
SOURCE, MAP_1, MAP_2, SINK = "Source: Collection Source (1/1)", "Map (1/2)", "Map (2/2)", "Sink: Collect (1/1)"
UNREACHABLE = "its process could not be reached"


class Method:
    """A method of an actor as its callers see it: each call gives a future, which the test decides on."""

    def __init__(self, *answers: BaseException | None) -> None:
        self.given: list[Any] = []
        self.calls: list[Future[None]] = []
        self._answers = list(answers)

    def remote(self, *given: Any) -> Any:
        call: Future[None] = Future()
        self.given.append(given)
        self.calls.append(call)
        if self._answers:
            answer = self._answers.pop(0)
            if answer is None:
                call.set_result(None)
            else:
                call.set_exception(answer)
        return SimpleNamespace(future=lambda: call)


# the coordinator's decision


@pytest.fixture
def running() -> Job:
    job = Job(three_vertices())
    job.all_run()
    return job


def lost(job: Job, name: str, what: str) -> CommandLost:
    return CommandLost(job.execution(name).attempt, what, UNREACHABLE)


def test_an_attempt_that_did_not_get_its_splits_is_ended_and_fails_the_job(running: Job) -> None:
    commands = running.on(lost(running, SOURCE, "AssignSplits"))
    assert commands[0] == KillTask(running.execution(SOURCE).attempt)
    assert running.sent(commands) == {name: CancelTask() for name in (MAP_1, MAP_2, SINK)}
    for name in (MAP_1, MAP_2, SINK):
        running.says(name, ExecutionState.CANCELED)
    with pytest.raises(TaskLost, match="call that carried AssignSplits to it failed: its process could not") as caught:
        raise_if_failed(running.master.result, running.master.report.describe())
    assert caught.value.task == SOURCE


def test_an_attempt_that_cannot_be_told_to_stop_is_killed_at_once_and_once(running: Job) -> None:
    running.says(MAP_2, ExecutionState.FAILED, failure=failure("root"))
    kill = KillTask(running.execution(MAP_1).attempt)
    assert running.on(lost(running, MAP_1, "CancelTask")) == [kill]
    assert running.on(lost(running, MAP_1, "CancelTask")) == []
    assert running.on(TaskGone(kill.attempt, "killed")) == []
    assert running.states()[MAP_1] == "CANCELED"


def test_a_call_to_an_attempt_that_has_ended_may_fail(running: Job) -> None:
    running.says(SOURCE, ExecutionState.FINISHED)
    assert running.on(lost(running, SOURCE, "AssignSplits")) == []
    assert running.on(CommandLost(TaskAddress("f" * 32), "StopTask", UNREACHABLE)) == []
    assert (running.states()[SOURCE], running.master.status) == ("FINISHED", JobStatus.RUNNING)


# the coordinator's shell


@pytest.mark.slow  # imports Ray
def test_the_coordinator_learns_which_command_was_lost_and_to_whom() -> None:
    from ray.exceptions import ActorUnavailableError

    from rayflink.actors.on_ray.ray_slots import SlotProcesses

    slots: Any = object.__new__(SlotProcesses)
    command = Method(None, ActorUnavailableError("connection reset", None))
    events: queue.Queue[Any] = queue.Queue()
    slots.actors, slots._waiting, slots._post = {ME: SimpleNamespace(command=command)}, [], events.put
    slots.send(ME, CancelTask())
    slots.send(ME, AssignSplits("0" * 32, ()))
    slots.send(TaskAddress("2" * 32), CancelTask())  # not deployed yet
    event = events.get_nowait()
    assert isinstance(event, CommandLost)
    assert (event.attempt, event.what) == (ME, "AssignSplits")
    assert event.reason.startswith(UNREACHABLE) and "connection reset" in event.reason
    assert events.empty() and len(command.calls) == 2


@pytest.mark.slow  # imports Ray
def test_a_coordinator_that_fails_answers_who_waits_even_where_ray_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rayflink.actors.on_ray import ray_coordinator

    def refusing(*given: Any) -> Any:
        raise ConnectionError("no control service")

    ended: list[int] = []
    monkeypatch.setattr(ray_coordinator.os, "_exit", ended.append)
    coordinator: Any = ray_coordinator.Coordinator()
    coordinator._job = SimpleNamespace(graph=SimpleNamespace(id="0", name="j"), start=refusing)
    coordinator._record = coordinator._linger = lambda: None
    coordinator._slots = SimpleNamespace(release=refusing, end=lambda: None)
    coordinator._published = SimpleNamespace(close=lambda job_id: None)
    with bound():  # what the deciding thread binds to its log is not this thread's
        coordinator._decide()
    with pytest.raises(RuntimeError, match="the coordinator of job 'j' failed: ConnectionError: no control service"):
        coordinator.result(0)
    assert ended == [0]


@pytest.mark.slow  # imports Ray
@pytest.mark.parametrize("started", [False, True])
def test_a_coordinator_whose_driver_went_before_its_job_began_ends(
    monkeypatch: pytest.MonkeyPatch, started: bool
) -> None:
    from rayflink.actors.on_ray import coordinator_actor

    ended: list[int] = []
    monkeypatch.setattr(coordinator_actor, "START_WITHIN_S", 0.01)
    shell = SimpleNamespace(start=lambda submission: None, leave=lambda: ended.append(1))
    coordinator: Any = object.__new__(coordinator_actor.CoordinatorActor)
    coordinator._coordinator, coordinator._started = shell, threading.Event()
    coordinator._expected = coordinator_actor.ExpectedStart()
    if started:
        coordinator.start(None)
    coordinator._expect_start()
    assert ended == ([] if started else [1])


@pytest.mark.slow  # imports Ray
def test_each_call_of_the_actor_is_one_of_its_coordinator_with_the_same_arguments() -> None:
    from rayflink.actors.on_ray import coordinator_actor
    from rayflink.actors.on_ray.ray_coordinator import Coordinator

    for group, calls in coordinator_actor.CALLS.items():
        for name in calls.names:
            assert inspect.isfunction(getattr(Coordinator, name))
            method: Any = getattr(coordinator_actor.CoordinatorActor, name)
            assert (method.__name__, method.__ray_concurrency_group__) == (name, group)
            actor: Any = object.__new__(coordinator_actor.CoordinatorActor)
            actor._coordinator = SimpleNamespace(**{name: lambda *arguments: arguments})
            assert getattr(actor, name)("a", 1) == ("a", 1)
    assert coordinator_actor.coordinator_class() is not None


# the task's shell


@pytest.fixture
def module() -> Iterator[Any]:
    from rayflink.actors.on_ray.slots import ray_task

    yield ray_task


DEPLOYMENT = TaskDeployment("job", "job", ME, 0, "0" * 32, "Source", 0, 1, 128, (), (), ())


class Idle:
    """A task that waits for splits for ever, or ends after some steps."""

    def __init__(self, steps: int = 1_000_000) -> None:
        self.deployment = DEPLOYMENT
        self.identity = DEPLOYMENT.identity
        self.state = ExecutionState.RUNNING
        self.metrics = SimpleNamespace(spent=lambda kind, seconds: None)
        self.clock = SimpleNamespace(now_ms=lambda: 0)
        self.has_mail = True
        self._steps = steps
        self._says: list[Any] = [SplitRequest(ME, "0" * 32)]

    def start(self, tell: Callable[[], None]) -> None:
        tell()

    def step(self) -> Progress:
        self._steps -= 1
        return Progress.IDLE if self._steps else Progress.DONE

    def outgoing(self) -> list[Any]:
        return []

    def give_up(self, failure: Any) -> None:
        self._says.append(TaskStateChanged(ME, ExecutionState.FAILED, failure))

    def reports(self) -> list[Any]:
        says, self._says = self._says, []
        return says

    def report(self) -> TaskReport:
        return TaskReport(ME, {})

    def deadline_ms(self) -> None:
        return None


def shell(
    module: Any, monkeypatch: pytest.MonkeyPatch, task: Idle | StreamTask, *answers: BaseException | None
) -> tuple[Any, Any]:
    """What runs `task` to its end, and the coordinator's `report`, which answers so."""
    report = Method(*answers)
    around = module.PeerDirectory({}, {}, SimpleNamespace(report=report), "leader", 60_000)
    process = module.ProcessJob({"node": "node", "host": "127.0.0.1"}, Printed(lambda chunks: lambda timeout_s: True))
    shell = module.RayTask(b"", DEPLOYMENT, Slot("default", 0), around, process)
    monkeypatch.setattr(shell, "_load", lambda program, deployment: task)
    return shell.run, report


@pytest.mark.slow
def test_a_task_whose_report_was_lost_fails_within_the_stated_time(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOST_CALL_S", 0.05)
    run, report = shell(module, monkeypatch, Idle(), ConnectionResetError("gone"), None)
    with pytest.raises(module.LostCall, match="its call with SplitRequest for the coordinator failed"):
        run()
    (reported,) = read_reports(report.given[-1][0])
    assert isinstance(reported, TaskStateChanged) and reported.failure is not None
    assert (reported.state, reported.failure.kind, reported.failure.operator) == (ExecutionState.FAILED, "TaskLost", "")
    assert reported.failure.message == (
        "lost task Source (1/1) (attempt #0): its call with SplitRequest for the coordinator failed: "
        "ConnectionResetError: gone"
    )


@pytest.mark.slow
def test_a_task_whose_last_report_was_lost_tells_it_by_how_it_ends(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, report = shell(module, monkeypatch, Idle(steps=1), ConnectionResetError("gone"))
    with pytest.raises(module.LostCall, match="SplitRequest"):
        run()
    assert len(report.calls) == 1


@pytest.mark.slow
def test_a_task_whose_coordinator_is_dead_does_not_blame_itself(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from ray.exceptions import ActorDiedError

    monkeypatch.setattr(module, "LOST_CALL_S", 0)
    run, report = shell(module, monkeypatch, Idle(steps=3), ActorDiedError())
    run()
    assert len(report.calls) == 1


@pytest.mark.slow
def test_a_lost_heartbeat_is_no_lost_report(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOST_CALL_S", 0)
    task = Idle(steps=3)
    task._says = [TaskReport(ME, {})]
    run, report = shell(module, monkeypatch, task, ConnectionResetError("gone"))
    run()
    assert len(report.calls) == 1


class Raises(Logged):
    """Ends as a program may: not by an Exception, so that no step catches it."""

    def process(self, batch: Any, input_index: int) -> Any:
        raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.spec("O19", "O25", "connection")
@pytest.mark.parametrize("lost", ["SplitRequest for the coordinator", "data for its peer producer 0", ""])
def test_a_task_that_cannot_go_on_closes_what_it_opened_and_tells_its_consumer(
    module: Any, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    monkeypatch.setattr(module, "LOST_CALL_S", 0)
    log: list[str] = []
    bench = TaskBench([Logged(log, "a"), Raises(log, "b")])
    bench.say(CONSUMER, PartitionRequest(PartitionId(DATASET, 0), 0, 0, 5))
    if not lost:
        bench.feed(0, "x")
    gone = ConnectionResetError("gone")
    producer, consumer = Method(gone if "producer" in lost else None), Method(None, None)
    first = gone if "coordinator" in lost else None
    run, report = shell(module, monkeypatch, bench.task, first, *[None] * 9)
    run.__self__._mailbox = bench.task._mailbox
    peers = {TaskAddress("producer 0"): producer, CONSUMER: consumer}
    run.__self__._peers.update({peer: SimpleNamespace(deliver=call) for peer, call in peers.items()})
    with pytest.raises(module.LostCall, match=f"its call with .*{lost[-10:]} failed") if lost else nullcontext():
        run()
    assert log[-2:] == ["a.close", "b.close"]
    reported = [said for given in report.given for said in read_reports(given[0]) if isinstance(said, TaskStateChanged)]
    assert [said.state.value for said in reported] == ["DEPLOYING", "INITIALIZING", "RUNNING", "FAILED"]
    assert reported[-1].failure is not None
    assert reported[-1].failure.kind == ("TaskLost" if lost else "KeyboardInterrupt")
    header, *bodies = consumer.given[-1]
    (frame,) = join_envelope(header, bodies).frames
    assert isinstance(frame, ErrorResponse) and frame.cause == reported[-1].failure.message
