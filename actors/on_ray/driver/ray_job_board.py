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
from dataclasses import dataclass
from typing import Any

import msgspec
import ray
from ray._private.authentication.authentication_token_setup import maybe_enable_token_auth_if_token_available
from ray._private.worker import global_worker
from ray._raylet import GcsClient  # type: ignore[attr-defined]
from ray.exceptions import RayError

from rayflink.common.errors import ConfigError
from rayflink.common.text_output.logs import get_logger

from .ray_connection import admitted, answers, started_cluster

log = get_logger(__name__)

PUBLISH_EVERY_S = 2.0
"""Time between two publications of a job's status; one whose state has changed is published sooner."""
LEAST_PAUSE_S = 0.2
"""Time between two publications of a job whose state changes all the time."""
MOST_WORK = 0.05
"""Part of the time that publishing may take; a status that takes longer is published less often."""
LATE_S = 4.0
"""An entry whose follower is late by so long may be that of a dead coordinator."""
CALL_TIMEOUT_S = 5
_PREFIX = b"status/"


@dataclass(frozen=True, slots=True)
class JobEntry:
    """An entry of a job: what it has published of itself.

    Args:
        status: of the job.
        checkpoints: their statistics; None: none are known yet.
        next_ms: when the next entry is due, epoch milliseconds.
    """

    status: dict[str, Any]
    checkpoints: dict[str, Any] | None
    next_ms: int


class JobBoard:
    """The entries of the jobs of one namespace; one that is read again is decoded again only where it has changed.

    Args:
        client: of the control service.
        namespace: Ray namespace of the jobs.
    """

    def __init__(self, client: Any, namespace: str) -> None:
        self._client, self._namespace = client, f"rayflink/{namespace}".encode()
        self._decoded: dict[bytes, tuple[bytes, JobEntry]] = {}

    @classmethod
    def of_cluster(cls, namespace: str) -> JobBoard:
        """Return the entries on the cluster that this process has joined, by the client that it has for that."""
        return cls(global_worker.gcs_client, namespace)  # type: ignore[attr-defined]

    def publish(
        self, status: Mapping[str, Any], now_ms: int, next_ms: int, checkpoints: Mapping[str, Any] | None = None
    ) -> None:
        """Put the status of a job in place of the one before.

        Args:
            next_ms: when it will be published again at the latest.
            checkpoints: their statistics.
        """
        entry = {"at_ms": now_ms, "next_ms": next_ms, "status": dict(status), "checkpoints": checkpoints}
        packed = zlib.compress(json.dumps(entry, default=str).encode(), 1)
        self._client.internal_kv_put(_PREFIX + status["jid"].encode(), packed, True, self._namespace, CALL_TIMEOUT_S)

    def remove(self, job_id: str) -> None:
        """Remove the entry of a job."""
        self._client.internal_kv_del(_PREFIX + job_id.encode(), False, self._namespace, CALL_TIMEOUT_S)

    def statuses(self, now_ms: int) -> list[dict[str, Any]] | None:
        """Return the status of each job, in order of id; None where one may be of a job whose coordinator is dead."""
        statuses = []
        for entry in self.entries():
            if now_ms - entry.next_ms > LATE_S * 1000:
                return None
            statuses.append(entry.status)
        return statuses

    def entries(self) -> Iterator[JobEntry]:
        """Return the entry of each job, in order of id."""
        keys = self._client.internal_kv_keys(_PREFIX, self._namespace, CALL_TIMEOUT_S)
        present = self._client.internal_kv_multi_get(keys, self._namespace, CALL_TIMEOUT_S) if keys else {}
        before, self._decoded = self._decoded, {}
        for key, packed in sorted(present.items()):
            known = before.get(key)
            entry = known[1] if known is not None and known[0] == packed else _decode(packed)
            self._decoded[key] = packed, entry
            yield entry


def _decode(packed: bytes) -> JobEntry:
    data = zlib.decompress(packed)
    try:
        entry = msgspec.json.decode(data)
    except msgspec.DecodeError:  # a metric is NaN or infinite, for which JSON has no word
        entry = json.loads(data)
    return JobEntry(dict(entry["status"]), entry.get("checkpoints"), int(entry["next_ms"]))


class StatusPublisher:
    """Publishes the status of a job, in a thread of its own, until it is closed.

    Args:
        namespace: Ray namespace of the job.
        status: gives the status.
        checkpoints: gives the statistics of its checkpoints.
    """

    def __init__(
        self,
        namespace: str,
        status: Callable[[], Mapping[str, Any]],
        checkpoints: Callable[[], Mapping[str, Any] | None],
    ) -> None:
        self._namespace, self._status, self._checkpoints = namespace, status, checkpoints
        self._board: JobBoard | None = None
        self._closed, self._changed = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._publish()
        threading.Thread(target=self._run, name="status", daemon=True).start()

    def changed(self) -> None:
        """Publish soon: the state of the job has changed, or that of a checkpoint."""
        self._changed.set()

    def close(self, job_id: str) -> None:
        """Stop publishing, and remove the entry: the job has ended."""
        self._closed.set()
        self._changed.set()
        with self._lock:
            self._try(lambda board: board.remove(job_id))

    def _run(self) -> None:
        least_s = LEAST_PAUSE_S
        while not self._closed.wait(least_s):
            self._changed.clear()
            begun = time.monotonic()
            self._publish()
            work_s = time.monotonic() - begun
            least_s = max(LEAST_PAUSE_S, work_s / MOST_WORK)
            self._changed.wait(max(_pause_s(work_s) - least_s, 0.0))

    def _publish(self) -> None:
        begun, now_ms = time.monotonic(), int(time.time() * 1000)
        status, checkpoints = self._status(), self._checkpoints()
        pause_ms = int(_pause_s(2 * (time.monotonic() - begun)) * 1000)
        with self._lock:
            if not self._closed.is_set():
                self._try(lambda board: board.publish(status, now_ms, now_ms + pause_ms, checkpoints))

    def _try(self, call: Callable[[JobBoard], None]) -> None:
        """Publish once; a failure is retried with the next status, and clients ask the coordinator itself meanwhile."""
        try:
            if self._board is None:
                self._board = JobBoard.of_cluster(self._namespace)
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


__all__ = ["JobBoard", "JobEntry", "StatusPublisher", "published_jobs"]
