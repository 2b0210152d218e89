"""The history of a job: its bytes, its files, and the thread that writes them."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.actors.job.history.history_files import KEPT_FILES, read_history, store_history
from rayflink.actors.job.history.history_writer import HistoryWriter
from rayflink.actors.job.history.job_history import (
    MOST_BYTES,
    MOST_TEXT,
    JobHistory,
    decode_history,
    encode_history,
)
from rayflink.actors.messages.executions import ExceptionEntry, FailurePlace
from rayflink.actors.messages.messages import TaskFailure
from rayflink.state.storage.memory_storage import MemoryStorage
from rayflink.state.storage.storage import StorageError
from tests.cluster.watching import eventually

PLACE = FailurePlace("0a" * 16, 1, 3, "10.0.0.7", 4711, "1700000000000")
OUTAGE = TaskFailure("OSError", "no route", "Traceback ...", "Map", "job.py:3", "'x'", "op", is_outage=True)
FAILED = ExceptionEntry(7, "Map (2/3)", OUTAGE, PLACE, is_concurrent=True)
RESCALES = {
    "counts": {"COMPLETED": 2},
    "history": [
        {"request_id": "a", "began_ms": 1, "before": {"v": 1}, "after": {"v": 2}, "cancelled_ms": 2, "ended_ms": 3,
         "state": "COMPLETED", "reason": "SUCCEEDED"},
    ],
}  # fmt: skip
DECISIONS = {"decisions": [], "pauses_ms": [700], "scalings": 1, "vertices": {}}
HISTORY = JobHistory(3, 5, (FAILED,), DECISIONS, RESCALES)


def test_everything_comes_back() -> None:
    assert decode_history(encode_history(HISTORY)) == HISTORY


@given(st.integers(0, len(encode_history(HISTORY)) - 1), st.integers(1, 255))
def test_a_byte_that_has_changed_is_noticed(place: int, change: int) -> None:
    data = bytearray(encode_history(HISTORY))
    data[place] ^= change
    try:
        assert decode_history(bytes(data)) == HISTORY  # a space more or less in its head
    except ValueError:
        pass


@given(st.integers(0, len(encode_history(HISTORY)) - 1))
def test_one_that_ends_too_early_is_noticed(length: int) -> None:
    with pytest.raises(ValueError):
        decode_history(encode_history(HISTORY)[:length])


@pytest.mark.parametrize("document", [[], {"exceptions": 3}, {"autoscaling": {"decisions": [{"no": 1}]}},
                                      {"rescales": {"history": [{}]}}, {"restarts": "many"}])  # fmt: skip
def test_what_the_next_coordinator_could_not_take_is_damaged(document: object) -> None:
    with pytest.raises(ValueError):
        decode_history(json.dumps(document).encode())


@pytest.mark.parametrize("length", [10, 100_000, 3_000_000])
def test_its_size_is_bounded_and_the_newest_stay(length: int) -> None:
    long = replace(OUTAGE, traceback="x" * length, record="é" * length, message="y" * length)
    failures = [replace(FAILED, timestamp_ms=number, failure=long) for number in range(16)]
    change = RESCALES["history"][0]
    many = {"counts": {}, "history": [change | {"began_ms": now, "before": {"v" * 1000: 1}} for now in range(4000)]}
    data = encode_history(JobHistory(3, 5, tuple(failures), DECISIONS, many))
    assert len(data) <= MOST_BYTES + 100
    read = decode_history(data)
    assert (read.restarts, read.attempt) == (3, 5)
    assert read.rescales["history"][-1]["began_ms"] == 3999
    assert read.exceptions[-1].timestamp_ms == 15 and read.exceptions[-1].place == PLACE


def test_a_history_of_an_earlier_version_is_read() -> None:
    """It had one line, failures without their places, and no changes of parallelism."""
    entry = {"timestamp_ms": 7, "task": "Map (1/2)", "failure": {"kind": "E", "message": "no", "traceback": ""}}
    storage = MemoryStorage()
    document = {"restarts": 3, "attempt": 5, "exceptions": [entry], "autoscaling": {}}
    storage.put_if_absent("job/past-000000012", json.dumps(document).encode())
    read = read_history(storage)
    assert read == JobHistory(3, 5, (ExceptionEntry(7, "Map (1/2)", TaskFailure("E", "no", "")),))
    assert store_history(storage, HISTORY, epoch=2)
    assert read_history(storage) == HISTORY


def test_the_newest_that_can_be_read_counts_and_the_damaged_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    storage = MemoryStorage()
    for restarts in range(1, 6):
        assert store_history(storage, JobHistory(restarts), epoch=1)
    paths = storage.list("job")
    assert len(paths) == KEPT_FILES
    storage.delete(paths[-1])
    storage.put_if_absent(paths[-1], b"half")
    assert read_history(storage).restarts == 4
    assert paths[-1] in caplog.text and "damaged" in caplog.text
    storage.delete(paths[0])
    assert read_history(storage) == JobHistory()  # the job goes on all the same


def test_a_coordinator_that_was_taken_over_from_stores_nothing_more() -> None:
    storage = MemoryStorage()
    assert store_history(storage, JobHistory(1), epoch=1)
    assert store_history(storage, JobHistory(2), epoch=2)
    before = storage.list("job")
    assert not store_history(storage, JobHistory(9), epoch=1)
    assert storage.list("job") == before and read_history(storage).restarts == 2


def test_the_latest_coordinator_counts_however_often_earlier_ones_wrote() -> None:
    storage = MemoryStorage()
    for restarts in range(1, 6):
        assert store_history(storage, JobHistory(restarts), epoch=1)
    assert store_history(storage, JobHistory(9), epoch=2)
    assert read_history(storage).restarts == 9


def test_old_histories_are_deleted_only_after_the_new_one_is_written() -> None:
    class FullStorage(MemoryStorage):
        def put_if_absent(self, path: str, data: bytes) -> bool:
            raise StorageError(f"write {path}", self.url, "it is full")

    files: dict[str, bytes] = {}
    for restarts in range(1, 6):
        assert store_history(MemoryStorage(files=files), JobHistory(restarts), epoch=1)
    before = dict(files)
    assert not store_history(FullStorage(files=files), JobHistory(6), epoch=1)
    assert files == before


def test_a_long_text_keeps_its_beginning_and_its_end() -> None:
    long = replace(OUTAGE, traceback="first" + "x" * 100_000 + "last")
    read = decode_history(encode_history(JobHistory(exceptions=(replace(FAILED, failure=long),))))
    traceback = read.exceptions[0].failure.traceback
    assert traceback.startswith("first") and traceback.endswith("last")
    assert f"{len(long.traceback) - MOST_TEXT} characters are left out" in traceback


def test_a_storage_that_hangs_holds_up_nothing_and_the_newest_is_written() -> None:
    goes_on, has_begun, stored = threading.Event(), threading.Event(), []

    def store(history: JobHistory) -> None:
        has_begun.set()
        goes_on.wait(10)
        stored.append(history.restarts)

    writer = HistoryWriter(store, revision=0)
    writer.observe(0, lambda: JobHistory(0))  # is stored already
    writer.observe(1, lambda: JobHistory(1))
    assert has_begun.wait(10)
    for revision in (2, 3, 4):
        writer.observe(revision, lambda number=revision: JobHistory(number))
    assert not writer.end(within_s=0.0), "it hangs, and what waits is dropped"
    goes_on.set()
    assert writer.end(within_s=10)
    writer.observe(5, lambda: JobHistory(5))
    assert stored == [1]

    goes_on.set()
    other = HistoryWriter(store)
    for revision in range(100):
        other.observe(revision, lambda number=revision: JobHistory(number))
    assert other.end(within_s=10) and stored[-1] == 99


def test_an_error_of_the_storage_is_logged_and_the_next_history_is_written(caplog: pytest.LogCaptureFixture) -> None:
    written = threading.Event()

    def store(history: JobHistory) -> None:
        if history.restarts == 1:
            raise OSError("full")
        written.set()

    writer = HistoryWriter(store)
    writer.observe(1, lambda: JobHistory(1))
    assert eventually(lambda: "full" in caplog.text, within_s=10)
    writer.observe(2, lambda: JobHistory(2))
    assert written.wait(10)
    assert writer.end(10)
