"""An exception in a task as a value that any process can read."""

from __future__ import annotations

import pickle
import sys

import pytest

from rayflink.actors.failures import describe_failure
from rayflink.common.errors import JobFailed
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.operators.base import UserCodeError
from rayflink.operators.stateless import MapOperator
from rayflink.testing import OperatorHarness
from tests.actors.task_bench import Logged, TaskBench

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
