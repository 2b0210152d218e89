"""A dispatcher with its HTTP server, as one thing that starts and stops."""

from __future__ import annotations

import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from rayflink.common.configuration import Configuration
from rayflink.common.metrics.prometheus import Sample
from rayflink.common.options import registry as options
from rayflink.common.options.store_options import storage_options
from rayflink.common.text_output.logs import get_logger
from rayflink.serving.http_server import HttpServer
from rayflink.serving.json_application import JsonApplication
from rayflink.serving.json_requests import Route
from rayflink.serving.rest_settings import rest_settings
from rayflink.serving.server_settings import ServerSettings
from rayflink.state.storage.storage import StorageError
from rayflink.state.storage.storage_schemes import open_storage

from .archives.archive_store import ArchiveStore
from .archives.archive_writer import ArchiveWriter
from .dispatcher.dispatcher import Dispatcher, DispatcherSettings
from .dispatcher.dispatcher_log import DispatcherLog
from .dispatcher.job_defaults import job_defaults
from .jobs.cluster_process import ClusterProcesses
from .pages.static_pages import StaticPages
from .registry.counted_storage import CountedStorage
from .rest.absent_requests import AbsentRequests
from .rest.applications import ApplicationEndpoints
from .rest.cluster_operations import ClusterOperations
from .rest.flink_archive import flink_archive
from .rest.job_operations import JobOperations
from .rest.job_rescaling import JobRescaling
from .rest.live_endpoints import LiveEndpoints
from .rest.openapi.openapi_endpoints import OpenApiEndpoints
from .rest.operations import Operations
from .rest.processes.process_endpoints import ProcessEndpoints
from .rest.prometheus_endpoint import PrometheusEndpoint
from .rest.reading_endpoints import ReadingEndpoints
from .rest.remote_job_endpoints import RemoteJobEndpoints
from .rest.restart_endpoints import RestartEndpoints
from .rest.route_order import by_precision
from .rest.submission_endpoints import SubmissionEndpoints
from .runners.local_runner import LocalRunner
from .runners.printed_lines import PrintedLines
from .runners.runner import Runner

__all__ = ["ClusterServer", "local_cluster", "registry_address", "server_settings"]

log = get_logger(__name__)
MOST_WAITING = 256
"""Requests that are worked on at a time: each client of a job has one that waits for news."""


class Topic(Protocol):
    """Requests about one thing."""

    def routes(self) -> list[Route]:
        """Return the functions of the requests."""


class ClusterServer:
    """A session cluster: listens, then brings back the jobs of its registry, and answers.

    >>> from rayflink.common.configuration import Configuration
    >>> cluster = local_cluster(Configuration().set(options.REST_PORT, 0))
    >>> cluster.start()
    >>> cluster.dispatcher.statuses()
    []
    >>> cluster.stop()

    Args:
        configuration: addresses, bounds, and the place of the registry.
        runner: of the jobs.
        registry: address of the registry.
    """

    def __init__(self, configuration: Configuration, runner: Runner, registry: str) -> None:
        get = configuration.get
        how = storage_options(configuration.to_dict())
        archives = get(options.ARCHIVE_FOLDER)
        for_flink = flink_archive if get(options.ARCHIVE_FOR_FLINK) else None
        self._archives = None
        if archives is not None:
            self._archives = ArchiveWriter(ArchiveStore(open_storage(archives, how), for_flink))
        self.shut_down = threading.Event()
        """Set when a client has asked for the end of the cluster, or another dispatcher has taken over.

        Whoever has started the cluster stops it then.
        """
        settings = DispatcherSettings(
            get(options.JOB_STORE_TIME).to_millis() / 1000, get(options.JOB_STORE_CAPACITY), tuple(how.items()),
            job_defaults(configuration.to_dict()), self._archives,
            self.shut_down.set, most_bytes=get(options.JOB_STORE_CACHE).bytes,
        )  # fmt: skip
        self._configuration, self._processes = configuration, runner.processes
        self._log_folder = tempfile.TemporaryDirectory(prefix="rayflink-dispatcher-")
        self._log = DispatcherLog(Path(self._log_folder.name))
        self._storage_options, self._refresh_ms = how, get(options.WEB_REFRESH_INTERVAL).to_millis()
        self._runner = runner
        self._registry = CountedStorage(open_storage(registry, how))
        self.dispatcher = Dispatcher(self._registry, runner, settings)
        """The dispatcher, which can be asked once the cluster has started."""
        self.token = get(options.REST_TOKEN) or secrets.token_urlsafe(32)
        """The token with which programs are submitted, a new one where the options say none."""
        bounds = server_settings(configuration, self.token)
        self._filter_labels = get(options.PROM_FILTER_LABELS)
        self._application = JsonApplication(bounds, self._routes())
        self._server = HttpServer(bounds, self._application)
        self.at_stop: list[Callable[[], None]] = []
        """Functions to call when it has stopped."""

    @property
    def processes(self) -> ClusterProcesses:
        """Return the processes that run the tasks of its jobs."""
        return self._processes

    @property
    def url(self) -> str:
        """Return the address on which it listens, once it has started."""
        return self._server.url

    def start(self) -> None:
        """Listen, take over the registry, and bring back its jobs.

        Raises:
            ServerError: the address is taken.
            StorageError: the registry cannot be read or written.
        """
        self._server.start()
        self._log.start()
        try:
            self.dispatcher.take_over(self._server.url)
            self._begin_archives()  # before the dispatcher forgets ends that have no archive
            self.dispatcher.look_after()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop; jobs on Ray go on, those of this process are brought back by the next cluster with this registry."""
        self.dispatcher.close()  # while clients can still draw the rows that are left
        self._server.stop()
        self._log.stop()
        if self._archives is not None:
            self._archives.close()
        for call in self.at_stop:
            call()
        self._log_folder.cleanup()

    def _begin_archives(self) -> None:
        """Write archives from now on, first those of jobs that ended when no dispatcher could write them."""
        if self._archives is None:
            return
        self._archives.start()
        try:
            self.dispatcher.archive_missing(self._archives.present())
        except StorageError as error:
            log.warning("archives could not be listed: %s", error)

    def _samples(self) -> Iterator[Sample]:
        """Return the metrics of the dispatcher itself."""
        yield from self._application.statistics.samples()
        yield from self._registry.samples()
        dispatcher, help = self.dispatcher, "Number of this dispatcher among those of the registry"
        yield Sample("rayflink_dispatcher_epoch", {}, dispatcher.epoch, help)
        help = "Jobs that were brought back at the beginning"
        yield Sample("rayflink_dispatcher_recovered_jobs", {}, dispatcher.recovered, help)
        help = "1 while another dispatcher leads the cluster"
        yield Sample("rayflink_dispatcher_fenced", {}, dispatcher.fenced is not None, help)

    def _routes(self) -> list[Route]:
        dispatcher, operations, labels = self.dispatcher, Operations(), self._filter_labels
        topics: list[Topic] = [
            SubmissionEndpoints(dispatcher),
            LiveEndpoints(dispatcher, self._storage_options, lineage=dispatcher.lineage, trends=dispatcher.trends),
            PrometheusEndpoint(dispatcher, self._processes, [self._samples], filter_label_values=labels),
            StaticPages(),
            RemoteJobEndpoints(dispatcher, self._runner),
            JobOperations(dispatcher, operations),
            JobRescaling(dispatcher),
            RestartEndpoints(dispatcher, operations),
            ClusterOperations(operations, self.shut_down.set, self._storage_options),
            AbsentRequests(),
            ReadingEndpoints(dispatcher, self._refresh_ms, self._processes),
            ProcessEndpoints(dispatcher, self._processes, self._configuration.to_dict(), self._log.files),
            ApplicationEndpoints(dispatcher),
        ]
        routes = [route for endpoints in topics for route in endpoints.routes()]
        return by_precision([*routes, *OpenApiEndpoints(routes).routes()])


def local_cluster(configuration: Configuration, registry: str | None = None) -> ClusterServer:
    """Return a cluster whose jobs run in threads of this process.

    Args:
        configuration: addresses and bounds.
        registry: address of its registry; None: a temporary folder, which goes with the cluster.
    """
    folder = tempfile.TemporaryDirectory(prefix="rayflink-cluster-")
    lines = PrintedLines(Path(folder.name) / "logs")
    cluster = ClusterServer(configuration, LocalRunner(lines), registry or str(Path(folder.name) / "registry"))
    lines.install()
    cluster.at_stop += [lines.remove, folder.cleanup]
    return cluster


def registry_address(configuration: Configuration) -> str | None:
    """Return the address of the registry that the options say; None: they say none.

    It is the folder high-availability.cluster-id in high-availability.storageDir, else in the directory of checkpoints.
    """
    above = configuration.get(options.HA_STORAGE_DIR) or configuration.get(options.CHECKPOINT_DIRECTORY)
    return f"{above.rstrip('/')}/cluster-{configuration.get(options.CLUSTER_ID)}" if above else None


def server_settings(configuration: Configuration, token: str | None) -> ServerSettings:
    """Return the address and the bounds that the options say.

    Args:
        token: of the role SUBMIT.

    Raises:
        ConfigError: an option is wrong, or they do not fit each other.
    """
    get = configuration.get
    bounds = rest_settings(configuration, get(options.REST_BIND_ADDRESS), get(options.REST_PORT), token)
    return replace(bounds, most_connections=get(options.REST_CONNECTIONS), most_waiting=MOST_WAITING)
