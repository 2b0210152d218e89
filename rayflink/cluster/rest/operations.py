"""Requests whose work goes on after their answer: clients ask for its outcome by the id of the request."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from rayflink.common.errors import RayflinkError, described
from rayflink.common.text_output.logs import get_logger
from rayflink.serving.json_requests import Refusal

from .java_throwable import FailureCause, failure_cause

__all__ = [
    "Failed",
    "OperationFailed",
    "OperationKey",
    "OperationResult",
    "Operations",
    "Status",
    "TriggerResponse",
    "in_thread",
]

log = get_logger(__name__)
T = TypeVar("T")
KEEP_MS = 300_000
"""Time for which the outcome of an operation can be asked for (rest.async.store-duration)."""
MOST_KEPT = 1_000
"""Outcomes that are kept, the newest."""
MOST_UNDER_WAY = 64
"""Operations at a time, each of which has a thread."""


class OperationFailed(RayflinkError):
    """An operation has not done what it should.

    Args:
        reason: that the job gave.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class TriggerResponse(msgspec.Struct, rename="kebab", frozen=True):
    """The answer to a request whose work goes on.

    Args:
        request_id: by which its outcome is asked for.
    """

    request_id: str


class Status(msgspec.Struct, frozen=True):
    """The progress of an operation.

    Args:
        id: IN_PROGRESS or COMPLETED.
    """

    id: str


class Failed(msgspec.Struct, rename="kebab", frozen=True):
    """The outcome of an operation that has failed.

    Args:
        failure_cause: why.
    """

    failure_cause: FailureCause


class OperationResult(msgspec.Struct, Generic[T], frozen=True):
    """An operation.

    Args:
        status: how far it is.
        operation: its outcome; None until it is completed.
    """

    status: Status
    operation: T | Failed | None


@dataclass(frozen=True)
class OperationKey:
    """The name of an operation.

    Args:
        kind: such as "savepoint".
        job_id: on which it works; "": on none.
        trigger_id: 32 hex digits, which its client may have chosen.
    """

    kind: str
    job_id: str
    trigger_id: str


@dataclass(frozen=True)
class _Outcome:
    value: msgspec.Struct
    ended_ms: int


def in_thread(work: Callable[[], None]) -> None:
    """Let work run in a thread of its own."""
    threading.Thread(target=work, name="operation", daemon=True).start()


def _now_ms() -> int:
    return int(time.monotonic() * 1000)


class Operations:
    """Operations under way, each in a thread, and the outcomes of those that have ended, for a time.

    Args:
        now_ms: a clock that never goes back.
        start: lets work run, beside the caller.
    """

    def __init__(
        self, now_ms: Callable[[], int] = _now_ms, start: Callable[[Callable[[], None]], None] = in_thread
    ) -> None:
        self._now_ms, self._start = now_ms, start
        self._lock = threading.Lock()
        self._under_way: set[OperationKey] = set()
        self._outcomes: dict[OperationKey, _Outcome] = {}

    def begin(
        self, kind: str, job_id: str, trigger_id: str | None, work: Callable[[str], msgspec.Struct]
    ) -> TriggerResponse:
        """Let work begin, and return the id of the request; the same id again begins nothing.

        Args:
            kind: of the operation.
            job_id: on which it works; "": on none.
            trigger_id: that the client has chosen; None: a new one.
            work: takes the id, and returns the outcome.

        Raises:
            Refusal: there is too much under way.
        """
        key = OperationKey(kind, job_id, (trigger_id or os.urandom(16).hex()).lower())
        with self._lock:
            self._forget_old()
            if key not in self._under_way and key not in self._outcomes:
                if len(self._under_way) >= MOST_UNDER_WAY:
                    problem = f"{MOST_UNDER_WAY} operations are in progress, and no more are begun"
                    raise Refusal(429, f"{problem}; send the request again when one of them has ended")
                self._under_way.add(key)
                self._start(lambda: self._run(key, work))
        return TriggerResponse(key.trigger_id)

    def result(self, kind: str, job_id: str, trigger_id: str) -> OperationResult[msgspec.Struct]:
        """Return how far an operation is.

        Raises:
            Refusal: there is none of this id, or its outcome is no longer known.
        """
        key = OperationKey(kind, job_id, trigger_id.lower())
        with self._lock:
            self._forget_old()
            if key in self._under_way:
                return OperationResult(Status("IN_PROGRESS"), None)
            outcome = self._outcomes.get(key)
        if outcome is None:
            on_job = f" for job {job_id}" if job_id else ""
            raise Refusal(404, f"There is no {kind} operation with triggerId={key.trigger_id}{on_job}.")
        return OperationResult(Status("COMPLETED"), outcome.value)

    def _run(self, key: OperationKey, work: Callable[[str], msgspec.Struct]) -> None:
        value: msgspec.Struct
        try:
            value = work(key.trigger_id)
        except Exception as error:  # whoever asks for the outcome has to learn of it, whatever it is
            message = str(error) if isinstance(error, RayflinkError) else described(error)
            log.info("operation failed", extra={"kind": key.kind, "job_id": key.job_id, "reason": message})
            value = Failed(failure_cause(type(error).__name__, message))
        with self._lock:
            self._under_way.discard(key)
            self._outcomes[key] = _Outcome(value, self._now_ms())
            self._forget_old()

    def _forget_old(self) -> None:
        limit_ms = self._now_ms() - KEEP_MS
        for key, outcome in list(self._outcomes.items()):  # in the order in which they ended
            if outcome.ended_ms >= limit_ms and len(self._outcomes) <= MOST_KEPT:
                break
            del self._outcomes[key]
