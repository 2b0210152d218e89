"""Commands of `rayflink` on jobs of a cluster, and a program in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rayflink import launch
from rayflink.cli.main import main
from rayflink.common import Configuration, JobStatus

from .conftest import Clusters, eventually

pytestmark = pytest.mark.slow
PROGRAM = """
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment


class Doubled:
    def __init__(self, number):
        self.number = 2 * number


env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_source(DataGeneratorSource(Doubled, None, 20), None, "numbers").uid("numbers")
numbers.map(lambda doubled: doubled.number).uid("print").print()
env.execute("endless")
"""


@contextmanager
def running(*options: str, program: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a program by `rayflink run`; its process ends with the block at the latest."""
    command = [sys.executable, "-m", "rayflink", "run", *options, str(program)]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        watch = threading.Timer(30.0, process.kill)
        watch.start()
        try:
            yield process
        finally:
            watch.cancel()
            process.kill()


def test_a_program_is_interrupted_and_commands_find_its_job(
    clusters: Clusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clusters.restart()
    (tmp_path / "job.py").write_text(PROGRAM)
    lines = [f"{key}: {value}" for key, value in clusters.options().items()]
    (tmp_path / "rayflink.yaml").write_text("\n".join(lines))
    monkeypatch.setenv("RAYFLINK_CONF", str(tmp_path / "rayflink.yaml"))
    with running("-p", "1", program=tmp_path / "job.py") as program:
        assert program.stdout is not None and program.stderr is not None
        printed = [program.stdout.readline().strip() for _ in range(3)]
        program.send_signal(signal.SIGINT)
        message = program.stderr.read()
        assert program.wait(30) == 130
    assert printed == ["0", "2", "4"]
    assert "goes on without its driver, which was ended by SIGINT" in message
    assert main(["list"]) == 0
    assert " endless " in capsys.readouterr().out
    assert main(["logs", "endless"]) == 0
    assert "numbers" in (logged := capsys.readouterr().out) and "4" in logged
    assert main(["savepoint", "endless", str(tmp_path)]) == 0
    assert f"Savepoint completed. Path: {tmp_path}" in capsys.readouterr().out
    assert main(["checkpoints", "endless"]) == 0
    assert "1 completed" in capsys.readouterr().out
    assert main(["rescale", "endless", "print=2"]) == 0
    assert "print=2  pause" in capsys.readouterr().out
    assert main(["status", "endless"]) == 0
    assert "RUNNING" in capsys.readouterr().out
    assert main(["stop", "endless", "--savepoint-path", str(tmp_path)]) == 0
    assert "FINISHED" in capsys.readouterr().out
    assert main(["list"]) == 0
    assert f"only jobs of the cluster at http://127.0.0.1:{clusters.port} are visible" in capsys.readouterr().err
    assert main(["status", "endless"]) == 0
    assert "FINISHED" in capsys.readouterr().out
    assert main(["checkpoints", "endless"]) == 0
    assert "3 completed" in (shown := capsys.readouterr().out) and f"{tmp_path}/savepoint-" in shown
    assert main(["list", "-D", "rest.token=another"]) == 1
    assert "set rest.token to a token of that cluster" in capsys.readouterr().err


def test_a_job_that_ends_with_its_client_is_cancelled_by_a_signal(clusters: Clusters, tmp_path: Path) -> None:
    clusters.restart()
    (tmp_path / "job.py").write_text(PROGRAM)
    settings = {**clusters.options(), "execution.shutdown-on-attached-exit": "true"}
    options = [f"-D{key}={value}" for key, value in settings.items()]
    with running(*options, program=tmp_path / "job.py") as program:
        assert program.stdout is not None and program.stderr is not None
        assert program.stdout.readline() == "0\n"
        program.send_signal(signal.SIGTERM)
        assert "was cancelled by SIGTERM" in program.stderr.read()
        assert program.wait(30) == 130
    [job] = launch.recorded_jobs(Configuration.from_dict(clusters.options()))
    assert job["state"] == JobStatus.CANCELED.value


def test_a_job_whose_client_is_gone_is_cancelled(clusters: Clusters) -> None:
    env = clusters.environment({"client.heartbeat.timeout": "200 ms", "execution.shutdown-on-attached-exit": "true"})
    env.from_sequence(1, 2**40).add_sink(lambda number: None)
    client = env.execute_async("left")
    client._job.release()  # its thread ends, as it does with its process
    options = Configuration.from_dict(clusters.options())
    assert eventually(lambda: launch.attach(client.get_job_id(), options).status()["state"] == "CANCELED")
