"""A job is stored so that a coordinator can come back without its driver."""

from __future__ import annotations

import pytest

from rayflink.actors.job import submission
from rayflink.actors.job.submission import Stored, Submission, delete_submissions, read_submission, store_submission
from rayflink.common.errors import JobExecutionError
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.graph.job_graph import JobGraph
from rayflink.state.errors import DamagedFileError
from rayflink.state.storage.memory_storage import MemoryStorage

JOB = "0f" * 16
GIVEN = Submission(b"program\nof two lines", {"words": "/data/words"}, 0.5, "mine", "SPREAD", 10_000, b"\nPK\n")


def test_what_is_kept_is_what_was_handed_in():
    storage = MemoryStorage()
    store_submission(storage, GIVEN)
    assert read_submission(storage, JOB) == GIVEN


def test_the_latest_is_kept_and_the_same_is_kept_once():
    storage = MemoryStorage()
    for program in (b"1", b"1", b"2"):
        store_submission(storage, Submission(program))
    assert storage.list() == ["job/000000002"]
    assert read_submission(storage, JOB) == Submission(b"2")
    delete_submissions(storage)
    assert storage.list() == []


def test_a_job_that_is_not_stored_is_a_clear_error():
    with pytest.raises(JobExecutionError, match="is not stored in memory:; jobs on Ray are stored whose options set"):
        read_submission(MemoryStorage(), JOB)


def test_a_job_of_other_versions_is_not_unpacked(monkeypatch: pytest.MonkeyPatch):
    storage = MemoryStorage()
    store_submission(storage, GIVEN)
    here = submission.versions()
    monkeypatch.setattr(submission, "versions", lambda: {**here, "python": "3.99"})
    wanted = rf"was stored by other versions: python {here['python']}, here 3.99; run it with those"
    with pytest.raises(JobExecutionError, match=wanted):
        read_submission(storage, JOB)


def test_a_damaged_program_is_named():
    storage = MemoryStorage()
    store_submission(storage, GIVEN)
    data = storage.read("job/000000001")
    storage.delete("job/000000001")
    storage.put_if_absent("job/000000001", data[:-1] + b"x")
    with pytest.raises(DamagedFileError, match="job/000000001 is damaged: the bytes of the program"):
        read_submission(storage, JOB)


@pytest.mark.parametrize(("options", "cpus"), [({}, 1.0), ({"rayflink.ray.slot-cpus": "0.05"}, 0.05)])
def test_a_slot_has_the_cpus_that_the_submission_or_the_options_say(options: dict[str, str], cpus: float) -> None:
    env = StreamExecutionEnvironment(options)
    env.from_collection([1]).print()
    graph = env.get_job_graph()
    assert Submission(b"").begun(graph, 5).slot_cpus == cpus
    assert Submission(b"", slot_cpus=0.5, began_ms=3).begun(graph, 5) == Submission(b"", slot_cpus=0.5, began_ms=3)


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({}, None),
        ({"execution.checkpointing.interval": "1 s"}, None),
        ({"execution.checkpointing.dir": "/c"}, None),
        ({"execution.checkpointing.dir": "/c", "execution.checkpointing.interval": "1 s"}, "/c/"),
        (
            {
                "execution.checkpointing.dir": "/c",
                "execution.checkpointing.interval": "1 s",
                "high-availability.storageDir": "/ha/",
            },
            "/ha/",
        ),
    ],
)
def test_jobs_with_checkpoints_in_a_directory_are_stored(options: dict[str, str], where: str | None):
    graph = graph_of(options)
    stored = Stored.of(graph)
    assert (stored and stored.url) == (where and where + graph.id)


def graph_of(options: dict[str, str]) -> JobGraph:
    env = StreamExecutionEnvironment(options)
    env.from_collection([1]).add_sink(lambda number: None)
    return env.get_job_graph()
