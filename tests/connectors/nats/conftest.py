"""One NATS server for all tests of a session."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("nats")

from tests.connectors.nats.nats_server_process import NatsProcess


@pytest.fixture(scope="session")
def nats_server() -> Iterator[NatsProcess]:
    if shutil.which("nats-server") is None:
        pytest.skip("NATS is not installed: apt-get install nats-server")
    with tempfile.TemporaryDirectory(prefix="rfnats-") as folder:
        server = NatsProcess(Path(folder))
        yield server
        server.end()
