"""Traces on their way to a collector: over HTTP, and into a bounded queue while it is away."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

import pytest

from rayflink.common.errors import ConfigError
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.metrics.span import Span, Trace, trace_id
from rayflink.common.metrics.trace_reporter import TraceReporter, trace_reporter
from rayflink.common.metrics.trace_settings import TraceSettings
from tests.common.metrics.trace_collector import Collector, collecting

ENDPOINT = "traces.reporter.otel.exporter.endpoint"


def trace(number: int) -> Trace:
    inner = Span("Sync", 5, 7, {})
    return Trace("scope", "ab", f"checkpoint/{number}", Span("Checkpoint", 5, 9, {"n": number}, (inner,), "no room"))


class Gate:
    """A collector that takes traces while it is open."""

    def __init__(self) -> None:
        self.is_open, self.tried = threading.Event(), threading.Semaphore(0)
        self.taken: list[str] = []

    def send(self, traces: Iterable[Trace]) -> bool:
        batch = [trace.subject for trace in traces]
        is_open = self.is_open.is_set()
        if is_open:
            self.taken += batch
        self.tried.release()
        return is_open

    def close(self) -> None:
        """Nothing is under way."""


def test_traces_wait_for_a_collector_and_come_in_order_once() -> None:
    gate = Gate()
    reporter = TraceReporter(gate, 10, first_pause_s=0.001)
    reporter.report(trace(n) for n in range(3))
    assert gate.tried.acquire(timeout=10) and gate.tried.acquire(timeout=10), "it is tried again"
    gate.is_open.set()
    reporter.report([trace(3)])
    reporter.close(10)
    assert gate.taken == [f"checkpoint/{n}" for n in range(4)]
    assert (reporter.sent, reporter.dropped) == (4, 0)


def test_of_too_many_the_oldest_are_dropped_and_counted() -> None:
    gate, group = Gate(), MetricGroup()
    reporter = TraceReporter(gate, 2, first_pause_s=60)
    reporter.measure(group)
    reporter.report([trace(0)])
    assert gate.tried.acquire(timeout=10)
    reporter.report(trace(n) for n in (1, 2, 3))
    assert group.snapshot() == {"numTracesSent": 0, "numTracesDropped": 2}
    gate.is_open.set()
    reporter.close(10)
    assert gate.taken == ["checkpoint/2", "checkpoint/3"] and reporter.dropped == 2


def test_what_is_not_sent_at_the_end_is_dropped_and_counted() -> None:
    reporter = TraceReporter(Gate(), 10, first_pause_s=60)
    reporter.report(trace(n) for n in range(3))
    reporter.close(10)
    assert (reporter.sent, reporter.dropped) == (0, 3)


def test_traces_are_off_unless_an_endpoint_or_the_reporter_is_set() -> None:
    assert TraceSettings.of({}) is None
    assert TraceSettings.of({ENDPOINT: "http://c:4318", "traces.reporters": ""}) is None
    with pytest.raises(ConfigError, match=r"exporter\.endpoint.*traces\.reporters"):
        TraceSettings.of({"traces.reporters": "otel"})
    with pytest.raises(ConfigError, match="gRPC"):
        TraceSettings.of({ENDPOINT: "http://c:4317", "traces.reporter.otel.exporter.protocol": "gRPC"})
    settings = TraceSettings.of({ENDPOINT: "https://c/otlp/v1/traces"})
    assert settings is not None and settings.endpoint == "https://c/otlp/v1/traces"


@pytest.fixture
def collector() -> Iterator[Collector]:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="pip install 'rayflink[otel]'")
    with collecting() as server:
        yield server


@pytest.mark.slow
def test_a_collector_gets_the_tree_with_its_ids_and_attributes(collector: Collector) -> None:
    variables = {"traces.reporter.otel.scope.variables.additional": "region:eu"}
    reporter = trace_reporter({ENDPOINT: collector.url, **variables}, MetricGroup())
    assert reporter is not None
    reporter.report([trace(7)])
    reporter.close(30)
    [(path, request)] = collector.requests
    [resource] = request.resource_spans
    service = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
    assert (path, service["service.name"], service["region"]) == ("/v1/traces", "rayflink", "eu")
    [of_scope] = resource.scope_spans
    root, child = of_scope.spans
    assert of_scope.scope.name == "scope"
    assert root.trace_id.hex() == child.trace_id.hex() == trace_id("ab", "checkpoint/7")
    assert (child.parent_span_id, root.parent_span_id) == (root.span_id, b"")
    assert (root.name, root.start_time_unix_nano, root.end_time_unix_nano) == ("Checkpoint", 5_000_000, 9_000_000)
    assert {pair.key: pair.value.int_value or pair.value.string_value for pair in root.attributes} == {
        "job_id": "ab", "n": 7,
    }  # fmt: skip
    assert (root.status.code, root.status.message) == (2, "no room")


@pytest.mark.slow
def test_a_job_reports_its_checkpoints_and_ends_without_a_collector(collector: Collector) -> None:
    from rayflink.connectors.collection import CollectSink
    from rayflink.datastream import StreamExecutionEnvironment

    def run(endpoint: str) -> str:
        options = {"execution.target": "local", ENDPOINT: endpoint, "execution.checkpointing.interval": "1 h"}
        env = StreamExecutionEnvironment(options)
        env.from_collection([1, 2]).sink_to(CollectSink("out"))
        return str(env.execute("traced").get_job_id())

    job_id = run(collector.url)
    roots = collector.roots
    assert set(roots) == {"JobInitialization", "Checkpoint"}
    assert roots["Checkpoint"] == trace_id(job_id, "checkpoint/1")
    assert run("http://127.0.0.1:9")
