"""The places of jobs in processes that coordinators share: entries in the control service (GCS) of the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ray._private.worker import global_worker

from rayflink.common.user_code.value_bytes import from_bytes, to_bytes

if TYPE_CHECKING:
    from ...job.submission import Stored  # slow, and each slot would load it

CALL_TIMEOUT_S = 5
_PREFIX = b"place/"


@dataclass(frozen=True, slots=True)
class JobPlace:
    """The place of a job, which one dispatcher has claimed for one start.

    Args:
        job_id: 32 hex digits.
        token: of the start, JOB_ID/NUMBER; the coordinator of another start has another one.
        host: name of the process, an actor.
        stored: where the job stores its checkpoints.
    """

    job_id: str
    token: str
    host: str
    stored: Stored


class JobPlaces:
    """The places of the jobs of one namespace.

    Args:
        client: of the control service.
        namespace: Ray namespace of the jobs.
    """

    def __init__(self, client: Any, namespace: str) -> None:
        self._client, self._namespace = client, f"rayflink/{namespace}".encode()

    @classmethod
    def of_cluster(cls, namespace: str) -> JobPlaces:
        """Return the places on the cluster that this process has joined."""
        return cls(global_worker.gcs_client, namespace)  # type: ignore[attr-defined]

    def claim(self, place: JobPlace) -> bool:
        """Note the place of a job that has none, and return whether it had none."""
        return bool(self._client.internal_kv_put(_key(place.job_id), to_bytes(place), False, *self._ends))

    def find(self, job_id: str) -> JobPlace | None:
        """Return the place of a job; None: it has none."""
        packed = self._client.internal_kv_get(_key(job_id), *self._ends)
        return None if packed is None else _read(packed)

    def free(self, token: str) -> None:
        """Remove the place of a job, unless a later start has taken another one.

        Args:
            token: of the start.
        """
        job_id = token.partition("/")[0]
        if (present := self.find(job_id)) is not None and present.token == token:
            self._client.internal_kv_del(_key(job_id), False, *self._ends)

    def all(self) -> Iterator[JobPlace]:
        """Return the place of each job that shares a process, in order of id."""
        keys = self._client.internal_kv_keys(_PREFIX, *self._ends)
        present = self._client.internal_kv_multi_get(keys, *self._ends) if keys else {}
        for _, packed in sorted(present.items()):
            yield _read(packed)

    @property
    def _ends(self) -> tuple[bytes, int]:
        return self._namespace, CALL_TIMEOUT_S


def _key(job_id: str) -> bytes:
    return _PREFIX + job_id.encode()


def _read(packed: bytes) -> JobPlace:
    place: JobPlace = from_bytes(packed)
    return place


__all__ = ["JobPlace", "JobPlaces"]
