"""What the dashboard's pages say of live jobs, by their own scripts and without a browser.

Their looks, keys and clicks are in `test_dashboard.py`, which needs Chromium.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import playwright
import pytest

from rayflink.cluster.cluster_server import ClusterServer
from rayflink.cluster.pages.static_pages import FILES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
NODE = Path(playwright.__file__).parent / "driver" / "node"
SCRIPT = Path(__file__).with_name("page_without_browser.mjs")


def read_pages(cluster: ClusterServer, *pages: tuple[str, ...]) -> str:
    """Open pages, each until all strings that follow its address are on it, and return what they show."""
    command = [NODE, SCRIPT, FILES, cluster.url, json.dumps(pages)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.mark.spec("S04", "page", "U09", "execution", "checkpoints")
def test_pages_show_live_jobs_their_graphs_failures_and_checkpoints(
    cluster: ClusterServer, jobs: dict[str, str]
) -> None:
    revenue, scores, broken = (f"#/jobs/{jobs[name]}" for name in ("revenue", "scores", "broken"))
    read_pages(
        cluster,
        ("#/jobs", "revenue", "click scores", "<img src=x onerror=alert(1)>", "RUNNING", "Records/s"),
        (f"{revenue}/graph", "Source: orders", "revenue by customer", "warehouse"),
        (f"{scores}/graph", "score with the model", "bottleneck", "back-pressured"),
        (f"{broken}/exceptions", "ValueError: order 20 has no price", "dashboard_jobs.py", "On record"),
        (f"{revenue}/checkpoints", "COMPLETED", "exactly once", "alignment", "async"),
        (f"{revenue}/state", "window-contents", "by key group"),
        (f"{revenue}/configuration", "execution.checkpointing.interval"),
        ("#/taskmanagers", "Slots", "Heard"),
    )
