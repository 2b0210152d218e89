"""Both shells of a deployment without a cluster: what the coordinator asks of Ray, and what a process makes of it."""

from __future__ import annotations

import gc
import logging
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rayflink.actors.job.submission import Submission
from rayflink.actors.messages.commands import DeploymentFailed, DeployTask, SendToTask, SlotsGranted, TaskGone
from rayflink.actors.messages.messages import (
    CancelTask,
    CheckpointAcknowledged,
    SplitRequest,
    TaskDeployment,
    TaskFailure,
    TaskStateChanged,
    TriggerCheckpoint,
)
from rayflink.actors.messages.scheduling import Slot
from rayflink.actors.messages.states import ExecutionState
from rayflink.actors.on_ray.coordinators.slot_starts import SlotStarts
from rayflink.actors.on_ray.driver.user_program import pack
from rayflink.actors.on_ray.reports import read_reports
from rayflink.actors.on_ray.slots.deployment_check import SlotAssignment, TaskSubmissionError
from rayflink.common.records.batches import CheckpointBarrier
from rayflink.common.user_code.value_bytes import to_bytes
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from tests.actors.job.job_events import Job, three_vertices

pytestmark = pytest.mark.slow  # imports Ray

SOURCE, MAP_1, MAP_2, SINK = "Source: Collection Source (1/1)", "Map (1/2)", "Map (2/2)", "Sink: Collect (1/1)"
LEADER = "a" * 32


def deploy_commands(job: Job) -> list[DeployTask]:
    job.start()
    return [command for command in job.on(SlotsGranted()) if isinstance(command, DeployTask)]


class Calls:
    """A method of an actor as its callers see it: `answer` is called at once; what it raises is the call's error."""

    def __init__(self, answer: Callable[..., Any] | None) -> None:
        self.given: list[Any] = []
        self._answer = answer

    def remote(self, *given: Any) -> Any:
        self.given.append(given)
        call: Future[Any] = Future()
        if self._answer is not None:
            try:
                call.set_result(self._answer(*given))
            except Exception as error:
                call.set_exception(error)
        return SimpleNamespace(future=lambda: call)


class Actor(SimpleNamespace):
    """A handle, which can be kept in a set."""

    __hash__ = object.__hash__


class Processes:
    """Ray as the coordinator sees it: gives actors, and refuses the one that it is told to refuse."""

    def __init__(self, submit: Callable[..., Any] | None, refused: str = "") -> None:
        self.made: dict[str, Any] = {}
        self._submit, self._refused, self._name = submit, refused, ""

    def options(self, name: str, **given: Any) -> Processes:
        self._name = name.rpartition("/")[0]  # behind it stands what makes it the only one
        return self

    def remote(self, assignment: SlotAssignment) -> Any:
        if str(assignment.slot) == self._refused:
            raise ValueError(f"the name {self._name} is taken")
        methods = {"submit": Calls(self._submit), "run": Calls(None), "command": Calls(None)}
        actor = Actor(__ray_ready__=Calls(lambda: True), assignment=assignment, **methods)
        self.made[self._name] = actor
        return actor


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Processes, Job], Any]]:
    """A coordinator on a cluster of one node, node-7, that has deployed a job to these processes."""
    from rayflink.actors.on_ray import ray_slots as module
    from rayflink.actors.on_ray.ray_coordinator import Coordinator

    def made(processes: Processes, job: Job, starts: SlotStarts | None = None, hosts: Any = None) -> Any:
        commands = deploy_commands(job)
        table = {"bundles_to_node_id": {0: "0f", 1: "0f"}, "state": "CREATED"}
        monkeypatch.setattr(module, "placement_group_table", lambda group: table)
        nodes = [{"NodeID": "0f", "NodeManagerHostname": "node-7"}]
        cluster = SimpleNamespace(nodes=lambda: nodes, put=lambda value: value, kill=lambda actor: None)
        monkeypatch.setattr(module, "ray", cluster)
        monkeypatch.setattr(module, "PlacementGroupSchedulingStrategy", lambda group, bundle: None)
        monkeypatch.setattr(module, "NodeWatch", lambda in_use, lost: None)
        monkeypatch.setattr(module, "actor_class", lambda tasks: processes)
        monkeypatch.setattr(module, "cluster_has", lambda: "the cluster has 2 CPUs")
        coordinator: Any = Coordinator()
        coordinator._job, coordinator._prometheus = job.master, SimpleNamespace(report=lambda group, now: None)
        leader = module.Leader(object(), coordinator._leader_id, starts or SlotStarts(), hosts or Hosts(processes))
        slots: Any = module.SlotProcesses(job.master, Submission(b"program"), leader, coordinator._events.put)
        slots._group = object()
        slots._bundles = {slot: index for index, slot in enumerate(sorted({c.slot for c in commands}))}
        slots.deploy(commands)
        coordinator._slots = slots
        return coordinator

    yield made


def said(coordinator: Any) -> list[Any]:
    events = []
    while not coordinator._events.empty():
        events.append(coordinator._events.get_nowait())
    return events


@pytest.mark.spec("J16", "J20", "thread")
def test_each_process_is_made_for_its_slot_and_told_its_deployments(
    shell: Any, caplog: pytest.LogCaptureFixture
) -> None:
    processes, job = Processes(lambda *given: None), Job(three_vertices())
    with caplog.at_level(logging.INFO, logger="rayflink"):
        coordinator = shell(processes, job)
    assert "Deploying Map (2/2) (attempt #0) to node-7" in [record.getMessage() for record in caplog.records]
    job_id, attempt = job.master.graph.id, job.execution(MAP_2).attempt
    assert list(processes.made) == [f"{job_id}/default/0", f"{job_id}/default/1"]
    full, actor = processes.made.values()
    slot, title = Slot("default", 1), "three: Map (2/2)"
    assert actor.assignment == SlotAssignment(job_id, slot, coordinator._leader_id, title=title)
    [(program, deployment, slot, around)] = actor.submit.given
    assert (program, deployment.name, deployment.operators, slot) == (b"program", MAP_2, (), Slot("default", 1))
    assert (around.leader_id, set(around.actors)) == (coordinator._leader_id, set(job.master.executions))
    assert actor.run.given == [(attempt,)] and coordinator.process_of(attempt) is actor
    assert [given[1].name for given in full.submit.given] == [SOURCE, MAP_1, SINK]
    assert (said(coordinator), coordinator._slots.calls.waiting()) == ([], [])


@pytest.mark.spec("J05", "J14", "reached")
def test_an_execution_that_could_not_be_deployed_names_itself_and_the_cause(shell: Any) -> None:
    job = Job(three_vertices())
    processes = Processes(lambda *given: None, refused="default/1")
    [failed] = said(shell(processes, job))
    assert isinstance(failed, DeploymentFailed) and failed.attempt == job.execution(MAP_2).attempt
    cause = f"ValueError: the name {job.master.graph.id}/default/1 is taken"
    assert failed.failure.message == f"Could not deploy execution Map (2/2) (attempt #0). Cause: {cause}"
    assert "Traceback" in failed.failure.traceback and failed.failure.kind == "ValueError"
    assert list(processes.made) == [f"{job.master.graph.id}/default/0"]


@pytest.mark.spec("J18", "J19")
def test_a_refused_deployment_fails_its_attempt_with_what_the_process_says(shell: Any) -> None:
    from ray import exceptions

    failed_call: Any = exceptions.RayTaskError

    def refuse(program: bytes, deployment: TaskDeployment, slot: Slot, around: Any) -> None:
        if deployment.name == MAP_1:
            cause = TaskSubmissionError(deployment.title, "it is full", "wait")
            raise failed_call("submit", "Traceback: ...", cause)
        if deployment.name == MAP_2:
            raise failed_call("submit", "Traceback: ...", ModuleNotFoundError("No module named 'mine'"))

    job = Job(three_vertices())
    first, second = said(shell(Processes(refuse), job))
    assert (first.attempt, second.attempt) == (job.execution(MAP_1).attempt, job.execution(MAP_2).attempt)
    assert first.failure.kind == "TaskSubmissionError"
    assert first.failure.message == "could not submit task Map (1/2) (attempt #0): it is full; wait"
    assert second.failure.message == (
        "could not submit task Map (2/2) (attempt #0): ModuleNotFoundError: No module named 'mine'"
    )


@pytest.mark.spec("J18", "J14", "reached")
def test_the_coordinator_gives_up_a_process_that_does_not_answer(shell: Any) -> None:
    job = Job(three_vertices())
    coordinator = shell(Processes(None), job)
    assert set(coordinator._slots.calls.waiting()) == set(job.master.executions)
    coordinator._slots.calls.answered(job.execution(SINK).attempt)
    coordinator._slots.granted = True
    coordinator._tick(coordinator._clock.monotonic() + 11)
    late = said(coordinator)
    assert [event.attempt for event in late] == [job.execution(name).attempt for name in (SOURCE, MAP_1, MAP_2)]
    assert all("not responding after a rpcTimeout of 10000 ms" in event.failure.message for event in late)


def test_a_job_starts_its_processes_when_it_is_its_turn(shell: Any) -> None:
    """Its attempts are not overdue meanwhile, and the next job begins as soon as its tasks report."""
    job, processes, starts = Job(three_vertices()), Processes(lambda *given: None), SlotStarts(most=lambda: 2)
    assert starts.begin("another job", 2, time.monotonic())
    coordinator = shell(processes, job, starts)
    slots, now = coordinator._slots, coordinator._clock.monotonic()
    slots.granted = True
    assert set(slots.tick(now + 1_000)) == set(job.master.executions) and not processes.made
    assert slots.wait.reason.startswith("waiting for its turn") and slots.missing == 2 and said(coordinator) == []

    starts.end("another job")
    slots.tick(now)
    assert len(processes.made) == 2 and slots.missing == 0
    assert not starts.begin("a third job", 1, now)
    for attempt in list(job.master.executions):
        job.on(TaskStateChanged(attempt, ExecutionState.INITIALIZING))
    slots.tick(now)
    assert starts.begin("a third job", 1, now)


class Hosts:
    """Shared processes: gives slots of one, and notes what becomes of them."""

    def __init__(self, processes: Processes, room: int = 0) -> None:
        self.room, self._processes = room, processes
        self.taken: list[Any] = []
        self.ended: list[Any] = []
        self.closed: list[Any] = []
        self.killed: list[Any] = []
        self.is_lost: list[Any] = []

    def missing(self, kind: Any, nodes: list[str]) -> int:
        return max(0, -(-(len(nodes) - self.room) // kind.slots))

    def take(self, kind: Any, node: str, assignment: SlotAssignment) -> Any:
        from rayflink.actors.on_ray.slots.hosted_slot import HostedSlot

        assert node == "0f"
        actor = self._processes.options(f"{assignment.slot}/").remote(assignment)
        slot = HostedSlot(SimpleNamespace(), f"{assignment.job_id}/{len(self.taken)}")
        for name in ("submit", "run", "command", "assignment"):
            object.__setattr__(slot, name, getattr(actor, name))
        slot.host.__ray_ready__ = Calls(lambda: True)
        self.taken.append(slot)
        return slot

    def end(self, slots: list[Any]) -> None:
        self.ended += slots

    def close(self, slot: Any) -> None:
        self.closed.append(slot)

    def end_process(self, slot: Any) -> None:
        self.killed.append(slot)

    def lost(self, slot: Any) -> None:
        self.is_lost.append(slot)

    def has(self, slot: Any) -> bool:
        return slot not in self.killed and slot not in self.is_lost


def shared(job: Job) -> Job:
    job.master.graph.configuration["rayflink.ray.slots-per-process"] = 4
    return job


def test_slots_that_share_a_process_are_closed_and_not_killed(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from rayflink.actors.on_ray import ray_slots

    processes, job = Processes(lambda *given: None), shared(Job(three_vertices()))
    hosts = Hosts(processes)
    coordinator = shell(processes, job, hosts=hosts)
    assert len(hosts.taken) == 2 and {*coordinator._slots.actors.values()} == {*hosts.taken}
    assert [slot.assignment.leader_id for slot in hosts.taken] == [coordinator._leader_id] * 2
    assert coordinator._slots.keep() is None, "they wait for nobody"
    monkeypatch.setattr(ray_slots, "remove_folders_on", lambda *given: [])
    monkeypatch.setattr(ray_slots, "remove_placement_group", lambda group: None)
    coordinator._slots.release()
    assert hosts.ended == hosts.taken and hosts.killed == []


def test_a_task_that_does_not_stop_ends_the_process_of_its_slot(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from rayflink.actors.on_ray import ray_slots

    processes, job = Processes(lambda *given: None), shared(Job(three_vertices()))
    hosts = Hosts(processes)
    slots = shell(processes, job, hosts=hosts)._slots
    slots.kill(job.execution(MAP_2).attempt)
    [stuck] = hosts.killed
    monkeypatch.setattr(ray_slots, "remove_placement_group", lambda group: None)
    slots._give_up_slots()
    assert hosts.ended == [slot for slot in hosts.taken if slot is not stuck]


@pytest.mark.parametrize("reason", ["it died", "it cannot be reached", "there is no such node", "the task failed"])
def test_a_process_is_lost_with_every_error_that_is_not_of_its_task(shell: Any, reason: str) -> None:
    from ray import exceptions

    failed_call: Any = exceptions.RayTaskError
    errors = {
        "it died": exceptions.ActorDiedError(),
        "it cannot be reached": exceptions.ActorUnavailableError("away", None),
        "there is no such node": exceptions.ActorUnschedulableError("no node"),
        "the task failed": failed_call("run", "Traceback: ...", ConnectionError("a report is lost")),
    }
    processes, job = Processes(lambda *given: None), shared(Job(three_vertices()))
    hosts = Hosts(processes)
    coordinator = shell(processes, job, hosts=hosts)
    attempt = job.execution(MAP_2).attempt
    slot, call = coordinator._slots.actors[attempt], Future[None]()
    coordinator._slots._watch(SimpleNamespace(future=lambda: call), attempt, slot)
    call.set_exception(errors[reason])
    assert hosts.is_lost == ([] if reason == "the task failed" else [slot])
    [gone] = said(coordinator)
    assert isinstance(gone, TaskGone) and gone.attempt == attempt


def test_an_attempt_goes_elsewhere_when_its_process_was_lost_for_others(shell: Any) -> None:
    """No call of this job was under way there, so it has had no error."""
    processes, job = Processes(lambda *given: None), shared(Job(three_vertices()))
    hosts = Hosts(processes)
    slots = shell(processes, job, hosts=hosts)._slots
    before = slots._slots[Slot("default", 1)]
    hosts.killed.append(before)
    [command] = [each for each in deploy_commands(shared(Job(three_vertices()))) if each.deployment.name == MAP_2]
    slots.deploy([command])
    assert len(hosts.taken) == 3 and slots._slots[Slot("default", 1)] is hosts.taken[-1]


def test_a_deployment_that_is_late_ends_its_slot_and_not_the_process(shell: Any) -> None:
    processes, job = Processes(None), shared(Job(three_vertices()))
    hosts = Hosts(processes)
    slots = shell(processes, job, hosts=hosts)._slots
    slots.kill(job.execution(MAP_2).attempt)
    assert hosts.closed == [slots._slots[Slot("default", 1)]] and hosts.killed == []
    assert slots._is_dead(Slot("default", 1))


def test_jobs_that_wait_for_their_turn_all_start_one_after_the_other(shell: Any) -> None:
    starts = SlotStarts(most=lambda: 2)
    assert starts.begin("another job", 2, time.monotonic())
    jobs = [(Job(three_vertices()), Processes(lambda *given: None)) for _ in range(3)]
    coordinators = [shell(processes, job, starts) for job, processes in jobs]
    for coordinator in coordinators:
        coordinator._slots.granted = True
    starts.end("another job")
    for coordinator, (job, processes) in zip(coordinators, jobs, strict=True):
        for each in coordinators:
            each._slots.tick(time.monotonic())
        assert len(processes.made) == 2, "it is its turn"
        for attempt in list(job.master.executions):
            job.on(TaskStateChanged(attempt, ExecutionState.INITIALIZING))
        coordinator._slots.tick(time.monotonic())


def test_a_slot_in_a_process_with_room_waits_for_no_turn(shell: Any) -> None:
    starts = SlotStarts(most=lambda: 1)
    assert starts.begin("another job", 1, time.monotonic())
    for room, taken in ((2, 2), (1, 0)):
        processes, job = Processes(lambda *given: None), shared(Job(three_vertices()))
        hosts = Hosts(processes, room)
        shell(processes, job, starts, hosts)
        assert len(hosts.taken) == taken


def test_a_slot_waits_while_ray_looks_for_its_node(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of its own would be placed with the slot; a shared one is made on a node that has to be known."""
    from rayflink.actors.on_ray import ray_slots

    processes, job = Processes(lambda *given: None), shared(Job(three_vertices()))
    hosts = Hosts(processes)
    slots = shell(processes, job, hosts=hosts)._slots
    nodes = {"bundles_to_node_id": {0: "0f", 1: "0f"}}
    monkeypatch.setattr(ray_slots, "placement_group_table", lambda group: {**nodes, "state": "RESCHEDULING"})
    execution = job.execution(MAP_2)
    [command] = [each for each in deploy_commands(shared(Job(three_vertices()))) if each.deployment.name == MAP_2]
    slots.granted = True
    slots.deploy([command])
    assert slots.missing == 1 and execution.attempt in slots.actors
    monkeypatch.setattr(ray_slots, "placement_group_table", lambda group: {**nodes, "state": "CREATED"})
    slots._deploy_waiting(time.monotonic())
    assert slots.missing == 0 and command.deployment.attempt in slots.actors


def test_a_job_whose_node_is_lost_when_its_turn_comes_leaves_it_to_others(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rayflink.actors.on_ray import ray_slots

    job, processes, starts = Job(three_vertices()), Processes(lambda *given: None), SlotStarts(most=lambda: 2)
    assert starts.begin("another job", 2, time.monotonic())
    slots = (coordinator := shell(processes, job, starts))._slots
    slots.granted = True
    monkeypatch.setattr(ray_slots, "remove_placement_group", lambda group: None)
    monkeypatch.setattr(ray_slots.SlotProcesses, "_new_group", lambda self: object())
    slots._lost_nodes.add("0f")
    starts.end("another job")
    slots.tick(time.monotonic())
    assert not processes.made and "lost node" in slots.wait.reason and said(coordinator) == []
    assert starts.begin("a third job", 2, time.monotonic()), "though it was its turn"
    slots.tick(time.monotonic() + coordinator._slots._settings.slot_timeout_ms / 1000 + 1)
    assert [type(event) for event in said(coordinator)] == [DeploymentFailed] * 4 and slots.missing == 0


def test_a_job_that_ends_in_the_queue_makes_room_for_the_next(shell: Any) -> None:
    job, processes, starts = Job(three_vertices()), Processes(lambda *given: None), SlotStarts(most=lambda: 2)
    assert starts.begin("another job", 2, time.monotonic())
    coordinator = shell(processes, job, starts)
    for attempt in list(job.master.executions):
        coordinator._slots.send(attempt, CancelTask())
    assert [type(event).__name__ for event in said(coordinator)] == ["TaskGone"] * 4
    coordinator._slots._watch_of_nodes = SimpleNamespace(end=lambda: None)
    coordinator._slots.end()
    starts.end("another job")
    assert starts.begin("a third job", 1, time.monotonic()) and not processes.made


class Facts(MapFunction):
    """Gives what its task was created with."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._scope = runtime_context.get_metrics_group().get_scope_components()

    def map(self, value: str) -> Any:
        return value, threading.current_thread().name, self._scope


@pytest.fixture
def task_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """The task's shell in this process, which is left as it was."""
    import ray

    from rayflink.actors.on_ray.slots import job_output, slot_actor

    monkeypatch.setattr(ray, "get_runtime_context", lambda: SimpleNamespace(get_node_id=lambda: "node"))
    monkeypatch.setattr(slot_actor, "node_address", lambda: "127.0.0.1")
    monkeypatch.setattr(job_output, "job_folder", lambda namespace, job_id: tmp_path / namespace / job_id)
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(sys, stream, getattr(sys, stream))  # the actor puts others there
    logger, root, last_resort = logging.getLogger("rayflink"), logging.getLogger(), logging.lastResort
    handlers, level, root_level = list(logger.handlers), logger.level, root.level
    yield slot_actor
    logger.handlers[:] = handlers
    logger.setLevel(level)
    root.setLevel(root_level)
    logging.lastResort = last_resort
    gc.enable()  # what is frozen stays so: the suite froze most of it


def run_alone(module: Any, graph: Any, program: bytes, **changes: Any) -> tuple[Job, list[Any]]:
    """The job of one task in its shell, and what it reported; its coordinator decides as ever, and takes a checkpoint
    when it has given the task its splits."""
    job, reported = Job(graph), []
    [command] = deploy_commands(job)
    deployment = replace(command.deployment, operators=(), **changes)
    actor = module.SlotActor(SlotAssignment(deployment.job_id, command.slot, LEADER))

    def report(reports: bytes) -> None:
        for item in read_reports(reports):
            reported.append(item)
            for answer in job.on(item):
                if isinstance(answer, SendToTask):
                    actor.command(answer.attempt, to_bytes(answer.message))
            if isinstance(item, SplitRequest) and sum(isinstance(said, SplitRequest) for said in reported) == 1:
                actor.command(deployment.attempt, to_bytes(TriggerCheckpoint(CheckpointBarrier(7, 0))))

    around = module.PeerDirectory({}, {}, SimpleNamespace(report=Calls(report)), LEADER, 60_000)
    actor.submit(program, deployment, command.slot, around)
    assert reported == []  # the answer does not wait for the task
    with pytest.raises(TaskSubmissionError, match="already contains a task"):
        actor.submit(program, deployment, command.slot, around)
    actor.run(deployment.attempt)
    return job, reported


@pytest.mark.spec("J17", "restore", "J20", "task", "thread")
def test_an_accepted_deployment_makes_a_task_with_all_it_speaks_through(task_module: Any) -> None:
    """Metrics under its name, a thread, splits on request, a checkpoint's answer, and the state it starts from."""
    env = StreamExecutionEnvironment.get_execution_environment({"parallelism.default": "1"})
    env.from_collection(["a", "b"]).map(Facts()).sink_to(CollectSink("out"))
    graph = env.get_job_graph("facts")
    job, reported = run_alone(task_module, graph, pack(graph))
    assert job.master.result is not None and job.master.result.failure is None
    [execution] = job.master.executions.values()
    [vertex] = graph.vertices
    scope = [graph.id, execution.attempt, vertex.operators[1].operator_id]
    thread = "Source: Collection Source -> Map -> Sink: Collect (1/1)"
    assert job.master.result.accumulators["out"] == [(value, thread, scope) for value in ("a", "b")]
    states = [item.state.value for item in reported if isinstance(item, TaskStateChanged)]
    assert states == ["DEPLOYING", "INITIALIZING", "RUNNING", "FINISHED"]
    [taken] = [item for item in reported if isinstance(item, CheckpointAcknowledged)]
    assert taken.checkpoint_id == 7

    restore = {operator: (snapshot,) for operator, snapshot in taken.snapshots.items()}
    again, _ = run_alone(task_module, graph, pack(graph), restore=restore)
    assert again.master.result is not None
    assert [row[0] for row in again.master.result.accumulators["out"]] == ["a", "b"] * 2, "the split is there twice"


class Elsewhere:
    """Can be pickled, and not unpickled."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __reduce__(self) -> Any:
        return read_elsewhere, (self._error,)


def read_elsewhere(error: BaseException) -> None:
    raise error


@pytest.mark.spec("J19")
@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ModuleNotFoundError("No module named 'mine'"), "ModuleNotFoundError: No module named 'mine'"),
        (SystemExit("usage: mine FILE"), "SystemExit: usage: mine FILE"),
    ],
)
def test_a_program_that_cannot_be_read_fails_its_attempt_with_place_and_remedy(
    task_module: Any, error: BaseException, cause: str
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment({"parallelism.default": "1"})
    env.from_collection(["a"]).map(str).sink_to(CollectSink("out"))
    job, _ = run_alone(task_module, env.get_job_graph("far"), pickle.dumps(Elsewhere(error)))
    assert job.master.result is not None and job.master.result.failure is not None
    found: TaskFailure = job.master.result.failure
    assert found.kind == "TaskSubmissionError"
    assert found.message == (
        "could not submit task Source: Collection Source -> Map -> Sink: Collect (1/1) (attempt #0): could not "
        f"deserialize the job or task information on 127.0.0.1: {cause}; every module it uses must be importable on "
        "all nodes: install it on every node, or name its file or folder in the option python.files"
    )
