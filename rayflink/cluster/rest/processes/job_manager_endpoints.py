"""Requests about the dispatcher's own process: Flink's job manager."""

from __future__ import annotations

import platform
import sys
from collections import Counter
from collections.abc import Mapping

import msgspec

from rayflink.actors.on_ray.process_files import ProcessFiles
from rayflink.actors.task.process_inspection import ProcessInspection
from rayflink.common.configuration import shown_value
from rayflink.serving.json_requests import FileAnswer, JsonRequest, Refusal, Role, Route
from rayflink.version import __version__

from ...dispatcher.dispatcher_log import JOB_MANAGER
from ...jobs.cluster_job import ClusterJobs, UnknownJob
from ...jobs.cluster_process import ClusterProcesses, LogFile, ThreadDump
from ..metric_endpoints import MetricQuery
from ..metric_values import MetricEntry, entries
from ..typed_requests import TypedEndpoint, hex_id, versioned
from .process_answers import LogList, ThreadDumps, log_list, metric_strings, thread_dumps
from .profiles import ProfileRequest, Profiles, ProfilingInfo, ProfilingList
from .task_manager_endpoints import MOST_LOG_BYTES, TEXT

__all__ = ["JobManagerEndpoints"]


_PROFILED = "JobManager"


class ConfigurationEntry(msgspec.Struct, frozen=True):
    """An option and its value, which is masked where it is a secret."""

    key: str
    value: str


class Interpreter(msgspec.Struct, frozen=True):
    """The interpreter of Python, where Flink has that of Java."""

    version: str
    arch: str
    options: list[str]


class Environment(msgspec.Struct, frozen=True):
    """The dispatcher's interpreter, and where it looks for modules."""

    jvm: Interpreter
    classpath: list[str]


class LogAddress(msgspec.Struct, frozen=True):
    """The address of a page with a log."""

    url: str


class JobManagerEndpoints:
    """Answers requests about the process of the dispatcher.

    Args:
        jobs: of the cluster.
        processes: that run their tasks.
        configuration: of the cluster.
        inspection: of this process.
        files: that it writes.
        profiles: that were asked for.

    Source: apache/flink package org.apache.flink.runtime.rest.handler.cluster.
    """

    def __init__(
        self,
        jobs: ClusterJobs,
        processes: ClusterProcesses,
        configuration: Mapping[str, str],
        inspection: ProcessInspection,
        files: ProcessFiles,
        profiles: Profiles,
    ) -> None:
        self._jobs, self._processes, self._configuration = jobs, processes, configuration
        self._inspection, self._files, self._profiles = inspection, files, profiles

    def routes(self) -> list[Route]:
        """Return the functions of the requests."""
        own, of_job = "/jobmanager", "/jobs/{jobid}/jobmanager"
        reads = [
            (f"{own}/config", TypedEndpoint(self._config)),
            (f"{own}/environment", TypedEndpoint(self._environment)),
            (f"{own}/logs", TypedEndpoint(self._logs)),
            (f"{own}/logs/{{filename}}", TypedEndpoint(self._named_log)),
            (f"{own}/log", TypedEndpoint(self._log)),
            (f"{own}/stdout", TypedEndpoint(self._stdout)),
            (f"{own}/metrics", TypedEndpoint(self._metrics, MetricQuery)),
            (f"{own}/thread-dump", TypedEndpoint(self._threads)),
            (f"{own}/profiler", TypedEndpoint(self._profile_list)),
            (f"{own}/profiler/{{filename}}", TypedEndpoint(self._profile_page)),
            (f"{of_job}/config", TypedEndpoint(self._config_of_job)),
            (f"{of_job}/environment", TypedEndpoint(self._environment_of_job)),
            (f"{of_job}/log-url", TypedEndpoint(self._log_url)),
            ("/jobs/{jobid}/taskmanagers/{taskmanagerid}/log-url", TypedEndpoint(self._log_url_of_process)),
        ]
        profile = TypedEndpoint(self._profile, None, ProfileRequest, "ProfilingRequestBody")
        return [
            *(route for path, endpoint in reads for route in versioned("GET", path, endpoint, Role.READ)),
            *versioned("POST", f"{own}/profiler", profile, Role.OPERATE),
        ]

    # configuration and environment

    def _config(self, request: JsonRequest) -> list[ConfigurationEntry]:
        """Return the options of the cluster, without secrets."""
        options = sorted(self._configuration.items())
        return [ConfigurationEntry(key, shown_value(key, value)) for key, value in options]

    def _environment(self, request: JsonRequest) -> Environment:
        """Return the interpreter of the dispatcher; no variable of its environment, as some are secrets."""
        version = f"{platform.python_implementation()} {platform.python_version()}, rayflink {__version__}"
        chosen = [f"-W {warning}" for warning in sys.warnoptions]
        return Environment(Interpreter(version, platform.machine(), chosen), [path for path in sys.path if path])

    def _config_of_job(self, request: JsonRequest) -> list[ConfigurationEntry]:
        """Return the options of the cluster of a job, without secrets."""
        self._ensure_job(request)
        return self._config(request)

    def _environment_of_job(self, request: JsonRequest) -> Environment:
        """Return the interpreter of the dispatcher of a job."""
        self._ensure_job(request)
        return self._environment(request)

    def _log_url(self, request: JsonRequest) -> LogAddress:
        """Return where the log of the dispatcher is shown."""
        self._ensure_job(request)
        return LogAddress(f"{_origin(request)}/#/job-manager/logs")

    def _log_url_of_process(self, request: JsonRequest) -> LogAddress:
        """Return where the log of a process is shown."""
        self._ensure_job(request)
        return LogAddress(f"{_origin(request)}/#/task-manager/{request.parameters['taskmanagerid']}/logs")

    def _ensure_job(self, request: JsonRequest) -> None:
        try:
            self._jobs.view(hex_id(request, "jobid"))
        except UnknownJob as error:
            raise Refusal(404, str(error)) from error

    # metrics, threads, profiles

    def _metrics(self, request: JsonRequest, query: MetricQuery) -> list[MetricEntry]:
        """Return metrics of the dispatcher and of the cluster."""
        processes, jobs = self._processes.list(), Counter(str(status["state"]) for status in self._jobs.statuses())
        numbers = {
            "numRegisteredTaskManagers": len(processes),
            "numRunningJobs": sum(jobs.values()) - jobs["FINISHED"] - jobs["CANCELED"] - jobs["FAILED"],
            "taskSlotsAvailable": sum(process.free_slots for process in processes),
            "taskSlotsTotal": sum(process.slots for process in processes),
        }
        own = metric_strings(self._inspection.figures(), 0)
        return entries({**own, **{name: str(number) for name, number in numbers.items()}}, query.wanted)

    def _threads(self, request: JsonRequest) -> ThreadDumps:
        """Return what every thread of the dispatcher runs now."""
        return thread_dumps(ThreadDump(*thread) for thread in self._inspection.threads())

    def _profile(self, request: JsonRequest, body: ProfileRequest) -> ProfilingInfo:
        """Begin a profile of the dispatcher."""
        return self._profiles.begin(_PROFILED, body, self._inspection.profile)

    def _profile_list(self, request: JsonRequest) -> ProfilingList:
        """Return the profiles of the dispatcher."""
        return self._profiles.list(_PROFILED)

    def _profile_page(self, request: JsonRequest) -> FileAnswer:
        """Return the page of a profile."""
        return self._profiles.page(_PROFILED, request.parameters["filename"])

    # logs

    def _logs(self, request: JsonRequest) -> LogList:
        """Return the files that the dispatcher writes."""
        return log_list(LogFile(*facts) for facts in self._files.list())

    def _named_log(self, request: JsonRequest) -> FileAnswer:
        """Return the end of a file that the dispatcher writes."""
        return self._file(request.parameters["filename"])

    def _log(self, request: JsonRequest) -> FileAnswer:
        """Return the end of the dispatcher's log."""
        return self._file(f"{JOB_MANAGER}.log")

    def _stdout(self, request: JsonRequest) -> FileAnswer:
        """Return the end of what the dispatcher has printed."""
        return self._file(f"{JOB_MANAGER}.out")

    def _file(self, name: str) -> FileAnswer:
        try:
            return FileAnswer(self._files.read(name, MOST_LOG_BYTES), TEXT)
        except FileNotFoundError as error:
            problem = "This file does not exist in JobManager log dir."
            raise Refusal(404, problem, "GET /jobmanager/logs shows the files that do") from error


def _origin(request: JsonRequest) -> str:
    host = request.headers.get("host", "")
    return f"http://{host}" if host else ""
