"""The main job as users run it on a cluster, by `ray start` on two nodes and `ray job submit`; processes are lost."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rayflink.spark.java import find_java
from tests.cluster.head import ROOT, Head, head_node
from tests.cluster.watching import eventually
from tests.flights_by_polars import check_hours, check_printed, expected_hours, real_tables

pytestmark = [pytest.mark.spark, pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(700)]
EXECUTOR = ("io.ray.runtime.runner.worker.DefaultWorker", "-Xmx1024M")


@pytest.fixture
def head(tmp_path: Path) -> Iterator[Head]:
    """Two nodes of three CPUs: two for an executor each, one for a slot."""
    pytest.importorskip("raydp")
    path = os.pathsep.join([str(find_java() / "bin"), os.environ["PATH"]])
    with head_node(tmp_path, cpus=3, workers=1, memory=3 << 30, PATH=path) as running:
        yield running


@pytest.mark.soak
def test_the_main_job_is_exact_though_an_executor_and_a_process_are_lost(head, tmp_path):
    out = tmp_path / "out"
    # A working directory of the job's own would be unpacked twice at one place, as the two nodes are one machine.
    program = [head.python, str(ROOT / "examples" / "flight_pipeline.py"), "--executors", "2", "--out", str(out)]
    submit = [head.python, "-m", "ray.scripts.scripts", "job", "submit", "--address", head.dashboard, "--", *program]
    log = tmp_path / "log"
    with log.open("w") as file:
        running = subprocess.Popen(submit, env=head.environment, stdout=file, stderr=subprocess.STDOUT)
    try:
        # What Spark has cleaned is cached, and shall become blocks.
        cleaned = eventually(lambda: "cancelled" in log.read_text() or running.poll() is not None, within_s=300)
        assert cleaned, log.read_text()
        executors = head.processes(*EXECUTOR)
        assert len(executors) == 2, log.read_text()
        executors[1].send_signal(signal.SIGKILL)
        assert eventually(lambda: list(out.glob("hours/part-*")) or running.poll() is not None, within_s=240)
        slots = head.processes("ray::SlotActor")
        assert slots, log.read_text()
        slots[0].send_signal(signal.SIGKILL)
        assert running.wait(timeout=240) == 0, log.read_text()
    finally:
        running.kill()
    said = log.read_text()
    assert re.search(r"Job 'raysubmit_\w+' succeeded", said)
    tables = real_tables()
    hours = expected_hours(tables)
    check_hours(out / "hours", hours)
    check_printed(said, tables, hours)
    assert (out / "report.png").read_bytes().startswith(b"\x89PNG")
