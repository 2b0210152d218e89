"""A job that spans two nodes gives the same answers, and knows what it received from which."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.cluster import two_nodes

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.mark.spec("X66", "N04")
def test_golden_jobs_span_two_nodes_with_remote_channels(repository, tmp_path):
    env = {key: value for key, value in os.environ.items() if key not in ("RAY_ADDRESS", "RAY_AUTH_MODE")}
    env["PYTHONPATH"] = str(repository)
    command = [sys.executable, two_nodes.__file__, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, env=env)
    assert done.returncode == 0, done.stderr
    told = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    assert told["spilled"] == {"state": "FAILED", "nodes": 2, "folders": 2, "left": []}
    jobs = told["jobs"]
    assert [job["name"] for job in jobs] == list(two_nodes.WANTED)
    for job in jobs:
        assert job["nodes"] == 2
        assert job["numBytesInRemote"] > 0
        assert job["numBytesInLocal"] + job["numBytesInRemote"] == job["numBytesIn"]
    assert sum(job["numBytesInLocal"] for job in jobs) > 0
