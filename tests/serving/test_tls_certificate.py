"""A certificate that is renewed while its server runs."""

from __future__ import annotations

import logging
import os
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from rayflink.serving import tls_certificate
from rayflink.serving.http_server import HttpServer
from rayflink.serving.json_application import JsonApplication
from rayflink.serving.json_requests import Role
from rayflink.serving.server_settings import AccessSettings, ServerSettings, TlsSettings
from tests.cluster.watching import eventually

pytestmark = pytest.mark.slow  # makes keys


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two certificates and their keys."""
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("old", "new"):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
             folder / f"{name}.key", "-out", folder / f"{name}.crt", "-days", "2", "-subj", f"/CN={name}"],
            check=True, capture_output=True,
        )  # fmt: skip
    return folder


@pytest.fixture
def files(made: Path, tmp_path: Path) -> TlsSettings:
    for kind in ("crt", "key"):
        shutil.copy(made / f"old.{kind}", tmp_path / f"own.{kind}")
    return TlsSettings(str(tmp_path / "own.crt"), str(tmp_path / "own.key"))


def replace(made: Path, path: str) -> None:
    """Replace a file of a server at once, as tools that renew certificates do."""
    source = made / f"new{Path(path).suffix}"
    shutil.copy(source, f"{path}.part")
    os.replace(f"{path}.part", path)


def test_a_server_shows_a_renewed_certificate(
    made: Path, files: TlsSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_certificate.TlsCertificate.renew, "__defaults__", (0.01,))
    settings = ServerSettings("127.0.0.1", 0, "secret", files, access=AccessSettings(guest_role=Role.READ))
    server = HttpServer(settings, JsonApplication(settings, []))
    server.start()
    address = "127.0.0.1", int(server.url.rpartition(":")[2])

    def shown() -> str:
        return ssl.get_server_certificate(address, timeout=10)

    try:
        assert shown() == (made / "old.crt").read_text()
        replace(made, files.certificate)
        replace(made, files.key)
        assert eventually(lambda: shown() == (made / "new.crt").read_text(), within_s=20)
    finally:
        server.stop()


def test_a_certificate_without_its_key_is_left_alone_until_that_comes(
    made: Path, files: TlsSettings, caplog: pytest.LogCaptureFixture
) -> None:
    certificate = tls_certificate.TlsCertificate(files)
    with caplog.at_level(logging.INFO, tls_certificate.__name__):
        certificate.look()
        assert caplog.messages == []
        replace(made, files.certificate)
        certificate.look()
        certificate.look()
        assert len(caplog.messages) == 1 and "the one before stays" in caplog.messages[0]
        replace(made, files.key)
        certificate.look()
        assert caplog.messages[1:] == ["the certificate was read again"]


def test_files_that_are_missing_for_a_moment_are_read_when_they_are_back(
    made: Path, files: TlsSettings, caplog: pytest.LogCaptureFixture
) -> None:
    certificate = tls_certificate.TlsCertificate(files)
    Path(files.certificate).unlink()
    with caplog.at_level(logging.INFO, tls_certificate.__name__):
        certificate.look()
        replace(made, files.certificate)
        replace(made, files.key)
        certificate.look()
    assert caplog.messages[-1] == "the certificate was read again"
