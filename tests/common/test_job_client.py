"""What a program holds of a submitted job: futures, the result's text, and its picture in a notebook."""

from __future__ import annotations

from concurrent.futures import CancelledError
from pathlib import Path

import pytest

from rayflink.common import (
    CompletableFuture,
    JobClient,
    JobExecutionError,
    JobExecutionResult,
    JobFailed,
    JobID,
    JobStatus,
    Types,
)
from rayflink.common.functions.accumulators import IntCounter
from rayflink.datastream import DataStream, MapFunction, StreamExecutionEnvironment

LOCAL = {"execution.target": "local"}


class Counted(MapFunction):
    def open(self, runtime_context):
        self.calls = IntCounter()
        runtime_context.add_accumulator("calls", self.calls)

    def map(self, value):
        self.calls.add(1)
        return value


def program(function=None):
    env = StreamExecutionEnvironment(LOCAL)
    env.from_collection([1, 2, 3]).map(function or Counted()).name("<b>bold</b>").add_sink(lambda value: None)
    return env


def test_a_future_waits_only_in_result():
    answers = [CompletableFuture.PENDING, CompletableFuture.PENDING, 7]
    asked = []

    def ask(timeout_s):
        asked.append(timeout_s)
        return answers.pop(0)

    future = CompletableFuture(ask)
    assert (future.done(), future.exception(), str(future)) == (False, None, "CompletableFuture[Not completed]")
    assert (future.result(), future.done(), future.cancel(), future.cancelled()) == (7, True, False, False)
    assert asked == [0, 0, None]
    assert str(future) == "CompletableFuture[Completed normally]"


def test_a_future_tells_what_kept_its_answer_from_coming():
    def ask(timeout_s):
        raise ValueError("no")

    future = CompletableFuture(ask)
    assert future.done()
    assert str(future.exception()) == "no"
    assert str(future) == "CompletableFuture[Completed exceptionally]"
    with pytest.raises(ValueError, match="no"):
        future.result()


def test_a_cancelled_future_is_waited_for_no_longer():
    future = CompletableFuture(lambda timeout_s: CompletableFuture.PENDING)
    assert (future.cancel(), future.cancelled(), future.done()) == (True, True, True)
    assert isinstance(future.exception(), CancelledError)
    with pytest.raises(CancelledError, match="ask the job's client for another one"):
        future.result()


def test_a_job_that_is_submitted_is_asked_by_futures():
    client = program().execute_async("counting")
    assert isinstance(client, JobClient)
    assert isinstance(client.get_job_id(), JobID)
    assert len(client.get_job_id()) == 32
    ended = client.get_job_execution_result()
    result = ended.result()
    assert isinstance(result, JobExecutionResult)
    assert result.get_job_id() == client.get_job_id()
    assert (ended.done(), ended.exception(), ended.cancelled()) == (True, None, False)
    assert client.get_job_status().result() is JobStatus.FINISHED
    assert client.get_accumulators().result() == {"calls": 3} == result.get_all_accumulator_results()
    assert str(result).splitlines()[:2] == [
        "Program execution finished",
        f"Job with JobID {client.get_job_id()} has finished.",
    ]
    assert "Accumulator Results: \n- calls (int): 3\n" in str(result)


@pytest.mark.spec("S17", "job-id")
def test_each_submission_of_a_program_is_a_job_of_its_own():
    env = program()
    first = env.execute_async("again")
    env.from_collection([1]).add_sink(lambda value: None)
    second, third = env.execute_async("again"), program().execute_async("again")
    assert len({client.get_job_id() for client in (first, second, third)}) == 3
    for client in (first, second, third):
        client.get_job_execution_result().result()


def test_a_local_job_moves_on_while_a_program_asks_how_it_stands():
    client = program().execute_async()
    for _ in range(1_000):
        if client.get_job_status().result().is_terminal_state():
            break
    assert client.get_job_status().result() is JobStatus.FINISHED
    client = program().execute_async()
    ended = client.get_job_execution_result()
    assert any(ended.done() for _ in range(1_000))
    assert ended.result().get_accumulator_result("calls") == 3


def test_a_cancelled_job_tells_so():
    client = program().execute_async()
    assert client.cancel().result() is None
    ended = client.get_job_execution_result()
    with pytest.raises(JobExecutionError, match="cancelled"):
        ended.result()
    assert isinstance(ended.exception(), JobExecutionError)
    assert client.get_job_status().result() is JobStatus.CANCELED


def test_a_failed_job_is_the_exception_of_its_future():
    def broken(value):
        raise ValueError("broken")

    ended = program(broken).execute_async().get_job_execution_result()
    with pytest.raises(JobFailed, match="broken"):
        ended.result()
    assert isinstance(ended.exception(), JobFailed)


def test_a_savepoint_without_a_place_is_refused_and_the_job_goes_on():
    client = program().execute_async()
    asked = client.trigger_savepoint()
    with pytest.raises(JobExecutionError, match=r"no savepoint directory.*execution\.checkpointing\.savepoint-dir"):
        asked.result()
    client.get_job_execution_result().result()


def test_the_folder_of_a_savepoint_may_be_a_path_and_what_is_none_is_refused_at_once(tmp_path: Path):
    client = program().execute_async()
    asked = client.trigger_savepoint(tmp_path / "sp")
    with pytest.raises(JobExecutionError, match="the job does not run at the moment"):
        asked.result()
    with pytest.raises(TypeError, match="int"):
        client.trigger_savepoint(5)
    client.get_job_execution_result().result()


def test_a_job_in_a_notebook_is_a_table_with_escaped_names():
    client = program().execute_async("a <script> job")
    client.get_job_execution_result().result()
    shown = client._repr_html_()
    assert "<b>a &lt;script&gt; job</b>" in shown
    assert "&lt;b&gt;bold&lt;/b&gt;" in shown
    assert "<script>" not in shown
    assert "FINISHED" in shown
    assert shown.count("<tr>") == shown.count("</tr>") == 2


def test_a_failed_job_in_a_notebook_shows_its_failure():
    def broken(value):
        raise ValueError("<broken>")

    client = program(broken).execute_async()
    assert isinstance(client.get_job_execution_result().exception() or _waited(client), JobFailed)
    assert "&lt;broken&gt;" in client._repr_html_()


def _waited(client):
    with pytest.raises(JobFailed) as failed:
        client.get_job_execution_result().result()
    return failed.value


def test_terminal_states_are_those_of_flink():
    ended = {status for status in JobStatus if status.is_globally_terminal_state()}
    assert ended == {JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.FAILED}
    assert {status for status in JobStatus if status.is_terminal_state()} == ended | {JobStatus.SUSPENDED}


def test_a_stream_without_a_declared_type_is_pickled():
    stream: DataStream = StreamExecutionEnvironment(LOCAL).from_collection([1])
    assert stream.get_type() == Types.PICKLED_BYTE_ARRAY()
    keyed = stream.key_by(lambda n: n)
    connected = stream.connect(stream.map(str, Types.STRING()))
    assert (connected.stream1, connected.stream2.get_type()) == (stream, Types.STRING())
    assert keyed.get_type() == Types.PICKLED_BYTE_ARRAY()


def test_a_path_in_the_place_of_the_drain_is_refused():
    client = program().execute_async("stops")
    with pytest.raises(TypeError, match=r"stop_with_savepoint\(False"):
        client.stop_with_savepoint("file:///savepoints")
    client.get_job_execution_result().result()
