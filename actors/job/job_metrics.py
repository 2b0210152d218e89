"""The metrics of a job as a whole, under Flink's names; nothing here reads a clock.

Source: apache/flink JobStatusMetrics, UpTimeGauge, DownTimeGauge.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rayflink.common.metrics import metric_names as names
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.metrics.metric_scopes import ScopeFormats

from ..messages.checkpoint_settings import CheckpointSettings
from ..messages.states import JobStatus

_TIMED = (JobStatus.CREATED, JobStatus.RUNNING, JobStatus.RESTARTING, JobStatus.FAILING, JobStatus.CANCELLING)
_DOWN = (JobStatus.RESTARTING, JobStatus.FAILING)


class JobMetrics:
    """The metric group of a job in its coordinator.

    Args:
        config: of the job, option key -> value.
    """

    def __init__(self, job_id: str, job_name: str, config: Mapping[str, Any]) -> None:
        self.group = MetricGroup(job_id)
        self._job_id, self._job_name, self._formats = job_id, job_name, ScopeFormats.of(config)
        self._status, self._since_ms, self._now_ms, self._restarts = JobStatus.INITIALIZING, 0, 0, 0
        self.scope = self.host = ""
        self.located("localhost")
        gauge = self.group.gauge
        gauge(names.UPTIME, self._uptime)
        gauge(names.DOWNTIME, self._downtime)
        gauge(names.NUM_RESTARTS, lambda: self._restarts)
        interval_ms = CheckpointSettings.of(config).interval_ms or 0
        gauge(names.CHECKPOINT_INTERVAL, lambda: interval_ms)
        for status in _TIMED:
            gauge(f"{status.value.lower()}Time", partial(self._time_in, status))

    def located(self, host: str) -> None:
        """Set the place where the coordinator runs."""
        self.host = host
        variables = {"<host>": host, "<job_id>": self._job_id, "<job_name>": self._job_name}
        self.scope = self._formats.bound(self._formats.jm_job, variables)
        self.group.identify(self.scope, self._formats.delimiter, ("jobmanager", "job"), variables)

    def update(self, status: JobStatus, timestamps: Mapping[str, int], restarts: int, now_ms: int) -> None:
        """Update the metrics with the job's state at `now_ms`.

        Args:
            timestamps: state -> when it was entered.
            restarts: of the subtask that was started again most often.
        """
        self._status, self._restarts, self._now_ms = status, restarts, now_ms
        self._since_ms = timestamps.get(status.value, now_ms)

    def _uptime(self) -> int:
        return -1 if self._status.is_terminal else self._time_in(JobStatus.RUNNING)

    def _downtime(self) -> int:
        return -1 if self._status.is_terminal else max(map(self._time_in, _DOWN))

    def _time_in(self, status: JobStatus) -> int:
        return self._now_ms - self._since_ms if self._status is status else 0
