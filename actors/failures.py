"""An exception in a task as a value that any process can read."""

from __future__ import annotations

import traceback
from typing import Any

from rayflink.common.errors import described
from rayflink.operators.base import UserCodeError

from .messages import TaskDeployment, TaskFailure


def describe_failure(error: BaseException, deployment: TaskDeployment) -> TaskFailure:
    """The error as a value that any process can read."""
    if isinstance(error, UserCodeError):
        cause = error.__cause__ or error
        text = "".join(traceback.format_exception(type(cause), cause, _user_part(cause)))
        kind = type(cause).__name__
        return TaskFailure(kind, str(error), text, error.operator, error.call_site, error.record)
    text = "".join(traceback.format_exception(error))
    head = deployment.operators[0]
    return TaskFailure(type(error).__name__, described(error), text, head.name, head.call_site)


def _user_part(error: BaseException) -> Any:
    """The traceback from the first frame outside rayflink on."""
    tb = error.__traceback__
    while tb is not None:
        if not str(tb.tb_frame.f_globals.get("__name__", "")).startswith("rayflink."):
            return tb
        tb = tb.tb_next
    return error.__traceback__
