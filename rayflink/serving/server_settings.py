"""The address and the bounds of an HTTP server."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from rayflink.common.errors import ConfigError

__all__ = ["ServerSettings", "is_loopback"]


@dataclass(frozen=True)
class ServerSettings:
    """The address and the bounds of a server.

    >>> ServerSettings("127.0.0.1", 0).scheme
    'http'

    Args:
        host: the address to listen on.
        port: 0: a free one.
        token: that requests have to bring as `Authorization: Bearer ...`; None: none.
        certificate: files of a certificate and its key, in PEM; None: without TLS.
        most_bytes: of a request's body.
        most_connections: connections and requests at a time.
        most_waiting: requests that are worked on at a time, each in a thread.

    Raises:
        ConfigError: other machines reach the address, and there is no token.
    """

    host: str
    port: int
    token: str | None = field(default=None, repr=False)
    certificate: tuple[str, str] | None = None
    most_bytes: int = 1 << 20
    most_connections: int = 512
    most_waiting: int = 64

    def __post_init__(self) -> None:
        if not self.token and not self.is_loopback:
            remedy = "set a token, as sql-gateway.token, or listen on 127.0.0.1"
            raise ConfigError("address", self.host, "a loopback address where there is no token", remedy)

    @property
    def is_loopback(self) -> bool:
        """Return whether only this machine reaches the address."""
        return is_loopback(self.host)

    @property
    def scheme(self) -> str:
        """Return "https" with a certificate, else "http"."""
        return "http" if self.certificate is None else "https"

    def url(self, port: int) -> str:
        """Return the address with the port on which the server listens."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Return whether an address stands for this machine, as only this machine reaches it.

    >>> is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("localhost")
    (True, False, True)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, which may stand for any address
        return False
