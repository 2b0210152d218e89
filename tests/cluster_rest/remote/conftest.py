"""Clusters in this process, and environments whose jobs run there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rayflink.cluster.cluster_server import ClusterServer, local_cluster
from rayflink.cluster.dispatcher.dispatcher import Dispatcher
from rayflink.common.configuration import Configuration
from rayflink.datastream import StreamExecutionEnvironment

TOKEN = "token of the tests"


def eventually(condition: Callable[[], Any], within_s: float = 20.0) -> Any:
    """Return what the condition is, as soon as that counts as true, else what it was at the last look."""
    until = time.monotonic() + within_s
    while not (value := condition()) and time.monotonic() < until:
        threading.Event().wait(0.02)
    return value


class Clusters:
    """The clusters of a test, which end with it.

    Args:
        registry: of all of them.
    """

    def __init__(self, registry: Path) -> None:
        self._registry = registry
        self._clusters: list[ClusterServer] = []
        self.port = 0

    def start(self) -> ClusterServer:
        """Start the next cluster, on the port of the first."""
        settings = {"rest.port": str(self.port), "rest.token": TOKEN}
        self._clusters.append(local_cluster(Configuration.from_dict(settings), str(self._registry)))
        self._clusters[-1].start()
        self.port = int(self._clusters[-1].url.rpartition(":")[2])
        return self._clusters[-1]

    def stop(self) -> None:
        """Stop the last one."""
        self._clusters.pop().stop()

    @property
    def dispatcher(self) -> Dispatcher:
        """Return the dispatcher of the last one."""
        return self._clusters[-1].dispatcher

    def restart(self) -> None:
        """Stop the last one, and start another in its place."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop what runs."""
        while self._clusters:
            self.stop()

    def options(self) -> dict[str, str]:
        """Return the options of a client."""
        own = {"execution.target": "remote", "rest.address": "127.0.0.1", "rest.port": str(self.port)}
        return {**own, "rest.token": TOKEN, "rest.retry.delay": "200 ms"}

    def environment(self, more: dict[str, Any] | None = None) -> StreamExecutionEnvironment:
        """Return an environment whose jobs go to the last cluster."""
        return StreamExecutionEnvironment({**self.options(), **(more or {})})


@pytest.fixture
def clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clusters]:
    """Return the clusters of a test, one of which runs."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    clusters = Clusters(tmp_path / "registry")
    clusters.start()
    yield clusters
    clusters.close()
