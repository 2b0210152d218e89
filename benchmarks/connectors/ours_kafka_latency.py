"""Latency from producer to consumer through a job between two topics of Kafka, at a fixed rate, at least once.

A process of its own produces stamped messages of 100 bytes at an even rate and consumes the results; the job reads the
topic, partitions by key, counts in keyed state, and writes to another topic with a checkpoint each second. Before that
the same process consumes the first topic itself: that is the latency of the broker and the client alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, nullcontext
from typing import Any

from benchmarks.runs.job_numbers import flat
from benchmarks.runs.ray_bounded import bounded_ray
from benchmarks.servers.kafka_broker import kafka_cluster
from benchmarks.streams.ours_latency import TARGET_P99_MS
from rayflink.common.serialization import ByteArraySchema
from rayflink.common.watermark_strategy import WatermarkStrategy
from rayflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from rayflink.datastream.connectors.base import DeliveryGuarantee
from rayflink.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from rayflink.datastream.state import ValueStateDescriptor

RATE = 10_000
"""Messages a second."""
PARTITIONS = 2


class Counted(KeyedProcessFunction):
    """Gives each message with the number of those of its key before it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: bytes, ctx: Any) -> Any:
        number = (self._count.value() or 0) + 1
        self._count.update(number)
        yield value


def key_of(message: bytes) -> bytes:
    """Return the key of a message, which is in its first bytes."""
    return message[:4]


def job(servers: str, first: str, second: str, options: dict[str, Any]) -> Any:
    """Start the job and return its client."""
    env = StreamExecutionEnvironment.get_execution_environment(
        {"execution.checkpointing.interval": "1 s", "execution.buffer-timeout.interval": "5 ms", **options}
    )
    env.set_parallelism(PARTITIONS)
    source = (
        KafkaSource.builder().set_bootstrap_servers(servers).set_topics(first).set_group_id("latency")
        .set_starting_offsets(KafkaOffsetsInitializer.latest()).set_value_only_deserializer(ByteArraySchema()).build()
    )  # fmt: skip
    schema = KafkaRecordSerializationSchema.builder().set_topic(second)
    schema = schema.set_value_serialization_schema(ByteArraySchema())
    sink = (
        KafkaSink.builder().set_bootstrap_servers(servers).set_record_serializer(schema.build())
        .set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE).set_property("linger.ms", "1").build()
    )  # fmt: skip
    events = env.from_source(source, WatermarkStrategy.no_watermarks(), "in")
    events.key_by(key_of).process(Counted()).sink_to(sink)
    return env.execute_async("Kafka latency")


def watch(servers: str, first: str, second: str, seconds: float) -> dict[str, float]:
    """Produce into the first topic and consume the second in a process of its own; return the latencies."""
    command = [sys.executable, "-m", "benchmarks.inputs.kafka_stamps", servers, first, second, str(RATE), str(seconds)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 120, check=False)
    if finished.returncode:
        raise RuntimeError(f"the producer failed: {finished.stderr[-2000:]}")
    numbers: dict[str, float] = json.loads(finished.stdout.splitlines()[-1])
    return numbers


def run(data_path: str | None, seconds: float = 20.0) -> dict[str, Any]:
    """Measure the broker alone, the job in this process, and the job on Ray, each for `seconds`."""
    began = time.time()
    cases: dict[str, dict[str, float]] = {}
    with ExitStack() as stack:
        cluster = stack.enter_context(kafka_cluster())
        servers = cluster.bootstrap_servers
        alone = cluster.new_topic(PARTITIONS)
        cases["broker_alone"] = watch(servers, alone, alone, seconds)
        for name, target in (("local", "local"), ("ray", "ray")):
            first, second = cluster.new_topic(PARTITIONS), cluster.new_topic(PARTITIONS)
            with bounded_ray(PARTITIONS) if target == "ray" else nullcontext():
                client = job(servers, first, second, {"execution.target": target})
                running = threading.Thread(target=client.wait, daemon=True)  # a local job runs while it is waited for
                running.start()
                try:
                    cases[name] = {**watch(servers, first, second, seconds), "target_p99_ms": TARGET_P99_MS}
                finally:
                    client.cancel()
                    running.join()
    return {
        "rows": int(sum(case["messages"] for case in cases.values())),
        "seconds_total": time.time() - began,
        "seconds_startup": 0.0,
        "cases": cases,
        **flat(cases),
    }
