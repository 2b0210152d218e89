"""The commands on savepoints, checkpoints and state."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from rayflink import launch
from rayflink.actors.checkpoints.history import CheckpointHistory, CheckpointRecord
from rayflink.actors.messages.checkpoint_statistics import CheckpointMetrics
from rayflink.cli.main import main
from rayflink.cli.savepoints import checkpoint_by_subtask, checkpoint_tables, one_checkpoint
from tests.state_processor.programs import EVENTS, shop
from tests.state_processor.savepoints import environment, savepoint_after, worked


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> str:
    env = environment(tmp_path_factory.mktemp("savepoints"))
    shop(env)
    return savepoint_after(env, worked("Window", len(EVENTS)))


@pytest.fixture
def other(tmp_path: Path) -> str:
    """A savepoint of the same job, which has seen less."""
    env = environment(tmp_path)
    shop(env, EVENTS[:-1])
    return savepoint_after(env, worked("Window", len(EVENTS) - 1))


pytestmark = pytest.mark.slow


def said_by(capsys: Any, *arguments: str) -> str:
    assert main(arguments) == 0
    return str(capsys.readouterr().out)


def test_show_lists_the_states_of_all_operators(taken: str, capsys: Any) -> None:
    lines = said_by(capsys, "state", "show", taken, "--count").splitlines()
    assert lines[0].startswith("savepoint 1 of job 'job of a test' (")
    assert [line.split()[0] for line in lines[2:]].count("carts") == 9
    assert any(line.startswith("carts") and " cart " in line and line.endswith(" 3") for line in lines)
    told = json.loads(said_by(capsys, "state", "show", taken, "sums", "--json"))
    timers = ["window-timers/event", "window-timers/processing"]
    assert [state["state"] for state in told["states"]] == ["window-contents", *timers, "_watermark"]


def test_show_of_a_state_prints_its_rows(taken: str, capsys: Any) -> None:
    assert main(["state", "show", taken, "carts", "log", "--limit", "2"]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[0].split() == ["key", "position", "value"] and said.out.count("\n") == 4
    assert "only the first 2 rows are shown" in said.err
    rows = [json.loads(line) for line in said_by(capsys, "state", "show", taken, "carts", "sum", "--json").splitlines()]
    assert {row["key"]: row["value"] for row in rows} == {"user 0": 18, "user 1": 12, "user 2": 15}
    assert main(["state", "show", taken, "carts", "summ"]) == 1
    assert "has no state 'summ'; did you mean 'sum'?" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
def test_export_writes_files(taken: str, capsys: Any, tmp_path: Path, form: str) -> None:
    target = tmp_path / f"carts.{form}"
    assert "3 rows of state 'cart' written" in said_by(capsys, "state", "export", taken, "carts", "cart", str(target))
    if form == "parquet":
        rows = parquet.read_table(target).to_pylist()
    elif form == "csv":
        rows = [{**row, "value": json.loads(row["value"])} for row in csv.DictReader(target.open(newline=""))]
    else:
        rows = [json.loads(line) for line in target.read_text().splitlines()]
    assert {row["key"]: row["value"]["total"] for row in rows} == {"user 0": 18, "user 1": 12, "user 2": 15}


def test_export_into_an_unknown_form_or_folder_is_refused(taken: str, capsys: Any, tmp_path: Path) -> None:
    assert main(["state", "export", taken, "carts", "cart", str(tmp_path / "carts.xls")]) == 2
    assert "wanted one of .parquet, .csv, .json" in capsys.readouterr().err
    assert main(["state", "export", taken, "carts", "cart", str(tmp_path / "no" / "carts.csv")]) == 2
    assert "give a file in a folder that exists" in capsys.readouterr().err


def test_diff_counts_and_shows_what_differs(taken: str, other: str, capsys: Any) -> None:
    lines = said_by(capsys, "state", "diff", other, taken).splitlines()
    assert [line.split() for line in lines[2:] if line.startswith("carts")] == [
        ["carts", "cart", "0", "0", "1"],
        ["carts", "fresh", "0", "0", "1"],
        ["carts", "log", "1", "0", "0"],
        ["carts", "sum", "0", "0", "1"],
        ["carts", "user-timers/event", "1", "0", "0"],
        ["carts", "visits", "1", "0", "0"],
        ["carts", "seen", "1", "0", "0"],
        ["carts", "_watermark", "0", "0", "2"],
    ]
    shown = said_by(capsys, "state", "diff", other, taken, "carts", "sum", "--json")
    assert json.loads(shown) == {"change": "changed", "key": "user 0", "before": 9, "after": 18}
    assert said_by(capsys, "state", "diff", taken, taken) == "no differences\n"


def test_a_savepoint_is_disposed_of(other: str, capsys: Any) -> None:
    assert "disposed of" in said_by(capsys, "savepoint", "--dispose", other)
    assert not Path(other).exists() or not list(Path(other).iterdir())
    assert main(["savepoint", "--dispose", other]) == 1
    assert "there is no checkpoint or savepoint at" in capsys.readouterr().err


def history() -> CheckpointHistory:
    """Of one checkpoint that was completed and one that failed."""
    history = CheckpointHistory(10)
    first = CheckpointRecord(1, 1_000, "CHECKPOINT", False, {"a" * 32: [0, 1]})
    history.triggered(first)
    first.acknowledged("a" * 32, 0, CheckpointMetrics(3, 4, 5, 60, 2_000, 100, 7), 1_200)
    first.acknowledged("a" * 32, 1, CheckpointMetrics(30, 2, 6, 50, 1_000, 100, 0), 1_210)
    history.completed(1, "/checkpoints/chk-1", 1_250)
    history.triggered(CheckpointRecord(2, 2_000, "CHECKPOINT", False, {"a" * 32: [0, 1]}))
    history.failed(2, "the storage is full", 2_100)
    return history


def test_checkpoints_are_shown_in_tables() -> None:
    shown = checkpoint_tables(history().overview(), 3_000).splitlines()
    assert shown[0] == "1 completed, 1 failed, 0 in progress, 0 restored"
    assert shown[4].split() == ["duration", "ms", *["250"] * 5]
    newest, oldest = (line.split() for line in shown[-2:])
    assert newest[:3] == ["2", "checkpoint", "failed"] and newest[-4:] == ["the", "storage", "is", "full"]
    assert oldest[:3] == ["1", "checkpoint", "completed"] and oldest[-1] == "/checkpoints/chk-1"


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A job on a cluster that is not there; what it was asked for."""
    asked: list[Any] = []

    class Answer:
        def __init__(self, value: Any) -> None:
            self.result = lambda: value

    class Attached:
        def __init__(self, job_id: str, configuration: Any) -> None:
            self.job_id = job_id

        def trigger_savepoint(self, directory: str | None) -> Answer:
            asked.append(directory)
            return Answer("/savepoints/savepoint-1")

        def stop_with_savepoint(self, drain: bool, directory: str | None) -> Answer:
            asked.append((drain, directory))
            return Answer("/savepoints/savepoint-1")

        def checkpoints(self, checkpoint_id: int | None) -> dict[str, Any] | None:
            return history().describe(checkpoint_id)

        def wait(self, on_progress: Any = None) -> Any:
            from rayflink.actors.messages.commands import JobResult
            from rayflink.actors.messages.states import JobStatus

            return JobResult(self.job_id, "counts", JobStatus.FINISHED, 10)

    running = {"jid": "ab" * 16, "name": "counts", "state": "RUNNING", "timestamps": {}}
    running["vertices"] = [{"id": "a" * 32, "name": "Count"}]
    monkeypatch.setattr(launch, "list_jobs", lambda configuration: [running])
    monkeypatch.setattr(launch, "attach", Attached)
    return asked


def test_a_savepoint_of_a_job_is_taken(job: list[Any], capsys: Any) -> None:
    assert said_by(capsys, "savepoint", "counts") == "Savepoint completed. Path: /savepoints/savepoint-1\n"
    said_by(capsys, "savepoint", "abab", "/elsewhere")
    said_by(capsys, "savepoint", "abab", "here")
    said_by(capsys, "savepoint", "abab", "s3://bucket/here")
    assert job == [None, "/elsewhere", "here", "s3://bucket/here"]
    assert main(["savepoint"]) == 2 and main(["savepoint", "a", "b", "c"]) == 2


def test_stop_takes_a_savepoint(job: list[Any], capsys: Any) -> None:
    wanted = f"Savepoint completed. Path: /savepoints/savepoint-1\ncounts  {'ab' * 16}  FINISHED\n"
    assert said_by(capsys, "stop", "counts") == wanted
    assert said_by(capsys, "stop", "counts", "--drain", "-p", "/elsewhere") == wanted
    assert job == [(False, None), (True, "/elsewhere")]
    assert main(["stop", "counts", "--drain", "--no-savepoint"]) == 2


def test_a_vertex_that_has_not_acknowledged_has_no_figures() -> None:
    history = CheckpointHistory(10)
    history.triggered(CheckpointRecord(1, 1_000, "CHECKPOINT", False, {"a" * 32: [0, 1]}))
    checkpoint = history.describe(1)
    assert checkpoint is not None
    row = one_checkpoint(checkpoint, {"a" * 32: "Count"}, 3_000).splitlines()[-1]
    assert row.split() == ["Count", "0/2", *["-"] * 8]


def test_a_checkpoint_in_progress_has_an_age_and_its_pending_subtasks() -> None:
    history = CheckpointHistory(10)
    late = CheckpointRecord(7, 1_000, "CHECKPOINT", False, {"a" * 32: [2, 0, 1]})
    history.triggered(late)
    late.acknowledged("a" * 32, 1, CheckpointMetrics(), 1_200)
    row = checkpoint_tables(history.overview(), 91_000).splitlines()[-1]
    assert row.split()[2:9] == ["in_progress", "1970-01-01", "00:00:01", "1.5", "min", "200", "0"]
    details = history.describe(7)
    assert details is not None and details["tasks"]["a" * 32]["pending_subtasks"] == [0, 2]
    head = one_checkpoint(details, {}, 91_000).splitlines()[0]
    assert head.endswith("00:00:01, 200 ms to the last acknowledgement; in progress for 1.5 min")
    assert one_checkpoint(details, {}, 500).splitlines()[0].endswith("for 0 ms"), "clocks that differ"
    history.completed(7, "", 1_300)
    assert checkpoint_tables(history.overview(), 91_000).splitlines()[-1].split()[5] == "300"


def test_the_reason_why_no_checkpoint_is_triggered_follows_the_counts() -> None:
    refusing = history()
    refusing.not_triggered = "not all required tasks are running: Map (1/2) is DEPLOYING"
    shown = checkpoint_tables(refusing.overview(), 3_000).splitlines()
    assert shown[1] == "no checkpoint is triggered: not all required tasks are running: Map (1/2) is DEPLOYING"


def test_checkpoints_of_a_job_are_shown(job: list[Any], capsys: Any) -> None:
    assert said_by(capsys, "checkpoints", "counts").startswith("1 completed, 1 failed, 0 in progress, 0 restored\n")
    assert json.loads(said_by(capsys, "checkpoints", "counts", "--json"))["counts"]["total"] == 2


def test_one_checkpoint_is_shown_by_vertex_with_the_times_of_its_slowest_subtask(job: list[Any], capsys: Any) -> None:
    head, path, _, names, _, row = said_by(capsys, "checkpoints", "counts", "1").splitlines()
    assert head == "checkpoint 1  completed  triggered 1970-01-01 00:00:01, 250 ms" and path == "/checkpoints/chk-1"
    assert names.split("  ")[0] == "vertex" and names.endswith("in-flight bytes")
    assert row.split() == ["Count", "2/2", "210", "30", "4", "6", "60", "3,000", "200", "7"]
    assert said_by(capsys, "checkpoints", "counts", "2").splitlines()[1] == "the storage is full"
    told = json.loads(said_by(capsys, "checkpoints", "counts", "1", "--json"))
    assert [one["checkpoint"]["sync"] for one in told["tasks"]["a" * 32]["subtasks"]] == [5, 6]


def test_one_checkpoint_is_shown_by_subtask(job: list[Any], capsys: Any) -> None:
    *_, names, _, first, second = said_by(capsys, "checkpoints", "counts", "1", "--subtasks").splitlines()
    assert "rest ms" in names
    shown = [row.replace(",", "").split() for row in (first, second)]
    assert [row[:2] for row in shown] == [["Count", "0"], ["Count", "1"]]
    assert [int(row[2]) for row in shown] == [sum(map(int, row[3:8])) for row in shown]
    assert main(["checkpoints", "counts", "--subtasks"]) == 2
    assert "checkpoints JOB NUMBER --subtasks" in capsys.readouterr().err


def test_a_subtask_that_has_not_acknowledged_has_no_figures() -> None:
    history = CheckpointHistory(10)
    record = CheckpointRecord(7, 1_000, "CHECKPOINT", False, {"a" * 32: [2, 1]})
    history.triggered(record)
    record.acknowledged("a" * 32, 1, CheckpointMetrics(), 1_200)
    details = history.describe(7)
    assert details is not None
    done, late = checkpoint_by_subtask(details, {}, 1_300).splitlines()[-2:]
    assert late.split()[1:] == ["2", *["-"] * 9] and done.split()[1:] == ["1", "200", *["0"] * 4, "200", *["0"] * 3]
