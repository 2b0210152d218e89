"""The history server: jobs that have ended, after their cluster has gone, with the same requests and pages."""

from __future__ import annotations

import threading

from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError
from rayflink.common.options import registry as options
from rayflink.serving.http_server import HttpServer
from rayflink.serving.json_application import JsonApplication
from rayflink.serving.json_requests import Answer, JsonRequest, Role, Route
from rayflink.serving.rest_settings import rest_settings
from rayflink.serving.server_settings import ServerSettings

from .archives.archive_folders import archive_folders, configured_archives
from .archives.archived_jobs import ArchivedJobs
from .pages.static_pages import StaticPages
from .rest.live_endpoints import LiveEndpoints
from .rest.reading_endpoints import ReadingEndpoints
from .rest.route_order import by_precision

__all__ = ["HistoryServer", "history_settings"]


class HistoryServer:
    """Listens, and answers about the jobs of folders of archives.

    Args:
        configuration: addresses, bounds, and the folders.

    Raises:
        ConfigError: no folder is named, or another option is wrong.
        StorageError: a folder is refused.
    """

    def __init__(self, configuration: Configuration) -> None:
        get = configuration.get
        archives = configured_archives(configuration, deletes=True)
        if archives is None:
            wanted = "folders with archives, which a dispatcher writes to its jobmanager.archive.fs.dir"
            raise ConfigError(options.HISTORY_FOLDERS.key, "nothing", wanted, f"set {options.HISTORY_FOLDERS.key}")
        self.jobs: ArchivedJobs = archives
        """The jobs that it shows."""
        self._folders = archive_folders(configuration)
        self._refresh_s = get(options.HISTORY_REFRESH).to_millis() / 1000
        self._page_refresh_ms = get(options.HISTORY_WEB_REFRESH).to_millis()
        settings = history_settings(configuration)
        self._server = HttpServer(settings, JsonApplication(settings, self._routes()))
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._refresh, name="archives", daemon=True)

    @property
    def url(self) -> str:
        """Return the address on which it listens, once it has started."""
        return self._server.url

    def start(self) -> None:
        """Look for archives, and listen.

        Raises:
            ServerError: the address is taken.
        """
        self.jobs.refresh()
        self._server.start()
        self._thread.start()

    def stop(self) -> None:
        """Stop."""
        self._stopped.set()
        self._server.stop()
        if self._thread.ident is not None:
            self._thread.join()

    def _refresh(self) -> None:
        while not self._stopped.wait(self._refresh_s):
            self.jobs.refresh()

    def _routes(self) -> list[Route]:
        own = Route("GET", "/rayflink/history", self._describe, Role.READ)
        reading = ReadingEndpoints(self.jobs, self._page_refresh_ms, is_history=True)
        return by_precision(
            [own, *reading.routes(), *LiveEndpoints(self.jobs).routes(), *StaticPages().routes()]
        )

    def _describe(self, request: JsonRequest) -> Answer:
        return {"folders": self._folders, **self.jobs.figures()}


def history_settings(configuration: Configuration) -> ServerSettings:
    """Return the address and the bounds that the options say.

    Raises:
        ConfigError: an option is wrong, or they do not fit each other.
    """
    get = configuration.get
    return rest_settings(
        configuration, get(options.HISTORY_ADDRESS), get(options.HISTORY_PORT), get(options.REST_TOKEN)
    )
