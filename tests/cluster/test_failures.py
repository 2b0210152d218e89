"""What goes wrong in a job on Ray becomes an error within a stated time, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import psutil
import pytest

from rayflink.actors.messages.states import JobStatus
from rayflink.common.connector_base.source import PendingSplits
from rayflink.common.errors import (
    ControlPlaneTimeout,
    JobCancelled,
    JobExecutionError,
    JobFailed,
    NoResourceAvailable,
    TaskLost,
)
from rayflink.connectors.collection import CollectionSource, CollectSink
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import MapFunction
from rayflink.datastream.environment import StreamExecutionEnvironment
from tests.cluster import watching

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]

DEATH_IS_SEEN_S = 9.0
"""Less than what waits for an answer would take: `pekko.ask.timeout` and `heartbeat.timeout`."""


def program(**options: Any) -> StreamExecutionEnvironment:
    given = {key.replace("__", "-").replace("_", "."): value for key, value in options.items()}
    return StreamExecutionEnvironment({"parallelism.default": 2, "pipeline.max-parallelism": 128, **given})


def endless(env: StreamExecutionEnvironment) -> Any:
    """A job that runs until somebody ends it: one source vertex, one keyed vertex."""
    numbers = env.from_source(DataGeneratorSource(records_per_second=1_000), None, "Numbers")
    numbers.key_by(lambda value: value % 10).map(lambda value: value).add_sink(lambda value: None)
    client = env.execute_async("endless")
    assert watching.eventually(lambda: all_running(client), within_s=40)
    return client


def all_running(client: Any) -> bool:
    vertices = client.status()["vertices"]
    return all(vertex["states"] == {"RUNNING": vertex["parallelism"]} for vertex in vertices) and all(
        "pid" in subtask["metrics"] for vertex in vertices for subtask in vertex["subtasks"]
    )


def process_of(client: Any, vertex: int, subtask: int) -> int:
    return int(client.status()["vertices"][vertex]["subtasks"][subtask]["metrics"]["pid"])


def divide(value: int) -> float:
    return 1 / (value - 7)


def test_an_exception_of_the_user_fails_the_job_with_all_he_needs_to_know():
    env = program()
    env.from_collection([5, 6, 7, 8]).rebalance().map(divide).name("invert").print()
    with pytest.raises(JobFailed) as caught:
        env.execute("failing")
    error = caught.value
    assert error.operator == "invert"
    assert error.record == "7"
    assert "ZeroDivisionError: division by zero" in error.user_traceback
    assert "return 1 / (value - 7)" in error.user_traceback
    assert "rayflink/operators" not in error.user_traceback
    assert os.path.basename(__file__) in error.call_site


@pytest.mark.spec("S09", "all-die", "several")
def test_a_killed_task_process_fails_the_job_and_is_named():
    client = endless(program())
    killed = process_of(client, 1, 0)
    os.kill(killed, signal.SIGKILL)
    began = time.monotonic()
    with pytest.raises(TaskLost) as caught:
        client.get_job_execution_result().result()
    assert time.monotonic() - began < DEATH_IS_SEEN_S
    in_its_slot = [f"{vertex['name']} (1/2)" for vertex in client.status()["vertices"]]
    assert caught.value.task in in_its_slot
    assert str(killed) in caught.value.place


def exits_at(gate: str) -> Any:
    """A function that ends its process, without a word to Python, once there is a file `gate`."""

    def run(value: int) -> int:
        if os.path.exists(gate):
            os._exit(7)
        return value

    return run


@pytest.mark.spec("S09", "all-die", "isolated")
def test_a_function_that_ends_its_process_takes_its_own_tasks_along_and_no_other_job(tmp_path):
    bystander = endless(program().set_parallelism(1))
    before = process_of(bystander, 1, 0)
    env = program().set_parallelism(1)
    numbers = env.from_source(DataGeneratorSource(records_per_second=1_000), None, "Numbers")
    numbers.key_by(lambda value: value).map(exits_at(str(tmp_path / "gate"))).add_sink(lambda value: None)
    bad = env.execute_async("bad")
    assert watching.eventually(lambda: all_running(bad), within_s=40)
    own = {process_of(bad, vertex, 0) for vertex in (0, 1)}
    assert len(own) == 1 and before not in own, "one process for all tasks of a slot, and for one job"
    (tmp_path / "gate").touch()
    with pytest.raises(TaskLost):
        bad.get_job_execution_result().result()
    assert watching.eventually(lambda: not psutil.pid_exists(*own), within_s=30)
    read = bystander.status()["vertices"][1]["numRecordsIn"]
    assert watching.eventually(lambda: bystander.status()["vertices"][1]["numRecordsIn"] > read, within_s=30)
    after = bystander.status()
    assert (after["state"], after["metrics"]["numRestarts"], after["exceptions"]) == ("RUNNING", 0, [])
    assert process_of(bystander, 1, 0) == before
    bystander.cancel()


def out_of_memory(value: int) -> None:
    raise MemoryError("no room")


@pytest.mark.spec("L07", "V23")
@pytest.mark.parametrize("exits", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_where_it_is_asked_for_a_process_without_memory_ends_itself(exits: bool) -> None:
    env = program(taskmanager_jvm__exit__on__oom=exits).set_parallelism(1)
    env.from_collection([1]).map(out_of_memory).print()
    with pytest.raises(TaskLost if exits else JobFailed) as caught:
        env.execute("out of memory")
    assert exits or "MemoryError: no room" in str(caught.value)


def test_a_stalled_task_process_is_found_by_its_heartbeat_and_ended():
    client = endless(program(heartbeat_timeout="2 s", heartbeat_interval="500 ms"))
    stalled = process_of(client, 1, 1)
    os.kill(stalled, signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(TaskLost, match="heartbeat.timeout") as caught:
        client.get_job_execution_result().result()
    assert time.monotonic() - began < 2 + DEATH_IS_SEEN_S
    assert 2000 < caught.value.silent_ms
    assert watching.eventually(lambda: not psutil.pid_exists(stalled), within_s=30)


@pytest.mark.soak
def test_a_function_that_takes_twice_the_heartbeat_timeout_is_no_lost_task(tmp_path):
    called, gate, wait = tmp_path / "called", tmp_path / "gate", watching.waiter(str(tmp_path / "gate"))
    env = program(heartbeat_timeout="3 s", heartbeat_interval="500 ms").set_parallelism(1)
    env.from_collection([1]).map(lambda value: called.touch() or wait(value)).sink_to(CollectSink("rows"))
    client = env.execute_async("slow")
    try:
        assert watching.eventually(called.exists, within_s=40)
        assert not watching.eventually(
            lambda: client.get_job_status().result() is not JobStatus.RUNNING, within_s=2 * 3
        )
    finally:
        gate.touch()
    assert client.get_job_execution_result().result().get_accumulator_result("rows") == [1]


def test_a_dead_coordinator_becomes_an_error_and_its_tasks_end_with_it():
    client = endless(program().set_parallelism(1))
    tasks = [process_of(client, vertex, 0) for vertex in (0, 1)]
    os.kill(watching.pid_of("/coordinator"), signal.SIGKILL)
    began = time.monotonic()
    with pytest.raises(TaskLost, match="coordinator"):
        client.get_job_execution_result().result()
    assert time.monotonic() - began < DEATH_IS_SEEN_S
    assert watching.eventually(lambda: not any(map(psutil.pid_exists, tasks)), within_s=30)


@pytest.mark.soak
def test_a_coordinator_that_stalls_becomes_an_error():
    client = endless(program(pekko_ask_timeout="3 s").set_parallelism(1))
    pid = watching.pid_of("/coordinator")
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(ControlPlaneTimeout, match="no answer from the coordinator"):
            client.get_job_execution_result().result()
    finally:
        os.kill(pid, signal.SIGKILL)


def never_returns(value: int) -> None:
    threading.Event().wait()  # nobody else has it to set it


@pytest.mark.spec("L12", "killed")
def test_a_function_that_never_returns_is_ended_after_the_cancellation_timeout():
    env = program(task_cancellation_timeout="1 s")
    env.from_collection([1]).map(never_returns).print()
    client = env.execute_async("blocked")
    blocked = {"FINISHED": 1, "RUNNING": 1}
    assert watching.eventually(lambda: client.status()["vertices"][1]["states"] == blocked, within_s=40)
    began = time.monotonic()
    client.cancel()
    with pytest.raises(JobCancelled):
        client.get_job_execution_result().result()
    assert time.monotonic() - began < 1 + DEATH_IS_SEEN_S


def test_cancelling_a_running_job_is_quick():
    client = endless(program().set_parallelism(1))
    client.cancel()
    began = time.monotonic()
    with pytest.raises(JobCancelled):
        client.get_job_execution_result().result()
    assert time.monotonic() - began < DEATH_IS_SEEN_S
    assert client.get_job_status().result() is JobStatus.CANCELED


class OnlyHere:
    """Can be pickled, and not unpickled elsewhere."""

    def __reduce__(self) -> Any:
        return load_only_in, (os.getpid(),)

    def __call__(self, value: int) -> int:
        return value


def load_only_in(pid: int) -> OnlyHere:
    if os.getpid() != pid:
        raise ModuleNotFoundError("No module named 'only_on_the_laptop'")
    return OnlyHere()


def test_a_program_that_cannot_be_loaded_on_the_cluster_is_a_clear_error():
    env = program()
    env.from_collection([1]).map(OnlyHere()).print()
    with pytest.raises(JobExecutionError, match="No module named 'only_on_the_laptop'") as caught:
        env.execute("unloadable")
    assert "importable on all nodes" in str(caught.value)


class FarSource(CollectionSource):
    """Its split can be made where the job is decided, and read nowhere else."""

    def create_enumerator(self, ctx: Any) -> Any:
        return PendingSplits(ctx, [FarSplit()])


class FarSplit:
    def __reduce__(self) -> Any:
        return read_far_split, ()


def read_far_split() -> FarSplit:
    raise ModuleNotFoundError("No module named 'only_at_the_coordinator'")


@pytest.mark.soak
def test_splits_that_do_not_reach_their_reader_fail_the_job():
    env = program(heartbeat_timeout="20 s")
    env.from_source(FarSource([1]), source_name="far").print()
    client = env.execute_async("far")
    assert watching.eventually(lambda: client.get_job_status().result() is JobStatus.FAILED, within_s=40)
    with pytest.raises(TaskLost, match="carried AssignSplits to it failed: .*'only_at_the_coordinator'") as caught:
        client.get_job_execution_result().result()
    assert caught.value.task == "Source: far (1/1)"


@pytest.mark.soak
def test_a_bad_folder_for_spill_files_is_an_error_of_its_option():
    env = program(execution_runtime__mode="BATCH", io_tmp_dirs="/dev/null")
    env.from_sequence(1, 10).key_by(lambda value: value).sum().print()
    with pytest.raises(JobExecutionError, match="option 'io.tmp.dirs': found '/dev/null'") as caught:
        env.execute("spilling")
    assert "importable" not in str(caught.value)


class Interrupted(MapFunction):
    """Ends the program, as far as it is up to him."""

    def __init__(self, method: str, error: BaseException) -> None:
        self.method, self.error = method, error

    def open(self, context: Any) -> None:
        if self.method == "open":
            raise self.error

    def map(self, value: int) -> int:
        raise self.error


@pytest.mark.parametrize("method, error", [
    ("map", KeyboardInterrupt("enough")), pytest.param("open", SystemExit("enough"), marks=pytest.mark.soak)
])  # fmt: skip
def test_a_user_who_ends_the_process_gets_an_error_of_the_operator_in_which_he_did(method, error):
    env = program().set_parallelism(1)
    doubled = env.from_collection([1]).map(lambda value: 2 * value).name("double")
    doubled.map(Interrupted(method, error)).name("interrupt").map(lambda value: value).name("last").print()
    with pytest.raises(JobFailed, match=f"{type(error).__name__}: enough") as caught:
        env.execute("exit")
    assert caught.value.operator == "interrupt"
    assert os.path.basename(__file__) in caught.value.call_site
    assert "raise self.error" in caught.value.user_traceback


@pytest.mark.spec("S02", "waits")
def test_a_job_too_large_for_the_cluster_says_so_while_it_waits_and_then_fails(capsys):
    env = program(slot_request_timeout="3 s").set_parallelism(50)
    env.from_sequence(1, 100).print()
    with pytest.raises(NoResourceAvailable, match="the cluster has 2 CPUs") as caught:
        env.execute("too large")
    assert 3000 <= caught.value.waited_ms < 3000 + 1000 * DEATH_IS_SEEN_S
    assert "waiting for 50 slots of 1 CPU; the cluster has 2 CPUs, 2 of them free" in capsys.readouterr().err
