"""The Ray shell around a task, as far as it can be seen without a cluster."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from rayflink.actors.envelopes import split_envelope
from rayflink.actors.exchange.frames import BufferResponse, Envelope, TaskAddress
from rayflink.operators.base import Operator, UserCodeError

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
    actor = module.TaskActor()
    actor._near = frozenset({NEAR})
    for sender, size in ((NEAR, 10), (FAR, 300), (FAR, 4)):
        frames = (BufferResponse(0, 0, 0, b"x" * size),)
        header, bodies = split_envelope(Envelope(sender, TaskAddress("0" * 32), 0, frames))
        actor.deliver(header, *bodies)
    assert (actor._bytes_near, actor._bytes_far) == (10, 304)
    assert [envelope.sender for envelope in actor._mailbox] == [NEAR, FAR, FAR]


class Ending(Operator):
    """Its function ends the program, as far as it is up to it."""

    def process(self, batch: Any, input_index: int) -> Any:
        yield self.function()

    def function(self) -> Any:
        raise KeyboardInterrupt("enough")


def test_what_ends_a_program_is_the_failure_of_the_innermost_operator_it_came_through(module: Any) -> None:
    operator = Ending()
    operator.ctx = SimpleNamespace(operator_name="interrupt", call_site="job.py:7")  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt) as caught:
        next(operator.process(None, 0))
    found = module.in_its_operator(caught.value)
    assert isinstance(found, UserCodeError) and found.__cause__ is caught.value
    assert (found.operator, found.call_site, found.where) == ("interrupt", "job.py:7", "function")


def test_other_errors_and_those_of_no_operator_are_left_as_they_are(module: Any) -> None:
    for error in (ValueError("of an operator or not"), KeyboardInterrupt("of no operator")):
        assert module.in_its_operator(error) is error
