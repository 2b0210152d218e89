"""The servers of NATS that a source or sink connects to, with credentials; and the builder methods that set them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from rayflink.common.time import Duration, to_millis

from .nats_errors import NatsError

if TYPE_CHECKING:
    import ssl

OUTAGE_TIMEOUT_MS = 60_000
_SCHEMES = ("nats", "tls", "ws", "wss")
_PORT = 4222
Builder = TypeVar("Builder", bound="NatsServerBuilder")


def library() -> ModuleType:
    """Return the module nats.

    Raises:
        NatsError: it is not installed.
    """
    try:
        import nats
        import nats.aio.client
        import nats.js.api
    except ImportError as error:
        raise NatsError(f"nats-py is missing ({error})", "pip install 'rayflink[nats]' on every node") from error
    return nats


@dataclass(frozen=True)
class NatsTls:
    """The files of TLS connections.

    Args:
        ca_file: certificates of authorities, in PEM; "": those of the system.
        certificate_file: of this client, for servers that verify clients; "": none.
        key_file: of that certificate; "": in the same file.
    """

    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""

    def context(self) -> ssl.SSLContext:
        """Return the settings of connections.

        Raises:
            NatsError: a file is missing or no PEM.
        """
        import ssl

        try:
            context = ssl.create_default_context(cafile=self.ca_file or None)
            if self.certificate_file:
                context.load_cert_chain(self.certificate_file, self.key_file or None)
        except OSError as error:  # ssl.SSLError is one
            files = [name for name in (self.ca_file, self.certificate_file, self.key_file) if name]
            remedy = "give set_tls() files in PEM that are on every node"
            raise NatsError(f"the files {files} cannot be used for TLS ({error})", remedy) from error
        return context


@dataclass(frozen=True)
class NatsServer:
    """The servers to connect to: one, or several of one cluster.

    >>> NatsServer(("nats://me:secret@db.example",), token="secret")
    NatsServer(db.example:4222)

    Args:
        urls: `nats://user:password@host:4222`, or `tls://...`.
        credentials_file: with the JWT and the seed of a user; "": none.
        nkey_seed: of a user; "": none.
        domain: of JetStream, for servers behind a leaf node; "": the servers' own.
        inbox_prefix: of the subjects of answers; "": `_INBOX`.
        outage_timeout_ms: time for which they may be away.
    """

    urls: tuple[str, ...] = field(default=(), repr=False)
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    credentials_file: str = ""
    nkey_seed: str = field(default="", repr=False)
    tls: NatsTls | None = None
    domain: str = ""
    inbox_prefix: str = ""
    outage_timeout_ms: int = OUTAGE_TIMEOUT_MS

    @property
    def place(self) -> str:
        """Return hosts and ports, without credentials."""
        return ", ".join(_host(url) for url in self.urls)

    def options(self) -> dict[str, Any]:
        """Return the arguments of the client library for these servers."""
        options: dict[str, Any] = {"servers": [url if "://" in url else f"nats://{url}" for url in self.urls]}
        wanted = {
            "user": self.user, "password": self.password, "token": self.token,
            "user_credentials": self.credentials_file, "nkeys_seed_str": self.nkey_seed,
            "inbox_prefix": self.inbox_prefix,
        }  # fmt: skip
        options.update({name: value for name, value in wanted.items() if value})
        if self.tls is not None:
            options["tls"] = self.tls.context()
        return options

    def __repr__(self) -> str:
        return f"NatsServer({self.place})"


def _host(url: str) -> str:
    parts = urlsplit(url if "://" in url else f"nats://{url}")
    return f"{parts.hostname or 'localhost'}:{parts.port or _PORT}"


def checked_urls(urls: Sequence[str]) -> tuple[str, ...]:
    """Return URLs of servers.

    Raises:
        NatsError: there is none, or one is malformed.
    """
    for url in urls:
        parts = urlsplit(url if "://" in url else f"nats://{url}")
        try:
            is_valid = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
        except ValueError:  # of the port
            is_valid = False
        if not is_valid:
            raise NatsError("the URL of a server of NATS is malformed", "write nats://host:4222 or tls://host:4222")
    if not urls:
        raise NatsError("no server of NATS is named", "call set_servers('nats://host:4222')")
    return tuple(urls)


class NatsServerBuilder:
    """The settings of servers, the same for the source and the sink."""

    def __init__(self) -> None:
        self._server = NatsServer()

    def set_servers(self: Builder, *urls: str) -> Builder:
        """Set the servers: `nats://host:4222` or `tls://host:4222`, several of one cluster.

        Raises:
            NatsError: there is none, one is malformed, or the library is not installed.
        """
        library()
        self._server = replace(self._server, urls=checked_urls(urls))
        return self

    def set_user(self: Builder, user: str, password: str) -> Builder:
        """Set a user with a password; the default is none."""
        self._server = replace(self._server, user=user, password=password)
        return self

    def set_token(self: Builder, token: str) -> Builder:
        """Set a token; the default is none."""
        self._server = replace(self._server, token=token)
        return self

    def set_credentials_file(self: Builder, path: str) -> Builder:
        """Set a file with the JWT and the seed of a user (`.creds`), on every node; the default is none."""
        self._server = replace(self._server, credentials_file=path)
        return self

    def set_nkey_seed(self: Builder, seed: str) -> Builder:
        """Set the seed of a user's nkey, such as "SUAM..."; the default is none."""
        self._server = replace(self._server, nkey_seed=seed)
        return self

    def set_tls(self: Builder, ca_file: str = "", certificate_file: str = "", key_file: str = "") -> Builder:
        """Set the files of TLS connections.

        Args:
            ca_file: certificates of authorities, in PEM; "": those of the system.
            certificate_file: of this client, for servers that verify clients; "": none.
            key_file: of that certificate; "": in the same file.
        """
        self._server = replace(self._server, tls=NatsTls(ca_file, certificate_file, key_file))
        return self

    def set_domain(self: Builder, domain: str) -> Builder:
        """Set the domain of JetStream, for servers behind a leaf node; the default is the servers' own."""
        self._server = replace(self._server, domain=domain)
        return self

    def set_inbox_prefix(self: Builder, prefix: str) -> Builder:
        """Set the prefix of the subjects of answers, for users who may not subscribe to the default, `_INBOX`."""
        self._server = replace(self._server, inbox_prefix=prefix)
        return self

    def set_outage_timeout(self: Builder, timeout: Duration | int) -> Builder:
        """Set how long the servers may be away until the job fails, in milliseconds; the default is a minute."""
        self._server = replace(self._server, outage_timeout_ms=to_millis(timeout))
        return self

    def _checked_server(self) -> NatsServer:
        checked_urls(self._server.urls)
        return self._server


__all__ = ["OUTAGE_TIMEOUT_MS", "NatsServer", "NatsServerBuilder", "NatsTls", "library"]
