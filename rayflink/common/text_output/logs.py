"""Log lines that carry the job, vertex and subtask which wrote them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

__all__ = ["IdentityFilter", "LineFormatter", "bind", "bound", "get_logger", "identity", "keep_logs", "show_logs",
           "spoken_by"]  # fmt: skip

_ours = logging.getLogger("rayflink")
if _ours.level == logging.NOTSET:  # lines about tasks do not stand between a program's rows, unless it asks for them
    _ours.setLevel(logging.WARNING)

_identity: ContextVar[dict[str, object]] = ContextVar("rayflink_log_identity")
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def identity() -> dict[str, object]:
    """Return a copy of what is bound in this thread: job, vertex, subtask and the like."""
    return dict(_identity.get({}))


def bind(**fields: object) -> None:
    """Add `fields` to every later line of this thread (context); a field given as None is removed."""
    merged = {**_identity.get({}), **fields}
    _identity.set({key: value for key, value in merged.items() if value is not None})


@contextmanager
def bound(**fields: object) -> Iterator[None]:
    """Bind fields as `bind` does until the block ends; the earlier ones come back."""
    before = _identity.set(identity())
    try:
        bind(**fields)
        yield
    finally:
        _identity.reset(before)


@contextmanager
def spoken_by(who: Mapping[str, object]) -> Iterator[None]:
    """Bind `who`, and nothing else, until the block ends."""
    before = _identity.set(dict(who))
    try:
        yield
    finally:
        _identity.reset(before)


class _IdentityLogger(logging.LoggerAdapter):  # type: ignore[type-arg]  # generic only at type-check time before 3.11
    def process(self, msg: object, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = {**_identity.get({}), **(kwargs.get("extra") or {})}
        return msg, kwargs


def get_logger(name: str) -> logging.LoggerAdapter[logging.Logger]:
    """Return the logger of a module, whose lines carry the bound identity and the call's ``extra``."""
    return _IdentityLogger(logging.getLogger(name), {})


class LineFormatter(logging.Formatter):
    """One line per record: time, level, message, then every extra as ``key=value``."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-5s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line without a traceback; extras follow in the order they were given."""
        extras = " ".join(
            f"{key}={value}"
            for key, value in vars(record).items()
            if key not in _STANDARD and not key.startswith("_")  # those of libraries that mark every record of theirs
        )
        line = super().formatMessage(record)
        return f"{line} {extras}" if extras else line


class IdentityFilter(logging.Filter):
    """Gives lines of any logger the identity bound in the thread that writes them; for a handler of a program's own."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True always."""
        for key, value in _identity.get({}).items():
            vars(record).setdefault(key, value)
        return True


class _Shown(logging.Handler):
    """Writes to standard error as it is then, where the program has set up no logging of its own."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        _with_identity(self)

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            print(self.format(record), file=sys.stderr)


def keep_logs(file: TextIO, warn: bool = True) -> None:
    """Set up the logs of a process that runs tasks: each line with the identity of its thread.

    Lines of rayflink, from INFO on, go to `file`; with `warn`, warnings and errors of all loggers go to standard error
    too, unless the program sets up logging itself.
    """
    _ours.setLevel(logging.INFO)
    handler = logging.StreamHandler(file)
    _with_identity(handler)
    _ours.addHandler(handler)
    if warn:
        shown = _Shown(logging.WARNING)
        logging.lastResort = shown
        _ours.addHandler(shown)


def show_logs() -> None:
    """Show the lines of loggers in this process on standard error, unless the program sets up logging itself.

    The levels of the loggers decide which; `logging` itself would show warnings and errors alone.
    """
    logging.lastResort = _Shown(logging.NOTSET)


def _with_identity(handler: logging.Handler) -> None:
    handler.setFormatter(LineFormatter())
    handler.addFilter(IdentityFilter())
