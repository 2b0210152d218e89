"""The metrics of a cluster as Prometheus scrapes them: the dispatcher, its jobs, their tasks and operators."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from rayflink.common.errors import RayflinkError, described
from rayflink.common.job_status import JobStatus
from rayflink.common.metrics.process_samples import process_samples
from rayflink.common.metrics.prometheus import Sample, written
from rayflink.common.metrics.prometheus_status import job_samples, operator_samples, task_samples
from rayflink.common.metrics.prometheus_text import accepted_format, exposition
from rayflink.common.text_output.logs import get_logger
from rayflink.serving.json_requests import Answer, FileAnswer, JsonRequest, Role, Route
from rayflink.version import __version__

from ..jobs.cluster_job import ClusterJobs, Document
from ..jobs.cluster_process import ClusterProcesses

__all__ = ["MOST_BYTES", "PrometheusEndpoint", "cluster_samples"]

log = get_logger(__name__)
MOST_BYTES = 64 << 20
"""Bytes of an answer; what has no room, operators first, is left out and counted."""
SampleSource = Callable[[], Iterable[Sample]]
_JOB_LABELS = ("jid", "name", "state")


class PrometheusEndpoint:
    """Answers Prometheus: `GET /metrics`.

    The names and labels of Flink's metrics are those of its PrometheusReporter, with the dispatcher as the reporter of
    all processes; what Flink does not have begins with `rayflink_` or, of this process, with `process_`.

    Args:
        jobs: of the cluster.
        processes: that run tasks; None: they are not counted.
        sources: further metrics of the dispatcher.
        host: of the dispatcher.
        filter_label_values: whether "_" stands for all but letters, digits, ":" and "_" in values of labels.
        most_bytes: of an answer.
    """

    def __init__(
        self,
        jobs: ClusterJobs,
        processes: ClusterProcesses | None = None,
        sources: Sequence[SampleSource] = (),
        host: str = "localhost",
        filter_label_values: bool = True,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._jobs, self._processes, self._sources, self._host = jobs, processes, tuple(sources), host
        self._filter_label_values, self._most_bytes = filter_label_values, most_bytes

    def routes(self) -> list[Route]:
        """Return the function of the one request."""
        return [Route("GET", "/metrics", self._metrics, Role.READ)]

    def _metrics(self, request: JsonRequest) -> Answer:
        """Return the metrics of the cluster and of all its jobs, as text for Prometheus."""
        text_format = accepted_format(request.headers.get("accept", ""))
        own = chain(process_samples(), *(source() for source in self._sources))
        slots = [] if self._processes is None else _slots(self._processes, self._host)
        of_jobs = cluster_samples(self._jobs.statuses(), self._host, self._filter_label_values)
        content = exposition(chain(own, slots, of_jobs), text_format, self._most_bytes)
        return FileAnswer(content, text_format.value)


def cluster_samples(
    statuses: Sequence[Document], host: str = "localhost", filter_label_values: bool = True
) -> Iterator[Sample]:
    """Return the metrics of all jobs: first their number, then each job, its tasks, its operators.

    >>> [(s.labels["state"], s.value) for s in cluster_samples([]) if s.name == "rayflink_jobs"][:2]
    [('INITIALIZING', 0), ('CREATED', 0)]
    """
    yield Sample("rayflink_build_info", {"version": __version__, "python": platform.python_version()}, 1, "Versions")
    states = Counter(status["state"] for status in statuses)
    for known in JobStatus:
        yield Sample("rayflink_jobs", {"state": known.value}, states[known.value], "Jobs that the cluster knows")
    running = states[JobStatus.RUNNING.value]
    help = "numRunningJobs (scope: jobmanager)"
    yield Sample("flink_jobmanager_numRunningJobs", {"host": host}, running, help)
    for status in statuses:
        job_id, name, state = (str(status[key]) for key in _JOB_LABELS)
        name = written(name) if filter_label_values else name  # as in the series of Flink
        labels = {"job_id": job_id, "job_name": name, "state": state}
        yield Sample("rayflink_job_state", labels, 1, "1 for the state in which a job is")
        yield from _waiting(status, labels)
    for part in (job_samples, task_samples, operator_samples):
        for status in statuses:
            yield from part(status, filter_label_values)


def _waiting(status: Document, labels: dict[str, str]) -> Iterator[Sample]:
    """Return whether a job that has not ended waits for slots."""
    if not JobStatus(status["state"]).is_terminal:
        own = {name: value for name, value in labels.items() if name != "state"}
        yield Sample("rayflink_job_waiting_for_slots", own, bool(status.get("waiting")), "1 while it waits for slots")


def _slots(processes: ClusterProcesses, host: str) -> list[Sample]:
    """Return the number of processes and slots, under Flink's names; [] where the cluster does not answer now."""
    try:
        known = processes.list()
    except RayflinkError as error:
        log.warning("the processes of the cluster are not counted: %s", described(error))
        return []
    amounts = {
        "numRegisteredTaskManagers": len(known),
        "taskSlotsTotal": sum(process.slots for process in known),
        "taskSlotsAvailable": sum(process.free_slots for process in known),
    }
    return [
        Sample(f"flink_jobmanager_{name}", {"host": host}, amount, f"{name} (scope: jobmanager)")
        for name, amount in amounts.items()
    ]
