"""A process of several slots, as far as it can be seen without a cluster."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rayflink.actors.exchange.envelopes import split_envelope
from rayflink.actors.exchange.frames import BufferResponse, Envelope, TaskAddress
from rayflink.actors.messages.scheduling import Slot
from rayflink.actors.on_ray.slots.deployment_check import SlotAssignment, TaskSubmissionError
from rayflink.common.text_output.logs import spoken_by

pytestmark = pytest.mark.slow  # imports Ray

ONE, TWO, THREE = (TaskAddress(digit * 32) for digit in "123")
FIRST, SECOND = Slot("default", 0), Slot("default", 1)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """A process of four slots on node "here"."""
    from rayflink.actors.on_ray.slots import job_output, job_slot, slot_actor, slot_host

    context = SimpleNamespace(get_node_id=lambda: "here")
    monkeypatch.setattr(slot_actor.ray, "get_runtime_context", lambda: context)
    monkeypatch.setattr(slot_actor, "node_address", lambda: "127.0.0.1")
    monkeypatch.setattr(job_output, "job_folder", lambda namespace, job_id: tmp_path / namespace / job_id)
    monkeypatch.setattr(job_slot, "RayTask", Task)
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(sys, stream, getattr(sys, stream))  # the actor puts others there
    logger, root, last_resort = logging.getLogger("rayflink"), logging.getLogger(), logging.lastResort
    before = list(logger.handlers), logger.level, root.level
    yield slot_host.SlotHost(4)
    logger.handlers[:] = before[0]
    logger.setLevel(before[1])
    root.setLevel(before[2])
    logging.lastResort = last_resort


class Task:
    """Stands for the thread of an attempt: it runs until it is cancelled, which it obeys or not."""

    def __init__(self, program: bytes, deployment: Any, slot: Slot, around: Any, job: Any) -> None:
        self.job_id, self.obeys = deployment.job_id, program != b"deaf"
        self.runs, self.has_to_end = threading.Event(), threading.Event()
        self.received: list[Envelope] = []

    def receive(self, envelope: Envelope) -> None:
        self.received.append(envelope)

    def cancel(self) -> None:
        if self.obeys:
            self.has_to_end.set()

    def run(self) -> None:
        with spoken_by({"job": self.job_id}):
            print(f"printed for {self.job_id}")
            logging.getLogger("rayflink.test").info("logged for %s", self.job_id)
        self.runs.set()
        assert self.has_to_end.wait(20)


class Terminal:
    """The coordinator's side of what is printed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from rayflink.actors.on_ray.slots import job_output

        self.printed: dict[str, str] = {}
        monkeypatch.setattr(job_output.ray, "wait", lambda calls, timeout: (calls, []))

    def of(self, job_id: str) -> Any:
        def put(chunks: list[tuple[bool, str]]) -> str:
            self.printed[job_id] = self.printed.get(job_id, "") + "".join(string for _, string in chunks)
            return job_id

        return SimpleNamespace(printed=SimpleNamespace(remote=put))


def open_slot(host: Any, token: str, job_id: str, slot: Slot = FIRST) -> None:
    host.open(token, SlotAssignment(job_id, slot, f"leader of {job_id}"))


def begin(
    host: Any, token: str, job_id: str, attempt: TaskAddress, slot: Slot = FIRST, program: bytes = b"",
    coordinator: Any = None,
) -> tuple[Any, threading.Thread]:  # fmt: skip
    """Deploy a task to a slot, and return it when it runs."""
    from rayflink.actors.on_ray.slots.ray_task import PeerDirectory

    around = PeerDirectory({}, {}, coordinator, f"leader of {job_id}", 1_000)
    deployment: Any = SimpleNamespace(job_id=job_id, attempt=attempt, title="Map (1/1) (attempt #0)")
    host.submit(token, program, deployment, slot, around)
    thread = threading.Thread(target=host.run, args=(token, attempt), daemon=True)
    thread.start()
    task = host._slots[token]._tasks[attempt]
    assert task.runs.wait(20)
    return task, thread


def test_slots_of_one_job_share_its_program_and_those_of_another_do_not(host: Any) -> None:
    for token, job_id, slot in (("a", "one", FIRST), ("b", "one", SECOND), ("c", "two", FIRST)):
        open_slot(host, token, job_id, slot)
    jobs = {token: slot.job for token, slot in host._slots.items()}
    assert jobs["a"] is jobs["b"] is not jobs["c"]
    deployment: Any = SimpleNamespace(name="Map (1/2)", job_id="0123456789")
    assert jobs["a"].thread_name(deployment) == "Map (1/2) of 01234567"
    assert jobs["a"].program is not jobs["c"].program and jobs["a"].place["processSlots"] == 4


def test_each_slot_accepts_its_own_deployments_alone(host: Any) -> None:
    from rayflink.actors.on_ray.slots.ray_task import PeerDirectory

    open_slot(host, "a", "one")
    around = PeerDirectory({}, {}, None, "leader of one", 1_000)
    deployment: Any = SimpleNamespace(job_id="one", attempt=ONE, title="Map (2/2) (attempt #0)")
    with pytest.raises(TaskSubmissionError, match="no slot default/1 is allocated here"):
        host.submit("a", b"", deployment, SECOND, around)
    deployment.job_id = "two"
    with pytest.raises(TaskSubmissionError, match="no coordinator of job two, it is of job one"):
        host.submit("a", b"", deployment, FIRST, around)


def test_what_tasks_print_and_log_goes_to_their_own_job(
    host: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    terminal = Terminal(monkeypatch)
    begun = []
    for token, job_id, attempt in (("a", "one", ONE), ("b", "two", TWO)):
        open_slot(host, token, job_id)
        begun.append(begin(host, token, job_id, attempt, coordinator=terminal.of(job_id)))
    print("by a thread of no job")
    with spoken_by({"job": "a job that has left"}):
        print("late")
    for token in ("a", "b"):
        host._slots[token].job.show()
    assert terminal.printed == {"one": "printed for one\n", "two": "printed for two\n"}
    logs = {path.parent.name: path.read_text() for path in tmp_path.rglob("*.log")}
    for job_id, other in (("one", "two"), ("two", "one")):
        assert f"printed for {job_id}" in logs[job_id] and f"logged for {job_id}" in logs[job_id]
        assert f"for {other}" not in logs[job_id] and "by a thread of no job" in logs[job_id]
        assert "late" not in logs[job_id]
    assert {name for name, *_ in host.log_files()} == {
        "taskmanager.log", "taskmanager.out", "one-default-0.0.log", "two-default-0.0.log"
    }  # fmt: skip
    assert b"printed for two" in (host.log("taskmanager.out", 10_000) or b"")

    assert host.close("b", 10)
    print("by a thread, with one job left")
    host._slots["a"].job.show()
    assert terminal.printed["one"].endswith("by a thread, with one job left\n")
    assert host.close("a", 10)
    for _, thread in begun:
        thread.join(10)


def test_a_slot_that_closes_cancels_its_tasks_and_leaves_the_others(host: Any) -> None:
    from rayflink.actors.on_ray.slots.job_slot import SlotClosed

    open_slot(host, "a", "one")
    open_slot(host, "b", "one", SECOND)
    (_, first), (task, second) = begin(host, "a", "one", ONE), begin(host, "b", "one", TWO, SECOND)
    assert host.close("a", 10)
    first.join(10)
    assert not first.is_alive() and second.is_alive() and not task.has_to_end.is_set()
    header, bodies = split_envelope(Envelope(ONE, TWO, 0, (BufferResponse(0, 0, 0, b"x"),)))
    host.deliver("b", header, *bodies)
    assert len(task.received) == 1
    with pytest.raises(SlotClosed):
        host.deliver("a", header, *bodies)
    with pytest.raises(SlotClosed):
        host.run("a", ONE)
    assert host.close("a", 10), "it is closed already"
    assert host.close("b", 10) and host._outputs == {}
    second.join(10)


def test_a_task_that_does_not_end_is_reported(host: Any) -> None:
    open_slot(host, "a", "one")
    task, thread = begin(host, "a", "one", ONE, program=b"deaf")
    assert not host.close("a", 0.05)
    task.has_to_end.set()
    thread.join(10)
    assert host.close("a", 10)


def test_a_call_that_waits_for_an_attempt_returns_when_its_slot_closes(host: Any) -> None:
    """A deployment that was refused never comes, and its call must not keep a thread of the process for ever."""
    from rayflink.actors.on_ray.slots.job_slot import SlotClosed

    open_slot(host, "a", "one")
    ended: list[type[Exception]] = []

    def run() -> None:
        try:
            host.run("a", THREE)
        except SlotClosed as error:
            ended.append(type(error))

    waiting = threading.Thread(target=run, daemon=True)
    waiting.start()
    assert host.close("a", 10)
    waiting.join(10)
    assert ended == [SlotClosed]


def test_calls_that_are_faster_than_the_one_that_opens_the_slot_wait_for_it(host: Any) -> None:
    """Ray keeps no order between calls of different groups, or of different callers."""
    header, bodies = split_envelope(Envelope(TWO, ONE, 0, (BufferResponse(0, 0, 0, b"x"),)))
    host.deliver("a", header, *bodies)
    running = threading.Thread(target=host.run, args=("a", ONE), daemon=True)
    running.start()
    open_slot(host, "a", "one")
    from rayflink.actors.on_ray.slots.ray_task import PeerDirectory

    deployment: Any = SimpleNamespace(job_id="one", attempt=ONE, title="Map (1/1) (attempt #0)")
    host.submit("a", b"", deployment, FIRST, PeerDirectory({}, {}, None, "leader of one", 1_000))
    task = host._slots["a"]._tasks[ONE]
    assert task.runs.wait(20) and len(task.received) == 1
    assert host.close("a", 10)
    running.join(10)
    assert not running.is_alive()


def test_a_slot_that_was_closed_before_it_was_opened_stays_closed(host: Any) -> None:
    from rayflink.actors.on_ray.slots.job_slot import SlotClosed

    assert host.close("a", 10)
    open_slot(host, "a", "one")
    assert host._slots == {} and host._outputs == {}
    with pytest.raises(SlotClosed):
        host.run("a", ONE)


def test_a_process_remembers_the_slots_that_were_closed_last_and_no_more(
    host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rayflink.actors.on_ray.slots import slot_host

    monkeypatch.setattr(slot_host, "MOST_CLOSED", 2)
    for token in "abc":
        open_slot(host, token, f"job {token}")
        assert host.close(token, 10)
    assert list(host._closed) == ["b", "c"] and host._slots == host._outputs == {}


def test_a_call_that_waits_for_an_attempt_returns_when_it_is_refused(host: Any) -> None:
    """Without an error: the refusal itself says why, and must not come second."""
    from rayflink.actors.on_ray.slots.ray_task import PeerDirectory

    open_slot(host, "a", "one")
    deployment: Any = SimpleNamespace(job_id="two", attempt=ONE, title="Map (1/1) (attempt #0)")
    with pytest.raises(TaskSubmissionError):
        host.submit("a", b"", deployment, FIRST, PeerDirectory({}, {}, None, "leader of one", 1_000))
    host.run("a", ONE)
