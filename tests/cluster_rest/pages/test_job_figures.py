"""Figures of a job for people, why it is slow, its checkpoints' phases and its state."""

from __future__ import annotations

import json
from typing import Any

from rayflink.cluster.jobs.checkpoint_phases import describe_phases
from rayflink.cluster.jobs.findings import findings, load_findings
from rayflink.cluster.jobs.job_figures import job_figures, job_row, operator_figures
from rayflink.state.schema.state_summary import StateSummary
from rayflink.state.snapshots import DatabaseFiles, FileSlice, StoredSnapshot
from rayflink.state.state_sizes import GroupSize, StateSize
from rayflink.state.storage.manifest import CheckpointManifest, OperatorManifest
from rayflink.state.storage.state_report import MOST_RANGES, describe_state
from tests.cluster_rest.pages.job_statuses import IDS, NOW_MS, description, operator, status, subtask, vertex

CHAIN = description(("source", "count"), ("count", "sink"))
LATE = {"numLateRecordsDropped": 4, "numProcessingTimersDropped": 2, "latency": {"p99": 3}, "isIdle": True}


def held_up() -> dict[str, object]:
    """Return a job whose second vertex is the bottleneck: its first subtask has most of the keys."""
    return status(
        vertex("source", [subtask(0, 0, 100, 900, operators=[operator("in", NOW_MS - 90_000)])]),
        vertex("count", [subtask(0, 90, 990, 0, operators=[operator("count", NOW_MS - 90_000, **LATE)]),
                         subtask(1, 10, 120, 0)]),
        vertex("sink", [subtask(0, 100, 30, 0)]),
    )  # fmt: skip


def test_edges_have_the_rate_of_their_consumer_or_of_their_producer() -> None:
    figures = job_figures(held_up(), CHAIN, NOW_MS)
    assert [(edge["from"], edge["records_per_second"]) for edge in figures["edges"]] == [
        (IDS["source"], 100.0), (IDS["count"], 100.0),
    ]  # fmt: skip
    both = description(("source", "count"), ("source", "sink"), ("count", "sink"))
    edges = job_figures(held_up(), both, NOW_MS)["edges"]
    assert [edge["records_per_second"] for edge in edges] == [100.0, None, 100.0]


def test_a_vertex_has_its_load_lag_skew_and_losses() -> None:
    figures = job_figures(held_up(), CHAIN, NOW_MS)
    count = figures["vertices"][1]
    assert count["skew"] == {"subtask": 0, "share": 0.9, "ratio": 1.8}
    assert (count["busy_ms_per_second"], count["mean_busy_ms_per_second"]) == (990, 555.0)
    assert (count["late_records"], count["dropped_records"], count["watermark_lag_ms"]) == (4, 2, 90_000)
    assert (figures["lag_ms"], figures["late_records"], figures["duration_ms"]) == (90_000, 4, 62_000)
    json.dumps(figures, allow_nan=False)


def test_the_bottleneck_is_the_vertex_for_which_others_wait() -> None:
    reasons = {finding.title: finding for finding in findings(held_up(), CHAIN, NOW_MS)}
    bottleneck = reasons["count is the bottleneck"]
    assert bottleneck.vertex == IDS["count"] and bottleneck.severity == "warning"
    assert "90% of the records" in bottleneck.detail and "more subtasks help little" in bottleneck.detail
    assert "90 s behind the clock" in reasons["Results are late"].detail
    assert {"count drops late records", "count drops records or timers"} <= reasons.keys()
    assert "source is the bottleneck" not in reasons and "sink is the bottleneck" not in reasons


def test_a_job_without_output_says_where_its_records_end() -> None:
    silent = subtask(0, 5, 0, 0, numRecordsOut=0, operators=[operator("count", None)])
    sink = vertex("sink", [subtask(0, 0, 0, 0)])
    job = status(vertex("source", [subtask(0, 5, 0, 0)]), vertex("count", [silent]), sink)
    [reason] = findings(job, CHAIN, NOW_MS)
    assert reason.title == "count has given no record" and "has no watermark yet" in reason.detail
    nothing = status(vertex("source", [subtask(0, 0, 0, 0)]), sink)
    [reason] = findings(nothing, description(("source", "sink"), names=("source", "sink")), NOW_MS)
    assert reason.title == "The sources have read nothing"


def test_the_processes_of_a_job_are_those_that_run_its_tasks() -> None:
    places = {"host": "n1", "pid": 7, "reportedMs": NOW_MS}
    parts = [subtask(0, 1, 0, 0, **places), subtask(1, 1, 0, 0, **places), subtask(2, 1, 0, 0, host="n0", pid=9)]
    figures = job_figures(status(vertex("source", parts)), {}, NOW_MS)
    assert figures["processes"] == [
        {"host": "n0", "pid": 9, "subtasks": 1, "reported_ms": 0},
        {"host": "n1", "pid": 7, "subtasks": 2, "reported_ms": NOW_MS},
    ]


def test_failures_of_one_kind_are_shown_once_with_the_users_line() -> None:
    trace = 'Traceback:\n  File "job.py", line 7, in parse\n    return int(text)\nValueError: <no>\n'
    entry = {"task": "count (1/2)", "exception": "count failed", "traceback": trace, "operator": "count",
             "line": "job.py:20 in main", "record": "'x'"}  # fmt: skip
    last = {**entry, "timestamp": 9, "exception": "count failed: ValueError: <no> (it failed so 3 times)"}
    job = status(exceptions=[{**entry, "timestamp": 3}, {**entry, "timestamp": 5}, last], state="FAILED",
                 timestamps={"CREATED": 1, "FAILED": 9})  # fmt: skip
    figures = job_figures(job, {}, NOW_MS)
    [failure] = figures["failures"]
    assert (failure["times"], failure["first_ms"], failure["last_ms"]) == (3, 3, 9)
    assert (failure["error"], failure["raised_at"]) == ("ValueError: <no>", "job.py:7 in parse")
    assert (figures["has_ended"], figures["end_ms"], figures["duration_ms"]) == (True, 9, 8)
    assert "traceback" not in job_row(job, NOW_MS)["last_failure"]
    assert findings(job, {}, NOW_MS)[0].detail == "count, job.py:7 in parse: ValueError: <no>; it failed so 3 times"


def test_a_job_that_is_created_anew_by_a_rescaling_began_when_it_began_first() -> None:
    job = status(timestamps={"INITIALIZING": NOW_MS - 90_000, "CREATED": NOW_MS - 5, "RUNNING": NOW_MS - 3})
    row = job_row(job, NOW_MS)
    assert (row["begin_ms"], row["duration_ms"]) == (NOW_MS - 90_000, 90_000)


def test_operators_have_metrics_over_subtasks_and_their_splits() -> None:
    split = {"split.a.b.watermark.currentWatermark": 5, "split.a.b.watermark.isIdle": False}
    reports = [operator("in", 5, hits=hits, ratio=float("nan"), **split) for hits in (1, 2)]
    parts = [subtask(number, 1, 0, 0, operators=[report]) for number, report in enumerate(reports)]
    [figures] = operator_figures(vertex("source", parts))
    assert figures["splits"][1] == {"subtask": 1, "split": "a.b", "watermark_ms": 5, "is_idle": False}
    assert figures["metrics"] == [
        {"name": "hits", "sum": 3, "min": 1, "max": 2},
        {"name": "ratio", "sum": None, "min": None, "max": None, "value": "nan"},
    ]


def sampled(rows: int, *groups: tuple[int, int], keys: tuple[Any, ...] = ()) -> dict[str, Any]:
    """Return the sample of a producer, of 100 records that stand for `rows`."""
    return {"consumer": IDS["count"], "max_parallelism": 128, "rows": rows, "sampled": 100,
            "groups": [*map(list, groups)], "keys": [*map(list, keys)]}  # fmt: skip


def hot_job(*samples: dict[str, Any]) -> dict[str, Any]:
    """Return a job whose second subtask of "count" has most records."""
    sources = [subtask(number, 5, 10, 0, keySamples=[sample]) for number, sample in enumerate(samples)]
    counting = [subtask(0, 19, 300, 0), subtask(1, 81, 990, 0)]
    return status(vertex("source", sources), vertex("count", counting), vertex("sink", [subtask(0, 5, 0, 0)]))


def test_the_hot_key_group_is_named_and_a_key_only_where_the_job_names_it() -> None:
    job = hot_job(sampled(3_000, (100, 70), (3, 5)), sampled(1_000, (100, 30), (4, 9)))
    hot = job_figures(job, CHAIN, NOW_MS)["vertices"][1]["hot"]
    assert hot["key_groups"][0] == {"group": 100, "subtask": 1, "share": 0.6} and hot["keys"] == []
    [reason] = [finding for finding in findings(job, CHAIN, NOW_MS) if finding.title == "count is busy"]
    assert "subtask 1 gets 81% of the records: key group 100 alone has 60%; no key group is divided" in reason.detail
    assert [finding.detail for finding in load_findings(job, NOW_MS)] == [reason.detail]
    named = hot_job(sampled(1_000, (100, 60), keys=(("'x'", 100, 58),)))
    [reason] = [finding for finding in findings(named, CHAIN, NOW_MS) if finding.title == "count is busy"]
    assert "alone has 60% (key 'x' 58%); " in reason.detail


def test_uneven_key_groups_without_a_hot_one_can_be_spread() -> None:
    even = sampled(1_000, *((group, 10) for group in range(100, 108)))
    [reason] = [finding for finding in findings(hot_job(even), CHAIN, NOW_MS) if finding.title == "count is busy"]
    assert "no key group stands out" in reason.detail
    few = {**sampled(5, (100, 5)), "sampled": 5}
    assert job_figures(hot_job(few), CHAIN, NOW_MS)["vertices"][1]["hot"] is None


def test_the_phases_of_a_checkpoint_are_those_of_its_last_subtask() -> None:
    def acknowledged(index: int, took: int) -> dict[str, object]:
        phases = {"checkpoint": {"sync": 1, "async": 2}, "alignment": {"duration": 3}, "start_delay": -1}
        return {"index": index, "ack_timestamp": 1, "end_to_end_duration": took, **phases}

    head = {"status": "IN_PROGRESS", "num_acknowledged_subtasks": 2, "num_subtasks": 3, "end_to_end_duration": 30,
            "checkpointed_size": 5, "state_size": 6}  # fmt: skip
    entry = {**head, "subtasks": [acknowledged(0, 30), acknowledged(2, 8)], "pending_subtasks": [1]}
    [phases] = describe_phases({"tasks": {"v": entry}})
    assert phases["pending"] == [1]
    assert phases["slowest"] == {
        "index": 0, "start_delay": 0, "alignment": 3, "sync": 1, "async": 2, "end_to_end_duration": 30,
    }  # fmt: skip


def test_state_has_its_bytes_by_operator_name_and_key_group() -> None:
    database = DatabaseFiles(64, 128, {"1.sst": FileSlice("shared/a", 0, 500, 0)}, frozenset(), b"")
    plain = StoredSnapshot({3: b"abc"}, {"user/offsets": ("union", (b"12",))})
    snapshots = plain, StoredSnapshot(databases=(database,))
    states = StateSummary("sums", "value", "int"), StateSummary("offsets", "union list", "tuple")
    counting = OperatorManifest("1" * 32, "count", "count", 2, 128, snapshots, states=states)
    flat = OperatorManifest("2" * 32, "", "many", 1, 4096, (StoredSnapshot(dict.fromkeys(range(4096), b"x")),))
    document = describe_state(CheckpointManifest("checkpoint", 7, 1, "3" * 32, "job", 1, 2, False, (counting, flat)))
    count, many = document["operators"]
    assert [(state["name"], state["bytes"]) for state in count["states"]] == [("sums", 503), ("offsets", 2)]
    assert count["key_groups"] == [{"first": 3, "end": 4, "bytes": 3}, {"first": 64, "end": 128, "bytes": 500}]
    assert (count["subtasks"], count["bytes"], document["bytes"]) == ([5, 500], 505, 4601)
    assert len(many["key_groups"]) == MOST_RANGES and sum(part["bytes"] for part in many["key_groups"]) == 4096
    assert count["largest_group"] is None and many["largest_group"]["bytes"] == 1
    assert (count["written_bytes"], count["states"][0]["written_bytes"]) == (None, None)


def test_states_share_a_backend_and_each_has_its_bytes_entries_and_largest_key_group() -> None:
    sums = StateSize("sums", "value", 10, (GroupSize(3, 4, 60, 2), GroupSize(9, 10, 40, 1)), is_estimate=True)
    timers = StateSize("sums", "timers", 7, (GroupSize(3, 4, 7, 5),))
    others = StateSize("sums", "value", 20, (GroupSize(70, 71, 100, 4),), is_estimate=True)
    files = {"1.sst": FileSlice("shared/a", 0, 500, 0)}
    database = DatabaseFiles(0, 64, files, frozenset(), b"")
    first = StoredSnapshot({3: b"abc"}, databases=(database,), sizes=(sums, timers))
    said = StateSummary("sums", "value", "int"), StateSummary("empty", "map", "str")
    snapshots = first, StoredSnapshot(raw_keyed={70: b"1234"}, sizes=(others,))
    operator = OperatorManifest("1" * 32, "count", "count", 2, 128, snapshots, states=said)
    document = describe_state(CheckpointManifest("checkpoint", 7, 1, "3" * 32, "job", 1, 2, False, (operator,)))
    [described] = document["operators"]
    shown = [(state["name"], state["kind"], state["bytes"], state["written_bytes"], state["entries"])
             for state in described["states"]]  # fmt: skip
    assert shown == [
        ("empty", "map", 0, 0, 0), ("sums", "value", 200, 30, 7), ("sums", "timers", 7, 7, 5),
        ("raw keyed state", "raw keyed", 4, 4, None),
    ]  # fmt: skip
    assert described["states"][1]["largest_group"] == {"group": 70, "bytes": 100, "share": 0.5}
    assert described["largest_group"] == {"group": 70, "bytes": 104, "share": round(104 / 211, 4)}
    assert [part["bytes"] for part in described["key_groups"]] == [67, 40, 104]
    assert document["written_bytes"] == described["written_bytes"] == 41
