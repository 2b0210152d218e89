"""docs/metrics.md: its example runs, and it lists the metrics there are, no more and no fewer."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

from rayflink.actors.local.in_process import InProcessCluster
from rayflink.common.functions.function_classes import KeyedProcessFunction
from rayflink.common.metrics.metric_names import NUM_RECORDS_IN_OPEN_WINDOWS_DROPPED
from rayflink.common.time import Duration, Time
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.state import StateTtlConfig, ValueStateDescriptor
from rayflink.datastream.window import TumblingEventTimeWindows
from rayflink.state.clock import ManualClock
from rayflink.testing import Pause, ScriptedSource, rec, wm

OF_RAY = {"host", "pid", "begin", "node", "reportedMs", "numBytesInLocal", "numBytesInRemote"}
NO_METRICS = {"operators", "scope", "delimiter"}


class Seen(KeyedProcessFunction):
    """Has a state with a time to live."""

    def open(self, runtime_context: Any) -> None:
        descriptor = ValueStateDescriptor("seen")
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self.seen = runtime_context.get_state(descriptor)

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.seen.update(value)
        yield value


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    """The status of a job that uses all there is."""
    options = {"metrics.latency.interval": "10 ms", "taskmanager.network.detailed-metrics": "true"}
    env = StreamExecutionEnvironment(options)
    script = [rec(("a", 1), 1_000), wm(10_000), rec(("a", 7), 3_000), rec(("a", 1), 12_000)]
    stream = env.from_source(ScriptedSource(script)).key_by(lambda pair: pair[0])
    stream.window(TumblingEventTimeWindows.of(Time.seconds(10))).sum(1).sink_to(CollectSink("out"))
    aligned = WatermarkStrategy.for_monotonous_timestamps().with_null_timestamps_dropped()
    aligned = aligned.with_watermark_alignment("all", Duration.of_seconds(1))
    slow = env.from_source(ScriptedSource([1, Pause(500), 2]), aligned)
    slow.connect(env.from_collection([3])).map((str, str)).sink_to(CollectSink("both"))
    env.from_collection(["a"]).key_by(str).process(Seen()).sink_to(CollectSink("seen"))
    clock = ManualClock(1_000)
    cluster = InProcessCluster(env.get_job_graph("job"), clock, lambda ms: clock.advance(max(1, int(ms))))
    midway: list[Any] = []

    def look() -> None:
        found = cluster.job.report.describe()
        midway[:] = [vertex for vertex in found["vertices"] if "split.script 0" in repr(vertex)] or midway

    cluster.run(look)
    described = cluster.job.report.describe()
    return {**described, "vertices": [*described["vertices"], *midway]}


def listed(repository: Path, section: str) -> set[str]:
    """Names in the first column of the section's table."""
    page = (repository / "docs" / "metrics.md").read_text(encoding="utf-8")
    text = page.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `([^`]+)` \|", text, re.M))


def reports(described: dict[str, Any]) -> list[dict[str, Any]]:
    return [subtask["metrics"] for vertex in described["vertices"] for subtask in vertex["subtasks"]]


def test_the_example_runs(repository: Path) -> None:
    page = str(repository / "docs" / "metrics.md")
    found = doctest.testfile(page, module_relative=False)
    assert found.attempted >= 8 and found.failed == 0


def test_the_example_of_the_page_on_observability_runs(repository: Path) -> None:
    page = doctest.testfile(str(repository / "docs" / "observability.md"), module_relative=False)
    assert page.attempted >= 2 and page.failed == 0


def test_every_metric_of_a_job_is_listed(repository: Path, described: dict[str, Any]) -> None:
    assert set(described["metrics"]) == listed(repository, "Metrics of a job")


def test_metrics_of_sql_are_listed_under_their_names(repository: Path) -> None:
    assert NUM_RECORDS_IN_OPEN_WINDOWS_DROPPED in listed(repository, "Metrics of an operator of SQL")


def test_every_metric_of_a_task_and_its_process_is_listed(repository: Path, described: dict[str, Any]) -> None:
    found = {name for report in reports(described) for name in report} - NO_METRICS - OF_RAY
    assert found == listed(repository, "Metrics of a task") | listed(repository, "Metrics of a slot's process")


def test_every_metric_of_an_operator_is_listed(repository: Path, described: dict[str, Any]) -> None:
    names = {name for report in reports(described) for operator in report["operators"] for name in operator["metrics"]}
    found = {"latency.source_id" if name.startswith("latency.source_id.") else name for name in names}
    of_splits = {name for name in found if name.startswith("split.")}
    assert {name.rpartition(".")[2] for name in of_splits} == {"currentWatermark", "isIdle"}
    of_states = {name for name in found if name.startswith("state.")}
    assert of_states == {"state.seen.numStateEntriesExpired"}
    found = found - of_splits - of_states | {"split", "state"}
    assert found == listed(repository, "Metrics of an operator")
