"""`rayflink status`: what it shows, as tables and as JSON."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any

import pytest

from rayflink import launch
from rayflink.cli import status as status_command
from rayflink.cli.main import main
from rayflink.cli.status import failures_table, status_text
from rayflink.common.metrics.status_report import status_report

NOW = 100_000
JOB = "ab" * 16


def operator(name: str, out_rate: float = 0.0, seen: int | None = None, **metrics: Any) -> dict[str, Any]:
    metrics = {"numRecordsOutPerSecond": out_rate, **metrics}
    return {
        "id": name, "name": name, "numRecordsIn": 0, "numRecordsOut": 7, "currentInputWatermark": seen,
        "currentOutputWatermark": seen, "metrics": metrics,
    }  # fmt: skip


def subtask(number: int, *operators: dict[str, Any], state: str = "RUNNING", **metrics: Any) -> dict[str, Any]:
    return {
        "subtask": number, "attempt": 1, "state": state, "timestamps": {"RUNNING": 1_000, state: 90_000},
        "metrics": {"operators": list(operators), **metrics} if operators else {},
    }  # fmt: skip


def vertex(name: str, *subtasks: dict[str, Any], received: int = 0, sent: int = 0) -> dict[str, Any]:
    return {
        "id": name, "name": name, "parallelism": len(subtasks), "states": {"RUNNING": len(subtasks)},
        "numRecordsIn": received, "numRecordsOut": sent, "subtasks": list(subtasks),
    }  # fmt: skip


def job(*vertices: dict[str, Any], state: str = "RUNNING", **more: Any) -> dict[str, Any]:
    return {
        "jid": JOB, "name": "counts", "state": state, "timestamps": {state: 5_000}, "vertices": list(vertices),
        "exceptions": [], "recovery": None, **more,
    }  # fmt: skip


def times(busy: int, idle: int, pressed: int) -> dict[str, int]:
    return {"busyTimeMsPerSecond": busy, "idleTimeMsPerSecond": idle, "backPressuredTimeMsPerSecond": pressed}


SOURCE = vertex(
    "Source",
    subtask(0, operator("in", 40.0, seen=98_000), numRecordsIn=0, numRecordsOutPerSecond=40.0, **times(100, 0, 900)),
    subtask(1, operator("in", 2.5, seen=97_500), numRecordsIn=0, numRecordsOutPerSecond=2.5, **times(300, 700, 0)),
    sent=1_500,
)
SINK = vertex(
    "Sink", subtask(0, operator("out", seen=97_500), numRecordsIn=9, numRecordsInPerSecond=42.5, **times(999, 1, 0)),
    received=1_400,
)  # fmt: skip


def test_status_shows_rates_times_and_the_lag_of_each_vertex():
    lines = status_text(job(SOURCE, SINK), NOW).splitlines()
    assert lines[2].split() == [
        "vertex", "subtasks", "records", "in", "in/s", "records", "out", "out/s", "busy", "idle", "back-pressured",
        "watermark", "lag",
    ]  # fmt: skip
    mark = ["1970-01-01", "00:01:37", "2.5", "s"]
    assert lines[4].split() == ["Source", "2", "14", "42", "1,500", "42", "300", "700", "900", *mark]
    assert lines[5].split() == ["Sink", "1", "1,400", "42", "0", "-", "999", "1", "0", *mark]


def test_columns_in_which_nothing_stands_are_left_out():
    idle = vertex("Map", subtask(0, operator("map"), numRecordsIn=0, **times(0, 1000, 0)))
    text = status_text(job({**idle, "subtasks": [subtask(0)]}), NOW)
    assert text.splitlines()[2].split() == ["vertex", "subtasks", "records", "in"]
    counted = status_text(job(vertex("Map", subtask(0, operator("map", hits=0)))), NOW)
    assert "hits" not in counted
    assert "hits" in status_text(job(vertex("Map", subtask(0, operator("map", hits=3)))), NOW)


def test_a_vertex_that_can_hardly_do_more_is_named_in_words():
    lines = status_text(job(SOURCE, SINK), NOW).splitlines()
    busy = "Sink is busy: its busiest subtask works 100 % of the time; give it more than 1 subtasks"
    (said,) = [line for line in lines if line.startswith(f"{busy}, or see its flame graph: rayflink rescale abababab ")]
    assert said.endswith(f" {SINK['id'][:8]}=2")
    ended = status_text(job(SOURCE, SINK, state="FINISHED"), NOW)
    assert "busiest" not in ended


def test_a_function_that_does_not_return_is_named():
    stalled = {"operator": "split", "at": "job.py:12 in words", "ms": 62_000}
    held_up = job(vertex("Split", subtask(0, operator("split")), subtask(1, operator("split"), stalled=stalled)))
    assert "\n'split' in Split (2/2) has not returned for 62 s: job.py:12 in words" in status_text(held_up, NOW)
    assert status_report(held_up, NOW)["vertices"][0]["subtasks"][1]["stalled"] == stalled


def test_a_long_wait_for_room_or_a_barrier_is_shown_and_all_are_in_the_json():
    waits = [
        {"for": "room", "reason": "outputs are full, waits for credit", "ms": 61_000},
        {"for": "trigger", "reason": "a triggered checkpoint waits for room", "ms": 7_000},
        {"for": "barrier", "reason": "holds back channels [1] for a barrier", "ms": 4_900},
        {"for": "input", "reason": "waits for input on channels [0]", "ms": 99_000},
    ]
    waiting = vertex("Join", subtask(0, operator("join")), subtask(1, operator("join"), waits=waits))
    assert status_text(job(waiting), NOW).splitlines()[-2:] == [
        "Join (2/2) waits for room in its outputs, for 61 s",
        "Join (2/2) cannot begin a triggered checkpoint: its outputs have no room, for 7 s",
    ]
    first, second = status_report(job(waiting), NOW)["vertices"][0]["subtasks"]
    assert (first["waits"], second["waits"]) == ([], waits)
    ended = vertex("Join", subtask(0, operator("join"), state="FINISHED", waits=waits))
    assert "waits" not in status_text(job(ended), NOW)
    assert status_report(job(ended), NOW)["vertices"][0]["subtasks"][0]["waits"] == []


def test_failures_of_one_kind_are_shown_once_with_their_number():
    said = "lost task Map (1/2) (attempt #{}): silent for {} ms, pid {}"
    failures = [
        {"timestamp": 1_000 * n, "task": "Map (1/2)", "exception": said.format(n, 50 * n, 7 + n)} for n in range(40)
    ]
    failures.insert(3, {"timestamp": 3_500, "task": "Map (1/2)", "exception": "ValueError: other"})
    text = status_text(job(SINK, exceptions=failures), NOW)
    lines = text.splitlines()[-2:]
    assert lines[0].split()[:3] == ["1970-01-01", "00:00:03", "1"] and lines[0].endswith("ValueError: other")
    assert lines[1].split()[:3] == ["1970-01-01", "00:00:39", "40"] and "(attempt #39)" in lines[1]


def test_failures_are_shown_in_lines_that_people_read_and_a_long_one_is_cut():
    words = ["a", "b" * 60, "c" * 60, "d" * 200, "end"]
    folded = [{"first_ms": 0, "last_ms": 0, "times": 1, "task": "Map (1/2)", "text": "\n".join(words)}]
    shown = failures_table(folded).splitlines()
    assert shown[2].startswith("1970-01-01 00:00:00  1      Map (1/2)  a bbb")
    assert [line.strip() for line in shown[3:]] == words[2:]
    folded[0]["text"] = " ".join(["word" * 10] * 100)
    shown = failures_table(folded).splitlines()
    assert len(shown) == 22 and shown[-1].strip() == "... 31 more lines; --json shows all"


def test_what_the_autoscaler_does_is_below_the_state() -> None:
    shown = status_text(job(SOURCE, autoscaler={"reason": "collects metrics for 25 s more"}), NOW).splitlines()
    assert shown[1] == "autoscaler: collects metrics for 25 s more"


def test_the_report_is_json_with_the_documented_keys():
    report = json.loads(json.dumps(status_report(job(SOURCE, SINK, metrics={"numRestarts": 2}), NOW), allow_nan=False))
    assert list(report) == [
        "schema", "id", "name", "state", "since_ms", "at_ms", "waiting", "restarts", "checkpoints", "held_back",
        "recovery", "autoscaler", "vertices", "failures",
    ]  # fmt: skip
    assert (report["schema"], report["restarts"], report["at_ms"]) == (1, 2, NOW)
    source = report["vertices"][0]
    assert {key: source[key] for key in source if key not in ("subtasks", "states")} == {
        "id": "Source", "name": "Source", "parallelism": 2, "records_in": 14, "records_out": 1_500, "late_records": 0,
        "records_in_per_second": 42.5, "records_out_per_second": 42.5, "busy_ms_per_second": 300,
        "idle_ms_per_second": 700, "back_pressured_ms_per_second": 900, "watermark_ms": 97_500,
        "watermark_lag_ms": 2_500,
    }  # fmt: skip
    assert list(source["subtasks"][0]) == [
        "subtask", "attempt", "state", "host", "pid", "reported_ms", "records_in_per_second", "records_out_per_second",
        "busy_ms_per_second", "idle_ms_per_second", "back_pressured_ms_per_second", "stalled", "waits",
    ]  # fmt: skip


def test_numbers_that_are_none_are_not_in_the_json():
    odd = vertex("Map", subtask(0, operator("map", out_rate=float("nan")), numRecordsInPerSecond=float("inf")))
    json.dumps(status_report(job(odd), NOW), allow_nan=False)


@pytest.fixture
def published(monkeypatch):
    """What is published of jobs; asking the cluster otherwise is an error but for jobs that have ended."""
    jobs = [job(SOURCE, SINK)]
    monkeypatch.setattr(launch, "published_jobs", lambda configuration: list(jobs))
    monkeypatch.setattr(launch, "list_jobs", lambda configuration: [])
    monkeypatch.setattr(launch, "recorded_jobs", lambda configuration: [job(SINK, state="FINISHED")])
    return jobs


def test_a_job_that_runs_is_shown_without_joining_its_cluster(published, monkeypatch, capsys):
    def refuse(configuration):
        raise AssertionError("this would start a driver")

    monkeypatch.setattr(launch, "list_jobs", refuse)
    assert main(["status", "counts"]) == 0 and main(["list"]) == 0
    assert capsys.readouterr().out.count(JOB) == 2
    assert main(["status", "counts", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == JOB


def test_watch_shows_a_job_until_it_has_ended(published, monkeypatch, capsys):
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 2:
            published.clear()

    monkeypatch.setattr(status_command, "time", SimpleNamespace(time=time.time, sleep=pause))
    assert main(["status", "counts", "--watch", "0.5", "--json"]) == 0
    shown = [json.loads(line)["state"] for line in capsys.readouterr().out.splitlines()]
    assert shown == ["RUNNING", "RUNNING", "FINISHED"] and pauses == [0.5, 0.5]


def test_ctrl_c_ends_the_watching(published, monkeypatch, capsys):
    def interrupt(seconds):
        assert seconds == 2.0
        raise KeyboardInterrupt

    monkeypatch.setattr(status_command, "time", SimpleNamespace(time=time.time, sleep=interrupt))
    assert main(["status", "counts", "--watch"]) == 0
    assert capsys.readouterr().out.startswith(f"counts  {JOB}  RUNNING")


@pytest.mark.parametrize("wanted", ["0", "-1", "soon", "nan", "inf"])
def test_watching_wants_seconds(wanted, capsys):
    with pytest.raises(SystemExit):
        main(["status", "counts", f"--watch={wanted}"])
    assert f"found '{wanted}', wanted seconds, at least 0.1" in capsys.readouterr().err
