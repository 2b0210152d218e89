"""Describes how the processes of tasks end."""

from __future__ import annotations

import re

from ray.exceptions import ActorUnavailableError, RayActorError, RayTaskError

from ..messages.messages import TaskFailure
from .slots.deployment_check import TaskSubmissionError


def refusal(task: str, error: BaseException) -> TaskFailure:
    """Return why the call that was to deploy `task` failed, as a value that any process can read."""
    cause = error.cause if isinstance(error, RayTaskError) else error
    refused = isinstance(cause, TaskSubmissionError)
    message = str(cause) if refused else f"could not submit task {task}: {cause_of_death(error)}"
    return TaskFailure(type(cause).__name__, message, str(error))


def cause_of_death(error: BaseException) -> str:
    """Describe in one line how a task's process ended, or why it could not be called."""
    if isinstance(error, RayTaskError):
        return f"{type(error.cause).__name__}: {error.cause}"
    if isinstance(error, ActorUnavailableError):
        return f"its process could not be reached: {' '.join(str(error).split())}"
    if not isinstance(error, RayActorError):
        return f"{type(error).__name__}: {error}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines[1:] if re.match(r"(class_name|actor_id|pid|name|namespace|ip): ", line)]
    place = " ".join(line for line in named if line.startswith(("pid", "ip")))
    said = " ".join(line for line in lines[1:] if line not in named) or lines[0]
    said = said.partition(" Some common causes include")[0]
    return f"its process{f' ({place})' if place else ''} died: {said}"


__all__ = ["cause_of_death", "refusal"]
