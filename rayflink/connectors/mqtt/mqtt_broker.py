"""The broker that a source or sink connects to, with credentials; and the builder methods that set it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

from rayflink.common.time import Duration, to_millis

from .mqtt_errors import MqttRefusal

if TYPE_CHECKING:
    import ssl

OUTAGE_TIMEOUT_MS = 60_000
_PORTS = {"mqtt": 1883, "mqtts": 8883, "ws": 80, "wss": 443}
VERSIONS = {"5": 5, "3.1.1": 4}
"""The versions of the protocol, and their numbers in the client library."""
Builder = TypeVar("Builder", bound="MqttBrokerBuilder")


def library() -> ModuleType:
    """Return the module paho.mqtt.client.

    Raises:
        MqttRefusal: it is not installed.
    """
    try:
        import paho.mqtt.client
    except ImportError as error:
        raise MqttRefusal(f"paho-mqtt is missing ({error})", "pip install 'rayflink[mqtt]' on every node") from error
    return paho.mqtt.client


@dataclass(frozen=True)
class MqttTls:
    """The files of TLS connections.

    Args:
        ca_file: certificates of authorities, in PEM; "": those of the system.
        certificate_file: of this client, for brokers that verify clients; "": none.
        key_file: of that certificate; "": in the same file.
    """

    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""

    def context(self) -> ssl.SSLContext:
        """Return the settings of connections.

        Raises:
            MqttRefusal: a file is missing or no PEM.
        """
        import ssl

        try:
            context = ssl.create_default_context(cafile=self.ca_file or None)
            if self.certificate_file:
                context.load_cert_chain(self.certificate_file, self.key_file or None)
        except OSError as error:  # ssl.SSLError is one
            files = [name for name in (self.ca_file, self.certificate_file, self.key_file) if name]
            remedy = "give set_tls() files in PEM that are on every node"
            raise MqttRefusal(f"the files {files} cannot be used for TLS ({error})", remedy) from error
        return context


@dataclass(frozen=True)
class MqttBroker:
    """The broker to connect to.

    >>> MqttBroker("mqtts://me:secret@broker.example")
    MqttBroker(broker.example:8883)

    Args:
        url: `mqtt://user:password@host:1883`, `mqtts://...` for TLS, `ws://...` or `wss://...` for websockets.
        version: of the protocol, "5" or "3.1.1".
        tls: the files for TLS; None: those of the system, where the URL wants TLS.
        outage_timeout_ms: time for which it may be away.
    """

    url: str = field(default="", repr=False)
    user: str = ""
    password: str = field(default="", repr=False)
    version: str = "5"
    tls: MqttTls | None = None
    outage_timeout_ms: int = OUTAGE_TIMEOUT_MS

    @property
    def parts(self) -> SplitResult:
        """Return the parts of the URL."""
        return urlsplit(self.url)

    @property
    def host(self) -> str:
        """Return the host."""
        return self.parts.hostname or "localhost"

    @property
    def port(self) -> int:
        """Return the port, which the scheme has a default for."""
        return self.parts.port or _PORTS[self.parts.scheme]

    @property
    def credentials(self) -> tuple[str, str]:
        """Return user and password; "": there are none."""
        parts = self.parts
        return self.user or unquote(parts.username or ""), self.password or unquote(parts.password or "")

    @property
    def is_encrypted(self) -> bool:
        """Return whether connections use TLS."""
        return self.tls is not None or self.parts.scheme in ("mqtts", "wss")

    @property
    def place(self) -> str:
        """Return host and port, without credentials."""
        return f"{self.host}:{self.port}"

    def __repr__(self) -> str:
        return f"MqttBroker({self.place})"


class MqttBrokerBuilder:
    """The settings of a broker, the same for the source and the sink."""

    def __init__(self) -> None:
        self._broker = MqttBroker()

    def set_url(self: Builder, url: str) -> Builder:
        """Set the broker: `mqtt://user:password@host:1883`, `mqtts://...` for TLS, `ws://...` for websockets.

        Raises:
            MqttRefusal: the URL is malformed, or the library is not installed.
        """
        library()
        try:
            parts = urlsplit(url)
            is_valid = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
        except ValueError:  # of the port
            is_valid = False
        if not is_valid:
            wanted = "write mqtt://user:password@host:1883, mqtts://... for TLS, ws://... or wss://... for websockets"
            raise MqttRefusal("the URL of the broker of MQTT is malformed", wanted)
        self._broker = replace(self._broker, url=url)
        return self

    def set_user(self: Builder, user: str, password: str) -> Builder:
        """Set a user with a password; the default is that of the URL, or none."""
        self._broker = replace(self._broker, user=user, password=password)
        return self

    def set_tls(self: Builder, ca_file: str = "", certificate_file: str = "", key_file: str = "") -> Builder:
        """Set the files of TLS connections.

        Args:
            ca_file: certificates of authorities, in PEM; "": those of the system.
            certificate_file: of this client, for brokers that verify clients; "": none.
            key_file: of that certificate; "": in the same file.
        """
        self._broker = replace(self._broker, tls=MqttTls(ca_file, certificate_file, key_file))
        return self

    def set_protocol_version(self: Builder, version: str) -> Builder:
        """Set the version of the protocol, "5" or "3.1.1"; the default is "5".

        Raises:
            ValueError: it is another one.
        """
        if version not in VERSIONS:
            raise ValueError(f"found version {version!r}, wanted one of {', '.join(map(repr, VERSIONS))}")
        self._broker = replace(self._broker, version=version)
        return self

    def set_outage_timeout(self: Builder, timeout: Duration | int) -> Builder:
        """Set how long the broker may be away until the job fails, in milliseconds; the default is a minute."""
        self._broker = replace(self._broker, outage_timeout_ms=to_millis(timeout))
        return self

    def _checked_broker(self) -> MqttBroker:
        if not self._broker.url:
            raise MqttRefusal("no broker of MQTT is named", "call set_url('mqtt://host:1883')")
        return self._broker


__all__ = ["OUTAGE_TIMEOUT_MS", "VERSIONS", "MqttBroker", "MqttBrokerBuilder", "MqttTls", "library"]
