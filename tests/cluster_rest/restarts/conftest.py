"""A cluster of this process, which commands find by a file of options."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rayflink.cluster.cluster_server import ClusterServer, local_cluster
from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ClusterServer]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    running = local_cluster(Configuration().set(options.REST_PORT, 0))
    running.start()
    address = f"rest.address: 127.0.0.1\nrest.port: {running.url.rpartition(':')[2]}\nrest.token: {running.token}\n"
    (tmp_path / "rayflink.yaml").write_text(f"execution.target: remote\n{address}")
    monkeypatch.setenv("RAYFLINK_CONF", str(tmp_path / "rayflink.yaml"))
    yield running
    running.stop()
