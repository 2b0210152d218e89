"""The side of a runner that the job master sees: one method for each command."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Protocol

from rayflink.common.errors import assert_never

from ..messages.commands import (
    Answer,
    AnswerCheckpoint,
    AnswerRescale,
    AnswerSavepoint,
    CallForEnumerator,
    Command,
    DeployTask,
    DiscardFiles,
    EndJob,
    KillTask,
    PublishCheckpoint,
    RequestRescale,
    RequestSlots,
    SendToTask,
)


class CommandPerformer(Protocol):
    """Performs what a job master has decided; each runner has one.

    The coordinator on Ray, the runner in this process and each coordinator of a simulated cluster are such performers.
    A method may take as long as its work: what comes of it later, such as granted slots or a published checkpoint, is
    an event for the job master.
    """

    def request_slots(self, command: RequestSlots) -> None:
        """Ask the cluster for slots; `SlotsGranted` or `SlotsRefused` answers."""
        ...

    def deploy_tasks(self, commands: Sequence[DeployTask]) -> None:
        """Create tasks; commands for them follow."""
        ...

    def send_to_task(self, command: SendToTask) -> None:
        """Send a task a message; one for a task that is gone is lost, and `CommandLost` may say so."""
        ...

    def kill_task(self, command: KillTask) -> None:
        """Kill a task that did not stop in time; `TaskGone` answers."""
        ...

    def publish_checkpoint(self, command: PublishCheckpoint) -> None:
        """Write the metadata of a checkpoint, after all earlier work on files.

        `CheckpointPublished` or `CheckpointNotPublished` answers.
        """
        ...

    def discard_files(self, command: DiscardFiles) -> None:
        """Delete files of a checkpoint, after all earlier work on files; nothing answers."""
        ...

    def call_for_enumerator(self, command: CallForEnumerator) -> None:
        """Run work that may block, beside the decisions; `EnumeratorAnswered` answers."""
        ...

    def request_rescale(self, command: RequestRescale) -> None:
        """Hand the job its own request for other parallelisms, when the slots for it are there."""
        ...

    def answer(self, answer: Answer) -> None:
        """Give the answer to whoever made the request."""
        ...

    def end_job(self, command: EndJob) -> None:
        """Release what the job has, and hand its result on; the last command of a job."""
        ...


def perform(commands: Sequence[Command], performer: CommandPerformer) -> None:
    """Let a runner perform the commands of one decision in their order, deployments in a row together."""
    for is_deployment, group in groupby(commands, lambda command: isinstance(command, DeployTask)):
        if is_deployment:
            performer.deploy_tasks([command for command in group if isinstance(command, DeployTask)])
            continue
        for command in group:
            _perform(command, performer)


def _perform(command: Command, performer: CommandPerformer) -> None:
    match command:
        case DeployTask():
            performer.deploy_tasks([command])
        case RequestSlots():
            performer.request_slots(command)
        case SendToTask():
            performer.send_to_task(command)
        case KillTask():
            performer.kill_task(command)
        case PublishCheckpoint():
            performer.publish_checkpoint(command)
        case DiscardFiles():
            performer.discard_files(command)
        case CallForEnumerator():
            performer.call_for_enumerator(command)
        case RequestRescale():
            performer.request_rescale(command)
        case AnswerSavepoint() | AnswerCheckpoint() | AnswerRescale():
            performer.answer(command)
        case EndJob():
            performer.end_job(command)
        case _:
            assert_never(command)


def deployments_first(commands: Sequence[Command]) -> list[Command]:
    """Return the commands with all deployments before the others, each in their order.

    For a runner whose tasks are in processes of their own: each deployment carries the addresses of all its peers.
    """
    return sorted(commands, key=lambda command: not isinstance(command, DeployTask))


__all__ = ["CommandPerformer", "deployments_first", "perform"]
