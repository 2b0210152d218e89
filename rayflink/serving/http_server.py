"""A server of HTTP that runs in a thread."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading

from rayflink.common.errors import RayflinkError

from .bounded_connections import bounded_protocol
from .json_application import JsonApplication
from .server_settings import ServerSettings
from .tls_certificate import TlsCertificate

__all__ = ["HttpServer", "ServerError"]

log = logging.getLogger(__name__)
STOP_S = 5
"""Seconds that requests under way have for their end."""
START_S = 30.0


class ServerError(RayflinkError):
    """A server cannot be started.

    Args:
        problem: what was found.
        remedy: what to do.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}"


class HttpServer:
    """Listens and answers until it is stopped.

    Args:
        settings: address and bounds.
        application: answers the requests.
    """

    def __init__(self, settings: ServerSettings, application: JsonApplication) -> None:
        self._settings, self._application = settings, application
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._stop = threading.Event()
        self.url = ""
        """The address on which it listens, once it has started."""

    def start(self) -> None:
        """Listen, and return when requests are answered.

        Raises:
            ServerError: the address is taken or not of this machine; the extra is not installed.
            ConfigError: the certificate or its key cannot be used.
        """
        try:
            import uvicorn  # an extra

            application, protocol = self._application.starlette(), bounded_protocol()
        except ImportError as error:
            remedy = "run pip install 'rayflink[gateway]'"
            raise ServerError(f"the server needs the package {error.name}", remedy) from error
        settings = self._settings
        certificate = None if settings.tls is None else TlsCertificate(settings.tls)
        listening = self._listening()
        config = uvicorn.Config(
            application, http=protocol, ws="none", loop="asyncio", lifespan="off", log_config=None,
            access_log=False, server_header=False, limit_concurrency=settings.most_connections,
            timeout_graceful_shutdown=STOP_S, proxy_headers=False,
        )  # fmt: skip
        config.load()
        config.ssl = None if certificate is None else certificate.context
        server = uvicorn.Server(config)

        async def answer() -> None:
            renewal = None if certificate is None else asyncio.create_task(certificate.renew())
            try:
                await server.serve(sockets=[listening])
            finally:
                if renewal is not None:
                    renewal.cancel()

        def serve() -> None:
            try:
                asyncio.run(answer())
            finally:
                self._ended.set()

        self._thread = threading.Thread(target=serve, name="http server", daemon=True)
        self._thread.start()
        stopper = threading.Thread(target=self._stop_when_asked, args=(server,), name="http stop", daemon=True)
        stopper.start()
        self.url = settings.url(listening.getsockname()[1])
        log.info("server listens", extra={"url": self.url})

    def _stop_when_asked(self, server: object) -> None:
        self._stop.wait()
        server.should_exit = True  # type: ignore[attr-defined]

    def wait(self) -> None:
        """Wait until it is stopped."""
        self._ended.wait()

    def stop(self) -> None:
        """Answer the requests under way, close all connections, and return; what takes longer is cut off."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(STOP_S + 5)
        self._application.close()

    def _listening(self) -> socket.socket:
        host, port = self._settings.host, self._settings.port
        try:
            # without the protocol, asyncio leaves Nagle's algorithm on, which delays answers by 40 ms
            family, kind, protocol, _, address = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
            )[0]
            listening = socket.socket(family, kind, protocol)
        except OSError as error:
            raise ServerError(f"cannot listen on {host}: {error}", "give an address of this machine") from error
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(address)
            listening.listen(128)
        except OSError as error:
            listening.close()
            problem = f"cannot listen on {host}:{port}: {error.strerror or error}"
            raise ServerError(problem, "give another port, or 0 for a free one") from error
        return listening
