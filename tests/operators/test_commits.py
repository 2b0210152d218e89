"""The second phase of sinks: what is committed when, what is tried again, and that nothing is lost or repeated."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.connector_base.commits import CommitRequest
from rayflink.common.connector_base.sink import Committer, Sink, SinkWriter, TwoPhaseCommittingSink, WriterContext
from rayflink.common.functions.two_phase_function import TwoPhaseCommitSinkFunction
from rayflink.common.records.batches import Batch, RowBatch, rows_of
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.operators.base import UserCodeError
from rayflink.operators.sinks import SinkFunctionOperator, SinkOperator
from rayflink.testing import OperatorHarness, Place, rescaled_snapshots
from rayflink.testing.harness import Snapshots
from tests.operators.running import context

Answer = Callable[[CommitRequest[Any]], None]


class Shelf(TwoPhaseCommittingSink):
    """Keeps what is committed by its label; each call of the committer first asks the script what to do.

    Args:
        answers: for the next calls of `commit`, what is done with each request; later ones commit.
        in_background: of its committer.
    """

    def __init__(self, *answers: Answer, in_background: bool = False) -> None:
        self.in_background = in_background
        self.boxes: dict[str, list[Any]] = {}
        self.answers = list(answers)
        self.calls: list[list[str]] = []

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        return _Packer(ctx)

    def create_committer(self) -> Committer:
        return _Shelver(self)

    @property
    def values(self) -> list[Any]:
        return [value for box in self.boxes.values() for value in box]


class _Packer(SinkWriter):
    state_mode = "union"

    def __init__(self, ctx: WriterContext) -> None:
        self.subtask, self.number, self.box = ctx.subtask, max(ctx.restored, default=0), []

    def write(self, batch: Batch) -> None:
        self.box += rows_of(batch)

    def flush(self, end_of_input: bool) -> None: ...

    def prepare_commit(self) -> Sequence[Any]:
        box, self.box, self.number = self.box, [], self.number + bool(self.box)
        return [(f"{self.subtask}-{self.number}", box)] if box else []

    def snapshot_state(self) -> int:
        return self.number

    def close(self) -> None: ...


class _Shelver(Committer):
    most_at_once = 2

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.in_background = shelf.in_background

    def commit(self, requests: Sequence[CommitRequest[Any]]) -> None:
        self.shelf.calls.append([request.get_committable()[0] for request in requests])
        answer = self.shelf.answers.pop(0) if self.shelf.answers else None
        for request in requests:
            if answer is not None:
                answer(request)
                continue
            label, box = request.get_committable()
            if self.shelf.boxes.setdefault(label, box) is not box:
                request.signal_already_committed()


def _retry(request: CommitRequest[Any]) -> None:
    request.retry_later(OSError("busy"))


def _broken(request: CommitRequest[Any]) -> None:
    raise OSError("broken")


def _harness(shelf: Shelf, restore: Sequence[Snapshots] = (), **config: Any) -> OperatorHarness:
    return OperatorHarness(lambda: SinkOperator(shelf), restore=restore, place=Place(config=config))


def _checkpoint(harness: OperatorHarness, number: int, *values: Any) -> Snapshots:
    for value in values:
        harness.process(value)
    return harness.snapshot(number)


def _counts(harness: OperatorHarness) -> dict[str, int]:
    found = {name.rsplit(".")[-1]: value for name, value in harness.metrics.snapshot().items()}
    return {name.removesuffix("Committables"): n for name, n in found.items() if name.endswith("Committables") and n}


@pytest.mark.spec("H24")
def test_committables_are_committed_when_their_checkpoint_or_a_later_completes() -> None:
    with _harness(shelf := Shelf()) as harness:
        _checkpoint(harness, 1, "a")
        _checkpoint(harness, 2, "b")
        _checkpoint(harness, 3, "c")
        assert shelf.values == [] and _counts(harness) == {"total": 3, "pending": 3}
        harness.notify_checkpoint_complete(2)  # 1 was aborted, or its notice was lost
        assert shelf.values == ["a", "b"]
        harness.notify_checkpoint_complete(1)
        assert shelf.values == ["a", "b"] and shelf.calls == [["0-1"], ["0-2"]]
        harness.notify_checkpoint_complete(3)
        assert shelf.values == ["a", "b", "c"] and _counts(harness) == {"total": 3, "successful": 3}


@pytest.mark.spec("H24")
def test_what_a_checkpoint_holds_is_committed_at_restore_at_any_parallelism() -> None:
    for parallelism in (1, 2, 5):
        shelf = Shelf()
        taken = []
        for subtask in range(3):
            place = Place(subtask=subtask, parallelism=3)
            with OperatorHarness(partial(SinkOperator, shelf), place=place) as harness:
                _checkpoint(harness, 1, f"a{subtask}")
                taken.append(_checkpoint(harness, 2, f"b{subtask}"))
                harness.process("lost")
        assert shelf.values == []
        for snapshots in rescaled_snapshots(taken, parallelism):
            _harness(shelf, [snapshots]).close()
        assert sorted(shelf.values) == ["a0", "a1", "a2", "b0", "b1", "b2"]
        for snapshots in rescaled_snapshots(taken, parallelism):
            again = _harness(shelf, [snapshots])
            assert "successful" not in _counts(again)
            again.close()
        assert sorted(shelf.values) == ["a0", "a1", "a2", "b0", "b1", "b2"]


def test_the_end_of_input_commits_without_checkpoints_and_else_waits_for_the_last() -> None:
    with _harness(shelf := Shelf(_retry, _retry)) as harness:
        _checkpoint(harness, 1, "a")
        harness.process("b")
        harness.end_input()
        assert shelf.values == ["a", "b"]
    operator = SinkOperator(shelf := Shelf(_retry))
    operator.setup(context(checkpointing=True))
    operator.initialize_state(())
    operator.open()
    list(operator.process(RowBatch(["a"]), 0))
    list(operator.finish())
    assert shelf.values == []
    list(operator.prepare_snapshot(7))
    assert operator.snapshot_state(7) is not None
    operator.notify_checkpoint_complete(7)
    assert shelf.values == ["a"] and operator.next_upkeep_ms() is None
    operator.close()


def test_a_writer_is_not_flushed_again_after_the_end_of_its_input() -> None:
    class Counted(_Packer):
        def flush(self, end_of_input: bool) -> None:
            flushes.append(end_of_input)

    class Counting(Shelf):
        def create_writer(self, ctx: WriterContext) -> SinkWriter:
            return Counted(ctx)

    flushes: list[bool] = []
    for finished in (False, True):
        operator = SinkOperator(shelf := Counting())
        operator.setup(context(checkpointing=True, finished=finished))
        operator.initialize_state(())
        operator.open()
        if not finished:
            list(operator.process(RowBatch(["a"]), 0))
            list(operator.prepare_snapshot(6))
            operator.snapshot_state(6)
            list(operator.process(RowBatch(["b"]), 0))
            list(operator.finish())
        list(operator.prepare_snapshot(7))
        operator.snapshot_state(7)
        operator.notify_checkpoint_complete(7)
        operator.close()
        assert flushes == ([] if finished else [False, True])
        assert shelf.values == ([] if finished else ["a", "b"])
        flushes.clear()


def test_what_cannot_be_pickled_is_an_error_that_names_the_operator() -> None:
    harness = _harness(Shelf())
    harness.process(threading.Lock())
    with pytest.raises(UserCodeError, match=r"'SinkOperator' failed in snapshot_state: .*[Pp]ickle") as failure:
        harness.snapshot(1)
    assert failure.value.__cause__ is not None
    harness.close()


def test_a_committer_that_takes_nothing_and_committables_without_one_are_errors() -> None:
    class Idle(Shelf):
        def create_committer(self) -> Committer:
            committer = super().create_committer()
            committer.most_at_once = 0  # type: ignore[misc]
            return committer

    with pytest.raises(UserCodeError, match=r"ValueError: _Shelver.most_at_once is 0, so nothing would be committed"):
        _harness(Idle())

    class Alone(Sink):
        def create_writer(self, ctx: WriterContext) -> SinkWriter:
            return _Packer(ctx)

    harness = OperatorHarness(lambda: SinkOperator(Alone()))
    harness.snapshot(1)
    harness.process("a")
    with pytest.raises(UserCodeError, match=r"prepare_commit\(\) gave 1 committables, and Alone.create_committer\(\)"):
        harness.snapshot(2)
    harness.close()


def test_a_commit_is_tried_again_after_longer_and_longer_pauses_while_records_go_on() -> None:
    with _harness(shelf := Shelf(_retry, _broken, _retry)) as harness:
        _checkpoint(harness, 1, "a")
        harness.notify_checkpoint_complete(1)
        operator = harness.operators[0]
        _checkpoint(harness, 2, "b")
        waits = []
        while (due := operator.next_upkeep_ms()) is not None:
            waits.append(due - harness.clock.now_ms())
            assert shelf.values == []
            harness.set_processing_time(due)
        assert waits == [100, 200, 400] and shelf.values == ["a"]
        harness.notify_checkpoint_complete(2)
        assert _counts(harness) == {"total": 2, "retried": 3, "successful": 2}


def test_those_of_a_later_checkpoint_wait_for_one_that_is_tried_again() -> None:
    with _harness(shelf := Shelf(_retry)) as harness:
        _checkpoint(harness, 1, "a")
        _checkpoint(harness, 2, "b")
        harness.notify_checkpoint_complete(2)
        assert shelf.values == [] and shelf.calls == [["0-1"]]
        harness.set_processing_time(100)
        assert shelf.values == ["a", "b"]


@pytest.mark.parametrize("answer", [_retry, _broken])
def test_what_was_tried_too_often_fails_the_task_and_is_still_in_the_checkpoint(answer: Answer) -> None:
    harness = _harness(shelf := Shelf(*[answer] * 3), **{"sink.committer.retries": 2})
    snapshot = _checkpoint(harness, 1, "a")
    harness.notify_checkpoint_complete(1)
    harness.set_processing_time(100)
    with pytest.raises(UserCodeError, match=r"'a'.* was not committed after 2 retries .*OSError: b.*the next attem"):
        harness.set_processing_time(300)
    assert _counts(harness) == {"total": 1, "retried": 2, "failed": 1, "pending": 1}
    harness.close()
    _harness(shelf, [snapshot]).close()
    assert shelf.values == ["a"]


def test_an_unknown_failure_fails_the_task_at_once_and_a_known_one_is_logged(caplog: Any) -> None:
    unknown = Shelf(lambda request: request.signal_failed_with_unknown_reason(OSError("gone")))
    harness = _harness(unknown)
    _checkpoint(harness, 1, "a")
    told = r"CommitFailed: .*'a'.* was not committed \(OSError: gone\); it is in .* is DELETE_ON_CANCELLATION"
    with pytest.raises(UserCodeError, match=told):
        harness.notify_checkpoint_complete(1)
    harness.close()
    known = Shelf(lambda request: request.signal_failed_with_known_reason(OSError("refused")))
    with _harness(known) as harness:
        _checkpoint(harness, 1, "a")
        harness.notify_checkpoint_complete(1)
        assert known.values == [] and _counts(harness) == {"total": 1, "failed": 1}
    assert "given up a committable: ('0-1', ['a']); OSError: refused" in caplog.text


def test_the_rest_of_a_committable_is_tried_again() -> None:
    rest = lambda request: request.update_and_retry_later(("rest", ["b"]))  # noqa: E731
    with _harness(shelf := Shelf(rest)) as harness:
        snapshot = _checkpoint(harness, 1, "a", "b")
        harness.notify_checkpoint_complete(1)
        later = harness.snapshot(2)
        harness.set_processing_time(100)
        assert shelf.boxes == {"rest": ["b"]} and snapshot != later
    _harness(shelf, [later]).close()
    assert shelf.boxes == {"rest": ["b"]}


def test_many_committables_are_committed_in_parts_with_other_work_between() -> None:
    with _harness(shelf := Shelf()) as harness:
        taken = []
        for number in range(5):
            operator = harness.operators[0]
            assert isinstance(operator, SinkOperator) and operator._commits is not None
            operator._commits.add(1, [(f"x-{number}", [number])])
            taken.append(f"x-{number}")
        slow = operator._commits
        seconds = iter(range(100))
        slow._clock = type("Slow", (), {"now_ms": lambda self: 5, "monotonic": lambda self: next(seconds)})()
        harness.notify_checkpoint_complete(1)
        assert shelf.calls == [taken[:2]] and operator.next_upkeep_ms() == 5
        operator.upkeep(5)
        operator.upkeep(5)
        assert shelf.calls == [taken[:2], taken[2:4], taken[4:]] and not slow.is_behind


@pytest.mark.parametrize("answer", [None, _retry])
def test_a_task_that_ends_commits_what_is_due_and_leaves_the_rest_to_the_next(
    answer: Answer | None, caplog: Any
) -> None:
    harness = _harness(shelf := Shelf(_retry, *([] if answer is None else [answer])))
    taken = _checkpoint(harness, 1, "a")
    harness.process("lost")
    harness.notify_checkpoint_complete(1)
    assert shelf.values == []
    harness.close()
    assert shelf.values == ([] if answer else ["a"])
    assert ("1 committables are left to whoever restores" in caplog.text) == (answer is not None)
    _harness(shelf, [taken]).close()
    assert shelf.values == ["a"]


steps = st.one_of(
    st.tuples(st.just("write"), st.integers(1, 4)),
    st.tuples(st.just("checkpoint"), st.sampled_from(["complete", "unheard", "aborted"])),
    st.tuples(st.just("crash"), st.integers(1, 3)),
    st.tuples(st.just("later"), st.integers(100, 1000)),
    st.tuples(st.just("busy"), st.sampled_from([_retry, _broken])),
)


class World:
    """Subtasks of a sink, fed with 0, 1, 2, ..., of which a checkpoint knows how far it came."""

    def __init__(self, parallelism: int, in_background: bool) -> None:
        self.shelf = Shelf(in_background=in_background)
        self.next, self.number = 0, 0
        self.last: tuple[int, list[Snapshots]] = (0, [])
        self.heard = -1
        self.subtasks: list[OperatorHarness] = []
        self.start(parallelism)

    def start(self, parallelism: int) -> None:
        for harness in self.subtasks:
            harness.close()
        self.next, taken = self.last
        snapshots = rescaled_snapshots(taken, parallelism) if taken else [{}] * parallelism
        make = lambda: SinkOperator(self.shelf)  # noqa: E731
        places = [Place(subtask, parallelism, wake=lambda: None) for subtask in range(parallelism)]
        self.subtasks = [
            OperatorHarness(make, place=place, restore=[snapshot])
            for place, snapshot in zip(places, snapshots, strict=True)
        ]

    def write(self, count: int) -> None:
        for _ in range(count):
            self.subtasks[self.next % len(self.subtasks)].process(self.next)
            self.next += 1

    def checkpoint(self, how: str) -> None:
        self.number += 1
        taken = [harness.snapshot(self.number) for harness in self.subtasks]
        if how != "aborted":
            self.last = (self.next, taken)
        if how == "complete":
            for harness in self.subtasks:
                harness.notify_checkpoint_complete(self.number)

    def later(self, ms: int) -> None:
        for harness in self.subtasks:
            harness.set_processing_time(harness.clock.now_ms() + ms)


@pytest.mark.spec("H23", "commit", "H24")
@given(st.integers(1, 3), st.booleans(), st.lists(steps, max_size=25))
def test_every_record_is_committed_once_and_only_when_its_checkpoint_is_complete(
    parallelism: int, in_background: bool, history: list[tuple[str, Any]]
) -> None:
    world = World(parallelism, in_background)
    for step, argument in history:
        if step == "crash":
            world.start(argument)
        elif step == "busy":
            world.shelf.answers.append(argument)
        else:
            getattr(world, step)(argument)
        assert sorted(world.shelf.values) == sorted(set(world.shelf.values))
        assert all(value < world.last[0] for value in world.shelf.values), "committed before its checkpoint was"
    world.shelf.answers.clear()
    for harness in world.subtasks:
        harness.end_input()
        harness.close()
    assert sorted(world.shelf.values) == list(range(world.next))


class Pages(TwoPhaseCommitSinkFunction):
    """Drafts that become published pages, in one place for all attempts."""

    def __init__(self, place: dict[str, Any]) -> None:
        self.place = place

    def begin_transaction(self) -> str:
        draft = f"t{len(self.place)}"
        self.place[draft] = []
        self.said(f"begin {draft}")
        return draft

    def said(self, what: str) -> None:
        self.place.setdefault("calls", []).append(what)

    def invoke(self, transaction: str, value: Any) -> None:
        self.place[transaction].append(value)

    def pre_commit(self, transaction: str) -> None:
        self.said(f"pre-commit {transaction}")

    def commit(self, transaction: str) -> None:
        self.said(f"commit {transaction}")

    def abort(self, transaction: str) -> None:
        self.said(f"abort {transaction}")

    def recover_and_commit(self, transaction: str) -> None:
        self.said(f"recover and commit {transaction}")


@pytest.mark.spec("H24")
def test_a_two_phase_function_s_transactions_follow_the_checkpoints() -> None:
    place: dict[str, Any] = {"calls": []}
    make = lambda: SinkFunctionOperator(Pages(place))  # noqa: E731
    harness = OperatorHarness(make)
    harness.process("a")
    harness.snapshot(1)
    harness.process("b")
    taken = harness.snapshot(2)
    harness.process("lost")
    assert place["calls"] == ["begin t1", "pre-commit t1", "begin t2", "pre-commit t2", "begin t3"]
    place["calls"].clear()
    harness.notify_checkpoint_complete(1)
    restored = harness.restore(make, taken)
    recovery = ["recover and commit t1", "recover and commit t2", "abort t3", "begin t4"]
    assert place["calls"] == ["commit t1", "abort t3", *recovery]
    place["calls"].clear()
    restored.process("c")
    restored.end_input()
    restored.close()
    assert place["calls"] == ["pre-commit t4", "commit t4"] and place["t4"] == ["c"]


def test_a_two_phase_function_waits_for_the_last_checkpoint_and_aborts_the_rest() -> None:
    place: dict[str, Any] = {"calls": []}
    for is_last_taken in (True, False):
        operator = SinkFunctionOperator(Pages(place))
        operator.setup(context(checkpointing=True))
        operator.initialize_state(())
        operator.open()
        list(operator.process(RowBatch(["a"]), 0))
        list(operator.finish())
        assert place["calls"][1:] == [f"pre-commit {operator._two_phase._current}"]
        place["calls"].clear()
        if is_last_taken:
            operator.snapshot_state(9)
            operator.notify_checkpoint_complete(9)
        operator.close()
        assert place["calls"] == [f"{'commit' if is_last_taken else 'abort'} {operator._two_phase._current}"]
        place["calls"].clear()


PUBLISHED: list[Any] = []


class Publishing(Pages):
    def commit(self, transaction: str) -> None:
        PUBLISHED.extend(self.place[transaction])


def test_a_two_phase_function_is_a_sink_of_a_job() -> None:
    PUBLISHED.clear()
    env = StreamExecutionEnvironment({"execution.target": "local"})
    env.from_collection([1, 2, 3]).add_sink(Publishing({}))
    env.execute()
    assert PUBLISHED == [1, 2, 3]
