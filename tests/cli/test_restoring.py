"""`rayflink run --restore latest`, and -s and -n: how a job goes on by the command line."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rayflink import launch
from rayflink.actors.job.submission import Submission, store_submission
from rayflink.actors.local.in_process import InProcessCluster
from rayflink.actors.messages.states import JobStatus
from rayflink.actors.on_ray.driver.user_program import pack
from rayflink.cli.main import main
from rayflink.common.user_code.python_files import packed, put_on_path
from rayflink.graph.job_graph import JobGraph
from rayflink.state.clock import ManualClock
from rayflink.state.storage.local_storage import LocalStorage


def stored_job(folder: Path, function: Callable[[int], object], python_file: Path | None = None) -> str:
    """What a job's coordinator leaves that was lost before its first checkpoint; its id."""
    from rayflink.datastream import StreamExecutionEnvironment

    env = StreamExecutionEnvironment(
        {
            "execution.target": "local",
            "execution.checkpointing.dir": str(folder),
            "execution.checkpointing.interval": "20 ms",
        }
    )
    env.from_sequence(1, 5).map(lambda number: print("number", function(number))).add_sink(lambda nothing: None)
    if python_file is not None:
        env.add_python_file(str(python_file))
    graph = env.get_job_graph("numbers")
    modules = packed([] if python_file is None else [str(python_file)])
    store_submission(LocalStorage(folder / graph.id), Submission(pack(graph), modules=modules))
    return graph.id


def retained_job(folder: Path, stored_in: Path) -> str:
    """What a job leaves that was cancelled and keeps its checkpoints, as its coordinator on Ray stores it; its id."""
    from rayflink.connectors.generator import DataGeneratorSource
    from rayflink.datastream import StreamExecutionEnvironment

    env = StreamExecutionEnvironment(
        {
            "execution.target": "local",
            "execution.checkpointing.dir": str(folder),
            "execution.checkpointing.interval": "10 ms",
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        }
    )
    source = DataGeneratorSource(lambda n: n, 400, records_per_second=1_000)
    numbers = env.from_source(source, None, "numbers").map(lambda n: ("all", 1)).key_by(lambda pair: pair[0]).sum(1)
    numbers.map(lambda pair: print("number", pair[1])).add_sink(lambda nothing: None)
    graph = env.get_job_graph("numbers")
    clock = ManualClock(1_000_000)  # only waiting moves it on: half of the records have come at checkpoint 20
    cluster = InProcessCluster(graph, clock, lambda ms: clock.advance(max(int(ms), 1)))
    checkpoints = cluster.job.checkpoints
    while checkpoints.latest is None or checkpoints.latest.manifest.checkpoint_id < 20:
        assert cluster.result is None
        if not cluster.turn():
            cluster.pause()
    cluster.cancel()
    assert cluster.run().status is JobStatus.CANCELED
    store_submission(LocalStorage(stored_in / graph.id), Submission(pack(graph)))
    return graph.id


def told(capsys: pytest.CaptureFixture[str]) -> tuple[list[str], str]:
    shown = capsys.readouterr()
    return sorted(re.findall(r"number \d", shown.out)), shown.err


@pytest.mark.slow
@pytest.mark.spec("S10")
@pytest.mark.parametrize("by", ["id", "option", "folder", "checkpoint"])
def test_a_stored_job_runs_without_its_program(by: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    job = stored_job(tmp_path, int)
    words = {
        "id": [job, "--checkpoint-dir", str(tmp_path)],
        "option": [job, "-D", f"high-availability.storageDir={tmp_path}"],
        "folder": [str(tmp_path / job)],
        "checkpoint": [str(tmp_path / job / "chk-7")],
    }[by]
    assert main(["run", "--restore", "latest", *words]) == 0
    lines, said = told(capsys)
    assert lines == [f"number {n}" for n in range(1, 6)]
    assert said.startswith(f"job 'numbers' ({job}) continues from its newest checkpoint\n")


@pytest.mark.slow
@pytest.mark.spec("S10")
def test_a_stored_job_takes_its_python_files_along(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "path", list(sys.path))
    module = tmp_path / "here" / "stored_with_its_job.py"
    module.parent.mkdir()
    module.write_text("def less_one(number):\n    return number - 1\n")
    put_on_path([str(module)])
    job = stored_job(tmp_path, importlib.import_module("stored_with_its_job").less_one, module)
    module.unlink()
    sys.path.remove(str(module.parent))
    del sys.modules["stored_with_its_job"]
    assert main(["run", "--restore", "latest", str(tmp_path / job)]) == 0
    assert told(capsys)[0] == [f"number {n}" for n in range(5)]


@pytest.mark.slow
def test_a_module_that_was_not_stored_is_named_with_the_option_that_brings_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "path", list(sys.path))
    module = tmp_path / "here" / "not_stored_with_its_job.py"
    module.parent.mkdir()
    module.write_text("def less_one(number):\n    return number - 1\n")
    put_on_path([str(module)])
    job = stored_job(tmp_path, importlib.import_module("not_stored_with_its_job").less_one)
    sys.path.remove(str(module.parent))
    del sys.modules["not_stored_with_its_job"]
    restore = ["run", "--restore", "latest", str(tmp_path / job)]
    assert main(restore) == 1
    said = capsys.readouterr().err
    assert "stored without a module that its program imports: No module named 'not_stored_with_its_job'" in said
    assert "-D python.files=not_stored_with_its_job.py" in said and "Traceback" not in said
    assert main([*restore, "-D", f"python.files={module}"]) == 0
    assert told(capsys)[0] == [f"number {n}" for n in range(5)]


@pytest.mark.slow
@pytest.mark.spec("S10", "H52")
def test_a_stored_job_resumes_from_its_newest_checkpoint_with_the_options_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    job = retained_job(tmp_path / "there", tmp_path / "there")
    (tmp_path / "there").rename(tmp_path / "here")
    capsys.readouterr()
    submitted: list[JobGraph] = []
    submit = launch.submit
    monkeypatch.setattr(launch, "submit", lambda graph, given: submitted.append(graph) or submit(graph, given))
    monkeypatch.chdir(tmp_path)
    options = ["-D", "execution.checkpointing.interval=1 h", "-D", "restart-strategy.type=none"]
    assert main(["run", "--restore", "latest", *options, f"here/{job}"]) == 0
    counts = [int(count) for count in re.findall(r"number (\d+)", capsys.readouterr().out)]
    assert counts[0] > 1 and counts == list(range(counts[0], 401)), "it goes on behind the checkpoint"
    (graph,) = submitted
    assert graph.configuration["execution.checkpointing.interval"] == "1 h"
    assert graph.configuration["restart-strategy.type"] == "none"
    assert not (tmp_path / "there").exists()


@pytest.mark.slow
@pytest.mark.spec("S10")
def test_a_job_that_is_stored_apart_goes_on_from_its_own_checkpoints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    job = retained_job(tmp_path / "checkpoints", tmp_path / "jobs")
    capsys.readouterr()
    assert main(["run", "--restore", "latest", job, "--checkpoint-dir", str(tmp_path / "jobs")]) == 0
    counts = [int(count) for count in re.findall(r"number (\d+)", capsys.readouterr().out)]
    assert counts[0] > 1 and counts == list(range(counts[0], 401))


def test_what_does_not_go_with_a_stored_job_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for given in (["-p", "2"], ["-s", "savepoint"]):
        assert main(["run", "--restore", "latest", *given, str(tmp_path)]) == 2
        assert f"{given[0]} cannot be combined with --restore latest" in capsys.readouterr().err
    stored_job(tmp_path, int)
    (folder,) = tmp_path.iterdir()
    (folder / "ledger").mkdir()
    (folder / "ledger" / "000000001").touch()
    assert main(["run", "--restore", "latest", str(folder.rename(tmp_path / "copy"))]) == 1
    assert "give that folder the job's id as its name" in capsys.readouterr().err


def test_what_is_not_stored_is_a_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["run", "--restore", "latest", "ab" * 16, "--checkpoint-dir", str(tmp_path)]) == 1
    assert "is not stored in" in capsys.readouterr().err
    for number in ("9", "10"):
        (tmp_path / ("ab" * 16) / f"chk-{number}").mkdir(parents=True)
        (tmp_path / ("ab" * 16) / f"chk-{number}" / "_metadata").touch()
    assert main(["run", "--restore", "latest", "ab" * 16, "--checkpoint-dir", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert "those of --local are not: run the program again, with -s " in told and f"{'ab' * 16}/chk-10\n" in told
    assert main(["run", "--restore", "latest", "ab" * 16]) == 2
    assert "give --checkpoint-dir, or the folder" in capsys.readouterr().err
    assert main(["run", "--restore", "latest"]) == 2
    assert "--restore latest takes one argument" in capsys.readouterr().err


@pytest.mark.spec("H64", "path", "program", "S17", "options", "V27", "options")
def test_minus_s_minus_n_and_minus_p_are_options_of_the_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    script = tmp_path / "job.py"
    script.write_text(
        "from rayflink.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_collection([1]).print()\n"
        "config = env.get_job_graph().configuration\n"
        "print(config['execution.state-recovery.path'])\n"
        "print(config.get('execution.state-recovery.ignore-unclaimed-state'), env.get_parallelism())\n"
        "env.execute()\n"
    )
    monkeypatch.chdir(tmp_path)
    for flags in (["-s", "savepoint-1", "-n"], ["--fromSavepoint", "savepoint-1", "--allowNonRestoredState"]):
        assert main(["run", "--local", "-p", "3", *flags, str(script)]) == 1
        shown = capsys.readouterr()
        assert shown.out.splitlines()[:2] == [str(tmp_path / "savepoint-1"), "true 3"]
        assert f"there is no checkpoint or savepoint at {tmp_path / 'savepoint-1'}" in shown.err
