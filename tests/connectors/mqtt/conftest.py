"""One mosquitto broker for all tests of a session."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("paho.mqtt.client")

from tests.connectors.mqtt.mosquitto_process import MosquittoProcess, program


@pytest.fixture(scope="session")
def mosquitto() -> Iterator[MosquittoProcess]:
    if program("mosquitto") is None:
        pytest.skip("mosquitto is not installed: apt-get install mosquitto")
    with tempfile.TemporaryDirectory(prefix="rfmqtt-") as folder:
        broker = MosquittoProcess(Path(folder))
        yield broker
        broker.end()
