"""A cluster that was started by a command ends when a client with the right to it asks for that."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from benchmarks.servers.bound_process import start_bound
from rayflink.cli import cluster
from rayflink.cli.background import Background, BackgroundServer
from rayflink.cli.main import main


@pytest.mark.slow  # a process of its own
def test_a_cluster_ends_by_a_request_with_its_token(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    command = [sys.executable, "-m", "rayflink", "cluster", "run", "--local", "-D", "rest.port=0"]
    command += ["-D", f"high-availability.storageDir={tmp_path}", "--state-file", str(state)]
    process = start_bound(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    try:
        lines = []
        for line in process.stdout:
            lines.append(line.decode())
            if "listens on" in lines[-1]:
                break
        server = json.loads(state.read_text())
        with pytest.raises(urllib.error.HTTPError) as refused:
            _end(server["url"], "wrong")
        assert refused.value.code == 401 and process.poll() is None
        assert _end(server["url"], server["token"]) == b"{}"
        assert process.wait(30) == 0, "".join(lines)
        assert b"cluster stopped" in process.stdout.read()
    finally:
        process.kill()
        process.wait()


def test_a_cluster_stops_once_its_cancelled_jobs_have_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = iter(["RUNNING", "CANCELLING", "CANCELLING", "CANCELED"])
    asked: list[str] = []

    def ask(server: BackgroundServer, method: str, path: str) -> dict[str, list[dict[str, str]]]:
        asked.append(method)
        return {"jobs": [{"jid": "ab", "name": "counts", "state": next(looks)}] if method == "GET" else []}

    def stop(background: Background, server: BackgroundServer) -> bool:
        asked.append("stop")
        return True

    monkeypatch.setattr(cluster, "ask", ask)
    monkeypatch.setattr(cluster, "LOOK_S", 0.0)
    monkeypatch.setattr(Background, "running", lambda background: BackgroundServer(1, "", "http://cluster"))
    monkeypatch.setattr(Background, "stop", stop)
    assert main(["cluster", "stop", "--cancel-jobs"]) == 0
    assert asked == ["GET", "PATCH", "GET", "GET", "GET", "stop"]
    assert capsys.readouterr().out == "ab  CANCELED  counts\ncluster stopped\n"
    looks = iter(["RUNNING", "CANCELLING"])
    monkeypatch.setattr(cluster, "CANCELLED_S", -1.0)
    assert main(["cluster", "stop", "--cancel-jobs"]) == 1
    assert "the cluster goes on, as jobs have not ended yet: counts (ab)" in capsys.readouterr().err
    assert asked.count("stop") == 1


def _end(url: str, token: str) -> bytes:
    request = urllib.request.Request(f"{url}/cluster", method="DELETE", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        content: bytes = answer.read()
        return content
