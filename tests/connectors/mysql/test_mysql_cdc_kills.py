"""A job that is killed again and again writes each change once, from the first row of the snapshot on."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.servers.mysql_server import MySqlServer
from tests.connectors.cdc.collected_changes import derived, eventually
from tests.connectors.mysql.change_jobs import Writer, fill, is_ended, marker, table

ROOT = Path(__file__).parent.parent.parent.parent


def newest(checkpoints: Path) -> str:
    """The newest complete checkpoint; "" where there is none."""
    found = list(checkpoints.glob("**/chk-*/_metadata"))
    return str(max(found, key=lambda path: path.stat().st_mtime_ns).parent) if found else ""


def records(output: Path) -> list[dict[str, Any]]:
    """The committed records, snapshot first, then in the order of the log."""
    files = sorted(output.glob("part-*"), key=lambda path: path.stat().st_mtime_ns)
    found = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    return sorted(found, key=lambda record: (record["source"]["file"] or "", record["source"]["pos"] or 0))


def start(server: MySqlServer, folder: Path, parallelism: int) -> subprocess.Popen[bytes]:
    checkpoints = folder / "checkpoints"
    command = [sys.executable, "-m", "tests.connectors.mysql.killed_changes", server.port, folder / "out", checkpoints]
    with open(folder / "log", "ab") as log:
        return subprocess.Popen(
            [*map(str, command), str(parallelism), newest(checkpoints)], cwd=ROOT, stdout=log, stderr=log,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip


def rounds(server: MySqlServer, folder: Path, seed: int, kills: int) -> None:
    """Kill a job some times while the table changes, and compare what it has written with the table."""
    rng, output = random.Random(seed), folder / "out"
    fill(server, 4000)
    writer = Writer(server, seed, 5000)
    for number in range(kills):
        before = newest(folder / "checkpoints")
        job = start(server, folder, rng.choice([1, 2, 3]))

        def goes_on(job: subprocess.Popen[bytes] = job, before: str = before) -> bool:
            assert job.poll() is None, (folder / "log").read_text()[-3000:]
            return newest(folder / "checkpoints") != before

        eventually(goes_on)
        try:
            job.wait(rng.uniform(0, 0.4) if number else 0.05)
        except subprocess.TimeoutExpired:
            job.kill()
            job.wait()
    job = start(server, folder, 2)
    try:
        eventually(lambda: sum(record["op"] != "r" for record in records(output)) > 300, 60)
        writer.end()
        marker(server)
        eventually(lambda: is_ended(records(output)), 60, lambda: (folder / "log").read_text()[-2000:])
    finally:
        job.kill()
        job.wait()
    written = records(output)
    assert derived(written) == table(server)
    assert writer.written > 100 and any(record["op"] == "r" for record in written)


@pytest.mark.slow
def test_a_job_that_is_killed_writes_each_change_once(server, tmp_path):
    rounds(server, tmp_path, 1, 3)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 8))
def test_a_job_that_is_killed_often_writes_each_change_once(server, tmp_path, seed):
    rounds(server, tmp_path, seed, 12)
