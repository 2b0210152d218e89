"""Commits that run in a thread of their own while the task goes on."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event, Semaphore, current_thread
from typing import Any

import pytest

from rayflink.common.connector_base.commits import CommitRequest
from rayflink.common.connector_base.sink import Committer
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.operators import commits
from rayflink.operators.base import UserCodeError
from rayflink.operators.sinks import COMMITTABLES_STATE, SinkOperator
from rayflink.state.clock import ManualClock
from rayflink.testing import OperatorHarness, Place
from rayflink.testing.harness import Snapshots
from tests.operators.test_commits import Answer, Shelf, _broken, _checkpoint, _counts, _retry, _Shelver

WITHIN_S = 20


class SlowShelf(Shelf):
    """A shelf whose committer runs in the background and begins when the test lets it.

    Args:
        is_open: calls do not wait.
    """

    def __init__(self, *answers: Answer, is_open: bool = False) -> None:
        super().__init__(*answers, in_background=True)
        self.turns = Semaphore(1_000 if is_open else 0)
        self.woken = Event()
        self.threads: list[str] = []
        self.begins: list[tuple[str, list[str]]] = []
        self.begins_badly = self.is_large = False

    def create_committer(self) -> Committer:
        return _SlowShelver(self)

    def let(self, harness: OperatorHarness, calls: int = 1) -> None:
        """Let the call under way end, and some behind it, each of which the task hears of."""
        for _ in range(calls):
            self.turns.release()
            assert self.woken.wait(WITHIN_S)
            self.woken.clear()
            harness.set_processing_time(harness.clock.now_ms())


class _SlowShelver(_Shelver):
    shelf: SlowShelf

    def __init__(self, shelf: SlowShelf) -> None:
        super().__init__(shelf)
        self.has_large_committables = shelf.is_large  # type: ignore[misc]

    def begin(self, requests: Sequence[CommitRequest[Any]]) -> None:
        self.shelf.begins.append((current_thread().name, [request.get_committable()[0] for request in requests]))
        if self.shelf.begins_badly:
            raise OSError("not now")

    def commit(self, requests: Sequence[CommitRequest[Any]]) -> None:
        assert self.shelf.turns.acquire(timeout=WITHIN_S)
        self.shelf.threads.append(current_thread().name)
        super().commit(requests)

    def close(self) -> None:
        self.shelf.threads.append("closed")


def _harness(shelf: SlowShelf, restore: Sequence[Snapshots] = (), **config: Any) -> OperatorHarness:
    place = Place(config=config, wake=shelf.woken.set)
    return OperatorHarness(lambda: SinkOperator(shelf), restore=restore, place=place)


@pytest.mark.spec("H24")
def test_the_task_takes_records_and_checkpoints_while_a_commit_runs() -> None:
    with _harness(shelf := SlowShelf()) as harness:
        _checkpoint(harness, 1, "a")
        harness.notify_checkpoint_complete(1)
        assert harness.operators[0].next_upkeep_ms() is None, "it is woken instead of asking again"
        taken = _checkpoint(harness, 2, "b")
        assert shelf.values == [] and _counts(harness) == {"total": 2, "pending": 2}
        shelf.let(harness)
        assert shelf.values == ["a"] and _counts(harness) == {"total": 2, "pending": 1, "successful": 1}
        harness.notify_checkpoint_complete(2)
        shelf.let(harness)
        assert shelf.values == ["a", "b"] and shelf.threads == ["commit"] * 2
    again = SlowShelf(is_open=True)
    again.boxes = {"0-1": ["a"]}
    _harness(again, [taken]).close()
    assert sorted(again.values) == ["a", "b"], "the snapshot has what was being committed"
    assert again.threads == ["MainThread", "MainThread", "closed"], "what is restored comes before all that is new"


def test_commits_of_a_checkpoint_end_before_those_of_the_next_begin() -> None:
    with _harness(shelf := SlowShelf()) as harness:
        for value in "abc":
            operator = harness.operators[0]
            assert isinstance(operator, SinkOperator) and operator._commits is not None
            operator._commits.add(1, [(value, [value])])
        harness.notify_checkpoint_complete(1)
        _checkpoint(harness, 2, "d")
        shelf.turns.release(2)
        harness.notify_checkpoint_complete(2)  # waits for both calls of the first
        assert shelf.values == ["a", "b", "c"] and shelf.threads == ["commit", "MainThread"]
        shelf.woken.clear()
        shelf.let(harness)
        assert shelf.calls == [["a", "b"], ["c"], ["0-1"]] and _counts(harness) == {"total": 4, "successful": 4}


@pytest.mark.parametrize("answer", [_retry, _broken])
def test_a_failure_in_the_background_is_tried_again_and_then_fails_the_task(answer: Answer) -> None:
    harness = _harness(shelf := SlowShelf(*[answer] * 2), **{"sink.committer.retries": 1})
    taken = _checkpoint(harness, 1, "a")
    harness.notify_checkpoint_complete(1)
    shelf.let(harness)
    assert _counts(harness) == {"total": 1, "retried": 1, "pending": 1}
    due = harness.operators[0].next_upkeep_ms()
    assert due == harness.clock.now_ms() + 100
    harness.set_processing_time(due)
    with pytest.raises(UserCodeError, match=r"'a'.* was not committed after 1 retries"):
        shelf.let(harness)
    harness.close()
    shelf.turns.release()
    _harness(shelf, [taken]).close()
    assert shelf.values == ["a"]


def test_a_task_that_ends_waits_for_its_commit_and_the_end_of_input_for_all() -> None:
    harness = _harness(shelf := SlowShelf(is_open=True))
    _checkpoint(harness, 1, "a")
    harness.notify_checkpoint_complete(1)
    harness.close()
    assert shelf.values == ["a"] and shelf.threads == ["commit", "closed"]
    with _harness(shelf := SlowShelf(_retry, is_open=True)) as harness:
        _checkpoint(harness, 1, "a")
        harness.notify_checkpoint_complete(1)
        harness.process("b")
        harness.end_input()
        assert shelf.values == ["a", "b"]
    assert shelf.threads == ["commit", "MainThread", "MainThread", "closed"]


def test_a_task_that_ends_fails_where_its_background_commit_has_failed() -> None:
    shelf = SlowShelf(lambda request: request.signal_failed_with_unknown_reason(OSError("gone")), is_open=True)
    harness = _harness(shelf)
    _checkpoint(harness, 1, "a")
    harness.notify_checkpoint_complete(1)
    with pytest.raises(UserCodeError, match=r"CommitFailed: .*'a'.* was not committed \(OSError: gone\)"):
        harness.close()
    assert shelf.threads == ["commit", "closed"]
    harness = _harness(shelf := SlowShelf(_retry, is_open=True))
    _checkpoint(harness, 1, "a")
    harness.notify_checkpoint_complete(1)
    harness.close()
    assert shelf.values == ["a"], "what has to be tried again is tried once more"


def test_the_next_checkpoint_does_not_shorten_the_pause_before_another_try() -> None:
    with _harness(shelf := SlowShelf(_retry, is_open=True)) as harness:
        _checkpoint(harness, 1, "a")
        harness.notify_checkpoint_complete(1)
        _checkpoint(harness, 2, "b")
        harness.notify_checkpoint_complete(2)
        assert _counts(harness) == {"total": 2, "retried": 1, "pending": 2} and len(shelf.calls) == 1
        harness.set_processing_time(99)
        assert len(shelf.calls) == 1
        harness.end_input()
        assert shelf.values == ["a", "b"]


def test_nothing_runs_in_the_background_where_time_is_simulated() -> None:
    shelf = SlowShelf(is_open=True)
    with OperatorHarness(lambda: SinkOperator(shelf)) as harness:
        _checkpoint(harness, 1, "a")
        harness.notify_checkpoint_complete(1)
        assert shelf.values == ["a"] and shelf.threads == ["MainThread"]


def test_the_task_begins_a_commit_itself_and_tries_again_where_that_fails() -> None:
    with _harness(shelf := SlowShelf(is_open=True)) as harness:
        _checkpoint(harness, 1, "a")
        shelf.begins_badly = True
        harness.notify_checkpoint_complete(1)
        assert _counts(harness) == {"total": 1, "retried": 1, "pending": 1} and shelf.threads == []
        assert harness.operators[0].next_upkeep_ms() == harness.clock.now_ms() + 100
        shelf.begins_badly = False
        harness.set_processing_time(100)
        assert shelf.woken.wait(WITHIN_S)
        harness.set_processing_time(100)
        assert shelf.values == ["a"] and shelf.threads == ["commit"]
    assert shelf.begins == [("MainThread", ["0-1"])] * 2


def test_a_snapshot_waits_shortly_for_commits_of_large_committables(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = SlowShelf(is_open=True)
    shelf.is_large = True
    with _harness(shelf) as harness:
        for number in range(1, 4):
            taken = _checkpoint(harness, number, f"value {number}")
            assert b"value 3" in b"".join(_waiting(taken)) or number < 3
            harness.notify_checkpoint_complete(number)
        assert b"value 2" not in b"".join(_waiting(taken)), "it was committed before the snapshot"
    monkeypatch.setattr(commits, "SETTLING_S", 0.0)
    shelf = SlowShelf(_retry)
    shelf.is_large = True
    with _harness(shelf) as harness:
        _checkpoint(harness, 1, "a")
        harness.notify_checkpoint_complete(1)
        assert b"a" in b"".join(_waiting(_checkpoint(harness, 2))), "it does not wait longer for what is under way"
        shelf.let(harness)
        assert _counts(harness) == {"total": 1, "retried": 1, "pending": 1}
        assert len(_waiting(_checkpoint(harness, 3))) == 1, "nor for what is tried again later"
        shelf.turns.release(2)


def _waiting(taken: Snapshots) -> list[bytes]:
    """Return the committables in a snapshot."""
    [[snapshot]] = taken.values()
    return list(snapshot.lists.get(COMMITTABLES_STATE, ("", ()))[1])


class _EarlyCommitter(Committer):
    early_ms = 10

    def __init__(self) -> None:
        self.calls: list[str] = []

    def begin(self, requests: Sequence[CommitRequest[Any]]) -> None:
        self.calls.append("begin")

    def abandon(self) -> None:
        self.calls.append("abandon")

    def commit(self, requests: Sequence[CommitRequest[Any]]) -> None:
        self.calls.append("commit")


def test_at_the_end_of_input_too_an_early_beginning_is_taken_back_after_a_while() -> None:
    clock = ManualClock(0)
    committer = _EarlyCommitter()
    waiting = commits.Commits(committer, 0, clock, MetricGroup(), Event().set)
    waiting.add(1, ["a"])
    waiting.begin_early()
    assert waiting.due_ms == 10
    clock.advance(10)
    waiting.run_to_the_end()
    assert committer.calls == ["begin", "abandon"] and waiting.due_ms is None, "the task does not spin"
    waiting.complete(1)
    waiting.run_to_the_end()
    assert committer.calls == ["begin", "abandon", "begin", "commit"]
