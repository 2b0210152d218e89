"""The Ray shell around a task, as far as it can be seen without a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from rayflink.actors.acceptance import Appointment
from rayflink.actors.envelopes import split_envelope
from rayflink.actors.exchange.frames import BufferResponse, Envelope, TaskAddress

pytestmark = pytest.mark.slow  # imports Ray

NEAR, FAR = TaskAddress("1" * 32), TaskAddress("2" * 32)


@pytest.fixture
def module() -> Iterator[Any]:
    interval = sys.getswitchinterval()
    from rayflink.actors import task_actor

    yield task_actor
    sys.setswitchinterval(interval)


@pytest.mark.spec("N32")
def test_a_peer_unknown_at_deployment_is_found_by_its_name_and_then_known(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    def get_actor(name: str, namespace: str) -> str:
        asked.append((name, namespace))
        return f"actor {name}"

    monkeypatch.setattr(module.ray, "get_actor", get_actor)
    peers = module._Peers("job", "space", {NEAR: "known actor"})
    assert peers[NEAR] == "known actor"
    assert [peers[FAR], peers[FAR]] == [f"actor job/{FAR}"] * 2
    assert asked == [(f"job/{FAR}", "space")]


@pytest.mark.spec("N04", "X66")
def test_bytes_from_the_same_node_and_from_another_are_told_apart(module: Any) -> None:
    actor = module.TaskActor(Appointment("job", TaskAddress("0" * 32), "leader"))
    actor._near = frozenset({NEAR})
    for sender, size in ((NEAR, 10), (FAR, 300), (FAR, 4)):
        frames = (BufferResponse(0, 0, 0, b"x" * size),)
        header, bodies = split_envelope(Envelope(sender, TaskAddress("0" * 32), 0, frames))
        actor.deliver(header, *bodies)
    assert (actor._bytes_near, actor._bytes_far) == (10, 304)
    assert [envelope.sender for envelope in actor._mailbox] == [NEAR, FAR, FAR]
