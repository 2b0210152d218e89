"""The process of a slot, as far as it can be seen without a cluster."""

from __future__ import annotations

import gc
import logging
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rayflink.actors.exchange.envelopes import join_envelope, split_envelope
from rayflink.actors.exchange.frames import BufferResponse, Envelope, TaskAddress
from rayflink.actors.messages.scheduling import Slot
from rayflink.actors.on_ray.slots.deployment_check import SlotAssignment, TaskSubmissionError

pytestmark = pytest.mark.slow  # imports Ray

ME, MATE, NEAR, FAR = (TaskAddress(digit * 32) for digit in "0123")
SLOT = Slot("default", 0)


@pytest.fixture
def actor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """A slot's process on node "here"."""
    from rayflink.actors.on_ray.slots import job_output, slot_actor

    context = SimpleNamespace(get_node_id=lambda: "here")
    monkeypatch.setattr(slot_actor.ray, "get_runtime_context", lambda: context)
    monkeypatch.setattr(slot_actor, "node_address", lambda: "127.0.0.1")
    monkeypatch.setattr(job_output, "job_folder", lambda namespace, job_id: tmp_path / namespace / job_id)
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(sys, stream, getattr(sys, stream))  # the actor puts others there
    logger, root, last_resort = logging.getLogger("rayflink"), logging.getLogger(), logging.lastResort
    before = list(logger.handlers), logger.level, root.level
    yield slot_actor.SlotActor(SlotAssignment("job", SLOT, "leader", title="counts: Map (1/2)"))
    logger.handlers[:] = before[0]
    logger.setLevel(before[1])
    root.setLevel(before[2])
    logging.lastResort = last_resort


class Asked:
    """A method of the coordinator that gives an answer."""

    def __init__(self, answer: Any) -> None:
        self.given: list[Any] = []
        self._answer = answer

    def remote(self, *given: Any) -> Any:
        self.given.append(given)
        return self._answer


def submit(actor: Any, attempt: TaskAddress, actors: Any = None, **coordinator: Any) -> Any:
    """The task that the process has then."""
    from rayflink.actors.on_ray.slots.ray_task import PeerDirectory

    nodes = {ME: "here", MATE: "here", NEAR: "here", FAR: "there"}
    around = PeerDirectory(actors or {}, nodes, SimpleNamespace(**coordinator), "leader", 1_000)
    deployment = SimpleNamespace(job_id="job", attempt=attempt, title="Map (1/1) (attempt #0)")
    actor.submit(b"", deployment, SLOT, around)
    return actor._slot._tasks[attempt]


def data(sender: TaskAddress, receiver: TaskAddress, size: int) -> Envelope:
    return Envelope(sender, receiver, 0, (BufferResponse(0, 0, 0, b"x" * size),))


def deliver(actor: Any, envelope: Envelope) -> None:
    header, bodies = split_envelope(envelope)
    actor.deliver(header, *bodies)


@pytest.mark.spec("N32")
def test_a_peer_unknown_at_deployment_is_asked_for_once(actor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from rayflink.actors.on_ray.slots import ray_task

    monkeypatch.setattr(ray_task.ray, "get", lambda answer, timeout: answer)
    process_of = Asked("another process")
    peers = submit(actor, ME, {NEAR: "a known process"}, process_of=process_of)._peers
    assert (peers[NEAR], process_of.given) == ("a known process", [])
    assert [peers[FAR], peers[FAR]] == ["another process"] * 2
    assert process_of.given == [(FAR,)]


@pytest.mark.spec("N04", "X66")
def test_bytes_from_the_same_node_and_from_another_are_told_apart(actor: Any) -> None:
    task = submit(actor, ME)
    for sender, size in ((NEAR, 10), (FAR, 300), (FAR, 4)):
        deliver(actor, data(sender, ME, size))
    assert (task._bytes_near, task._bytes_far) == (10, 304)
    assert [envelope.sender for envelope in task._mailbox] == [NEAR, FAR, FAR]


@pytest.mark.spec("N04", "X66", "N02", "transfer", "N05", "waits")
def test_tasks_of_a_slot_exchange_envelopes_directly_and_others_by_a_call(actor: Any) -> None:
    calls: list[Any] = []
    ref = SimpleNamespace(future=lambda: SimpleNamespace(add_done_callback=calls.append))
    far = SimpleNamespace(deliver=Asked(ref))
    first, second = submit(actor, ME, {FAR: far}), submit(actor, MATE)
    envelope = data(ME, MATE, 10)
    assert not second._wake.is_set(), "it may wait"
    first._send(envelope)
    assert second._wake.is_set()
    assert list(second._mailbox) == [envelope] and second._mailbox[0] is envelope, "the very object"
    assert list(first._returned) == [MATE] and second._bytes_near == 10
    first._send(data(ME, FAR, 10))
    ((header, *bodies),) = far.deliver.given
    assert join_envelope(header, tuple(bodies)) == data(ME, FAR, 10)
    assert len(calls) == 1 and list(first._returned) == [MATE]


def test_what_comes_before_its_task_waits_for_it(actor: Any) -> None:
    early = [data(FAR, ME, 1), data(NEAR, ME, 2)]
    for envelope in early:
        deliver(actor, envelope)
    task = submit(actor, ME)
    deliver(actor, data(FAR, ME, 3))
    assert [len(envelope.frames[0].body) for envelope in task._mailbox] == [1, 2, 3]


def test_a_command_reaches_the_task_it_is_for(actor: Any) -> None:
    from rayflink.actors.messages.messages import CancelTask
    from rayflink.common.user_code.value_bytes import to_bytes

    first, second = submit(actor, ME), submit(actor, MATE)
    first._unseal()
    actor.command(MATE, to_bytes(CancelTask()))
    assert (list(first._mailbox), list(second._mailbox)) == ([], [])
    second._unseal()  # its program is loaded
    assert (list(first._mailbox), list(second._mailbox)) == ([], [CancelTask()])
    actor.command(MATE, to_bytes(CancelTask()))
    assert list(second._mailbox) == [CancelTask()] * 2


def test_what_a_task_that_has_ended_leaves_is_collected_though_it_was_frozen(actor: Any) -> None:
    from rayflink.actors.on_ray.slots.process_garbage import COLLECT_EVERY_S

    class Knot:
        def __init__(self) -> None:
            self.itself = self

    knot = Knot()
    left, garbage = weakref.ref(knot), actor._garbage
    try:
        garbage.settle()
        del knot
        garbage.collect(garbage.collected_at + COLLECT_EVERY_S)
        assert left() is not None, "it is not looked at while the tasks it was loaded with run"
        garbage.has_ended()
        garbage.collect(garbage.collected_at + COLLECT_EVERY_S)
        assert left() is None
        assert gc.get_freeze_count() > 0, "what the others have is not looked at again"
    finally:
        gc.enable()  # what is frozen stays so: the suite froze most of it


def test_ray_shows_an_actor_by_its_job_and_tasks(actor):
    assert repr(actor) == "counts: Map (1/2)"


def test_what_ray_prints_of_a_new_actor_is_no_output_of_a_task(actor):
    print(":actor_name:counts: Map (1/1)", flush=True)
    assert not actor._output.printed.pending
    submit(actor, ME)
    print("by a task")
    assert actor._output.printed.pending


def test_a_process_runs_tasks_of_its_new_job_alone_and_logs_for_it(
    actor: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    logging.getLogger("rayflink.first").info("begun")
    before = actor._slot.job.program
    actor.assign(SlotAssignment("next", SLOT, "leader", title="sums: Map (1/1)"))
    with pytest.raises(TaskSubmissionError, match="no coordinator of job job, it is of job next"):
        submit(actor, ME)
    logging.getLogger("rayflink.second").info("goes on")
    logs = {path.relative_to(tmp_path).parts[1]: path.read_text() for path in tmp_path.rglob("*.log")}
    assert "begun" in logs["job"] and "goes on" not in logs["job"] and "goes on" in logs["next"]
    assert actor._slot.job.program is not before
    assert repr(actor) == "sums: Map (1/1)" and actor._output.streams[0] is not sys.stdout
