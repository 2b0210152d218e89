"""A function that does not return is found from outside, with its operator and its place in the program."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest

from rayflink.actors.task.stalls import STALLED_AFTER_S, StepWatch, running_code
from rayflink.operators.stateless import FlatMapOperator
from rayflink.testing.harness import OperatorHarness


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def words(line, entered: threading.Event, leave: threading.Event):
    entered.set()
    while not leave.wait(0.01):
        pass
    yield from line.split()


@pytest.fixture
def stuck() -> Iterator[tuple[StepWatch, Clock, threading.Event]]:
    """The watch of a thread that is in a function of the program, which returns when the event is set."""
    clock, entered, leave = Clock(), threading.Event(), threading.Event()
    watch = StepWatch(clock)

    def step() -> None:
        with OperatorHarness(lambda: FlatMapOperator(lambda line: words(line, entered, leave))) as harness:
            watch.begin(clock())
            harness.process("to be")
            watch.end()

    thread = threading.Thread(target=step)
    thread.start()
    assert entered.wait(20)
    yield watch, clock, leave
    leave.set()
    thread.join()
    assert watch.stalled() is None


def test_a_step_that_takes_long_is_named_by_operator_and_line(stuck):
    watch, clock, _ = stuck
    clock.now = STALLED_AFTER_S - 0.1
    assert watch.stalled() is None
    clock.now = 62.0
    found = watch.stalled()
    assert (found["operator"], found["ms"]) == ("FlatMapOperator", 62_000)
    path, _, line_and_function = found["at"].rpartition(":")
    assert path == __file__ and line_and_function.endswith(" in words")
    lines = range(words.__code__.co_firstlineno, words.__code__.co_firstlineno + 6)
    assert int(line_and_function.split()[0]) in lines


def test_a_thread_that_waits_is_not_stalled():
    clock = Clock()
    watch = StepWatch(clock)
    watch.begin(0.0)
    watch.end()
    clock.now = 1_000.0
    assert watch.stalled() is None


def test_a_thread_without_code_of_the_program_has_no_place_in_it():
    assert running_code(None) == ("", "")
    code = compile("import sys\nframe = sys._getframe()", "inner.py", "exec")
    scope = {"__name__": "rayflink.operators.inner"}
    exec(code, scope)
    assert running_code(scope["frame"])[1].endswith(f" in {sys._getframe().f_code.co_name}")
