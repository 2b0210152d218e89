"""What the scripts of the dashboard make of figures and logs, without a page."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import playwright
import pytest

from rayflink.cluster.jobs.job_figures import job_figures, job_row
from rayflink.cluster.pages.static_pages import FILES
from tests.cluster_rest.pages.job_statuses import IDS, NOW_MS, status, subtask, vertex

pytestmark = pytest.mark.slow
NODE = Path(playwright.__file__).parent / "driver" / "node"


def call(module: str, function: str, *arguments: Any) -> Any:
    """Return what a function of the pages returns."""
    script = f"""
        import {{ {function} }} from {json.dumps((FILES / module).as_uri())};
        console.log(JSON.stringify({function}(...{json.dumps(arguments)})));
    """
    command = [NODE, "--input-type=module", "--eval", script]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def checkpoint(number: int, state: str, **more: Any) -> dict[str, Any]:
    moments = {"trigger_timestamp": NOW_MS - 50_000 + number * 1_000, "end_to_end_duration": 20}
    return {"id": number, "status": state, "is_savepoint": False, "failure_message": None, **moments, **more}


def test_events_are_the_failures_changes_and_checkpoints_of_a_job_the_newest_first() -> None:
    before, after = {IDS["source"]: 1, IDS["sink"]: 1}, {IDS["source"]: 1, IDS["sink"]: 3}
    rescale = {"id": "1", "began": NOW_MS - 40_000, "cancelled": None, "ended": NOW_MS - 38_000, "state": "COMPLETED",
               "reason": "", "before": before, "after": after}  # fmt: skip
    failure = {"task": "sink (1/1)", "exception": "sink failed", "operator": "sink", "traceback": ""}
    job = status(
        vertex("source", [subtask(0, 5, 0, 0)]), vertex("sink", [subtask(0, 5, 0, 0)]),
        exceptions=[{**failure, "timestamp": NOW_MS - 9_000}, {**failure, "timestamp": NOW_MS - 5_000}],
        rescales={"counts": {}, "history": [rescale]},
    )  # fmt: skip
    late = {"failure_message": "Checkpoint expired before completing."}
    history = [
        checkpoint(5, "COMPLETED", is_savepoint=True, external_path="/data/savepoint-5"),
        *(checkpoint(number, "FAILED", **late) for number in (4, 3, 2)),
        checkpoint(1, "COMPLETED"),
    ]
    events = call("timeline.js", "eventsOf", job_figures(job, {}, NOW_MS), {"history": history, "latest": {}})
    assert [(event["text"], event["at"] - NOW_MS) for event in events] == [
        ("sink failed", -5_000), ("sink failed", -9_000), ("Parallelism changed", -40_000), ("Savepoint 5", -45_000),
        ("Checkpoints failed", -46_000), ("The job began", -62_000),
    ]  # fmt: skip
    details = {event["text"]: event["detail"] for event in reversed(events)}
    assert details["sink failed"].startswith("sink; 2 times, the first at ")
    assert (details["Parallelism changed"], events[2]["tookMs"]) == ("sink: 1 → 3", 2_000)
    assert details["Checkpoints failed"].startswith("3 checkpoints in a row, 2 to 4, since ")
    assert details["Checkpoints failed"].endswith("expired before completing.")
    assert details["Savepoint 5"] == "/data/savepoint-5"


def test_the_newest_savepoint_and_failure_stay_when_many_checkpoints_came_after_them() -> None:
    savepoint = checkpoint(3, "COMPLETED", is_savepoint=True, external_path="/data/savepoint-3")
    latest = {"savepoint": savepoint, "failed": checkpoint(2, "FAILED"), "completed": checkpoint(20, "COMPLETED")}
    history = [checkpoint(number, "COMPLETED") for number in range(20, 10, -1)]
    job = job_figures(status(vertex("source", [subtask(0, 5, 0, 0)])), {}, NOW_MS)
    for known in (history, [*history, latest["savepoint"], latest["failed"]]):
        events = call("timeline.js", "eventsOf", job, {"history": known, "latest": latest})
        assert [event["text"] for event in events] == ["Savepoint 3", "Checkpoint 2 failed", "The job began"]


@pytest.mark.parametrize(
    ("pressed", "more", "words", "wants"),
    [(0, {}, [], False),
     (700, {}, ["back-pressured 70 %"], True),
     (0, {"state": "RESTARTING"}, ["restarts after a failure"], True),
     (0, {"waiting": "2 of 4 slots"}, ["waits for slots"], True),
     (0, {"metrics": {"numberOfFailedCheckpoints": 2, "numberOfCompletedCheckpoints": 0}},
      ["no checkpoint was completed"], True),
     (700, {"metrics": {"numberOfFailedCheckpoints": 5, "numberOfCompletedCheckpoints": 5}},
      ["checkpoints fail (5 of 10)", "back-pressured 70 %"], True)],
)  # fmt: skip
def test_a_job_in_a_list_says_why_it_wants_a_look(
    pressed: int, more: dict[str, Any], words: list[str], wants: bool
) -> None:
    row = job_row(status(vertex("source", [subtask(0, 5, 100, pressed)]), **more), NOW_MS)
    assert [said for _, said, _ in call("job_remarks.js", "jobRemarks", row)] == words
    assert call("job_remarks.js", "wantsLook", row) is wants


def test_a_log_is_searched_by_records_and_not_by_lines() -> None:
    said = ["INFO shop: begun", "ERROR shop: broken", "Traceback (most recent call last):", '  File "a.py", line 1',
            "ValueError: no", "INFO shop: goes on", "printed"]  # fmt: skip
    log = "".join(f"2026-11-29 20:00:0{second},000 [Map (1)] {line}\n" for second, line in enumerate(said))
    records = call("logs.js", "recordsOf", log)
    lines = log.splitlines()
    assert records == [lines[0], "\n".join(lines[1:5]), *lines[5:]]
    assert call("logs.js", "matching", records, "A.PY", False) == [records[1]]
    assert call("logs.js", "matching", records, "", True) == [records[1]]
    assert call("logs.js", "recordsOf", "printed\nby a program\n") == ["printed", "by a program"]


def test_lines_have_what_the_cluster_remembers_where_the_page_has_seen_nothing() -> None:
    remembered = [{"at": 10_000}, {"at": 20_000}, {"at": 30_000}, {"at": 90_000}]
    seen = [{"at": 21_000}, {"at": 31_000}, {"at": 120_000}]
    joined = call("trends.js", "joined", remembered, seen)
    assert [point["at"] for point in joined] == [10_000, 21_000, 31_000, 90_000, 120_000]
    [point] = call("trends.js", "pointsOf", {"points": [[5, 1.5, None, 900, 0]]})
    assert point == {"at": 5, "read": 1.5, "lag": None, "busy": 900, "pressed": 0}


def graph(edges: list[tuple[int, int]], pressed: int = -1) -> dict[str, Any]:
    """Return the figures of a graph; producers up to one of the vertices wait for the next."""
    figures = {"parallelism": 2, "states": {"RUNNING": 2}, "records_in_per_second": 5.0, "records_out_per_second": 5.0,
               "busy_ms_per_second": 100, "watermark_lag_ms": None, "skew": None, "late_records": 0}  # fmt: skip
    vertices = [
        {"id": f"v{number}", "name": f"step {number}", **figures,
         "back_pressured_ms_per_second": 900 if number <= pressed else 0}
        for number in range(max(map(max, edges)) + 1)
    ]  # fmt: skip
    links = [{"from": f"v{one}", "to": f"v{other}", "records_per_second": 5.0} for one, other in edges]
    return {"vertices": vertices, "edges": links}


def test_straight_runs_of_a_large_graph_are_one_vertex_with_its_worst_remark() -> None:
    chain = [(number, number + 1) for number in range(29)]
    folded = call("folding.js", "foldRuns", graph(chain, pressed=14))
    assert [vertex["name"] for vertex in folded["vertices"]] == ["step 0", "28 vertices: step 1 … step 28", "step 29"]
    source, run, sink = folded["vertices"]
    assert [word for _, word, _ in run["remarks"]] == ["bottleneck", "back-pressured 90 %"]
    assert (run["parallelism"], run["states"], sink["remarks"]) == (2, {"RUNNING": 56}, [])
    assert [(edge["from"], edge["to"]) for edge in folded["edges"]] == [("v0", "run v1"), ("run v1", "v29")]


def test_forks_joins_sources_and_sinks_stay_apart_and_small_graphs_as_they_are() -> None:
    branches = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 5), (5, 6), (6, 4), (4, 7)]
    tail = [(number, number + 1) for number in range(7, 27)]
    assert call("folding.js", "runsOf", graph([*branches, *tail])) == [
        ["v1", "v2", "v3"], [f"v{number}" for number in range(7, 27)],
    ]  # fmt: skip
    small = graph(branches)
    assert call("folding.js", "runsOf", small) == [] and call("folding.js", "foldRuns", small) == small
