"""Starts of jobs: a few at a time, and none that hangs holds up another."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError

import pytest

from rayflink.cluster.dispatcher.start_threads import StartThreads

WITHIN_S = 20.0


class Calls:
    """Calls that say when they begin, and return when the test lets them."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Event()

    def wait(self) -> str:
        self.begun.release()
        assert self.go_on.wait(WITHIN_S)
        return "started"


@pytest.fixture
def calls() -> Iterator[Calls]:
    waiting = Calls()
    yield waiting
    waiting.go_on.set()


def test_a_few_calls_run_at_a_time_and_all_in_the_end(calls: Calls) -> None:
    threads = StartThreads(at_a_time=2, hangs_after_s=WITHIN_S)
    futures = [threads.submit(calls.wait) for _ in range(5)]
    assert all(calls.begun.acquire(timeout=WITHIN_S) for _ in range(2))
    assert sum(future.running() for future in futures) == 2
    calls.go_on.set()
    assert [future.result(WITHIN_S) for future in futures] == ["started"] * 5


def test_calls_that_hang_hold_up_no_other(calls: Calls) -> None:
    threads = StartThreads(at_a_time=2, hangs_after_s=0.05)
    hanging = [threads.submit(calls.wait) for _ in range(4)]
    assert threads.submit(lambda: "started").result(WITHIN_S) == "started"
    assert not any(future.done() for future in hanging)


def test_there_are_not_more_threads_than_allowed(calls: Calls) -> None:
    threads = StartThreads(at_a_time=1, hangs_after_s=0.0, most=3)
    futures = [threads.submit(calls.wait) for _ in range(4)]
    assert all(calls.begun.acquire(timeout=WITHIN_S) for _ in range(3))
    assert not futures[3].running()
    calls.go_on.set()
    assert futures[3].result(WITHIN_S) == "started"


def test_what_a_call_raises_is_raised_to_who_waits_for_it() -> None:
    def fail() -> None:
        raise ValueError("no")

    threads = StartThreads()
    with pytest.raises(ValueError, match="no"):
        threads.submit(fail).result(WITHIN_S)
    assert threads.submit(lambda: 1).result(WITHIN_S) == 1


def test_closed_threads_begin_nothing(calls: Calls) -> None:
    threads = StartThreads(at_a_time=1, hangs_after_s=WITHIN_S)
    first, second = threads.submit(calls.wait), threads.submit(calls.wait)
    assert calls.begun.acquire(timeout=WITHIN_S)
    threads.shutdown(cancel_futures=True)
    with pytest.raises(CancelledError):
        second.result(WITHIN_S)
    with pytest.raises(RuntimeError, match="the dispatcher ends"):
        threads.submit(calls.wait)
    calls.go_on.set()
    assert first.result(WITHIN_S) == "started"
