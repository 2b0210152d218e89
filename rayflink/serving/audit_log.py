"""One line of JSON for each operation: who asked for what, from where, and what came of it."""

from __future__ import annotations

import logging
import logging.handlers
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from io import TextIOWrapper
from typing import Any

import msgspec

from rayflink.common.configuration import shown_value
from rayflink.common.errors import ConfigError

from .json_requests import Caller

__all__ = ["AuditEntry", "AuditLog", "AuditSettings"]

audit = logging.getLogger("rayflink.audit")
log = logging.getLogger(__name__)
MOST_CHARACTERS = 300
"""Characters of a path, or of a value of a query."""


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """The place of the lines, beside the log.

    Args:
        path: of a file; None: to no file.
        most_bytes: of the file, before another one begins.
        files: that stay beside it.
    """

    path: str | None = None
    most_bytes: int = 64 << 20
    files: int = 10


@dataclass(frozen=True)
class AuditEntry:
    """An operation.

    Args:
        at_ms: when its request came, epoch milliseconds.
        caller: who sent it.
        method: of HTTP.
        path: of its address.
        query: parameters by name.
        job: that it is about; "": none.
        status: of HTTP, of its answer.
        reason: why it was refused; "": it was not.
        duration_ms: until its answer.
    """

    at_ms: int
    caller: Caller
    method: str
    path: str
    query: Mapping[str, str]
    job: str
    status: int
    reason: str
    duration_ms: float

    def line(self) -> str:
        """Return the entry as a line of JSON, without secrets.

        >>> from rayflink.serving.json_requests import Role
        >>> entry = AuditEntry(0, Caller("ann", Role.OPERATE, "::1"), "PATCH", "/jobs/a", {}, "a", 202, "", 1.04)
        >>> entry.line()[:73]
        '{"time":"1970-01-01T00:00:00.000Z","token":"ann","role":"OPERATE","addres'
        """
        time = datetime.fromtimestamp(self.at_ms / 1000, timezone.utc).isoformat(timespec="milliseconds")
        query = {_cut(key): _cut(shown_value(key, value)) for key, value in self.query.items()}
        document: dict[str, Any] = {
            "time": time.replace("+00:00", "Z"),
            "token": self.caller.name or None,
            "role": self.caller.role.name,
            "address": self.caller.address,
            "method": self.method,
            "path": _cut(self.path),
            **({"query": query} if query else {}),
            "job": self.job or None,
            "outcome": "refused" if self.status in (401, 403, 415, 429) else "failed" if self.status >= 400 else "done",
            "status": self.status,
            **({"reason": _cut(shown_value("reason", self.reason))} if self.reason else {}),
            "duration_ms": round(self.duration_ms, 1),
        }
        return msgspec.json.encode(document).decode()


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."


class AuditLog:
    """Writes entries to the log `rayflink.audit`, and to a file.

    Args:
        settings: of the file.

    Raises:
        ConfigError: the file cannot be written.
    """

    def __init__(self, settings: AuditSettings) -> None:
        self.failures = 0
        """Lines that could not be written to the file."""
        self._file: logging.Handler | None = None
        if settings.path is not None:
            try:
                self._file = _AuditFile(settings, self._count_failure)
            except OSError as error:
                wanted = "a file that can be written"
                raise ConfigError("rest.audit.file", settings.path, wanted, f"look at it: {error}") from error

    def write(self, entry: AuditEntry) -> None:
        """Write an entry. An operation is done, too, where the file cannot be written; that is logged and counted."""
        line = entry.line()
        audit.info(line)
        if self._file is not None:
            self._file.handle(audit.makeRecord(audit.name, logging.INFO, __file__, 0, line, (), None))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _count_failure(self) -> None:
        self.failures += 1
        log.error("audit line not written", extra={"failures": self.failures}, exc_info=True)


class _AuditFile(logging.handlers.RotatingFileHandler):
    """A file that only its owner reads, which begins anew when it is full."""

    def __init__(self, settings: AuditSettings, on_failure: Callable[[], None]) -> None:
        self._on_failure = on_failure
        assert settings.path is not None
        super().__init__(settings.path, "a", settings.most_bytes, settings.files, "utf-8")

    def _open(self) -> TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return TextIOWrapper(os.fdopen(descriptor, "ab"), encoding=self.encoding)

    def handleError(self, record: logging.LogRecord) -> None:
        self._on_failure()
