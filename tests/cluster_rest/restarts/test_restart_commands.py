"""`rayflink restart`: what it refuses, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from rayflink.cli.main import main
from rayflink.cluster.cluster_server import ClusterServer
from tests.cluster.watching import eventually
from tests.cluster_rest.restarts.lines_jobs import LinesJob

pytestmark = pytest.mark.slow


def test_commands_say_why_a_job_cannot_be_started_again(
    cluster: ClusterServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = LinesJob(tmp_path, retains=False)
    cluster.dispatcher.submit(lines.priced().encode(), "tests")
    assert eventually(lambda: main(["list"]) == 0 and "no jobs" in capsys.readouterr().out, within_s=60)
    assert main(["restart", "orders"]) == 1
    assert "choose to start it from nothing" in capsys.readouterr().err
    assert main(["restart", "orders", "-s", str(tmp_path / "gone")]) == 1
    assert "no checkpoint or savepoint at" in capsys.readouterr().err
    assert main(["restart", "odrers"]) == 1
    assert "no job 'odrers'" in capsys.readouterr().err
    assert main(["restart", "orders", "prise=2", "--from-nothing"]) == 1
    assert "no operator 'prise'" in capsys.readouterr().err
    monkeypatch.delenv("RAYFLINK_CONF")
    assert main(["restart", "orders"]) == 2
    assert "-D execution.target=remote" in capsys.readouterr().err
