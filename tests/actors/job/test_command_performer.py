"""The commands of one decision reach the performer in their order, deployments in a row together."""

from __future__ import annotations

from typing import Any

from rayflink.actors.exchange.frames import TaskAddress
from rayflink.actors.job.command_performer import deployments_first, perform
from rayflink.actors.messages.commands import (
    AnswerRescale,
    AnswerSavepoint,
    Command,
    DeployTask,
    DiscardFiles,
    KillTask,
    RequestSlots,
    SendToTask,
)
from rayflink.actors.messages.messages import CancelTask
from rayflink.actors.messages.scheduling import Slot

ATTEMPT = TaskAddress("a")
SEND, KILL, DISCARD = SendToTask(ATTEMPT, CancelTask()), KillTask(ATTEMPT), DiscardFiles("/checkpoints")


class Recorder:
    """Records each call: the method and its argument."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def __getattr__(self, method: str) -> Any:
        return lambda argument: self.calls.append((method, argument))


def deployment(number: int) -> DeployTask:
    deployment: Any = f"deployment {number}"
    return DeployTask(Slot("default", number), deployment)


def calls(*commands: Command) -> list[tuple[str, Any]]:
    recorder: Any = Recorder()
    perform(commands, recorder)
    recorded: list[tuple[str, Any]] = recorder.calls
    return recorded


def test_each_command_has_its_method() -> None:
    slots, savepoint, rescale = RequestSlots(()), AnswerSavepoint("1"), AnswerRescale("2")
    assert calls(slots, SEND, KILL, DISCARD, savepoint, rescale) == [
        ("request_slots", slots),
        ("send_to_task", SEND),
        ("kill_task", KILL),
        ("discard_files", DISCARD),
        ("answer", savepoint),
        ("answer", rescale),
    ]


def test_deployments_in_a_row_are_performed_together() -> None:
    one, two, three = map(deployment, range(3))
    assert calls(SEND, one, two, KILL, three) == [
        ("send_to_task", SEND),
        ("deploy_tasks", [one, two]),
        ("kill_task", KILL),
        ("deploy_tasks", [three]),
    ]


def test_a_runner_with_processes_deploys_first() -> None:
    one, two = map(deployment, range(2))
    assert deployments_first([SEND, one, KILL, two]) == [one, two, SEND, KILL]
