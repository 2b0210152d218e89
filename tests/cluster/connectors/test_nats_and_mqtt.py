"""The sources of NATS and MQTT on Ray: a process with tasks is killed, and nothing is lost."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import pytest

from rayflink.common import SimpleStringSchema, WatermarkStrategy
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.base import Source
from rayflink.datastream.connectors.mqtt import MqttSource
from rayflink.datastream.connectors.nats import NatsSource
from tests.connectors.mqtt.conftest import mosquitto  # noqa: F401
from tests.connectors.mqtt.mosquitto_process import MosquittoProcess
from tests.connectors.nats.conftest import nats_server  # noqa: F401
from tests.connectors.nats.nats_server_process import NatsProcess
from tests.exactly_once.running import processes

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


def numbers_of(source: Source[Any], put: Callable[[Sequence[int]], None], is_whole: Callable[[list[int]], bool]) -> Any:
    """What a job gives out, whose process is killed amid 1,000 numbers, until they are whole."""
    options: dict[str, Any] = {
        "execution.checkpointing.interval": "100 ms", "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": 10, "restart-strategy.fixed-delay.delay": "100 ms",
    }  # fmt: skip
    env = StreamExecutionEnvironment(options)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").rebalance().map(int)
    with stream.execute_and_collect() as results:
        put(range(500))
        numbers = list(islice(results, 250))
        [(_, pid), *_] = processes("task")
        os.kill(pid, signal.SIGKILL)
        put(range(500, 1_000))
        while not is_whole(numbers):
            numbers.append(next(results))
    return sorted(numbers)


def test_each_message_of_nats_counts_once(nats_server: NatsProcess) -> None:  # noqa: F811
    stream = nats_server.new_stream()
    builder = NatsSource.builder().set_servers(nats_server.url).set_stream(stream)
    source = builder.set_deserialization_schema(SimpleStringSchema()).build()

    def put(numbers: Sequence[int]) -> None:
        nats_server.publish(numbers, f"{stream}.x")

    assert numbers_of(source, put, lambda numbers: len(numbers) == 1_000) == list(range(1_000))


def test_each_message_of_mqtt_comes_at_least_once(mosquitto: MosquittoProcess) -> None:  # noqa: F811
    builder = MqttSource.builder().set_url(mosquitto.url).set_topics("kept/#").set_client_id("on-ray")
    source = builder.set_deserialization_schema(SimpleStringSchema()).build()

    def put(numbers: Sequence[int]) -> None:
        mosquitto.publish(numbers, "kept/x")

    mosquitto.begin_session("on-ray-0", "kept/#")
    assert set(numbers_of(source, put, lambda numbers: len(set(numbers)) == 1_000)) == set(range(1_000))
