"""Bring real object stores into the cache folder: MinIO, built by Go in some minutes, and Azurite, which is from npm.

`python -m benchmarks.servers.bring_servers` brings both, or those that are named as arguments. It needs the
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
_CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "rayflink"
_AZURITE_FOLDER = _CACHE / f"azurite-{AZURITE_VERSION}"
MINIO = _CACHE / f"minio-{MINIO_VERSION}" / "minio"
AZURITE = _AZURITE_FOLDER / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"


def bring_minio() -> None:
    """Build MinIO, unless it is there."""
    if MINIO.exists():
        return
    with tempfile.TemporaryDirectory(dir=_CACHE) as work:
        environment = {**os.environ, "GOBIN": work}
        subprocess.run(["go", "install", f"github.com/minio/minio@{MINIO_VERSION}"], env=environment, check=True)
        MINIO.parent.mkdir(exist_ok=True)
        os.replace(f"{work}/minio", MINIO)


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


BRING: dict[str, Callable[[], None]] = {"minio": bring_minio, "azurite": bring_azurite}


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what is half there is deleted
    _CACHE.mkdir(parents=True, exist_ok=True)
    for server in sys.argv[1:] or BRING:
        BRING[server]()
