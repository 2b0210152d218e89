"""`rayflink run --restore latest`, and -s and -n: how a job goes on by the command line."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rayflink.actors.submission import Submission, keep
from rayflink.actors.user_code import pack
from rayflink.cli.main import main
from rayflink.common.python_files import packed, put_on_path
from rayflink.state.local_storage import LocalStorage


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
    keep(LocalStorage(folder / graph.id), Submission(pack(graph), modules=modules))
    return graph.id


def told(capsys: pytest.CaptureFixture[str]) -> tuple[list[str], str]:
    shown = capsys.readouterr()
    return sorted(re.findall(r"number \d", shown.out)), shown.err


@pytest.mark.slow
@pytest.mark.spec("S10")
@pytest.mark.parametrize("by", ["id", "folder", "checkpoint"])
def test_a_stored_job_runs_without_its_program(by: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    job = stored_job(tmp_path, int)
    words = {
        "id": [job, "--checkpoint-dir", str(tmp_path)],
        "folder": [str(tmp_path / job)],
        "checkpoint": [str(tmp_path / job / "chk-7")],
    }[by]
    assert main(["run", "--restore", "latest", *words]) == 0
    lines, said = told(capsys)
    assert lines == [f"number {n}" for n in range(1, 6)]
    assert said.startswith(f"job 'numbers' ({job}) goes on from its newest checkpoint\n")


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


def test_what_is_not_stored_is_a_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["run", "--restore", "latest", "ab" * 16, "--checkpoint-dir", str(tmp_path)]) == 1
    assert "is not stored in" in capsys.readouterr().err
    assert main(["run", "--restore", "latest", "ab" * 16]) == 2
    assert "give it by --checkpoint-dir" in capsys.readouterr().err
    assert main(["run", "--restore", "latest"]) == 2
    assert "--restore latest takes one word" in capsys.readouterr().err


@pytest.mark.spec("H64", "S17", "V27")
def test_minus_s_and_minus_n_are_options_of_the_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    script = tmp_path / "job.py"
    script.write_text(
        "from rayflink.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_collection([1]).print()\n"
        "config = env.get_job_graph().configuration\n"
        "print(config['execution.state-recovery.path'])\n"
        "print(config.get('execution.state-recovery.ignore-unclaimed-state'))\n"
        "env.execute()\n"
    )
    monkeypatch.chdir(tmp_path)
    for flags in (["-s", "savepoint-1", "-n"], ["--fromSavepoint", "savepoint-1", "--allowNonRestoredState"]):
        assert main(["run", "--local", *flags, str(script)]) == 1
        shown = capsys.readouterr()
        assert shown.out.splitlines()[:2] == [str(tmp_path / "savepoint-1"), "true"]
        assert f"there is no checkpoint or savepoint at {tmp_path / 'savepoint-1'}" in shown.err
