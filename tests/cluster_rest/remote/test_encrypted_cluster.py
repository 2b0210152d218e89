"""A cluster whose connections are encrypted, with certificates of clients."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rayflink.cluster.cluster_server import local_cluster
from rayflink.common.configuration import Configuration
from rayflink.common.errors import RayflinkError
from rayflink.launch.cluster_client import ClusterClient, ClusterRequest


def certificate(folder: Path, name: str) -> str:
    """Return a file in PEM with a new certificate of 127.0.0.1 and its key, which has the password "secret"."""
    file, signed = folder / f"{name}.pem", folder / f"{name}.crt"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-keyout", file, "-out",
         signed, "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-passout",
         "pass:secret"],
        check=True, capture_output=True,
    )  # fmt: skip
    file.write_text(file.read_text() + signed.read_text())
    return str(file)


@pytest.mark.slow
def test_clients_and_cluster_show_certificates_by_options_of_flink(tmp_path: Path) -> None:
    own, stranger = certificate(tmp_path, "own"), certificate(tmp_path, "stranger")
    options = {
        "security.ssl.rest.enabled": "true", "security.ssl.rest.keystore": own, "rest.port": "0",
        "rest.token": "x" * 20, "security.ssl.rest.truststore": f"{tmp_path}/own.crt",
        "security.ssl.rest.key-password": "secret",
        "security.ssl.rest.authentication-enabled": "true",
    }  # fmt: skip
    cluster = local_cluster(Configuration.from_dict(options))
    cluster.start()

    def jobs(**more: str) -> object:
        named = {key.replace("__", ".").replace("_", "-"): value for key, value in more.items()}
        chosen = {**options, "rest.address": "127.0.0.1", "rest.port": cluster.url.rpartition(":")[2], **named,
                  "rest.connection-timeout": "5 s", "rest.retry.max-attempts": "1"}  # fmt: skip
        return ClusterClient.of(Configuration.from_dict(chosen)).document(ClusterRequest("GET", "/rayflink/jobs"))

    try:
        assert cluster.url.startswith("https://") and jobs() == {"jobs": []}
        with pytest.raises(RayflinkError):
            jobs(security__ssl__rest__keystore=stranger)
        with pytest.raises(RayflinkError):
            jobs(security__ssl__rest__truststore=f"{tmp_path}/stranger.crt")
        with pytest.raises(RayflinkError, match="401|token"):
            jobs(rest__token="wrong" * 5)
    finally:
        cluster.stop()
