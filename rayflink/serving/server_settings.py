"""The address and the bounds of an HTTP server."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from dataclasses import dataclass, field

from rayflink.common.errors import ConfigError

from .audit_log import AuditSettings
from .json_requests import Role

__all__ = ["AccessSettings", "ServerSettings", "TlsSettings", "is_loopback"]


@dataclass(frozen=True)
class AccessSettings:
    """Says who is answered.

    Args:
        tokens_file: with tokens, their names and roles; None: none.
        guest_role: of those on this machine who bring no token; None: all rights where the server has no token, else
            none. Guests from other machines have no rights.
        hosts: names by which the server is reached, beside those of loopback; others are refused.
        origins: whose pages browsers may let read, and with a token change, as in https://example.org.
        most_failed_tokens: different wrong tokens of one address in a minute.

    Raises:
        ConfigError: an origin is none.
    """

    tokens_file: str | None = None
    guest_role: Role | None = None
    hosts: Collection[str] = ()
    origins: Collection[str] = ()
    most_failed_tokens: int = 10

    def __post_init__(self) -> None:
        for origin in self.origins:
            scheme, separator, host = origin.partition("://")
            if scheme not in ("http", "https") or not separator or not host or set("/*?#@ ") & set(host):
                wanted = "origins as https://host or https://host:port, each by its name"
                remedy = "write them without a path and without *"
                raise ConfigError("rest.cors.allowed-origins", origin, wanted, remedy)


@dataclass(frozen=True)
class TlsSettings:
    """The encryption of a server.

    Args:
        certificate: a file in PEM with the certificate and those that signed it.
        key: of its key, in PEM; it may be the same file.
        password: of the key; None: it has none.
        authorities: a file in PEM with those who sign the certificates of clients; None: clients need none.
        least: the oldest version that is spoken, "TLSv1.2" or "TLSv1.3".
    """

    certificate: str
    key: str
    password: str | None = field(default=None, repr=False)
    authorities: str | None = None
    least: str = "TLSv1.2"


@dataclass(frozen=True)
class ServerSettings:
    """The address and the bounds of a server.

    >>> ServerSettings("127.0.0.1", 0).scheme
    'http'

    Args:
        host: the address to listen on.
        port: 0: a free one.
        token: that requests have to bring as `Authorization: Bearer ...`; None: none.
        tls: None: without.
        most_bytes: of a request's body.
        most_connections: connections and requests at a time.
        most_waiting: requests that are worked on at a time, each in a thread.
        most_upload_bytes: of a request's body that goes to a file.
        upload_folder: of those files; None: that of the system for temporary files.
        access: who is answered, beside the token.
        audit: where the lines on operations go.
        size_option: that an error names about a body that is too large.

    Raises:
        ConfigError: other machines reach the address, and there is no token.
    """

    host: str
    port: int
    token: str | None = field(default=None, repr=False)
    tls: TlsSettings | None = None
    most_bytes: int = 1 << 20
    most_connections: int = 512
    most_waiting: int = 64
    most_upload_bytes: int = 100 << 20
    upload_folder: str | None = None
    access: AccessSettings = AccessSettings()
    audit: AuditSettings = AuditSettings()
    size_option: str = "rest.request.max-size"

    def __post_init__(self) -> None:
        if not self.has_tokens and not self.is_loopback:
            remedy = "set a token, as sql-gateway.token or rest.auth.tokens-file, or listen on 127.0.0.1"
            raise ConfigError("address", self.host, "a loopback address where there is no token", remedy)

    @property
    def has_tokens(self) -> bool:
        """Return whether there are tokens at all."""
        return bool(self.token) or self.access.tokens_file is not None

    @property
    def guest_role(self) -> Role:
        """Return the role of those who bring no token."""
        if not self.is_loopback:
            return Role.NONE
        if self.access.guest_role is not None:
            return self.access.guest_role
        return Role.NONE if self.has_tokens else Role.SUBMIT

    @property
    def is_any_address(self) -> bool:
        """Return whether it listens on all addresses of the machine."""
        return self.host in ("", "0.0.0.0", "::")

    @property
    def is_loopback(self) -> bool:
        """Return whether only this machine reaches the address."""
        return is_loopback(self.host)

    @property
    def scheme(self) -> str:
        """Return "https" with a certificate, else "http"."""
        return "http" if self.tls is None else "https"

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
