"""The Kafka sink on Ray: a process with tasks is killed, and each record is there once."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from benchmarks.servers.kafka_broker import KafkaCluster
from rayflink.common.watermark_strategy import WatermarkStrategy
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.base import DeliveryGuarantee
from tests.cluster import watching
from tests.connectors.kafka.conftest import kafka  # noqa: F401
from tests.connectors.kafka.kafka_topics import strings_to, values_in
from tests.exactly_once.running import processes

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]
RECORDS = 20_000


def test_a_killed_process_loses_and_repeats_nothing(kafka: KafkaCluster) -> None:  # noqa: F811
    topic, servers = kafka.new_topic(3), kafka.bootstrap_servers
    options: dict[str, Any] = {
        "parallelism.default": 2, "execution.checkpointing.interval": "200 ms",
        "restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": 10,
        "restart-strategy.fixed-delay.delay": "100 ms",
    }  # fmt: skip
    env = StreamExecutionEnvironment(options)
    source = DataGeneratorSource(lambda number: f"{number:06}", count=RECORDS, records_per_second=1_500)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    numbers.sink_to(strings_to(servers, topic, DeliveryGuarantee.EXACTLY_ONCE, topic).build())
    job = env.execute_async("kafka sink")
    assert watching.eventually(lambda: len(values_in(servers, topic)) > 1_000, within_s=60)
    [(_, pid), *_] = processes("task")
    os.kill(pid, signal.SIGKILL)
    job.get_job_execution_result().result()
    assert values_in(servers, topic) == [f"{number:06}" for number in range(RECORDS)]
