"""The phases of a recovery, from the timestamps of a job and its attempts."""

from __future__ import annotations

from rayflink.actors.exchange.frames import TaskAddress
from rayflink.actors.job.recovery_times import describe_recovery, last_recovery
from rayflink.actors.messages.executions import Execution
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.graph.job_graph import JobVertex


def vertex() -> JobVertex:
    env = StreamExecutionEnvironment()
    env.from_collection([1]).add_sink(lambda number: None)
    return env.get_job_graph().vertices[0]


def attempt(number: int, **moments: int) -> Execution:
    execution = Execution(TaskAddress("a"), vertex(), 0, number)
    execution.timestamps.update(moments)
    return execution


JOB = {"CREATED": 0, "RESTARTING": 1_000, "RUNNING": 1_300}
OLD = attempt(0, SCHEDULED=90, DEPLOYING=100, INITIALIZING=200, RUNNING=210)
NEW = attempt(1, SCHEDULED=1_300, DEPLOYING=1_300, INITIALIZING=2_000, RUNNING=2_600)


def test_a_recovery_is_told_by_phases_of_the_tasks_that_started_anew():
    found = last_recovery(JOB, [OLD, NEW, NEW], 3 << 20, ended_ms=1_080)
    assert found == {
        "began": 1_000,
        "cancelled_ms": 80,
        "delayed_ms": 220,
        "deployed_ms": 700,
        "restored_ms": 600,
        "total_ms": 1_600,
        "tasks": 2,
        "restored_bytes": 3 << 20,
    }
    line = "2 tasks: cancelled 0.1 s, restart delay 0.2 s, deployed 0.7 s, restored 3.0 MiB 0.6 s, total 1.6 s"
    assert describe_recovery(found) == line


def test_phases_that_go_on_are_not_known():
    waits = attempt(1, SCHEDULED=1_300, DEPLOYING=1_300)
    found = last_recovery(JOB, [NEW, waits], 0)
    assert found is not None and found["delayed_ms"] == 0
    assert (found["cancelled_ms"], found["deployed_ms"], found["total_ms"]) == (300, None, None)


def test_a_job_that_never_started_anew_has_none():
    assert last_recovery({"CREATED": 0, "RUNNING": 50}, [OLD], 0) is None
    assert last_recovery({"CREATED": 0, "RUNNING": 50, "RESTARTING": 60}, [OLD], 0) is None, "it is about to"


def test_a_coordinator_that_took_over_counts_from_its_beginning():
    found = last_recovery({"CREATED": 900, "RUNNING": 1_300}, [NEW], 0)
    assert found is not None
    assert (found["began"], found["total_ms"]) == (900, 1_700)
