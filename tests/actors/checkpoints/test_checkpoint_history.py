"""Statistics of checkpoints, in the shape of Flink's REST API, and as metrics."""

from __future__ import annotations

import json

from rayflink.actors.checkpoints.history import CheckpointRecord
from rayflink.actors.messages.checkpoint_statistics import CheckpointMetrics
from rayflink.actors.messages.commands import SavepointRequested
from rayflink.actors.messages.messages import CheckpointDeclined
from rayflink.common.metrics.metric_group import MetricGroup
from tests.actors.checkpoints.checkpointed_job import BASE, M0, M1, Checkpoints, S

MEASURED = {
    S: CheckpointMetrics(1, 0, 2, 3, 100, 100, 0),
    M0: CheckpointMetrics(4, 5, 6, 7, 1000, 10, 8),
    M1: CheckpointMetrics(8, 15, 16, 17, 3000, 30, 0),
}


def one_complete(**settings: int) -> Checkpoints:
    """Triggered at 100, acknowledged at 110, 120 and 130, complete at 150."""
    job = Checkpoints(**settings).run()
    job.at(100)
    for now, attempt in ((110, S), (120, M1), (130, M0)):
        job.now = now
        job.ack(attempt, 1, metrics=MEASURED[attempt])
    job.it.published(1, 150)
    return job


COMPLETED = {
    "id": 1,
    "status": "COMPLETED",
    "is_savepoint": False,
    "checkpoint_type": "CHECKPOINT",
    "unaligned": False,
    "trigger_timestamp": 100,
    "latest_ack_timestamp": 130,
    "end_to_end_duration": 50,
    "checkpointed_size": 140,
    "state_size": 4100,
    "persisted_data": 8,
    "num_subtasks": 3,
    "num_acknowledged_subtasks": 3,
    "external_path": f"{BASE}/chk-1",
    "discarded": False,
}


def test_the_overview_counts_and_shows_the_newest_first() -> None:
    job = one_complete()
    job.at(200)
    job.it.decline(CheckpointDeclined(S, 2, "full", True), 210)
    job.at(300)
    job.ack(S, 3, metrics=MEASURED[S])
    overview = job.it.history.overview()
    assert overview["counts"] == {"restored": 0, "total": 3, "in_progress": 1, "completed": 1, "failed": 1}
    under_way, failed, completed = overview["history"]
    assert completed == COMPLETED == overview["latest"]["completed"]
    assert failed == overview["latest"]["failed"]
    assert (failed["status"], failed["failure_timestamp"]) == ("FAILED", 210)
    assert failed["failure_message"] == "Checkpoint was declined: full (vertex vs, subtask 0)"
    assert (under_way["status"], under_way["num_acknowledged_subtasks"]) == ("IN_PROGRESS", 1)
    assert (overview["latest"]["savepoint"], overview["latest"]["restored"]) == (None, None)
    assert json.loads(json.dumps(overview)) == overview


def test_the_summary_is_over_all_that_were_completed() -> None:
    job = Checkpoints().run()
    assert job.it.history.overview()["summary"]["state_size"] == dict.fromkeys(
        ("min", "max", "avg", "p50", "p90", "p95", "p99", "p999"), 0.0
    )
    for number, duration in enumerate((10, 20, 60), 1):
        job.at(100 * number)
        job.ack_all(number)
        job.it.published(number, job.now + duration)
    durations = job.it.history.overview()["summary"]["end_to_end_duration"]
    assert [durations[name] for name in ("min", "max", "avg", "p50", "p99")] == [10, 60, 30, 20, 60]


def test_details_tell_of_each_vertex_and_of_each_subtask() -> None:
    job = one_complete()
    details = job.it.history.details(1)
    assert details is not None
    assert {name: details[name] for name in COMPLETED} == COMPLETED
    assert details["tasks"]["vm"] == {
        "id": 1,
        "status": "COMPLETED",
        "latest_ack_timestamp": 130,
        "end_to_end_duration": 30,
        "checkpointed_size": 40,
        "state_size": 4000,
        "persisted_data": 8,
        "num_subtasks": 2,
        "num_acknowledged_subtasks": 2,
    }
    mapped = job.it.history.of_vertex(1, "vm")
    assert mapped is not None
    assert mapped["subtasks"][0] == {
        "index": 0,
        "status": "completed",
        "ack_timestamp": 130,
        "end_to_end_duration": 30,
        "checkpointed_size": 10,
        "state_size": 1000,
        "checkpoint": {"sync": 6, "async": 7},
        "alignment": {"persisted": 8, "duration": 5},
        "start_delay": 4,
    }
    assert mapped["summary"]["alignment"]["duration"]["avg"] == 10
    assert mapped["summary"]["checkpoint_duration"]["async"]["max"] == 17
    whole = job.it.history.describe(1)
    assert whole is not None and whole["tasks"]["vm"] == details["tasks"]["vm"] | mapped
    assert {name: whole[name] for name in COMPLETED} == COMPLETED and set(whole["tasks"]) == {"vs", "vm"}
    assert job.it.history.describe(None) == job.it.history.overview()
    assert job.it.history.describe(9) is job.it.history.details(9) is job.it.history.of_vertex(1, "unknown") is None


def test_a_vertex_that_waits_shows_who_has_acknowledged() -> None:
    job = Checkpoints().run()
    job.at(100)
    job.ack(M1, 1, metrics=MEASURED[M1])
    details = job.it.history.details(1)
    assert details is not None
    assert details["tasks"]["vm"]["status"] == "IN_PROGRESS"
    assert [details["tasks"][vertex]["num_acknowledged_subtasks"] for vertex in ("vs", "vm")] == [0, 1]
    assert details["tasks"]["vs"]["latest_ack_timestamp"] == -1


def test_as_many_are_remembered_as_the_option_says_besides_the_latest_of_each_kind() -> None:
    job = Checkpoints(history=2, tolerable_failures=9).run()
    for number in (1, 2, 3, 4):
        job.at(100 * number)
        if number == 1:
            job.complete(1)
        else:
            job.it.decline(CheckpointDeclined(S, number, "full", True), job.now)
    history = job.it.history
    assert [entry["id"] for entry in history.overview()["history"]] == [4, 3]
    assert history.overview()["latest"]["completed"]["id"] == 1
    assert history.details(1) is not None and history.details(2) is None


def test_a_report_arrives_while_another_thread_reads_the_record() -> None:
    record = CheckpointRecord(1, 100, "CHECKPOINT", False, {"map": range(3), "sink": range(1)})
    record.acknowledged("map", 0, MEASURED[M0], 110)
    record.acknowledged("map", 1, MEASURED[M1], 115)
    vertices, subtasks = iter(record.subtasks.items()), iter(record.subtasks["map"])
    next(vertices), next(subtasks)
    record.acknowledged("map", 2, MEASURED[M1], 120)
    record.acknowledged("sink", 0, MEASURED[S], 130)
    assert (list(vertices), list(subtasks)) == ([], [1])  # no "dictionary changed size during iteration"
    assert record.summary()["num_acknowledged_subtasks"] == 4


def test_one_that_is_deleted_is_marked() -> None:
    job = one_complete()
    job.at(200)
    job.complete(2)
    assert [entry["discarded"] for entry in job.it.history.overview()["history"]] == [False, True]


def test_the_metrics_of_a_job_are_flinks() -> None:
    group = MetricGroup("job")
    job = Checkpoints()
    job.it.history.measure(group)

    def values() -> dict[str, object]:
        return group.snapshot()

    nothing = {name: -1 if name.startswith("last") else 0 for name in NAMES}
    assert values() == nothing | {"lastCheckpointExternalPath": "n/a"}
    job.run()
    job.at(100)
    for attempt, metrics in MEASURED.items():
        job.ack(attempt, 1, metrics=metrics)
    job.it.published(1, 150)
    job.it.restore(160)
    job.it.savepoint(SavepointRequested("r", "/s"), 170)
    assert values() == {
        "lastCheckpointDuration": 50,
        "lastCheckpointSize": 140,
        "lastCheckpointFullSize": 4100,
        "lastCheckpointExternalPath": f"{BASE}/chk-1",
        "lastCheckpointRestoreTimestamp": 160,
        "lastCheckpointPersistedData": sum(metrics.in_flight_bytes for metrics in MEASURED.values()),
        "lastCompletedCheckpointId": 1,
        "lastCheckpointCompletedTimestamp": 150,
        "numberOfCompletedCheckpoints": 1,
        "numberOfFailedCheckpoints": 0,
        "numberOfInProgressCheckpoints": 1,
        "totalNumberOfCheckpoints": 2,
    }


NAMES = (
    "lastCheckpointDuration",
    "lastCheckpointSize",
    "lastCheckpointFullSize",
    "lastCheckpointExternalPath",
    "lastCheckpointRestoreTimestamp",
    "lastCheckpointPersistedData",
    "lastCompletedCheckpointId",
    "lastCheckpointCompletedTimestamp",
    "numberOfCompletedCheckpoints",
    "numberOfFailedCheckpoints",
    "numberOfInProgressCheckpoints",
    "totalNumberOfCheckpoints",
)
