"""How a task begins: its states before it runs, what is ready when its functions open, and who wins a race."""

from __future__ import annotations

import ast
import logging
import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rayflink.actors.task
from rayflink.actors.exchange.frames import AddCredit
from rayflink.actors.messages.messages import CancelTask, TaskStateChanged
from rayflink.actors.messages.states import ExecutionState, InvalidStart
from rayflink.actors.task.progress import Progress
from rayflink.actors.task.task import StreamTask
from rayflink.common.records.batches import Batch, Element, RowBatch
from rayflink.operators.base import Operator
from rayflink.operators.stateless import MapOperator
from tests.actors.task.task_bench import CONSUMER, ListSource, Logged, TaskBench


@pytest.mark.spec("K09")
def test_a_task_cancelled_before_it_began_reports_that_and_opens_nothing():
    log: list[str] = []
    waiting = TaskBench([Logged(log)])
    waiting.task.mail(CancelTask())
    handled = TaskBench([Logged(log)])
    handled.task.mail(CancelTask())
    handled.step()
    for bench in (waiting, handled):
        bench.start()
        assert bench.work() is Progress.DONE
        assert bench.states == ["CANCELED"]
    assert log == []


@pytest.mark.spec("K09", "K11", "stays")
def test_a_task_that_has_failed_before_it_began_stays_failed():
    log: list[str] = []
    bench = TaskBench([Logged(log)])
    bench.say(CONSUMER, AddCredit(7, 1))
    bench.step()
    bench.task.start()
    assert bench.work() is Progress.DONE
    assert bench.states == ["FAILED"]
    assert log == []


@pytest.mark.spec("K09")
def test_a_task_begins_once():
    bench = TaskBench([Logged([])]).start()
    with pytest.raises(InvalidStart) as caught:
        bench.task.start()
    assert str(caught.value).startswith(
        "Invalid state for beginning of operation of task Vertex (1/1) (attempt #0): found RUNNING, wanted CREATED;"
    )
    assert bench.task.state is ExecutionState.RUNNING


class CancelledWhileOpening(Logged):
    task: StreamTask

    def open(self) -> None:
        super().open()
        self.task.mail(CancelTask())


@pytest.mark.spec("K10", "K11", "cancelled", "L05", "L11")
def test_a_cancel_wins_over_the_move_to_running():
    log: list[str] = []
    operator = CancelledWhileOpening(log)
    bench = TaskBench([operator])
    operator.task = bench.task
    bench.start()
    bench.work()
    assert bench.states == ["DEPLOYING", "INITIALIZING", "CANCELING", "CANCELED"]
    assert log == ["op.setup", "op.initialize_state", "op.open", "op.close"]


@pytest.mark.spec("K10", "L05", "L11")
def test_a_cancel_wins_over_the_move_to_finished():
    bench = TaskBench([ListSource([RowBatch([1])])], channels=()).start(credit=0)
    assert bench.work() is Progress.IDLE
    bench.give_credit(1)
    bench.task.mail(CancelTask())
    assert bench.work() is Progress.DONE
    assert bench.states == ["DEPLOYING", "INITIALIZING", "RUNNING", "CANCELING", "CANCELED"]


class Sees(Operator):
    """Notes what is there when it is opened."""

    def __init__(self) -> None:
        self.seen: dict[str, Any] = {}

    def open(self) -> None:
        self.seen = {"files": dict(self.ctx.cached_files), "metrics": self.ctx.metrics, "job": self.ctx.job_id}
        logging.getLogger("rayflink.test").info("open")


@pytest.mark.spec("L04", "order")
def test_what_a_function_needs_is_there_before_it_opens_and_data_is_asked_for_after(caplog):
    operator = Sees()
    bench = TaskBench([operator])
    deployment = replace(bench.deployment, cached_files={"airports": "/tmp/airports.csv"})
    caplog.clear()  # the bench has a task of its own
    with caplog.at_level(logging.INFO, logger="rayflink"):
        task = StreamTask(deployment, bench.clock)
        task.start()
    assert [record.getMessage() for record in caplog.records] == [
        "Received task Vertex (1/1) (attempt #0).",
        "Loading the operators of task Vertex (1/1) (attempt #0).",
        "Registering task at network: Vertex (1/1) (attempt #0).",
        "open",
    ]
    assert operator.seen["files"] == {"airports": "/tmp/airports.csv"}
    assert operator.seen["metrics"] is not None
    states = [report.state.value for report in task.reports() if isinstance(report, TaskStateChanged)]
    assert states == ["DEPLOYING", "INITIALIZING", "RUNNING"]
    [request] = task.outgoing()
    assert request.receiver == "producer 0"


@pytest.mark.spec("L04", "order")
def test_a_task_whose_functions_do_not_open_asks_for_no_data():
    bench = TaskBench([Logged([], fails_in="open")]).start()
    said = [type(frame).__name__ for envelope in bench.task.outgoing() for frame in envelope.frames]
    assert "PartitionRequest" not in said
    assert bench.states == []
    bench.step()
    assert bench.states == ["DEPLOYING", "INITIALIZING", "FAILED"]


class Threads(Operator):
    """Passes records on and notes the threads in which it is called."""

    def __init__(self) -> None:
        self.threads: set[str] = set()

    def open(self) -> None:
        self.threads.add(threading.current_thread().name)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        self.threads.add(threading.current_thread().name)
        return (batch,)

    def close(self) -> None:
        self.threads.add(threading.current_thread().name)


@pytest.mark.spec("L03", "I23", "apart")
def test_all_of_a_task_happens_in_the_thread_that_steps_it_whoever_leaves_its_mail():
    operator = Threads()
    bench = TaskBench([operator])
    begun, ended = threading.Event(), threading.Event()

    def run() -> None:
        bench.start()
        begun.set()
        while bench.step() is not Progress.DONE:
            ended.wait(0.001)

    thread = threading.Thread(target=run, name="the task's")
    thread.start()
    begun.wait()
    bench.feed(0, *range(5))
    bench.end(0)
    thread.join(10)
    assert bench.output[:5] == list(range(5))
    assert operator.threads == {"the task's"}


@pytest.mark.spec("L03")
def test_a_task_fails_alone_and_knows_of_other_tasks_only_whom_it_reads_from():
    failing, other = TaskBench([MapOperator(lambda n: 1 // n)]).start(), TaskBench([MapOperator(lambda n: n)]).start()
    for bench in (failing, other):
        bench.feed(0, 0)
        bench.work()
    assert failing.states[-1] == "FAILED"
    assert (other.states[-1], other.output) == ("RUNNING", [0])
    addresses = {str(spec.producer) for spec in failing.deployment.inputs}
    assert addresses == {"producer 0"}
    source = Path(rayflink.actors.task.task.__file__).read_text(encoding="utf-8")
    modules = {node.module for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)}
    assert modules.isdisjoint({"job", "scheduling", "deployment", "commands", "coordinator_actor", "ray_coordinator"})


class Exits(Logged):
    def open(self) -> None:
        super().open()
        raise SystemExit("no licence")


@pytest.mark.spec("L08", "operators")
def test_an_open_that_exits_fails_its_task_and_closes_what_was_opened():
    log: list[str] = []
    bench = TaskBench([Exits(log, "a"), Logged(log, "b")]).start()
    assert bench.work() is Progress.DONE
    assert bench.states == ["DEPLOYING", "INITIALIZING", "FAILED"]
    assert (bench.failure.kind, bench.failure.operator) == ("SystemExit", "Operator 0")
    assert "no licence" in bench.failure.message + bench.failure.traceback
    assert log[2:] == ["b.initialize_state", "b.open", "a.initialize_state", "a.open", "a.close", "b.close"]


class ExitsWhileRestored(Logged):
    def initialize_state(self, snapshots: Any) -> None:
        super().initialize_state(snapshots)
        raise SystemExit("no state")


def test_a_function_that_ends_the_program_when_it_is_restored_fails_its_task():
    log: list[str] = []
    bench = TaskBench([ExitsWhileRestored(log, "a"), Logged(log, "b")]).start()
    bench.work()
    assert bench.states == ["DEPLOYING", "INITIALIZING", "FAILED"]
    assert (bench.failure.kind, bench.failure.operator) == ("SystemExit", "Operator 0")
    assert log[-2:] == ["a.close", "b.close"]
