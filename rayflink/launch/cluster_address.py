"""The cluster that the options name, or that was started on this machine, and the token that belongs to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError
from rayflink.common.options import registry as options

from .background_server import read_server, state_folder

__all__ = ["ClusterAddress", "started_cluster_file"]


def started_cluster_file() -> Path:
    """Return the file that `rayflink cluster start` writes; only its user may read it."""
    return state_folder() / "cluster.json"


@dataclass(frozen=True)
class ClusterAddress:
    """The address of a dispatcher, with what only this dispatcher is shown.

    Args:
        url: such as http://127.0.0.1:8081, without a path.
        token: that belongs to it; "": none.
        certificate: file of the certificate that it is trusted by, in PEM; None: those of this machine.
        identity: files of the client's own certificate and its key, and the key's password; None: it shows none.
    """

    url: str
    token: str = field(default="", repr=False)
    certificate: str | None = None
    identity: tuple[str, str | None, str | None] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, configuration: Configuration) -> ClusterAddress:
        """Return the cluster of rest.address and rest.port; without them, the one that was started on this machine.

        Its token is rest.token; else the one in the file of the cluster that was started here, if it has this address.

        Raises:
            ConfigError: no option names a cluster and none was started here, or the address is no host and no URL.
        """
        get = configuration.get
        host, started = get(options.REST_ADDRESS), read_server(started_cluster_file())
        is_encrypted = get(options.SSL_ENABLED) or _certificate(configuration) is not None
        scheme = "https" if is_encrypted else "http"
        port = get(options.REST_PORT) if configuration.contains_key(options.REST_PORT.key) else 0
        if host is not None:
            url = _url(host, get(options.REST_PORT), scheme)
        elif started is not None and port in (0, urlsplit(started.url).port):
            url = started.url
        elif port:
            url = _url("127.0.0.1", port, scheme)
        else:
            remedy = "start one with `rayflink cluster start`, or set rest.address and rest.port"
            raise ConfigError(options.REST_ADDRESS.key, "nothing, and no cluster was started on this machine",
                              "the address of a cluster, as execution.target is remote", remedy)  # fmt: skip
        own = started.token if started is not None and _numeric(started.url) == _numeric(url) else ""
        return cls.at(url, get(options.REST_TOKEN) or own, configuration)

    @classmethod
    def at(cls, url: str, token: str, configuration: Configuration) -> ClusterAddress:
        """Return an address with the certificates that the options name.

        It is trusted by the signers of security.ssl.rest.truststore, else by its own certificate where that is known
        here, else by those of the system.
        """
        get, own, identity = configuration.get, _own_certificate(configuration), None
        if get(options.SSL_CLIENT_CERTIFICATES) and own is not None:
            identity = own, get(options.REST_KEY), get(options.SSL_KEY_PASSWORD)
        return cls(url, token, _certificate(configuration), identity)


def _certificate(configuration: Configuration) -> str | None:
    return configuration.get(options.SSL_TRUSTSTORE) or _own_certificate(configuration)


def _own_certificate(configuration: Configuration) -> str | None:
    get = configuration.get
    return get(options.REST_CERTIFICATE) or (get(options.SSL_KEYSTORE) if get(options.SSL_ENABLED) else None)


def _numeric(url: str) -> str:
    return url.replace("//localhost:", "//127.0.0.1:")


def _url(host: str, port: int, scheme: str) -> str:
    """Return the URL of a host with its port, or of a URL that was written in place of the host.

    >>> _url("10.0.0.3", 8081, "http"), _url("::1", 8081, "http"), _url("https://flink.example.org/", 8081, "http")
    ('http://10.0.0.3:8081', 'http://[::1]:8081', 'https://flink.example.org:443')
    """
    if "://" not in host:
        bare = host.strip("[]")
        host = f"{scheme}://[{bare}]:{port}" if ":" in bare else f"{scheme}://{bare}:{port}"
    try:
        parts = urlsplit(host)
        name, number = parts.hostname, parts.port
    except ValueError:
        parts, name, number = urlsplit(""), None, None
    is_bare = parts.path in ("", "/") and not parts.query and not parts.fragment and parts.username is None
    if parts.scheme not in ("http", "https") or not name or not is_bare:
        remedy = "write for example rest.address: 10.0.0.3, with rest.port"
        raise ConfigError(options.REST_ADDRESS.key, host, "a host, or a URL without a path", remedy)
    shown = f"[{name}]" if ":" in name else name
    return f"{parts.scheme}://{shown}:{number or (443 if parts.scheme == 'https' else 80)}"
