"""The server of RabbitMQ, once a test session."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pika")

from tests.connectors.rabbitmq.rabbitmq_server import RabbitProcess, is_installed


@pytest.fixture(scope="session")
def rabbit() -> Iterator[RabbitProcess]:
    if not is_installed():
        pytest.skip("RabbitMQ is not installed: apt-get install rabbitmq-server")
    with tempfile.TemporaryDirectory(prefix="rfrabbit-") as folder:
        server = RabbitProcess(Path(folder))
        yield server
        server.end()
