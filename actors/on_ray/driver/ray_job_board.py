"""The newest status of each running job in the control service (GCS) of its cluster, where others read it.

A process that joins the cluster takes seconds, and is one more job on Ray's dashboard. A client of the control service
is neither. It needs the same token as a process that joins, and what it reads is JSON.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ray
from ray._private.authentication.authentication_token_setup import maybe_enable_token_auth_if_token_available
from ray._raylet import GcsClient  # type: ignore[attr-defined]
from ray.exceptions import RayError

from rayflink.common.errors import ConfigError
from rayflink.common.text_output.logs import get_logger

from .ray_connection import admitted, answers, started_cluster

log = get_logger(__name__)

PUBLISH_EVERY_S = 1.0
"""Time between two publications of a job's status, also where nothing has changed."""
LOOK_EVERY_S = 0.2
"""Time between two checks whether the state has changed, which is published at once."""
MOST_WORK = 0.05
"""Part of the time that publishing may take; a status that takes longer is published less often."""
LATE_S = 5.0
"""An entry whose follower is late by so long may be that of a dead coordinator."""
CALL_TIMEOUT_S = 5
_PREFIX = b"status/"


class JobBoard:
    """The entries of the jobs of one namespace.

    Args:
        client: of the control service.
        namespace: Ray namespace of the jobs.
    """

    def __init__(self, client: Any, namespace: str) -> None:
        self._client, self._namespace = client, f"rayflink/{namespace}".encode()

    def publish(self, status: Mapping[str, Any], now_ms: int, next_ms: int) -> None:
        """Put the status of a job in place of the one before.

        Args:
            next_ms: when it will be published again at the latest.
        """
        entry = {"at_ms": now_ms, "next_ms": next_ms, "status": dict(status)}
        packed = zlib.compress(json.dumps(entry, default=str).encode(), 1)
        self._client.internal_kv_put(_PREFIX + status["jid"].encode(), packed, True, self._namespace, CALL_TIMEOUT_S)

    def remove(self, job_id: str) -> None:
        """Remove the entry of a job."""
        self._client.internal_kv_del(_PREFIX + job_id.encode(), False, self._namespace, CALL_TIMEOUT_S)

    def statuses(self, now_ms: int) -> list[dict[str, Any]] | None:
        """Return the status of each job, in order of id; None where one may be of a job whose coordinator is dead."""
        statuses = []
        for status, next_ms in self.entries():
            if now_ms - next_ms > LATE_S * 1000:
                return None
            statuses.append(status)
        return statuses

    def entries(self) -> Iterator[tuple[dict[str, Any], int]]:
        """Return the status of each job, in order of id, and when the next one is due, epoch milliseconds."""
        keys = self._client.internal_kv_keys(_PREFIX, self._namespace, CALL_TIMEOUT_S)
        for key in sorted(keys):
            packed = self._client.internal_kv_get(key, self._namespace, CALL_TIMEOUT_S)
            if packed is not None:  # its job has not ended meanwhile
                entry = json.loads(zlib.decompress(packed))
                yield dict(entry["status"]), int(entry["next_ms"])


class StatusPublisher:
    """Publishes the status of a job, in a thread of its own, until it is closed.

    Args:
        namespace: Ray namespace of the job.
        state: gives the state of the job; a change is published at once.
        status: gives the status.
    """

    def __init__(self, namespace: str, state: Callable[[], str], status: Callable[[], Mapping[str, Any]]) -> None:
        self._namespace, self._state, self._status = namespace, state, status
        self._board: JobBoard | None = None
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._publish()
        threading.Thread(target=self._run, name="status", daemon=True).start()

    def close(self, job_id: str) -> None:
        """Stop publishing, and remove the entry: the job has ended."""
        self._closed.set()
        with self._lock:
            self._try(lambda board: board.remove(job_id))

    def _run(self) -> None:
        while True:
            seen, begun = self._state(), time.monotonic()
            self._publish()
            pause_s = _pause_s(time.monotonic() - begun)
            while time.monotonic() - begun < pause_s and self._state() == seen:
                if self._closed.wait(LOOK_EVERY_S):
                    return

    def _publish(self) -> None:
        begun, now_ms = time.monotonic(), int(time.time() * 1000)
        status = self._status()
        pause_ms = int(_pause_s(2 * (time.monotonic() - begun)) * 1000)
        with self._lock:
            if not self._closed.is_set():
                self._try(lambda board: board.publish(status, now_ms, now_ms + pause_ms))

    def _try(self, call: Callable[[JobBoard], None]) -> None:
        """Publish once; a failure is retried with the next status, and clients ask the coordinator itself meanwhile."""
        try:
            if self._board is None:
                address = ray.get_runtime_context().gcs_address
                self._board = JobBoard(GcsClient(address=address), self._namespace)
            call(self._board)
        except (RayError, OSError, ValueError) as error:
            log.debug("the status could not be published: %s", error)


def _pause_s(work_s: float) -> float:
    return max(PUBLISH_EVERY_S, work_s / MOST_WORK)


def published_jobs(namespace: str) -> list[dict[str, Any]] | None:
    """Return the status of each running job without joining the cluster; None where it must be asked otherwise.

    Raises:
        ConfigError: the cluster refuses this process.
    """
    if ray.is_initialized():
        return None
    named = os.environ.get("RAY_ADDRESS", "")
    address = started_cluster() if named in ("", "auto") else named
    if address is None or named == "local" or "://" in address or not answers(address):
        return None
    logger = logging.getLogger("ray")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        if named in ("", "auto"):  # as `ray.init` does there
            maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
        if not admitted(address):
            return None
        return JobBoard(GcsClient(address=address), namespace).statuses(int(time.time() * 1000))
    except ConfigError:
        if named in ("", "auto"):  # joining says it as well, or starts what is missing
            return None
        raise
    except (RayError, OSError, ValueError, zlib.error) as error:
        log.debug("the statuses of jobs could not be read: %s", error)
        return None
    finally:
        logger.setLevel(before)


__all__ = ["JobBoard", "StatusPublisher", "published_jobs"]
