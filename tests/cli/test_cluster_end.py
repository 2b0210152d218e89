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


@pytest.mark.slow  # a process of its own
def test_a_cluster_ends_by_a_request_with_its_token(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
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


def _end(url: str, token: str) -> bytes:
    request = urllib.request.Request(f"{url}/cluster", method="DELETE", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        content: bytes = answer.read()
        return content
