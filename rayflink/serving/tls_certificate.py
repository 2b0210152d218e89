"""The certificate of a server, which is read again when its files have changed, so that it can be renewed."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from typing import TypeAlias

from rayflink.common.errors import ConfigError

from .server_settings import TlsSettings

__all__ = ["TlsCertificate"]

log = logging.getLogger(__name__)
LOOK_EVERY_S = 10.0
"""Time between two looks at the files."""
_Stamp: TypeAlias = "tuple[tuple[int, int, int], ...]"


class TlsCertificate:
    """The encryption of a server, whose certificate may be renewed while it runs.

    Connections that are open keep the certificate with which they began. Those who sign the certificates of clients
    are read once.

    Args:
        tls: the settings, with the files.

    Raises:
        ConfigError: a file cannot be used.
    """

    def __init__(self, tls: TlsSettings) -> None:
        self._tls, self._stamp = tls, _stamp(tls)
        self.context = tls_context(tls)
        """What encrypts the connections; only the thread that accepts them may change it."""

    async def renew(self, every_s: float = LOOK_EVERY_S) -> None:
        """Look at the files now and then, until the task is cancelled."""
        while True:
            await asyncio.sleep(every_s)
            self.look()

    def look(self) -> None:
        """Read the certificate and its key again if they have changed; files that do not fit are left alone.

        A certificate that is replaced before its key does not fit it for a moment.
        """
        stamp = _stamp(self._tls)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            tls_context(self._tls)  # else a context with one new file and one old one would be left
            self.context.load_cert_chain(self._tls.certificate, self._tls.key, self._tls.password or "")
        except (ConfigError, OSError, ssl.SSLError) as error:
            log.warning("the renewed certificate cannot be used, and the one before stays: %s", error)
            return
        log.info("the certificate was read again", extra={"certificate": self._tls.certificate})


def _stamp(tls: TlsSettings) -> _Stamp:
    """Return by what a change of the files shows; that of a file that is missing is of zeros."""
    return tuple(_stamp_of(path) for path in (tls.certificate, tls.key))


def _stamp_of(path: str) -> tuple[int, int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_size, status.st_ino


def tls_context(tls: TlsSettings) -> ssl.SSLContext:
    """Return what encrypts the connections of a server.

    Raises:
        ConfigError: a file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3 if tls.least == "TLSv1.3" else ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    try:
        # an empty password is wrong for a key that has one; without it OpenSSL would ask on the terminal
        context.load_cert_chain(tls.certificate, tls.key, tls.password or "")
    except (OSError, ssl.SSLError) as error:
        wanted = f"a certificate in PEM that fits the key in {tls.key}"
        remedy = f"check both files and the password of the key: {error}"
        raise ConfigError("certificate", tls.certificate, wanted, remedy) from error
    if tls.authorities is not None:
        try:
            context.load_verify_locations(tls.authorities)
        except (OSError, ssl.SSLError) as error:
            wanted = "certificates in PEM of those who sign the certificates of clients"
            raise ConfigError("truststore", tls.authorities, wanted, f"check the file: {error}") from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context
