"""Bring programs of tests into the cache folder: the object stores MinIO and fake-gcs-server, and helm, built by Go in
some minutes, and the object store Azurite, which is from npm.

`python -m benchmarks.servers.bring_servers` brings all, or those that are named as arguments. It needs the
standard library alone, so it runs before an environment is there. A build that is stopped goes on from Go's cache.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

MINIO_VERSION = "v0.0.0-20260212201848-7aac2a2c5b7c"
AZURITE_VERSION = "3.35.0"
FAKE_GCS_VERSION = "v1.56.1"
HELM_VERSION = "v3.22.0"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "rayflink"
_AZURITE_FOLDER = _CACHE / f"azurite-{AZURITE_VERSION}"
MINIO = _CACHE / f"minio-{MINIO_VERSION}" / "minio"
FAKE_GCS = _CACHE / f"fake-gcs-server-{FAKE_GCS_VERSION}" / "fake-gcs-server"
HELM = _CACHE / f"helm-{HELM_VERSION}" / "helm"
AZURITE = _AZURITE_FOLDER / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"


def bring_minio() -> None:
    """Build MinIO, unless it is there."""
    _build(f"github.com/minio/minio@{MINIO_VERSION}", MINIO)


def bring_fake_gcs() -> None:
    """Build fake-gcs-server, unless it is there."""
    _build(f"github.com/fsouza/fake-gcs-server@{FAKE_GCS_VERSION}", FAKE_GCS)


def bring_helm() -> None:
    """Build helm, which makes manifests of a chart, unless it is there."""
    _build(f"helm.sh/helm/v3/cmd/helm@{HELM_VERSION}", HELM)


def _build(module: str, program: Path) -> None:
    """Build a module's program by Go, unless it is there."""
    if program.exists():
        return
    with tempfile.TemporaryDirectory(dir=_CACHE) as work:
        subprocess.run(["go", "install", module], env={**os.environ, "GOBIN": work}, check=True)
        program.parent.mkdir(exist_ok=True)
        os.replace(f"{work}/{program.name}", program)


def bring_azurite() -> None:
    """Install Azurite, unless it is there."""
    if AZURITE.exists():
        return
    with tempfile.TemporaryDirectory(dir=_CACHE) as work:
        folder = f"{work}/azurite"
        install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", folder, f"azurite@{AZURITE_VERSION}"]
        subprocess.run(install, check=True)
        shutil.rmtree(_AZURITE_FOLDER, ignore_errors=True)
        os.replace(folder, _AZURITE_FOLDER)


BRING: dict[str, Callable[[], None]] = {
    "minio": bring_minio, "azurite": bring_azurite, "fake-gcs-server": bring_fake_gcs, "helm": bring_helm,
}  # fmt: skip


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what is half there is deleted
    _CACHE.mkdir(parents=True, exist_ok=True)
    for server in sys.argv[1:] or BRING:
        BRING[server]()
