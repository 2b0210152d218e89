"""Object stores for the tests, on loopback: MinIO, Azurite, which is Microsoft's emulator of Azure, and
fake-gcs-server, an emulator of Google Cloud Storage, behind a front.

`python -m benchmarks.servers.bring_servers` brings all. Where a program is not there, its tests are
skipped. The servers end with the process of the tests, however that ends.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from benchmarks.servers.bound_process import start_bound
from benchmarks.servers.bring_servers import AZURITE, FAKE_GCS, MINIO
from benchmarks.servers.google_front import google_front

BUCKET = "data"
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Azurite's account, which is the same everywhere."""
STARTS_WITHIN_S = 60


class RealStore(Protocol):
    """A bucket of a real store, as an outside verifier sees it."""

    root: str
    options: dict[str, str]

    def objects(self, prefix: str) -> dict[str, bytes]:
        """Return the content of each object below a prefix."""
        ...

    def uploads(self, keys: list[str]) -> list[str]:
        """Return the keys that have uploads which are neither complete nor aborted."""
        ...


@dataclass
class MinioStore:
    """A bucket of MinIO.

    Args:
        options: lead to it.
        process: of the server, to be frozen or killed.
    """

    options: dict[str, str]
    process: subprocess.Popen[bytes]
    root: str = f"s3://{BUCKET}"

    def __post_init__(self) -> None:
        import boto3

        self.client: Any = boto3.client(
            "s3", endpoint_url=self.options["s3.endpoint"], region_name="us-east-1",
            aws_access_key_id=self.options["s3.access-key"], aws_secret_access_key=self.options["s3.secret-key"],
        )  # fmt: skip

    def objects(self, prefix: str) -> dict[str, bytes]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
        return {key: self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in keys}

    def uploads(self, keys: list[str]) -> list[str]:
        return [
            upload["Key"]
            for key in keys
            for upload in self.client.list_multipart_uploads(Bucket=BUCKET, Prefix=key).get("Uploads", [])
        ]


@dataclass
class AzuriteStore:
    """A container of Azurite.

    Args:
        options: lead to it.
    """

    options: dict[str, str]
    root: str = f"az://{BUCKET}"

    def __post_init__(self) -> None:
        from azure.storage.blob import ContainerClient

        credential = {"account_name": _ACCOUNT, "account_key": _KEY}
        self.client: Any = ContainerClient(self.options["fs.azure.endpoint"], BUCKET, credential)

    def objects(self, prefix: str) -> dict[str, bytes]:
        names = [blob.name for blob in self.client.list_blobs(name_starts_with=prefix)]
        return {name: self.client.download_blob(name).readall() for name in names}

    def uploads(self, keys: list[str]) -> list[str]:
        """Return nothing: blocks without a list are deleted by the store alone."""
        return []


@dataclass
class GoogleStore:
    """A bucket of fake-gcs-server, looked at by the JSON API.

    Args:
        options: lead to the front, by which clients write.
        url: of the server itself.
    """

    options: dict[str, str]
    url: str
    root: str = f"gs://{BUCKET}"

    def ask(self, path: str, body: bytes | None = None) -> bytes:
        """Return the answer to a request."""
        headers = {"Content-Type": "application/json"}
        with urlopen(Request(self.url + path, body, headers), timeout=10) as answer:
            content: bytes = answer.read()
        return content

    def objects(self, prefix: str) -> dict[str, bytes]:
        listing = json.loads(self.ask(f"/storage/v1/b/{BUCKET}/o?prefix={quote(prefix, safe='')}"))
        names = [entry["name"] for entry in listing.get("items", [])]
        return {name: self.ask(f"/storage/v1/b/{BUCKET}/o/{quote(name, safe='')}?alt=media") for name in names}

    def uploads(self, keys: list[str]) -> list[str]:
        """Return the keys that have hidden objects with parts."""
        names = json.loads(self.ask(f"/storage/v1/b/{BUCKET}/o")).get("items", [])
        folders = {entry["name"].rpartition("/")[0] for entry in names}
        hidden = {folder.partition(".inprogress.")[0] for folder in folders if ".inprogress." in folder}
        return [key for key in keys if "/.".join(key.rsplit("/", 1)) in hidden]


def minio_program() -> str | None:
    """Return the path of MinIO: that on the PATH, else that in the cache folder; None: there is none."""
    return shutil.which("minio") or (str(MINIO) if MINIO.exists() else None)


@contextmanager
def minio_store() -> Iterator[MinioStore]:
    """Run MinIO with an empty bucket; skip where it is not installed."""
    program = minio_program()
    if program is None:
        pytest.skip("MinIO is not installed: python -m benchmarks.servers.bring_servers builds it")
    account = {
        "MINIO_ROOT_USER": "rayflink", "MINIO_ROOT_PASSWORD": "rayflink-secret", "MINIO_BROWSER": "off",
        "MINIO_SITE_REGION": "us-east-1",  # without one it accepts any
    }  # fmt: skip
    limits = {"GOMEMLIMIT": "256MiB", "GOMAXPROCS": "2"}

    def command(port: int, folder: str) -> list[str]:
        return [program, "server", "--quiet", "--address", f"127.0.0.1:{port}", folder]

    with _running(command, {**account, **limits}) as (port, process):
        options = {
            "s3.endpoint": f"http://127.0.0.1:{port}", "s3.access-key": account["MINIO_ROOT_USER"],
            "s3.secret-key": account["MINIO_ROOT_PASSWORD"], "s3.region": "us-east-1",
        }  # fmt: skip
        store = MinioStore(options, process)
        _await(lambda: store.client.create_bucket(Bucket=BUCKET))
        yield store


@contextmanager
def azurite_store() -> Iterator[AzuriteStore]:
    """Run Azurite with an empty container; skip where it is not installed."""
    if not AZURITE.exists() or shutil.which("node") is None:
        pytest.skip("Azurite is not installed: python -m benchmarks.servers.bring_servers brings it by npm")

    def command(port: int, folder: str) -> list[str]:
        place = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", folder]
        return ["node", str(AZURITE), *place, "--silent", "--skipApiVersionCheck", "--disableTelemetry"]

    with _running(command, {"NODE_OPTIONS": "--max-old-space-size=256"}) as (port, _):
        options = {
            "fs.azure.endpoint": f"http://127.0.0.1:{port}/{_ACCOUNT}", "fs.azure.account.name": _ACCOUNT,
            "fs.azure.account.key": _KEY,
        }  # fmt: skip
        store = AzuriteStore(options)
        _await(lambda: store.client.create_container())
        yield store


@contextmanager
def google_store() -> Iterator[GoogleStore]:
    """Run fake-gcs-server with an empty bucket behind a front; skip where it is not installed."""
    if not FAKE_GCS.exists():
        pytest.skip("fake-gcs-server is not installed: python -m benchmarks.servers.bring_servers builds it")
    with google_front() as front:

        def command(port: int, _: str) -> list[str]:
            place = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-log-level", "error"]
            return [str(FAKE_GCS), *place, "-backend", "memory", "-public-host", f"127.0.0.1:{front.server_port}"]

        options = {"fs.gs.storage.root.url": f"http://127.0.0.1:{front.server_port}"}
        with _running(command, {"GOMEMLIMIT": "256MiB", "GOMAXPROCS": "2"}) as (port, _):
            front.backend_port = port
            store = GoogleStore(options, f"http://127.0.0.1:{port}")
            _await(lambda: store.ask("/storage/v1/b?project=tests", json.dumps({"name": BUCKET}).encode()))
            yield store


@contextmanager
def _running(
    command: Callable[[int, str], list[str]], environment: Mapping[str, str]
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Run a server in a folder of its own; yield its port and process."""
    with tempfile.TemporaryDirectory(prefix="rayflink-store-") as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        everything = {**os.environ, **environment}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        server = start_bound(command(port, folder), env=everything, cwd=folder, **quiet)
        try:
            yield port, server
        finally:
            server.kill()
            server.wait()


def _await(action: Callable[[], object]) -> None:
    """Repeat an action until the server answers."""
    deadline = time.monotonic() + STARTS_WITHIN_S
    while True:
        try:
            action()
            return
        except Exception:  # of either client, while nothing listens
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
