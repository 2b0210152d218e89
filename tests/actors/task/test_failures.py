"""An exception in a task as a value that any process can read."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rayflink.actors.messages.messages import TaskFailure
from rayflink.actors.task.failures import FATAL_EXIT_CODE, describe_failure, in_its_operator, is_out_of_memory
from rayflink.actors.task.services import TaskServices
from rayflink.actors.task.task import StreamTask
from rayflink.common.errors import JobFailed, SuppressRestarts
from rayflink.connectors.generator import NumberSequenceSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.operators.base import Operator, UserCodeError
from rayflink.operators.stateless import MapOperator
from rayflink.testing import OperatorHarness
from tests.actors.task.task_bench import Logged, TaskBench

DEPLOYMENT = TaskBench([Logged([])]).deployment


class Odd(Exception):
    """An error whose constructor pickle can not call."""

    def __init__(self, *, wanted: int) -> None:
        super().__init__()
        self.wanted = wanted

    def __str__(self) -> str:
        return f"wanted {self.wanted}"


def broken(value: object) -> object:
    raise Odd(wanted=3)


def caught() -> UserCodeError:
    try:
        with OperatorHarness(lambda: MapOperator(broken)) as harness:
            harness.process("x" * 1_000)
    except UserCodeError as error:
        return error
    raise AssertionError("nothing was raised")


class Final(SuppressRestarts):
    """One of a program's own."""


def test_whether_a_restart_may_help_is_told_also_of_causes():
    def failing(value: object) -> object:
        try:
            raise Final("no")
        except Final as error:
            raise ValueError("because") from error

    with pytest.raises(UserCodeError) as raised, OperatorHarness(lambda: MapOperator(failing)) as harness:
        harness.process("x")
    assert not describe_failure(raised.value, DEPLOYMENT).recoverable
    assert not describe_failure(Final("no"), DEPLOYMENT).recoverable
    assert describe_failure(caught(), DEPLOYMENT).recoverable and describe_failure(OSError(), DEPLOYMENT).recoverable


@pytest.mark.parametrize("raises", ["function", "enumerator"])
def test_a_job_that_may_restart_ends_at_once_where_that_would_not_help(raises, tmp_path):
    def fails(calls: Path = tmp_path / "calls") -> None:
        with calls.open("a") as file:
            file.write("x")
        raise Final("gone")

    class Source(NumberSequenceSource):
        def create_enumerator(self, context):
            fails()

    options = {"execution.target": "local", "restart-strategy.type": "fixed-delay"}
    env = StreamExecutionEnvironment({**options, "restart-strategy.fixed-delay.delay": "0 s"})
    numbers = NumberSequenceSource(1, 3) if raises == "function" else Source(1, 3)
    env.from_source(numbers).map(lambda number: fails()).print()
    with pytest.raises(JobFailed, match="Final: gone"):
        env.execute()
    assert (tmp_path / "calls").read_text() == "x"


def test_an_error_of_user_code_keeps_kind_text_operator_and_a_shortened_record():
    failure = describe_failure(caught(), DEPLOYMENT)
    assert (failure.kind, failure.operator) == ("Odd", "MapOperator")
    assert "wanted 3" in failure.message
    assert "failed in map" in failure.message
    assert len(failure.record) < 250
    assert failure.record.endswith("... (1002 characters)")


class Mute(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def test_an_error_whose_text_raises_is_reported_all_the_same():
    cause = Mute()
    error = UserCodeError("parse", "job.py:3", "7", "map")
    error.__cause__ = cause
    failure = describe_failure(error, DEPLOYMENT)
    assert failure.message.endswith("failed in map on record 7: Mute: <its str() raises RuntimeError>")
    assert (failure.kind, failure.operator) == ("Mute", "parse")
    assert describe_failure(cause, DEPLOYMENT).message == "Mute: <its str() raises RuntimeError>"


def test_the_end_of_the_process_asked_for_by_a_function_names_its_operator():
    def leaves(value: int) -> int:
        sys.exit("enough")

    env = StreamExecutionEnvironment({"execution.target": "local"})
    env.from_collection([1]).map(lambda value: value).map(leaves).name("leaver").print()
    with pytest.raises(JobFailed, match="SystemExit: enough") as caught:
        env.execute()
    assert caught.value.operator == "leaver"


def test_the_traceback_begins_in_the_users_code():
    lines = describe_failure(caught(), DEPLOYMENT).traceback.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "test_failures.py" in lines[1]
    assert lines[1].endswith("in broken")


def test_a_failure_travels_whatever_the_error_is():
    failure = describe_failure(caught(), DEPLOYMENT)
    assert pickle.loads(pickle.dumps(failure)) == failure


def test_an_error_of_the_runtime_names_the_head_of_the_chain_and_keeps_everything():
    try:
        raise RuntimeError("channel 3")
    except RuntimeError as error:
        failure = describe_failure(error, DEPLOYMENT)
    assert (failure.kind, failure.message) == ("RuntimeError", "RuntimeError: channel 3")
    assert (failure.operator, failure.call_site, failure.record) == ("Operator 0", "job.py:1", "")
    assert "test_failures.py" in failure.traceback


# memory that has run out


def out_of_memory(value: object) -> object:
    raise MemoryError("no room for 8 GB")


def with_memory_gone(option: str) -> list[BaseException]:
    """Run a task whose function is out of memory; what its runner was asked to halt for."""
    asked: list[BaseException] = []
    bench = TaskBench([MapOperator(out_of_memory)], config={"taskmanager.jvm-exit-on-oom": option})
    bench.task = StreamTask(bench.deployment, bench.clock, services=TaskServices(halt=asked.append))
    bench.start()
    bench.feed(0, 1)
    bench.work()
    assert bench.states[-1] == "FAILED"
    assert "MemoryError: no room for 8 GB" in bench.failure.message
    return asked


def test_a_runner_halts_for_lack_of_memory_only_where_the_option_is_set():
    [error] = with_memory_gone("true")
    assert isinstance(error, UserCodeError)
    assert (type(error.__cause__), error.operator) == (MemoryError, "Operator 0")
    assert with_memory_gone("false") == []


def test_a_memory_error_is_found_behind_what_was_raised_from_it():
    wrapped = ValueError("wrapped")
    wrapped.__cause__ = MemoryError()
    assert is_out_of_memory(wrapped)
    looped = ValueError("its own cause")
    looped.__cause__ = looped
    assert not is_out_of_memory(looped)


@pytest.mark.slow
def test_a_halted_process_logs_a_fatal_line_and_closes_nothing():
    program = (
        "import atexit, logging\n"
        "from rayflink.actors.task.failures import halt_process\n"
        "logging.basicConfig()\n"
        "atexit.register(print, 'closed')\n"
        "halt_process(MemoryError('no room'))\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert ended.returncode == FATAL_EXIT_CODE
    assert "CRITICAL:rayflink.actors.task.failures:Encountered fatal error MemoryError: no room - " in ended.stderr
    assert ended.stdout == ""


class Ending(Operator):
    """Its function ends the program, as far as it is up to it."""

    def process(self, batch: Any, input_index: int) -> Any:
        yield self.function()

    def function(self) -> Any:
        raise KeyboardInterrupt("enough")


def test_what_ends_a_program_is_a_failure_of_the_innermost_operator_it_passed() -> None:
    operator = Ending()
    operator.ctx = SimpleNamespace(operator_name="interrupt", call_site="job.py:7")  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt) as caught:
        next(operator.process(None, 0))
    found = in_its_operator(caught.value)
    assert isinstance(found, UserCodeError) and found.__cause__ is caught.value
    assert (found.operator, found.call_site, found.where) == ("interrupt", "job.py:7", "function")


def test_other_errors_and_those_of_no_operator_are_left_as_they_are() -> None:
    for error in (ValueError("of an operator or not"), KeyboardInterrupt("of no operator")):
        assert in_its_operator(error) is error


class Quitting(Operator):
    """Its `close` ends the program, as far as it is up to it."""

    def close(self) -> None:
        raise SystemExit("enough")


def test_a_close_that_exits_fails_its_operator_and_the_others_are_closed_too():
    log: list[str] = []
    bench = TaskBench([Logged(log, "head"), Quitting(), Logged(log, "tail")]).start()
    bench.end(0)
    bench.work()
    failure = bench.failure
    assert (failure.kind, failure.operator, failure.call_site) == ("SystemExit", "Operator 1", "job.py:2")
    assert [line for line in log if line.endswith("close")] == ["head.close", "tail.close"]


def test_a_failure_is_told_with_the_users_traceback_where_there_is_one() -> None:
    lines = describe_failure(caught(), DEPLOYMENT).describe().splitlines()
    assert "wanted 3" in lines[0] and lines[1] == "Traceback (most recent call last):"
    assert "in broken" in "\n".join(lines) and lines[-1].endswith("wanted 3")
    assert all("test_failures.py" in line for line in lines if line.startswith("  File ")), "none of the package"
    assert TaskFailure("TaskLost", "lost task", "lost task\n").describe() == "lost task"
