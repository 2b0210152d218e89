"""The jobs that a cluster has accepted, in storage: none is forgotten, none begins twice."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from rayflink.actors.job.notes.job_archive import DamagedArchive, JobArchive
from rayflink.actors.job.notes.registry_notes import ENDED, end_time, newest_start, note_end, note_end_time, start_name
from rayflink.common.errors import RayflinkError, described
from rayflink.common.job_status import JobStatus
from rayflink.common.text_output.logs import get_logger
from rayflink.state.errors import DamagedFileError
from rayflink.state.storage.storage import MissingFileError, Storage, put_own

__all__ = ["AcceptedJob", "DuplicateJob", "JobRegistry", "RegistryEntry"]

log = get_logger(__name__)
T = TypeVar("T")
FOLDER = "jobs"
ACCEPTED = "accepted"
CANCELLING = "cancelling"
"""The file by which a job that is to be cancelled is not started again."""
READ_AT_A_TIME = 16
_ID = re.compile(r"[0-9a-f]{32}")


class DuplicateJob(RayflinkError):
    """A job with this id, and another program, was submitted before.

    Args:
        job_id: of both.
    """

    def __init__(self, job_id: str) -> None:
        super().__init__(job_id)
        self.job_id = job_id

    def __str__(self) -> str:
        remedy = "submit another program with an id of its own"
        return f"a job with the id {self.job_id} has already been submitted; {remedy}"


@dataclass(frozen=True, slots=True)
class AcceptedJob:
    """An entry of the registry.

    Args:
        job_id: 32 hex digits.
        name: of the job.
        accepted_ms: epoch milliseconds.
        by: who submitted it.
        digest: of the submission, so that one that is repeated is recognized.
        restarted_from: id of the job of which it is a new start; "": of none.
    """

    job_id: str
    name: str
    accepted_ms: int
    by: str
    digest: str
    restarted_from: str = ""


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    """A job of the registry, as far as the names of its files say.

    Args:
        job_id: 32 hex digits.
        is_accepted: whether it was accepted, and is not being deleted.
        is_ended: whether its end is noted.
        ended_ms: when it ended, epoch milliseconds; None: that is in its end alone.
        is_cancelling: whether its cancellation was asked for.
    """

    job_id: str
    is_accepted: bool
    is_ended: bool
    ended_ms: int | None
    is_cancelling: bool = False

    @property
    def is_due(self) -> bool:
        """Return whether the job has to run."""
        return self.is_accepted and not self.is_ended


class JobRegistry:
    """The entries of jobs below one address.

    `submission`, then `accepted`: a job is accepted when the latter exists. `ended` says that it must not be started
    again. Each file is written once.

    Args:
        storage: of the cluster.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.damaged: dict[str, str] = {}
        """Job -> what is wrong with its entry."""

    @property
    def url(self) -> str:
        """Return the address."""
        return self._storage.url

    def accept(self, job: AcceptedJob, submission: bytes) -> bool:
        """Note a job; False where the same submission was accepted before.

        Raises:
            DuplicateJob: another one has this id.
            StorageError: it could not be written, and so the job is not accepted.
        """
        before = self._read(f"{job.job_id}/{ACCEPTED}")
        if before is None:
            put_own(self._storage, _path(job.job_id, f"submission-{job.digest}"), submission)
            if put_own(self._storage, _path(job.job_id, ACCEPTED), _encoded(asdict(job))):
                return True
            before = self._read(f"{job.job_id}/{ACCEPTED}") or {}
        if before.get("digest") != job.digest:
            raise DuplicateJob(job.job_id)
        return False

    def entries(self) -> list[RegistryEntry]:
        """Return all jobs that are not forgotten, whether they have ended or not; none of their files is read.

        Raises:
            StorageError: they cannot be listed.
        """
        files: dict[str, dict[str, int | None]] = {}
        for path in self._storage.list(FOLDER):
            folder, _, name = path.removeprefix(f"{FOLDER}/").partition("/")
            if _ID.fullmatch(folder):
                files.setdefault(folder, {})[name] = end_time(name)
        return [
            RegistryEntry(
                job_id, ACCEPTED in names, ENDED in names, max(filter(None, names.values()), default=None),
                CANCELLING in names,
            )
            for job_id, names in files.items()
        ]

    def accepted(self, job_ids: Iterable[str]) -> list[AcceptedJob]:
        """Return those of some jobs that were accepted; the first accepted first.

        An entry that is damaged keeps no other job from being read.

        Raises:
            StorageError: one cannot be read.
        """
        jobs = self.each(self._accepted_job, job_ids)
        return sorted((job for job in jobs if job is not None), key=lambda job: (job.accepted_ms, job.job_id))

    def _accepted_job(self, job_id: str) -> AcceptedJob | None:
        try:
            entry = self._read(f"{job_id}/{ACCEPTED}")
            return None if entry is None else _accepted(job_id, entry)
        except (DamagedFileError, TypeError, ValueError) as error:
            self.damaged[job_id] = described(error)
            text = "the entry of a job is damaged, and the job is left out; submit its program again: %s"
            log.error(text, described(error), extra={"job": job_id})
            return None

    def each(self, read: Callable[[str], T], job_ids: Iterable[str]) -> list[T]:
        """Return what a function returns for each of some jobs; several calls wait for the storage at a time."""
        chosen = list(job_ids)
        if len(chosen) < 2:
            return [read(job_id) for job_id in chosen]
        with ThreadPoolExecutor(min(READ_AT_A_TIME, len(chosen)), "registry") as threads:
            return list(threads.map(read, chosen))

    def entry(self, job_id: str) -> AcceptedJob | None:
        """Return an accepted job; None: there is none, or it is forgotten.

        Raises:
            StorageError, DamagedFileError: that cannot be read.
        """
        entry = self._read(f"{job_id}/accepted")
        try:
            return None if entry is None else _accepted(job_id, entry)
        except (TypeError, ValueError) as error:
            where = f"{self.url}/{FOLDER}/{job_id}/accepted"
            raise DamagedFileError(where, "the entry of a job", str(error), "an entry of this version") from error

    def submission(self, job: AcceptedJob) -> bytes:
        """Return the submission of a job.

        Raises:
            StorageError: it cannot be read.
        """
        return self._storage.read(_path(job.job_id, f"submission-{job.digest}"))

    def begin(self, job_id: str) -> int:
        """Note that a job is about to be started, and return how often it was; processes of earlier starts end then.

        Raises:
            StorageError: it could not be written, and the job must not be started.
        """
        while True:
            number = newest_start(self._storage.list(f"{FOLDER}/{job_id}")) + 1
            if self._storage.put_if_absent(_path(job_id, start_name(number)), b""):
                return number

    def cancel(self, job_id: str) -> None:
        """Note that a job is to be cancelled, whichever dispatcher finds it.

        Raises:
            StorageError: it could not be written.
        """
        put_own(self._storage, _path(job_id, CANCELLING), b"")

    def starts(self, job_id: str) -> int:
        """Return how often a job was started. Raises: `StorageError`: it cannot be read."""
        return newest_start(self._storage.list(f"{FOLDER}/{job_id}"))

    def folder(self, job_id: str) -> str:
        """Return the address of the folder of a job, in which its end is noted."""
        return f"{self.url.rstrip('/')}/{FOLDER}/{job_id}"

    def end(self, archive: JobArchive) -> bool:
        """Note that a job has ended and must not be started again; False where an end was noted before, which stays.

        Raises:
            StorageError: it could not be written.
        """
        return note_end(self._storage, archive, _path(archive.jid, ""))

    def note_end_time(self, archive: JobArchive) -> None:
        """Note the time of an end that was noted without it."""
        note_end_time(self._storage, archive.ended_ms, _path(archive.jid, ""))

    def ended(self, job_id: str) -> JobArchive | None:
        """Return a job as it ended; None where it has not.

        Raises:
            StorageError, DamagedFileError: that cannot be read.
        """
        path, where = _path(job_id, ENDED), f"{self.url}/{FOLDER}/{job_id}/{ENDED}"
        try:
            archive = JobArchive.decode(self._storage.read(path), where)
        except MissingFileError:
            return None
        except DamagedArchive as error:
            raise DamagedFileError(where, "the end of a job", error.problem, "the archive of a job") from error
        if archive.jid != job_id or not _is_over(archive.state):
            actual = f"job {archive.jid:.40} in state {archive.state:.40}"
            raise DamagedFileError(where, "the end of a job", actual, f"job {job_id} in a state in which jobs end")
        return archive

    def forget(self, job_id: str) -> None:
        """Delete what is stored of a job that has ended; its end last, so that it is never taken for one that runs."""
        paths = self._storage.list(f"{FOLDER}/{job_id}")
        for path in sorted(paths, key=lambda path: (path.endswith(f"/{ENDED}"), not path.endswith(f"/{ACCEPTED}"))):
            self._storage.delete(path)

    def _read(self, name: str) -> dict[str, Any] | None:
        path = f"{FOLDER}/{name}"
        try:
            data = self._storage.read(path)
        except MissingFileError:
            return None
        try:
            entry = json.loads(data)
            if not isinstance(entry, dict):
                raise ValueError(f"a JSON {type(entry).__name__}")
            return entry
        except (ValueError, RecursionError) as error:
            raise DamagedFileError(f"{self.url}/{path}", "its bytes", str(error), "JSON of a job") from error


def _accepted(job_id: str, entry: dict[str, Any]) -> AcceptedJob:
    """Return an entry. Raises: `ValueError`, `TypeError`: it is something else."""
    job = AcceptedJob(**entry)
    if job.job_id != job_id or not isinstance(job.accepted_ms, int) or not isinstance(job.digest, str):
        raise ValueError(f"found an entry of {str(job.job_id):.40}, wanted one of {job_id}")
    return job


def _is_over(state: str) -> bool:
    try:
        return JobStatus(state).is_terminal
    except ValueError:
        return False


def _encoded(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry).encode()


def _path(job_id: str, name: str) -> str:
    return f"{FOLDER}/{job_id}/{name}"
