"""From the command to deploy an attempt to its answer: who checks what, who waits how long, and what follows."""

from __future__ import annotations

import logging
import pickle
from dataclasses import replace
from enum import Enum
from typing import Any

import pytest

from rayflink.actors.local.in_process import InProcessCluster
from rayflink.actors.messages.commands import DeploymentFailed, DeployTask, KillTask, SlotsGranted
from rayflink.actors.messages.messages import CancelTask, TaskDeployment
from rayflink.actors.messages.scheduling import Slot
from rayflink.actors.messages.settings import JobSettings
from rayflink.actors.messages.states import ExecutionState, JobStatus
from rayflink.actors.on_ray.deployment_calls import DeploymentCalls
from rayflink.actors.on_ray.driver.user_program import pack
from rayflink.actors.on_ray.slots.deployment_check import (
    DeploymentGuard,
    LoadedProgram,
    SlotAssignment,
    TaskSubmissionError,
    without_code,
)
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import MapFunction, StreamExecutionEnvironment
from rayflink.launch import raise_if_failed
from rayflink.state.clock import ManualClock
from rayflink.testing import OperatorHarness
from tests.actors.job.job_events import Job, failure, three_vertices

SOURCE, MAP_1, MAP_2, SINK = "Source: Collection Source (1/1)", "Map (1/2)", "Map (2/2)", "Sink: Collect (1/1)"
LEADER = "a" * 32


def deploy_commands(job: Job) -> list[DeployTask]:
    job.start()
    return [command for command in job.on(SlotsGranted()) if isinstance(command, DeployTask)]


@pytest.fixture
def deployment() -> TaskDeployment:
    return deploy_commands(Job(three_vertices()))[1].deployment


# what the process checks


def accepting(deployment: TaskDeployment) -> DeploymentGuard:
    return DeploymentGuard(SlotAssignment(deployment.job_id, SLOT, LEADER))


OTHER = "f" * 32
SLOT, ELSEWHERE = Slot("default", 1), Slot("default", 3)
WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "job": ({"job_id": OTHER}, LEADER, f"this process has no coordinator of job {OTHER}, it is of job {{job_id}}"),
    "leader": ({}, OTHER, f"the coordinator's leader id {OTHER} does not match the expected leader id {LEADER}"),
    "slot": ({}, LEADER, "no slot default/3 is allocated here for attempt {attempt}, only default/1"),
}


@pytest.mark.spec("J19", "S13", "rejected")
@pytest.mark.parametrize("wrong", WRONG)
def test_a_process_refuses_what_it_was_not_made_for_and_still_takes_what_it_was(
    deployment: TaskDeployment, wrong: str
) -> None:
    changes, leader, problem = WRONG[wrong]
    acceptance, other = accepting(deployment), replace(deployment, **changes)
    with pytest.raises(TaskSubmissionError) as caught:
        acceptance.accept(other, ELSEWHERE if wrong == "slot" else SLOT, leader)
    assert caught.value.problem == problem.format(job_id=deployment.job_id, attempt=deployment.attempt)
    assert str(caught.value).startswith(f"could not submit task {other.title}: {caught.value.problem}; ")
    acceptance.accept(deployment, SLOT, LEADER)


@pytest.mark.spec("J19")
def test_a_process_refuses_a_second_deployment_of_an_attempt(deployment: TaskDeployment) -> None:
    acceptance = accepting(deployment)
    acceptance.accept(deployment, SLOT, LEADER)
    with pytest.raises(TaskSubmissionError, match=f"already contains a task for id {deployment.attempt}"):
        acceptance.accept(deployment, SLOT, LEADER)


@pytest.mark.spec("J19", "I33", "information", "I38", "program")
def test_operators_are_taken_from_the_program_of_the_same_job_only(deployment: TaskDeployment) -> None:
    graph = three_vertices()
    mine = replace(deployment, job_id=graph.id, operators=())
    names = [operator.name for operator in LoadedProgram().whole(pack(graph), mine).operators]
    assert names == [operator.name for operator in deployment.operators] != []
    other = replace(mine, job_id=OTHER)
    with pytest.raises(TaskSubmissionError, match=rf"inconsistent job ID .* \({OTHER} vs\. {graph.id}\)"):
        LoadedProgram().whole(pack(graph), other)
    new_start = without_code(replace(other, operators=deployment.operators), program_id=graph.id)
    assert [operator.name for operator in LoadedProgram().whole(pack(graph), new_start).operators] == names


def test_the_code_of_a_program_travels_in_the_program_alone() -> None:
    class Side(Enum):
        LEFT = 1

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.from_collection([1]).map(lambda n: Side.LEFT).key_by(lambda side: side).map(str).sink_to(CollectSink("out"))
    graph = env.get_job_graph("sides")
    deployments = [command.deployment for command in deploy_commands(Job(graph))]
    whole = next(deployment for deployment in deployments if deployment.vertex_name == "Map")
    sent = pickle.loads(pickle.dumps(without_code(whole)))  # plain pickle sends no code
    assert (sent.operators, [output.partitioner for output in sent.outputs]) == ((), [None])
    loaded = LoadedProgram().whole(pack(graph), sent)
    assert loaded.outputs == whole.outputs
    with OperatorHarness(loaded.operators[0].factory) as harness:  # type: ignore[arg-type]
        harness.process(1)
        [side] = harness.output_values()
    assert loaded.outputs[0].partitioner.key_selector(side) is side  # type: ignore[union-attr]


def test_the_tasks_of_a_process_share_what_the_classes_of_the_program_hold() -> None:
    class Counting(MapFunction):
        seen = 0

        def map(self, value: int) -> int:
            return value

    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([1]).map(Counting()).sink_to(CollectSink("out"))
    graph = env.get_job_graph("counting")
    packed, loaded = pack(graph), LoadedProgram()
    [command] = deploy_commands(Job(graph))
    first = loaded.whole(packed, command.deployment)
    Counting.seen = 5  # as a task does that runs while the next one is deployed
    assert loaded.whole(packed, command.deployment).operators == first.operators != ()
    assert Counting.seen == 5


def test_a_refusal_survives_pickling_whole() -> None:
    error = TaskSubmissionError("Map (1/2)", "it is full", "wait")
    twin = pickle.loads(pickle.dumps(error))
    assert (str(twin), vars(twin)) == (str(error), vars(error))


# how long an answer is waited for


@pytest.fixture
def calls(deployment: TaskDeployment) -> DeploymentCalls:
    calls = DeploymentCalls(start_timeout_ms=60_000, answer_timeout_ms=10_000)
    calls.made(deployment, "node-7", now_s=100)
    return calls


@pytest.mark.spec("J17", "timeout", "V26")
@pytest.mark.spec("J18")
def test_a_process_that_is_there_and_does_not_answer_in_time_fails_its_attempt(
    calls: DeploymentCalls, deployment: TaskDeployment
) -> None:
    attempt = deployment.attempt
    calls.reached(attempt, 105)
    assert (calls.overdue(115), calls.waiting()) == ([], [attempt])
    [failed] = calls.overdue(115.1)
    assert failed.attempt == attempt
    assert failed.failure.message == (
        f"Cannot deploy task Map (1/2) ({attempt}) - its process (node-7) not responding after a rpcTimeout of "
        "10000 ms (pekko.ask.timeout); see whether its node is overloaded"
    )
    assert (calls.overdue(200), calls.waiting()) == ([], [])


def test_a_process_that_started_slowly_may_answer_as_slowly(
    calls: DeploymentCalls, deployment: TaskDeployment
) -> None:
    calls.reached(deployment.attempt, 140)
    assert (calls.overdue(180), calls.waiting()) == ([], [deployment.attempt])
    [failed] = calls.overdue(180.1)
    assert "after a rpcTimeout of 40000 ms (pekko.ask.timeout, in which it started)" in failed.failure.message


@pytest.mark.spec("J18", "V26")
def test_the_timeout_of_the_call_is_an_option() -> None:
    assert JobSettings.of({}).ask_timeout_ms == 10_000
    assert JobSettings.of({"pekko.ask.timeout": "3 s"}).ask_timeout_ms == 3_000


def test_a_process_that_does_not_start_is_waited_for_as_slots_are(
    calls: DeploymentCalls, deployment: TaskDeployment
) -> None:
    assert (calls.overdue(160), calls.waiting()) == ([], [deployment.attempt])
    [failed] = calls.overdue(160.1)
    assert "its process (node-7) has not started within 60000 ms (slot.request.timeout)" in failed.failure.message


def test_a_call_that_was_answered_is_never_late(calls: DeploymentCalls, deployment: TaskDeployment) -> None:
    calls.answered(deployment.attempt)
    calls.reached(deployment.attempt, 150)  # told late: two calls return in any order
    assert (calls.overdue(1000), calls.waiting()) == ([], [])


# what the job makes of it


@pytest.mark.spec("J18")
def test_an_attempt_that_was_not_deployed_is_ended_and_fails_the_job_with_the_cause() -> None:
    job = Job(three_vertices())
    job.deploy()
    lost = job.execution(MAP_1)
    commands = job.on(DeploymentFailed(lost.attempt, failure("no answer")))
    assert commands[0] == KillTask(lost.attempt)
    assert job.sent(commands) == {name: CancelTask() for name in (SOURCE, MAP_2, SINK)}
    assert (job.states()[MAP_1], job.master.status) == ("FAILED", JobStatus.FAILING)
    assert [entry.failure.message for entry in job.master.exceptions] == ["no answer"]
    assert job.on(DeploymentFailed(lost.attempt, failure("again"))) == []


def test_an_attempt_that_was_not_deployed_and_is_not_wanted_any_more_is_cancelled() -> None:
    job = Job(three_vertices())
    job.deploy()
    job.says(SINK, ExecutionState.FAILED, failure=failure("first"))
    lost = job.execution(MAP_1).attempt
    assert job.on(DeploymentFailed(lost, failure("no answer"))) == [KillTask(lost)]
    assert job.states()[MAP_1] == "CANCELED"
    assert [entry.failure.message for entry in job.master.exceptions] == ["first"]


@pytest.mark.spec("J16", "X35", "U10", "deploying")
def test_each_deployment_is_logged_with_its_attempt_and_host(caplog: pytest.LogCaptureFixture) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    lines = env.from_collection(["1 2"]).name("Socket Stream").flat_map(str.split).map(int)
    lines.rebalance().sink_to(CollectSink("out")).set_parallelism(2)
    clock = ManualClock(0)
    with caplog.at_level(logging.INFO, logger="rayflink"):
        raise_if_failed(InProcessCluster(env.get_job_graph(), clock, lambda ms: clock.advance(max(1, int(ms)))).run())
    lines_logged = [r.getMessage() for r in caplog.records if r.getMessage().startswith("Deploying")]
    assert {record.levelno for record in caplog.records if record.getMessage() in lines_logged} == {logging.INFO}
    assert lines_logged == [
        "Deploying Source: Socket Stream -> Flat Map -> Map (1/1) (attempt #0) to localhost",
        "Deploying Sink: Collect (1/2) (attempt #0) to localhost",
        "Deploying Sink: Collect (2/2) (attempt #0) to localhost",
    ]
