"""From a job graph to running attempts, and back to the program that submitted it."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from rayflink.actors.exchange.endpoint import ExchangeEndpoint
from rayflink.actors.exchange.frames import BufferResponse, Envelope, PartitionId, TaskAddress
from rayflink.actors.exchange.gate import ChannelSpec, InputGate
from rayflink.actors.job.deployment import Deployer
from rayflink.actors.local.in_process import InProcessCluster
from rayflink.actors.messages.commands import RequestSlots, SlotsGranted
from rayflink.actors.messages.messages import TaskReport, TaskStateChanged
from rayflink.actors.messages.states import ExecutionState, JobStatus
from rayflink.actors.on_ray.driver.ray_cluster import refused
from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError, JobFailed
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.launch import submit
from rayflink.state.clock import ManualClock
from rayflink.state.storage.stored_checkpoints import NoCheckpointError
from tests.actors.job.job_events import Job, ids, names, three_vertices

LOCAL = {"execution.target": "local"}


@pytest.mark.spec("I30", "I34", "execution")
def test_every_attempt_has_an_id_of_its_own_and_a_number() -> None:
    graph, new_id = three_vertices(), ids()
    first, second = Deployer(graph, new_id, {}), Deployer(graph, new_id, {})
    attempts = [attempt for deployer in (first, second) for _, _, attempt in deployer.attempts()]
    assert len(attempts) == len(set(attempts)) == 8
    vertex = graph.vertices[1]
    again = second.deployment(vertex, 1, attempt_number=1)
    assert again.attempt != first.deployment(vertex, 1, attempt_number=0).attempt
    assert again.title == "Map (2/2) (attempt #1)"


@pytest.mark.spec("I30")
def test_what_is_said_by_or_to_another_attempt_of_a_subtask_changes_nothing() -> None:
    job = Job(three_vertices())
    job.all_run()
    before = job.states()
    old = TaskAddress("f" * 32)
    assert job.on(TaskStateChanged(old, ExecutionState.FINISHED)) == []
    assert job.on(TaskReport(old, {"numRecordsIn": 5})) == []
    assert job.states() == before

    me, producer = TaskAddress("e" * 32), TaskAddress("d" * 32)
    gate = InputGate((ChannelSpec(PartitionId("a" * 32, 0), 0, producer),), 2, 0)
    gate.request_partitions()
    peers = ExchangeEndpoint(me, gate, [], 2, 1_000)
    peers.take(Envelope(producer, old, 0, (BufferResponse(0, 0, 0, b"for the dead"),)), 0)
    assert (peers.stale_messages, gate.queued) == (1, 0)


@pytest.mark.spec("I38", "built", "scheduled", "S01", "graph", "slots", "tasks", "S05", "sequence", "I31", "server")
def test_a_submitted_job_is_built_in_topological_order_gets_slots_and_is_scheduled() -> None:
    graph = three_vertices(parallelism__default="1")
    job = Job(graph)
    moves = [job.master.status]
    built = ["Source: Collection Source (1/1)", "Map (1/2)", "Map (2/2)", "Sink: Collect (1/1)"]
    assert list(job.states()) == built
    [asked] = job.start()
    assert isinstance(asked, RequestSlots)
    moves.append(job.master.status)
    assert set(job.states().values()) == {"CREATED"}
    assert names(job.on(SlotsGranted())) == built
    moves.append(job.master.status)
    assert moves == [JobStatus.INITIALIZING, JobStatus.CREATED, JobStatus.RUNNING]
    assert list(job.master.timestamps) == ["INITIALIZING", "CREATED", "RUNNING"]


def program(function: Any, **options: str) -> tuple[Any, Configuration]:
    env = StreamExecutionEnvironment.get_execution_environment({**LOCAL, **options})
    env.from_collection(["1", "2"]).map(function).sink_to(CollectSink("out"))
    return env.get_job_graph("numbers"), env.get_configuration()


@pytest.mark.spec("I39", "I38", "reply")
def test_submit_gives_a_client_that_waits_for_the_result() -> None:
    graph, configuration = program(int)
    client = submit(graph, configuration)
    assert (client.get_job_id(), client.get_job_status().result()) == (graph.id, JobStatus.INITIALIZING)
    result = client.get_job_execution_result().result()
    assert (result.get_job_id(), result.get_accumulator_result("out")) == (graph.id, [1, 2])
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert client.get_job_execution_result().result().get_accumulator_result("out") == [1, 2]


@pytest.mark.spec("I39")
def test_a_client_is_told_that_its_job_failed() -> None:
    client = submit(*program(lambda text: int(text + "x")))
    with pytest.raises(JobFailed, match="invalid literal for int"):
        client.get_job_execution_result().result()
    assert client.get_job_status().result() is JobStatus.FAILED


@pytest.mark.spec("I39", "I38", "reply")
def test_a_submission_that_is_refused_says_why() -> None:
    with pytest.raises(ConfigError, match=r"execution\.target"):
        graph, configuration = program(int)
        submit(graph, configuration.set_string("execution.target", "moon"))


@pytest.mark.spec("O33", "local")
def test_tasks_of_one_process_hand_envelopes_over_as_they_are() -> None:
    handed: list[tuple[Any, Any]] = []

    class Watched(InProcessCluster):
        def deliver(self, envelope: Envelope) -> None:
            receiver = self.tasks.get(envelope.receiver)
            super().deliver(envelope)
            if receiver is not None:
                handed.append((envelope, receiver._mailbox[-1]))

    clock = ManualClock(0)
    graph = three_vertices()
    result = Watched(graph, clock, lambda ms: clock.advance(max(1, int(ms)))).run()
    assert result.status is JobStatus.FINISHED
    assert handed
    assert all(sent is received for sent, received in handed)


@pytest.mark.parametrize("asked", [False, True])
def test_a_local_job_that_nobody_waited_for_says_at_its_end_that_it_never_ran(asked: bool, capfd: Any) -> None:
    env = StreamExecutionEnvironment(LOCAL)
    env.from_collection([1]).add_sink(lambda value: None)
    client = env.execute_async("forgotten")
    if asked:
        client.get_job_execution_result().result()
    del client
    gc.collect()
    assert ("job 'forgotten' did not run to its end" in capfd.readouterr().err) is not asked


def test_a_local_job_that_cannot_begin_says_only_why(capfd: Any) -> None:
    env = StreamExecutionEnvironment({**LOCAL, "execution.state-recovery.path": "/no/such"})
    env.from_collection([1]).add_sink(lambda value: None)
    with pytest.raises(NoCheckpointError):
        env.execute("not begun")
    gc.collect()
    assert "did not run to its end" not in capfd.readouterr().err


def test_what_kept_a_job_on_ray_from_starting_is_told_with_its_own_remedy() -> None:
    message = str(refused("0f", "start", NoCheckpointError("/sp", "nothing", "check the address")))
    assert (
        message
        == "job 0f could not start; there is no checkpoint or savepoint at /sp: found nothing; check the address"
    )
