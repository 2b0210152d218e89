"""A Ray whose autoscaler starts nodes on this machine and ends them: real processes, as on a cloud.

`ray.cluster_utils.AutoscalingCluster` does so too, but ends every Ray of the machine, and its wheel lacks a file.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.cluster.head import ROOT, free_ports
from tests.cluster.watching import eventually

_EMPTY = ("docker", "file_mounts")
_NO_STEPS = (
    "initialization_commands", "setup_commands", "cluster_synced_files", "rsync_exclude", "rsync_filter",
    "head_setup_commands", "worker_setup_commands", "head_start_ray_commands", "worker_start_ray_commands",
)  # fmt: skip


def _config(address: str, most: int, idle_s: int) -> dict[str, object]:
    worker = {"resources": {"CPU": 1, "object_store_memory": 80 << 20}, "node_config": {}, "min_workers": 0}
    kinds = {"worker": {**worker, "max_workers": most}}
    head = {"resources": {"CPU": 1}, "node_config": {}, "max_workers": 0}
    sharing = {"use_node_id_as_ip": True, "disable_node_updaters": True, "disable_launch_config_check": True}
    return {
        "cluster_name": "fake",
        "max_workers": most,
        "provider": {"type": "fake_multinode", "gcs_address": address, **sharing},
        "available_node_types": {**kinds, "ray.head.default": head},
        "head_node_type": "ray.head.default",
        "upscaling_speed": 100.0,
        "idle_timeout_minutes": idle_s / 60,
        "auth": {"ssh_user": "nobody"},
        "file_mounts_sync_continuously": False,
        **{name: {} for name in _EMPTY},
        **{name: [] for name in _NO_STEPS},
    }


@contextmanager
def growing_cluster(logs: Path, most: int = 3, idle_s: int = 4) -> Iterator[dict[str, str]]:
    """A head node of one CPU, and up to `most` nodes of one; yields the environment of programs that join it."""
    (port,) = free_ports(1)
    folder = tempfile.mkdtemp(prefix="grow-", dir=os.environ.get("RAY_TMPDIR"))
    address = f"127.0.0.1:{port}"
    config = logs / "autoscaling.yaml"
    config.write_text(json.dumps(_config(address, most, idle_s)), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": folder, "AUTOSCALER_UPDATE_INTERVAL_S": "1",
                   "RAY_FAKE_CLUSTER": "1"}  # fmt: skip
    environment.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
    environment.pop("RAY_ADDRESS", None)
    command = [
        sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--disable-usage-stats",
        "--node-ip-address=127.0.0.1", f"--port={port}", f"--temp-dir={folder}", "--num-cpus=1",
        f"--object-store-memory={100 << 20}", f"--autoscaling-config={config}", "--include-dashboard=false",
    ]  # fmt: skip
    with open(logs / "head.log", "wb") as log:
        head = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        is_up = eventually(lambda: "Ray runtime started" in (logs / "head.log").read_text(), within_s=90)
        assert is_up, (logs / "head.log").read_text()
        yield {**environment, "RAY_ADDRESS": address}
    finally:
        head.send_signal(signal.SIGTERM)
        try:
            head.wait(timeout=60)
        finally:
            for process in processes_of(folder):  # the nodes that its autoscaler has started outlive it
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            shutil.rmtree(folder, ignore_errors=True)


def processes_of(folder: str) -> list[psutil.Process]:
    """The processes whose TMPDIR is a folder."""
    there = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if process.environ().get("TMPDIR") == folder:
                there.append(process)
    return there
