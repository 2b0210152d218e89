"""The RabbitMQ source on Ray: a process with tasks is killed, and each message counts once."""

from __future__ import annotations

import os
import signal
from itertools import islice
from typing import Any

import pytest

from rayflink.common import SimpleStringSchema
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQSource
from tests.cluster import watching
from tests.connectors.rabbitmq.conftest import rabbit  # noqa: F401
from tests.connectors.rabbitmq.rabbitmq_server import RabbitProcess
from tests.exactly_once.running import processes

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


def test_a_killed_process_loses_and_repeats_nothing(rabbit: RabbitProcess) -> None:  # noqa: F811
    queue = rabbit.declare()
    rabbit.put(queue, range(1_000))
    options: dict[str, Any] = {
        "execution.checkpointing.interval": "100 ms", "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": 10, "restart-strategy.fixed-delay.delay": "100 ms",
    }  # fmt: skip
    env = StreamExecutionEnvironment(options)
    config = RMQConnectionConfig.Builder().set_uri(rabbit.uri).build()
    numbers = env.add_source(RMQSource(config, queue, True, SimpleStringSchema()), "queue")
    with numbers.rebalance().map(int).execute_and_collect() as results:
        found = list(islice(results, 500))
        rabbit.put(queue, range(1_000, 2_000))
        [(_, pid), *_] = processes("task")
        os.kill(pid, signal.SIGKILL)
        found += islice(results, 1_500)
        assert sorted(found) == list(range(2_000))
        assert watching.eventually(lambda: rabbit.size(queue) == 0, within_s=30)
