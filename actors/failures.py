"""An exception in a task as a value that any process can read, and the end of a process that ran out of memory."""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Iterator

from rayflink.common.errors import ConfigError, SuppressRestarts, described
from rayflink.common.logs import get_logger
from rayflink.common.tracebacks import users_traceback
from rayflink.operators.base import Operator, UserCodeError
from rayflink.state.errors import StateError

from .exchange.codec import CodecError
from .exchange.spilled import SpillError
from .messages import TaskDeployment, TaskFailure

log = get_logger(__name__)
_SAYS_ALL = (CodecError, ConfigError, SpillError, StateError)

FATAL_EXIT_CODE = 255
"""What a process ends with that halts itself (-1 in Flink)."""


def describe_failure(error: BaseException, deployment: TaskDeployment) -> TaskFailure:
    """The error as a value that any process can read."""
    recoverable = is_recoverable(error)
    error = in_its_operator(error)
    if isinstance(error, UserCodeError):
        cause = error.__cause__ or error
        log.debug("a function of %s failed", error.operator, exc_info=error)
        kind = type(cause).__name__
        traced, record = users_traceback(cause), error.record
        where = error.operator, error.call_site
        return TaskFailure(kind, str(error), traced, *where, record, recoverable=recoverable)
    head = deployment.operators[0]
    if isinstance(error, _SAYS_ALL):  # says it all; the program has no part in its frames
        log.debug("task %s failed", deployment.title, exc_info=error)
        told = described(error)
        return TaskFailure(type(error).__name__, told, told, head.name, head.call_site, recoverable=recoverable)
    text = "".join(traceback.format_exception(error))
    where = head.name, head.call_site
    return TaskFailure(type(error).__name__, described(error), text, *where, recoverable=recoverable)


def in_its_operator(error: BaseException) -> BaseException:
    """The error; one that ends programs (KeyboardInterrupt, SystemExit), as the failure of the operator it came from.

    Operators let such errors pass: in a program's own process they mean the program.
    """
    if isinstance(error, Exception):
        return error
    blamed: tuple[Operator, str] | None = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        method_of = frame.f_locals.get("self")
        if isinstance(method_of, Operator):
            blamed = method_of, frame.f_code.co_name
    if blamed is None:
        return error
    ctx, where = blamed[0].ctx, blamed[1]
    failure = UserCodeError(ctx.operator_name, ctx.call_site, "", where)
    failure.__cause__ = error
    return failure


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the error, or one that it was raised from, is a MemoryError."""
    return any(isinstance(cause, MemoryError) for cause in _causes(error))


def is_recoverable(error: BaseException) -> bool:
    """Whether a restart may help: neither the error, nor one that it was raised from, says that it will not."""
    return not any(isinstance(cause, SuppressRestarts) for cause in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and those that it was raised from."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        yield cause
        seen.add(id(cause))
        cause = cause.__cause__


def halt_process(error: BaseException) -> None:
    """Log the error as fatal and end this process at once: nothing is closed, no `finally` of the program runs."""
    try:
        log.critical("Encountered fatal error %s - terminating the process", described(error))
        logging.shutdown()
    finally:
        os._exit(FATAL_EXIT_CODE)
