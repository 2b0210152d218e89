"""Requests about the processes that run tasks: Flink's task managers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from rayflink.common.errors import ControlPlaneTimeout
from rayflink.serving.json_requests import FileAnswer, JsonRequest, Refusal, Role, Route

from ...jobs.cluster_job import ClusterJobs
from ...jobs.cluster_process import TASK_MANAGER, ClusterProcess, ClusterProcesses, UnknownProcess
from ..metric_endpoints import AggregatedQuery, MetricQuery
from ..metric_values import Aggregated, MetricEntry, aggregated, entries
from ..typed_requests import TypedEndpoint, versioned
from .process_answers import (
    LogList,
    TaskManagerDetails,
    TaskManagers,
    ThreadDumps,
    log_list,
    metric_strings,
    task_manager,
    task_manager_details,
    thread_dumps,
)
from .profiles import ProfileRequest, Profiles, ProfilingInfo, ProfilingList

__all__ = ["MOST_LOG_BYTES", "TEXT", "TaskManagerEndpoints"]

T = TypeVar("T")
MOST_LOG_BYTES = 8 << 20
"""Bytes of a log that an answer has at most, the newest."""
TEXT = "text/plain; charset=utf-8"


class ProcessesQuery(AggregatedQuery, frozen=True):
    """The parameters of a request for metrics over processes.

    Args:
        taskmanagers: ids, with commas between them; None: all.
    """

    taskmanagers: str | None = None


class TaskManagerEndpoints:
    """Answers requests about the processes that run tasks.

    Args:
        jobs: of the cluster.
        processes: that run their tasks.
        profiles: that were asked for.

    Source: apache/flink package org.apache.flink.runtime.rest.handler.taskmanager.
    """

    def __init__(self, jobs: ClusterJobs, processes: ClusterProcesses, profiles: Profiles) -> None:
        self._jobs, self._processes, self._profiles = jobs, processes, profiles

    def routes(self) -> list[Route]:
        """Return the functions of the requests."""
        process = "/taskmanagers/{taskmanagerid}"
        reads = [
            ("/taskmanagers", TypedEndpoint(self._list)),
            ("/taskmanagers/metrics", TypedEndpoint(self._metrics_of_all, ProcessesQuery)),
            (process, TypedEndpoint(self._details)),
            (f"{process}/logs", TypedEndpoint(self._logs)),
            (f"{process}/logs/{{filename}}", TypedEndpoint(self._named_log)),
            (f"{process}/log", TypedEndpoint(self._log)),
            (f"{process}/stdout", TypedEndpoint(self._stdout)),
            (f"{process}/metrics", TypedEndpoint(self._metrics, MetricQuery)),
            (f"{process}/thread-dump", TypedEndpoint(self._threads)),
            (f"{process}/profiler", TypedEndpoint(self._profile_list)),
            (f"{process}/profiler/{{filename}}", TypedEndpoint(self._profile_page)),
        ]
        profile = TypedEndpoint(self._profile, None, ProfileRequest, "ProfilingRequestBody")
        return [
            *(route for path, endpoint in reads for route in versioned("GET", path, endpoint, Role.READ)),
            *versioned("POST", f"{process}/profiler", profile, Role.OPERATE),
        ]

    def _list(self, request: JsonRequest) -> TaskManagers:
        """Return the processes that run tasks."""
        statuses = self._jobs.statuses()
        return TaskManagers([task_manager(process, statuses) for process in self._processes.list()])

    def _details(self, request: JsonRequest) -> TaskManagerDetails:
        """Return a process with its slots and its memory."""
        process = self._process(request)
        figures = self._ask(request, self._processes.figures)
        return task_manager_details(process, self._jobs.statuses(), figures)

    # metrics

    def _metrics(self, request: JsonRequest, query: MetricQuery) -> list[MetricEntry]:
        """Return metrics of a process; one that is not there has none, and is no error, as in Flink."""
        try:
            process, figures = self._process(request), self._ask(request, self._processes.figures)
        except Refusal as refusal:
            if refusal.status == 404:
                return []
            raise
        return entries(metric_strings(figures, process.memory_bytes), query.wanted)

    def _metrics_of_all(self, request: JsonRequest, query: ProcessesQuery) -> list[Aggregated]:
        """Return metrics over processes."""
        how, ids = query.how(), None if query.taskmanagers is None else set(query.taskmanagers.split(","))
        metrics = []
        for process in self._processes.list():
            if ids is None or process.process_id in ids:
                try:
                    figures = self._processes.figures(process.process_id)
                except UnknownProcess:  # it has ended meanwhile
                    continue
                metrics.append(metric_strings(figures, process.memory_bytes))
        return aggregated(metrics, query.wanted, how)

    # logs

    def _logs(self, request: JsonRequest) -> LogList:
        """Return the files that a process writes."""
        return log_list(self._ask(request, self._processes.log_files))

    def _named_log(self, request: JsonRequest) -> FileAnswer:
        """Return the end of a file that a process writes."""
        return self._file(request, request.parameters["filename"])

    def _log(self, request: JsonRequest) -> FileAnswer:
        """Return the end of the log of a process."""
        return self._file(request, f"{TASK_MANAGER}.log")

    def _stdout(self, request: JsonRequest) -> FileAnswer:
        """Return the end of what the tasks of a process have printed."""
        return self._file(request, f"{TASK_MANAGER}.out")

    def _file(self, request: JsonRequest, name: str) -> FileAnswer:
        try:
            content = self._ask(request, lambda process_id: self._processes.log(process_id, name, MOST_LOG_BYTES))
        except FileNotFoundError as error:
            problem = f"The file {name[:80]} does not exist on the TaskExecutor."
            raise Refusal(404, problem, "GET /taskmanagers/:taskmanagerid/logs shows those that do") from error
        return FileAnswer(content, TEXT)

    # threads and profiles

    def _threads(self, request: JsonRequest) -> ThreadDumps:
        """Return what every thread of a process runs now."""
        return thread_dumps(self._ask(request, self._processes.threads))

    def _profile(self, request: JsonRequest, body: ProfileRequest) -> ProfilingInfo:
        """Begin a profile of a process."""
        process_id = self._process(request).process_id

        def sample(seconds: float, with_idle: bool) -> Sequence[tuple[str, int]]:
            return self._processes.profile(process_id, seconds, with_idle)

        return self._profiles.begin(process_id, body, sample)

    def _profile_list(self, request: JsonRequest) -> ProfilingList:
        """Return the profiles of a process."""
        return self._profiles.list(self._process(request).process_id)

    def _profile_page(self, request: JsonRequest) -> FileAnswer:
        """Return the page of a profile."""
        return self._profiles.page(request.parameters["taskmanagerid"], request.parameters["filename"])

    def _process(self, request: JsonRequest) -> ClusterProcess:
        """Return the process of a request.

        Raises:
            Refusal: it does not live.
        """
        process_id = request.parameters["taskmanagerid"]
        for process in self._processes.list():
            if process.process_id == process_id:
                return process
        raise _unknown(process_id)

    def _ask(self, request: JsonRequest, ask: Callable[[str], T]) -> T:
        """Ask the process of a request.

        Raises:
            Refusal: it does not live, or does not answer.
        """
        process_id = request.parameters["taskmanagerid"]
        try:
            return ask(process_id)
        except UnknownProcess as error:
            raise _unknown(process_id) from error
        except ControlPlaneTimeout as error:
            raise Refusal(503, str(error)) from error


def _unknown(process_id: str) -> Refusal:
    problem = f"Could not find TaskExecutor {process_id[:80]}"
    return Refusal(404, problem, "GET /taskmanagers shows the processes that live")
