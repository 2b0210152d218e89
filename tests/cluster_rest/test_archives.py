"""Archives: all of a job stays, lists are bounded, damaged files are counted, what expires is deleted."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.actors.job.notes.job_archive import DamagedArchive, JobArchive
from rayflink.cluster.archives.archive_store import ArchiveFile, ArchiveStore
from rayflink.cluster.archives.archive_writer import ArchiveWriter
from rayflink.cluster.archives.archived_jobs import ArchivedJobs, ArchiveRetention
from rayflink.cluster.jobs.cluster_job import JobHasEnded, JobView, UnknownJob
from rayflink.state.clock import ManualClock
from rayflink.state.storage.local_storage import LocalStorage
from rayflink.state.storage.memory_storage import MemoryStorage
from rayflink.state.storage.storage import StorageError

DAY_MS = 86_400_000
ALL = ArchiveRetention()


class EndedJob:
    """A job as its runner shows it."""

    def __init__(self, number: int, end_ms: int, state: str = "FINISHED", width: int = 2) -> None:
        self.jid, self._end_ms, self._state, self._width = f"{number:032x}", end_ms, state, width

    def status(self) -> dict[str, Any]:
        subtasks = [{"subtask": number, "metrics": {"numRecordsIn": number}} for number in range(self._width)]
        vertex = {"id": "a" * 32, "name": "Map", "parallelism": self._width, "states": {"FINISHED": self._width},
                  "numRecordsIn": 7, "subtasks": subtasks}  # fmt: skip
        return {
            "jid": self.jid, "name": f"job {self.jid[-2:]}", "state": self._state, "vertices": [vertex],
            "timestamps": {"CREATED": self._end_ms - 5, self._state: self._end_ms},
            "exceptions": [{"text": "no room"}], "metrics": {"numRestarts": 1},
        }  # fmt: skip

    def description(self) -> dict[str, Any]:
        return {"jid": self.jid, "vertices": []}

    def checkpoints(self, checkpoint_id: int | None = None) -> dict[str, Any] | None:
        if checkpoint_id is None:
            return {"history": [{"id": 3}, {"id": 2}], "latest": {"savepoint": {"id": 1}, "failed": None}}
        return {"id": checkpoint_id, "tasks": {}} if checkpoint_id != 2 else None

    def accumulators(self) -> dict[str, Any]:
        return {"lines": 4, "of a kind of its own": 1j}


def jobs_of(storage: Any, retention: ArchiveRetention = ALL, now_ms: int = 0) -> ArchivedJobs:
    jobs = ArchivedJobs([ArchiveStore(storage)], ManualClock(now_ms), retention)
    jobs.refresh()
    return jobs


@pytest.mark.parametrize("width", [2, 2_000])
def test_everything_that_was_known_of_a_job_is_read_from_its_archive(width, tmp_path):
    job = EndedJob(1, 1_000, "FAILED", width)
    ArchiveStore(LocalStorage(tmp_path)).store(job)
    [name] = LocalStorage(tmp_path).list()
    assert name == f"0000000001000-{job.jid}.json" + (".zst" if width > 2 else "")
    archived = jobs_of(LocalStorage(tmp_path))
    view = archived.view(job.jid)
    assert (view.status(), view.description(), view.checkpoints()) == (
        job.status(), job.description(), job.checkpoints(),
    )  # fmt: skip
    assert [view.checkpoints(number) for number in (1, 2, 3, 4)] == [job.checkpoints(1), None, job.checkpoints(3), None]
    assert view.accumulators() == {"lines": 4, "of a kind of its own": "1j"}
    with pytest.raises(JobHasEnded, match="FAILED"):
        archived.running(job.jid)
    with pytest.raises(UnknownJob):
        archived.view("f" * 32)


def test_a_list_has_no_subtasks_and_the_job_that_began_last_first():
    storage = MemoryStorage()
    for number in (2, 3, 1):
        ArchiveStore(storage).store(EndedJob(number, number * 100))
    statuses = jobs_of(storage).statuses()
    assert [status["timestamps"]["FINISHED"] for status in statuses] == [300, 200, 100]
    [vertex] = statuses[0]["vertices"]
    assert (vertex["subtasks"], vertex["numRecordsIn"], statuses[0]["exceptions"]) == ([], 7, [{"text": "no room"}])
    assert statuses[0]["metrics"] == {"numRestarts": 1}


def test_an_archive_that_is_written_twice_stays_as_it_was():
    storage = MemoryStorage()
    store = ArchiveStore(storage)
    first = store.store(EndedJob(1, 100, width=2))
    assert store.store(EndedJob(1, 100, width=3)) == first
    assert jobs_of(storage).view(f"{1:032x}").status()["vertices"][0]["parallelism"] == 2


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"format": 1}', b"\xff\xfe", b'{"format": 9, "jid": "a", "head": {}}']
)
def test_a_damaged_file_is_counted_and_the_others_are_listed(damage):
    storage = MemoryStorage()
    ArchiveStore(storage).store(EndedJob(1, 100))
    storage.put_if_absent(f"0000000000200-{2:032x}.json", damage)
    storage.put_if_absent(f"0000000000300-{3:032x}.json.zst", b"no zstd " + damage)
    storage.put_if_absent("notes.txt", damage)
    jobs = jobs_of(storage)
    assert [status["jid"] for status in jobs.statuses()] == [f"{1:032x}"]
    jobs.refresh()
    assert (jobs.figures()["archives"], jobs.figures()["archivesDamaged"]) == (1, 2)
    with pytest.raises(UnknownJob):
        jobs.view(f"{2:032x}")
    with pytest.raises(DamagedArchive, match=r"a\.json cannot be read.*delete the file"):
        JobArchive.decode(damage, "a.json")


def test_what_expires_is_deleted_and_what_was_deleted_is_forgotten():
    storage = MemoryStorage()
    store = ArchiveStore(storage)
    for number in range(1, 6):
        store.store(EndedJob(number, number * DAY_MS))
    hidden = jobs_of(storage, ArchiveRetention(newest=3), 6 * DAY_MS)
    assert len(hidden.statuses()) == 3 and len(store.files()) == 5
    deleting = jobs_of(storage, ArchiveRetention(newest=4, age_ms=3 * DAY_MS, deletes=True), 6 * DAY_MS)
    assert [file.ended_ms // DAY_MS for file in store.files()] == [5, 4, 3] and len(deleting.statuses()) == 3
    store.delete(store.files()[0].name)
    deleting.refresh()
    assert len(deleting.statuses()) == 2
    with pytest.raises(UnknownJob):
        deleting.view(f"{5:032x}")


@given(st.lists(st.integers(0, 99), unique=True), st.none() | st.integers(0, 9), st.none() | st.integers(0, 99))
def test_no_archive_expires_that_is_newer_than_one_that_stays(ends, newest, age_ms):
    files = sorted((ArchiveFile(end, "a", "n") for end in ends), reverse=True)
    expired = ArchiveRetention(newest, age_ms).expired(files, 99)
    assert files == [file for file in files if file not in expired] + expired
    assert newest is None or len(files) - len(expired) <= newest


def test_a_folder_that_cannot_be_reached_keeps_its_jobs_in_the_list():
    class Away(MemoryStorage):
        is_away = False

        def list(self, folder: str = "") -> list[str]:
            if self.is_away:
                raise StorageError("list", self.url, "no answer")
            return super().list(folder)

    storage = Away()
    ArchiveStore(storage).store(EndedJob(1, 100))
    jobs = jobs_of(storage)
    storage.is_away = True
    jobs.refresh()
    assert len(jobs.statuses()) == 1 and jobs.figures()["foldersUnreachable"] == 1
    storage.is_away = False
    jobs.refresh()
    assert jobs.figures()["foldersUnreachable"] == 0


def test_archives_that_were_read_last_are_bounded_in_bytes():
    storage = MemoryStorage()
    jobs = ArchivedJobs([ArchiveStore(storage)], ManualClock(), most_bytes=20_000)
    for number in range(30):
        ArchiveStore(storage).store(EndedJob(number, number, width=50))
    jobs.refresh()
    for number in range(30):
        jobs.view(f"{number:032x}")
    assert jobs.figures()["bytesInMemory"] < 20_000 + 30 * 400


@pytest.mark.slow
def test_ten_thousand_archives_take_little_memory(tmp_path):
    code = """
import resource, sys
from rayflink.actors.job.notes.job_archive import DamagedArchive, JobArchive
from rayflink.cluster.archives.archive_store import ArchiveStore
from rayflink.cluster.archives.archived_jobs import ArchivedJobs
from rayflink.state.clock import ManualClock
from rayflink.state.storage.memory_storage import MemoryStorage
from tests.cluster_rest.test_archives import EndedJob
document = None
class Folder(MemoryStorage):
    def list(self, folder=""):
        return [f"{n:013d}-{n:032x}.json" for n in range(12_000)]
    def read(self, path, offset=0, length=None):
        return document
storage = MemoryStorage()
ArchiveStore(storage).store(EndedJob(1, 1, width=100))
document = storage.read(storage.list()[0])
jobs = ArchivedJobs([ArchiveStore(Folder())], ManualClock())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
jobs.refresh()
for n in range(0, 12_000, 40):
    jobs.view(f"{n:032x}")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, len(jobs.statuses()))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    kilobytes, listed = map(int, done.stdout.split())
    assert listed == 10_000 and kilobytes < 60_000


def add(writer: ArchiveWriter, job: EndedJob) -> None:
    writer.add(job.jid, lambda: job)


class Unreliable(MemoryStorage):
    """A storage that can be away."""

    is_away = True

    def put_if_absent(self, path: str, data: bytes) -> bool:
        if self.is_away:
            raise StorageError("write", self.url, "no answer")
        return super().put_if_absent(path, data)


def test_a_storage_that_is_away_is_tried_again_with_longer_pauses():
    storage, clock = Unreliable(), ManualClock()
    writer = ArchiveWriter(ArchiveStore(storage), clock)
    assert writer.work() is None
    for number in range(3):
        add(writer, EndedJob(number, number))
    pauses = []
    for _ in range(9):
        pauses.append(writer.work())
        assert writer.work() == pauses[-1]
        clock.advance(int(pauses[-1] * 1000))
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60] and writer.failures == 9
    storage.is_away = False
    assert [writer.work() for _ in range(4)] == [0.0, 0.0, None, None]
    assert (writer.written, writer.lost, len(ArchiveStore(storage).files())) == (3, 0, 3)


def test_jobs_that_wait_for_an_archive_are_bounded_and_those_that_get_none_counted():
    storage = Unreliable()
    writer = ArchiveWriter(ArchiveStore(storage), ManualClock(), most_pending=100)
    for number in range(105):
        add(writer, EndedJob(number, number))
    assert writer.lost == 5 and not writer.is_pending(f"{4:032x}") and writer.is_pending(f"{5:032x}")
    storage.is_away = False
    writer.start()
    writer.close()
    assert writer.written == 100


def test_a_job_that_cannot_be_read_holds_up_no_other_archive():
    def fail() -> JobView:
        raise StorageError("read", "registry", "no answer")

    store, clock = ArchiveStore(MemoryStorage()), ManualClock()
    writer = ArchiveWriter(store, clock)
    writer.add("a" * 32, fail)
    writer.add("b" * 32, lambda: None)
    add(writer, EndedJob(1, 100))
    clock.advance(int((writer.work() or 0) * 1000))
    assert (writer.work(), writer.work()) == (0.0, 0.0)
    assert (writer.written, writer.lost, writer.is_pending("a" * 32)) == (1, 1, True)
    assert writer.present() == {f"{1:032x}"}
