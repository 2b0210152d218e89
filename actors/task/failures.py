"""Turns an exception of a task into a value that any process can read, and ends a process that ran out of memory."""

from __future__ import annotations

import errno
import logging
import os
import re
import traceback
from collections.abc import Iterator
from dataclasses import replace

from rayflink.common.errors import ConfigError, SuppressRestarts, described
from rayflink.common.text_output.logs import get_logger
from rayflink.common.user_code.python_files import IMPORT_REMEDY
from rayflink.common.user_code.tracebacks import full_traceback, users_traceback
from rayflink.operators.async_io.pool_calls import NoWorker
from rayflink.operators.base import Operator, UserCodeError
from rayflink.state.errors import StateError
from rayflink.state.storage.storage import MissingFileError, StorageError

from ..exchange.codec import CodecError
from ..exchange.spilled import SpillError
from ..exchange.subpartition import ExchangeError
from ..messages.messages import TaskDeployment, TaskFailure

log = get_logger(__name__)
_OF_FILES = (
    errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EINVAL, errno.EROFS,
    errno.ENAMETOOLONG,
)  # fmt: skip
_OUTSIDE = re.compile(
    "Connect|Timed?Out|Unavailable|Operational|InterfaceError|Network|Throttl|Transient|Endpoint|Broker|CircuitOpen",
    re.IGNORECASE,
)
"""Names of errors of clients, as `psycopg.OperationalError`, `httpx.ConnectTimeout` or `botocore.EndpointError`."""
_SAYS_ALL = (CodecError, ConfigError, SpillError, StateError)

FATAL_EXIT_CODE = 255
"""The exit code of a process that halts itself (-1 in Flink)."""


def describe_failure(error: BaseException, deployment: TaskDeployment) -> TaskFailure:
    """Return the error as a value that any process can read."""
    failure = _describe(in_its_operator(error), deployment)
    return replace(failure, recoverable=is_recoverable(error), is_outage=is_outage(error))


def _describe(error: BaseException, deployment: TaskDeployment) -> TaskFailure:
    if isinstance(error, UserCodeError):
        cause = error.__cause__ or error
        log.debug("a function of %s failed", error.operator, exc_info=error)
        where = error.operator, error.call_site
        message = f"{error}; {IMPORT_REMEDY}" if isinstance(cause, ModuleNotFoundError) else str(error)
        return TaskFailure(type(cause).__name__, message, users_traceback(cause), *where, error.record)
    head = deployment.operators[0]
    if isinstance(error, _SAYS_ALL):  # says it all; the program has no part in its frames
        log.debug("task %s failed", deployment.title, exc_info=error)
        message = described(error)
        return TaskFailure(type(error).__name__, message, message, head.name, head.call_site)
    text = full_traceback(error)
    return TaskFailure(type(error).__name__, described(error), text, head.name, head.call_site)


def in_its_operator(error: BaseException) -> BaseException:
    """Return the error; KeyboardInterrupt and SystemExit become the failure of the operator that raised them.

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
    """Return whether the error, or one that it was raised from, is a MemoryError."""
    return any(isinstance(cause, MemoryError) for cause in _causes(error))


def is_recoverable(error: BaseException) -> bool:
    """Return whether a restart may help: no error of the chain of causes says that it will not."""
    return not any(isinstance(cause, SuppressRestarts) for cause in _causes(error))


def is_outage(error: BaseException) -> bool:
    """Return whether the error, or one of its causes, is a fault outside the program that may pass.

    Connections, times, memory, disks, and what the runtime needs of other processes; not files that are missing or may
    not be read. Errors of clients of outside systems are known by their names.
    """
    return any(_is_of_outside(cause) for cause in _causes(error))


def _is_of_outside(error: BaseException) -> bool:
    if isinstance(error, MissingFileError):
        return False
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno not in _OF_FILES
    named = any(_OUTSIDE.search(kind.__name__) for kind in type(error).__mro__)
    return named or isinstance(error, (MemoryError, ExchangeError, NoWorker, StorageError))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, and those that it was raised from."""
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
