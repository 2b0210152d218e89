"""What stays of a job that has ended: one document, in the registry, in the archive and in memory."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from rayflink.actors.job.notes.job_archive import PACKED_FROM, DamagedArchive, JobArchive, is_packed
from rayflink.actors.job.notes.registry_notes import note_end
from rayflink.cluster.archives.archive_store import ArchiveStore
from rayflink.cluster.dispatcher.ended_jobs import EndedJobs
from rayflink.cluster.dispatcher.job_ends import JobEnds
from rayflink.cluster.jobs.cluster_job import archive_of
from rayflink.cluster.registry.job_registry import JobRegistry
from rayflink.cluster.rest.job_lookup import JobLookup
from rayflink.serving.json_requests import JsonRequest, Refusal
from rayflink.state.storage.memory_storage import MemoryStorage
from rayflink.state.storage.storage import StorageError

from .test_archives import EndedJob
from .test_dispatcher import JOB, Archived, FakeRunner, begun, status, submission


class Folder(MemoryStorage):
    """The folder of one job in a storage."""

    def __init__(self, storage: MemoryStorage, job_id: str) -> None:
        super().__init__(storage.url)
        self._above, self._job_id = storage, job_id

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return self._above.put_if_absent(f"jobs/{self._job_id}/{path}", data)


def ends_of(storage: MemoryStorage, most_bytes: int = 50 << 20) -> JobEnds:
    return JobEnds(JobRegistry(storage), EndedJobs(1e12, 10_000), None, most_bytes)


@pytest.mark.parametrize("width", [2, 2_000])
def test_the_note_of_an_end_and_the_archive_of_a_job_are_the_same_bytes(width: int) -> None:
    registry, folder = MemoryStorage("registry"), MemoryStorage("archives")
    job = EndedJob(1, 1_000, width=width)
    note_end(Folder(registry, job.jid), archive_of(job))
    noted = registry.read(f"jobs/{job.jid}/ended")
    archive = JobRegistry(registry).ended(job.jid)
    assert archive is not None and archive.status() == job.status()
    ArchiveStore(folder).store(archive)
    [name] = folder.list()
    assert folder.read(name) == noted
    assert is_packed(noted) == (width == 2_000) and len(noted) < PACKED_FROM


def test_an_end_that_a_build_before_has_noted_is_read(storage: MemoryStorage) -> None:
    job = EndedJob(1, 1_000, "FAILED")
    before = {
        "status": {**job.status(), "metrics": {"ratio": float("nan")}}, "description": job.description(),
        "checkpoints": job.checkpoints(), "details": {"3": job.checkpoints(3)}, "accumulators": {"lines": 4},
    }  # fmt: skip
    storage.put_if_absent(f"jobs/{job.jid}/ended", json.dumps(before).encode())
    archive = JobRegistry(storage).ended(job.jid)
    assert archive is not None and (archive.state, archive.ended_ms) == ("FAILED", 1_000)
    assert archive.status()["vertices"] == job.status()["vertices"]
    assert archive.status()["metrics"] == {"ratio": None}, "which no JSON can have"
    assert (archive.checkpoints(), archive.checkpoints(3)) == (job.checkpoints(), job.checkpoints(3))
    assert (archive.description(), archive.accumulators()) == (job.description(), {"lines": 4})


@pytest.mark.parametrize("cut", [1, 40, 400, -1])
def test_a_document_that_is_cut_off_is_said_to_be_damaged(cut: int) -> None:
    for width in (2, 2_000):
        data = archive_of(EndedJob(1, 1_000, width=width)).encode()
        with pytest.raises(DamagedArchive, match="cannot be read"):
            JobArchive.decode(data[:cut], "ended")


def test_a_status_with_anything_in_it_becomes_a_document() -> None:
    odd = {**status(JOB, "FINISHED"), "name": "half \ud800", "metrics": {(1, 2): {3}}, "bytes": 2**70}
    archive = JobArchive.decode(JobArchive.of(odd).encode(), "ended")
    assert archive.status()["metrics"] == {"(1, 2)": "{3}"} and archive.head()["name"] == "half \\ud800"
    assert archive.status()["bytes"] == 2**70


def test_the_dispatcher_shows_the_end_that_the_coordinator_has_noted(storage: MemoryStorage) -> None:
    runner = FakeRunner()
    archived = Archived()
    dispatcher = begun(storage, runner, ended_s=1e12, archives=archived)  # type: ignore[arg-type]
    dispatcher.submit(submission().encode(), "me")
    noted = JobArchive.of(status(JOB, "FINISHED"), {"jid": JOB}, lambda number: None, {"rows": 7})
    note_end(Folder(storage, JOB), noted)
    runner.jobs[JOB] = status(JOB, "FINISHED")  # whose runner would say 5 rows
    dispatcher.look()
    assert dispatcher.view(JOB).accumulators() == {"rows": 7} == archived[0].accumulators()


def test_ended_jobs_are_read_from_the_registry_and_those_without_one_from_memory(storage: MemoryStorage) -> None:
    ends = ends_of(storage, most_bytes=0)
    for number in range(3):
        archive = archive_of(EndedJob(number, number))
        ends.keep(ends.note(archive) if number else archive, is_noted=number > 0)
    for number in range(3):
        view = ends.view(f"{number:032x}")
        assert view is not None and view.status() == EndedJob(number, number).status()
    storage.delete(f"jobs/{1:032x}/ended")
    assert ends.view(f"{1:032x}") is None, "it has just been forgotten"


def test_an_ended_job_that_cannot_be_read_now_is_to_be_asked_for_again(storage: MemoryStorage) -> None:
    ends = ends_of(storage, most_bytes=0)
    for number in range(2):
        ends.keep(ends.note(archive_of(EndedJob(number, number))))

    def fail(path: str, offset: int = 0, length: int | None = None) -> bytes:
        raise StorageError("read", "registry", "no answer")

    storage.read = fail  # type: ignore[method-assign]
    lookup = JobLookup(ends)  # type: ignore[arg-type]
    with pytest.raises(Refusal) as refusal:
        lookup.view(JsonRequest("/jobs", {"jobid": f"{0:032x}"}, {}))
    assert refusal.value.status == 503


class Read(MemoryStorage):
    """A storage that counts what is read."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.reads: list[str] = []

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        self.reads.append(path)
        return super().read(path, offset, length)


def test_a_dispatcher_reads_the_ends_that_it_lists_and_no_others() -> None:
    storage = Read("registry")
    registry = JobRegistry(storage)
    for number in range(20):
        registry.end(archive_of(EndedJob(number, 1_000 + number)))
    for number in (3, 4):  # the writer died before it noted the time, or is of a build that notes none
        storage.delete(f"jobs/{number:032x}/ended-at-{1_000 + number:013d}")
    successor = begun(storage, FakeRunner(), most_ended=5, ended_s=1e12)  # type: ignore[arg-type]
    assert len([path for path in storage.reads if path.endswith("/ended")]) == 5 + 2
    accepted = {path for path in storage.reads if path.endswith("/accepted")}
    assert accepted <= {f"jobs/{number:032x}/accepted" for number in (3, 4, *range(15, 20))}, "whose ends are read"
    successor.look()
    shown = sorted(job["timestamps"]["FINISHED"] for job in successor.statuses())
    assert shown == [1_015, 1_016, 1_017, 1_018, 1_019]
    assert len(registry.entries()) == 5
    storage.reads.clear()
    begun(storage, FakeRunner(), ended_s=1.0)  # type: ignore[arg-type]
    assert [path for path in storage.reads if path.startswith("jobs/")] == [], "all have been there for too long"


def test_the_time_of_an_end_that_lacks_it_is_noted_for_the_next_start() -> None:
    storage = Read("registry")
    JobRegistry(storage).end(archive_of(EndedJob(1, 1_000)))
    storage.delete(f"jobs/{1:032x}/ended-at-{1_000:013d}")
    begun(storage, FakeRunner(), ended_s=1e12)  # type: ignore[arg-type]
    assert [entry.ended_ms for entry in JobRegistry(storage).entries()] == [1_000]


@pytest.mark.parametrize("name", ["accepted", "ended"])
def test_an_interrupted_deletion_is_done_by_the_next_dispatcher(name: str) -> None:
    storage = MemoryStorage("registry")
    registry = JobRegistry(storage)
    registry.end(archive_of(EndedJob(1, 1_000)))
    if name == "accepted":
        storage.put_if_absent(f"jobs/{1:032x}/accepted", b"{}")
    begun(storage, FakeRunner(), ended_s=1.0).look()  # type: ignore[arg-type]
    assert registry.entries() == []


def test_an_end_that_cannot_be_read_at_the_start_is_read_later(storage: MemoryStorage) -> None:
    begun(storage, FakeRunner()).submit(submission().encode(), "me")  # type: ignore[arg-type]
    note_end(Folder(storage, JOB), JobArchive.of(status(JOB, "FINISHED")))
    begin, failing = storage.read, [True]

    def fail(path: str, offset: int = 0, length: int | None = None) -> bytes:
        if failing[0] and path.endswith("/ended"):
            raise StorageError("read", "registry", "no answer")
        return begin(path, offset, length)

    storage.read = fail  # type: ignore[method-assign]
    runner = FakeRunner()
    dispatcher = begun(storage, runner)  # type: ignore[arg-type]
    assert [job["state"] for job in dispatcher.statuses()] == ["INITIALIZING"]
    failing[0] = False
    dispatcher.look()
    assert [job["state"] for job in dispatcher.statuses()] == ["FINISHED"] and runner.starts == []


@pytest.mark.slow
def test_a_thousand_ended_jobs_take_little_memory(storage: MemoryStorage) -> None:
    ends, registry = ends_of(storage, most_bytes=1 << 20), JobRegistry(storage)
    for number in range(100):
        registry.end(wide_job(number))
    entries = registry.entries()
    tracemalloc.start()
    ends.restore(entries)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(ends.all()) == 100 and taken / 100 < 20_000, f"{taken / 100:.0f} bytes a job"


def wide_job(number: int, vertices: int = 10, subtasks: int = 4) -> JobArchive:
    """Return a job with as many metrics as jobs have."""
    metrics = {f"numRecordsOutPerSecond.operator.{name}": name * 1.5 for name in range(40)}
    each: list[dict[str, Any]] = [
        {"id": f"{vertex:032x}", "name": f"Map {vertex}", "parallelism": subtasks, "states": {"FINISHED": subtasks},
         "numRecordsIn": vertex, "numRecordsOut": vertex, "subtasks": [
             {"subtask": subtask, "attempt": 0, "state": "FINISHED", "host": "localhost", "metrics": dict(metrics),
              "timestamps": {state: 1_000 for state in ("CREATED", "RUNNING", "FINISHED")}}
             for subtask in range(subtasks)]}
        for vertex in range(vertices)
    ]  # fmt: skip
    return JobArchive.of({**status(f"{number:032x}", "FINISHED", number), "vertices": each})


@pytest.fixture
def storage() -> MemoryStorage:
    return MemoryStorage("registry")
