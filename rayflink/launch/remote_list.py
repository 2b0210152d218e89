"""The jobs of a cluster and their logs, as its dispatcher has them."""

from __future__ import annotations

import json
from typing import Any

from rayflink.actors.on_ray.task_log import LogLine
from rayflink.common.configuration import Configuration

from .cluster_client import ClusterClient, ClusterRequest

__all__ = ["RemoteJobLog", "RemoteJobs"]


class RemoteJobs:
    """The jobs of the cluster that the options name.

    Args:
        configuration: of the client.

    Raises:
        ConfigError: there is no cluster.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._cluster = ClusterClient.of(configuration)

    def running(self) -> list[dict[str, Any]]:
        """Return the status of every job that has not ended, those that began last first.

        Raises:
            ClusterUnreachable, RequestRefused: the dispatcher does not answer, or refuses.
        """
        return self._statuses("false")

    def all(self) -> list[dict[str, Any]]:
        """Return the status of every job that the dispatcher remembers, in order of their beginning.

        Raises:
            ClusterUnreachable, RequestRefused: the dispatcher does not answer, or refuses.
        """
        return self._statuses("true")[::-1]

    def _statuses(self, ended: str) -> list[dict[str, Any]]:
        request = ClusterRequest("GET", "/rayflink/statuses", {"ended": ended})
        jobs: list[dict[str, Any]] = self._cluster.document(request)["jobs"]
        return jobs


class RemoteJobLog:
    """The log of a job, read through the dispatcher.

    Args:
        job_id: 32 hex digits.
        configuration: of the client.

    Raises:
        ConfigError: there is no cluster.
    """

    def __init__(self, job_id: str, configuration: Configuration) -> None:
        self._job_id, self._cluster = job_id, ClusterClient.of(configuration)
        self._positions: dict[str, int] = {}

    def read(self) -> list[LogLine]:
        """Return the lines that have come since the last call, in order of time.

        Raises:
            ClusterUnreachable, RequestRefused: the dispatcher does not answer, or refuses.
        """
        lines: list[LogLine] = []
        path = f"/rayflink/jobs/{self._job_id}/log"
        while True:
            body = json.dumps({"positions": self._positions}).encode()
            answer = self._cluster.document(ClusterRequest("POST", path, None, body))
            if not answer["positions"]:
                return sorted(lines, key=lambda line: line.at_ms)
            self._positions |= answer["positions"]
            lines += [LogLine(*fields) for fields in answer["lines"]]
