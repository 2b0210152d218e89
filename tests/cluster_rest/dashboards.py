"""The dashboards and alert rules of deploy/, and a job whose metrics they show."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from rayflink.common.functions.function_classes import KeyedProcessFunction, MapFunction
from rayflink.common.metrics.metric_group import Counter
from rayflink.common.serialization import Encoder
from rayflink.common.time import Duration, Time
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.connectors.kafka.kafka_metrics import ReaderMetrics
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.file_system import FileSink
from rayflink.datastream.state import StateTtlConfig, ValueStateDescriptor
from rayflink.datastream.window import TumblingEventTimeWindows
from rayflink.graph.job_graph import JobGraph
from tests.source_files import ROOT

GRAFANA, PROMETHEUS = ROOT / "deploy" / "grafana", ROOT / "deploy" / "prometheus"
VARIABLES = {"$__rate_interval": "4s", "$job_name": ".*", "$task_name": ".*", "$scrape_job": ".*"}
_NAME = re.compile(r"\b(?:flink|rayflink|process)_\w+")

OF_SQL = "operators of SQL report it"
OF_SINK = "sinks and connectors of other systems report it"
EMPTY = {
    ("state", "Expired entries of SQL"): OF_SQL,
    ("state", "Managed memory of SQL operators"): OF_SQL,
    ("state", "Spilled by SQL operators"): OF_SQL,
    ("sources-sinks", "Ahead of the slowest"): "sources with watermark alignment report it",
    ("sources-sinks", "Malformed"): "sources of files and tables report it once they skip malformed records",
    ("sources-sinks", "Records sent"): OF_SINK,
    ("sources-sinks", "Reconnects"): OF_SINK,
    ("sources-sinks", "Queued for Kafka"): OF_SINK,
    ("sources-sinks", "Async requests in flight"): "async operators report it",
}
"""Panels that a job without these systems has nothing for -> why."""


@dataclass(frozen=True)
class Query:
    """A query of a panel, with its variables filled in."""

    board: str
    panel: str
    text: str

    @property
    def metrics(self) -> set[str]:
        return metrics_in(self.text)


def metrics_in(expression: str) -> set[str]:
    """The names of the metrics that an expression reads."""
    return set(_NAME.findall(expression))


def documents() -> dict[str, dict[str, Any]]:
    """Name -> dashboard, as committed."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(GRAFANA.glob("*.json"))}


def builder() -> ModuleType:
    """The program that writes the dashboards."""
    spec = importlib.util.spec_from_file_location("build_dashboards", GRAFANA / "build_dashboards.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def queries() -> list[Query]:
    return [
        Query(name, panel["title"], filled(target["expr"]))
        for name, board in documents().items()
        for panel in board["panels"]
        for target in panel.get("targets", ())
    ]


def filled(expression: str) -> str:
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression, expression
    return expression


def alerts() -> Iterator[Mapping[str, Any]]:
    for group in yaml.safe_load((PROMETHEUS / "alerts.yml").read_text(encoding="utf-8"))["groups"]:
        yield from group["rules"]


class Seen(KeyedProcessFunction):
    """Has a state with a time to live."""

    def open(self, runtime_context: Any) -> None:
        descriptor = ValueStateDescriptor("seen")
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(1)).build())
        self.seen = runtime_context.get_state(descriptor)

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.seen.update(value)
        yield value


class LikeKafka(MapFunction):
    """Reports what a reader of Kafka does, and fails once."""

    def open(self, runtime_context: Any) -> None:
        consumed, self.attempt = Counter(), runtime_context.get_attempt_number()
        self.read = 0
        metrics = ReaderMetrics(runtime_context.get_metrics_group(), lambda: [self.read], Counter(), consumed)
        metrics.add_partition("clicks", 0, lambda: self.read, lambda: max(0, self.read - 10))

    def map(self, value: Any) -> Any:
        self.read += 1
        if self.attempt == 0 and self.read == 150:
            raise ValueError("once")
        return value


def clicks(folder: Path) -> JobGraph:
    """An endless job with all that the dashboards show: windows, late records, state, checkpoints, a restart."""
    env = StreamExecutionEnvironment({
        "execution.checkpointing.interval": "200 ms",
        "execution.checkpointing.dir": str(folder / "checkpoints"),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "10 ms",
        "pipeline.auto-watermark-interval": "50 ms",
    })  # fmt: skip
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(100)).with_timestamp_assigner(moment)
    strategy = strategy.with_idleness(Duration.of_minutes(1)).with_null_timestamps_dropped()
    numbers = env.from_source(DataGeneratorSource(records_per_second=200), strategy, "Clicks")
    counted = numbers.map(LikeKafka()).name("Kafka").key_by(lambda n: n % 3)
    windows = counted.process(Seen()).name("Seen").map(lambda n: (n % 3, 1)).key_by(lambda pair: pair[0])
    sums = windows.window(TumblingEventTimeWindows.of(Time.milliseconds(500))).sum(1).name("Sums")
    sums.map(str).sink_to(FileSink.for_row_format(str(folder / "out"), Encoder.simple_string_encoder()).build())
    return env.get_job_graph("clicks by kind")


def moment(number: int, _: int) -> int:
    """The time of a record by its number: 5 ms each since 2020, one of twenty an hour late."""
    return 1_577_836_800_000 + number * 5 - (3_600_000 if number % 20 == 19 else 0)
