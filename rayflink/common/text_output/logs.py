"""Log lines that carry the job, vertex, subtask and attempt which wrote them, as text or JSON, secrets masked."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timezone
from typing import Any, TextIO

from .masked import masked, shown_value

__all__ = ["IdentityFilter", "JsonFormatter", "LineFormatter", "bind", "bound", "get_logger", "identity", "is_json",
           "keep_logs", "show_logs", "spoken_by", "write_json"]  # fmt: skip

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
    """One line per record: time, level, message, then every extra as ``key=value``; secrets are masked."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-5s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line without a traceback; extras follow in the order they were given."""
        extras = " ".join(f"{key}={shown_value(key, str(value))}" for key, value in _extras(record).items())
        line = super().formatMessage(record)
        return f"{line} {extras}" if extras else line

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, with a traceback where there is one."""
        return masked(super().format(record))


class JsonFormatter(logging.Formatter):
    """One JSON object per record, in one line; secrets are masked.

    `time` is in UTC with milliseconds, by ISO 8601; `exception` has the traceback. The extras of the call and the bound
    identity follow `message`; a value that JSON does not have is a string.

    >>> import logging
    >>> record = logging.makeLogRecord({"name": "my_job", "levelname": "INFO", "msg": "no price", "created": 0.25})
    >>> vars(record).update(job="ab", subtask=0)
    >>> print(JsonFormatter().format(record))
    {"time": "1970-01-01T00:00:00.250Z", "level": "INFO", "logger": "my_job", "message": "no price", \
"job": "ab", "subtask": 0}
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the object."""
        moment = datetime.fromtimestamp(record.created, timezone.utc)
        line: dict[str, object] = {
            "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": masked(record.getMessage()),
        }
        for key, value in _extras(record).items():
            if key not in line:
                line[key] = _plain(key, value)
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = masked("".join(traceback.format_exception(*record.exc_info)).rstrip())
        return json.dumps(line, ensure_ascii=False, default=str)


def _extras(record: logging.LogRecord) -> dict[str, object]:
    """Return what a record has of its own; what begins with "_" is of libraries that mark every record of theirs."""
    return {key: value for key, value in vars(record).items() if key not in _STANDARD and not key.startswith("_")}


def _plain(key: str, value: object) -> object:
    """Return a value as JSON has it, masked where its key names a secret."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    return masked(shown_value(key, str(value)))


_text, _json = LineFormatter(), JsonFormatter()
_is_json = False


def write_json(on: bool) -> None:
    """Choose the form of all lines that the handlers of rayflink write in this process from now on."""
    global _is_json
    _is_json = on


def is_json() -> bool:
    """Return whether lines are written as JSON."""
    return _is_json


class _ChosenFormatter(logging.Formatter):
    """Writes lines in the form that was chosen for this process."""

    def format(self, record: logging.LogRecord) -> str:
        return (_json if _is_json else _text).format(record)


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
    handler.setFormatter(_ChosenFormatter())
    handler.addFilter(IdentityFilter())
