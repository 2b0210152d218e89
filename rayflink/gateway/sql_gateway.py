"""The gateway: its sessions, and the server that clients reach them by."""

from __future__ import annotations

import threading
from typing import Any

from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError
from rayflink.common.options import registry as options
from rayflink.serving.http_server import HttpServer
from rayflink.serving.json_application import JsonApplication
from rayflink.serving.server_settings import ServerSettings, TlsSettings
from rayflink.shell.sql_session import SqlSession
from rayflink.state.clock import SystemClock

from .gateway_session import GatewaySession, SessionLimits, session_options
from .local_jobs import LocalJobs
from .rest_endpoints import RestEndpoints
from .session_registry import SessionRegistry

__all__ = ["SqlGateway", "server_settings"]

WAIT_S = 0.1
"""Seconds for which a request for rows waits for the first: clients of Flink ask again at once."""


class SqlGateway:
    """Runs statements that Flink's SQL client, its JDBC driver, and others send by HTTP.

    >>> from rayflink.common.configuration import Configuration
    >>> settings = {"sql-gateway.endpoint.rest.port": "0", "execution.target": "local"}
    >>> gateway = SqlGateway(Configuration.from_dict(settings), settings)
    >>> gateway.start()
    >>> gateway.url.startswith("http://127.0.0.1:")
    True
    >>> gateway.stop()

    Args:
        configuration: all options, among them those of the gateway.
        own_options: those of the command line, which hold in every session.

    Raises:
        ConfigError: the address is reached from other machines, and there is no token; or another option is wrong.
    """

    def __init__(self, configuration: Configuration, own_options: dict[str, str]) -> None:
        get = configuration.get
        self._own_options = _options_of_sessions(own_options)
        self._limits = SessionLimits(get(options.GATEWAY_OPERATIONS), get(options.GATEWAY_RESULT_ROWS))
        self._clock, self._local_jobs = SystemClock(), LocalJobs()
        self.sessions = SessionRegistry(
            get(options.GATEWAY_SESSIONS), get(options.GATEWAY_IDLE_TIMEOUT).to_millis() / 1000
        )
        most_bytes = get(options.GATEWAY_ANSWER_SIZE).bytes
        endpoints = RestEndpoints(self.sessions, self._open, most_bytes, WAIT_S, self.figures)
        settings = server_settings(configuration)
        self._application = JsonApplication(settings, endpoints.routes())
        self._server = HttpServer(settings, self._application)
        self._check_s = get(options.GATEWAY_CHECK_INTERVAL).to_millis() / 1000
        self._stopped = threading.Event()

    @property
    def url(self) -> str:
        """Return the address, once it has started."""
        return self._server.url

    def figures(self) -> dict[str, Any]:
        """Count sessions and jobs, and what was refused or failed since the start."""
        return {
            "sessions": len(self.sessions),
            "sessionsExpired": self.sessions.expired,
            "localJobs": self._local_jobs.running,
            "localJobsFailed": self._local_jobs.failures,
            "requestsRefused": {str(status): number for status, number in sorted(self._application.refusals.items())},
        }

    def start(self) -> None:
        """Listen, and return.

        Raises:
            ServerError: the address is taken.
        """
        self._server.start()
        threading.Thread(target=self._close_idle, name="idle sessions", daemon=True).start()

    def stop(self) -> None:
        """End the queries of all sessions, and the jobs that run in this process; those on a cluster go on."""
        self._stopped.set()
        self._server.stop()
        self.sessions.close_all()
        self._local_jobs.close()

    def _open(self, name: str, properties: dict[str, str]) -> GatewaySession:
        def create() -> GatewaySession:
            session = SqlSession({**self._own_options, **session_options(properties)})
            return GatewaySession(name, session, self._limits, self._clock, self._local_jobs)

        return self.sessions.open(create)

    def _close_idle(self) -> None:
        while not self._stopped.wait(self._check_s):
            self.sessions.close_idle()


def _options_of_sessions(own_options: dict[str, str]) -> dict[str, str]:
    """Return the options of the command line that sessions get: all but the gateway's own."""
    return {key: value for key, value in own_options.items() if not key.startswith("sql-gateway.")}


def server_settings(configuration: Configuration) -> ServerSettings:
    """Return the address and the bounds that the options of the gateway say.

    Raises:
        ConfigError: an option is wrong, or they do not fit each other.
    """
    get = configuration.get
    certificate, key = get(options.GATEWAY_CERTIFICATE), get(options.GATEWAY_KEY)
    if (certificate is None) != (key is None):
        missing = options.GATEWAY_KEY.key if key is None else options.GATEWAY_CERTIFICATE.key
        raise ConfigError(missing, "nothing", "a file beside the other of the two", "set both, or none")
    tls = None if certificate is None or key is None else TlsSettings(certificate, key)
    return ServerSettings(
        get(options.GATEWAY_ADDRESS), get(options.GATEWAY_PORT), get(options.GATEWAY_TOKEN), tls,
        get(options.GATEWAY_REQUEST_SIZE).bytes, get(options.GATEWAY_CONNECTIONS),
        size_option=options.GATEWAY_REQUEST_SIZE.key,
    )  # fmt: skip
