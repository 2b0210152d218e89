"""Certificates for brokers of the tests: an authority of their own, and the key that it has signed, as PEM files."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Certificates:
    """Files in PEM.

    Args:
        authority: the certificate that clients are to trust.
        stranger: the certificate of another authority, which has signed nothing here.
        broker: a key and its certificate, for 127.0.0.1.
    """

    authority: Path
    stranger: Path
    broker: Path


def create_certificates(folder: Path) -> Certificates:
    """Create certificates that are valid for two days."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    files = Certificates(folder / "authority.pem", folder / "stranger.pem", folder / "broker.pem")
    authority, stranger, broker = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    for key, name, path in ((authority, "authority", files.authority), (stranger, "stranger", files.stranger)):
        path.write_bytes(_certificate(key, name, key, name))
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    own = broker.private_bytes(serialization.Encoding.PEM, *form)
    files.broker.write_bytes(own + _certificate(broker, "broker", authority, "authority"))
    return files


def _certificate(key: Any, name: str, signer: Any, signed_by: str) -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder().subject_name(_name(name)).issuer_name(_name(signed_by))
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=1))
    builder = builder.not_valid_after(now + datetime.timedelta(days=2))
    builder = builder.add_extension(x509.BasicConstraints(ca=name == signed_by, path_length=None), critical=True)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = builder.add_extension(address, critical=False).sign(signer, hashes.SHA256())
    return bytes(signed.public_bytes(serialization.Encoding.PEM))


def _name(common: str) -> Any:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
