"""Sends traces to a collector of OpenTelemetry, in a thread of its own: whoever reports them never waits.

A collector that is away costs a bounded queue. Traces wait there until it is back; when the queue is full, the oldest
is dropped and counted.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from ...version import __version__
from ..errors import RayflinkError
from ..text_output.logs import get_logger
from .metric_group import MetricGroup
from .span import Trace
from .trace_settings import TraceSettings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

__all__ = ["MissingOpenTelemetry", "Sender", "TraceReporter", "trace_reporter"]

log = get_logger(__name__)
MOST_TRACES = 64
"""Traces in a request."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
"""Seconds between two attempts to reach a collector: they double."""
LAST_WORDS_S = 1.0
"""Seconds that the end of a job waits for its last traces to be sent."""
DROPPED, SENT = "numTracesDropped", "numTracesSent"


class MissingOpenTelemetry(RayflinkError):
    """The packages that send traces are not installed.

    Args:
        package: its name.
    """

    def __init__(self, package: str) -> None:
        super().__init__(package)
        self.package = package

    def __str__(self) -> str:
        remedy = "pip install 'rayflink[otel]', or leave traces.reporter.otel.exporter.endpoint out"
        return f"reporting traces requires {self.package}, which is not installed; {remedy}"


class Sender(Protocol):
    """Sends traces; what OpenTelemetry's exporter is wrapped in."""

    def send(self, traces: Iterable[Trace]) -> bool:
        """Send all; return False where the collector did not take them."""

    def close(self) -> None:
        """Give up what is under way; called by another thread."""


class TraceReporter:
    """Queues the traces of a job for its collector.

    Args:
        sender: sends them.
        most_queued: traces that wait; at least 1.
        first_pause_s: seconds after the first attempt that failed; twice as long after each further one.
    """

    def __init__(self, sender: Sender, most_queued: int, first_pause_s: float = FIRST_PAUSE_S) -> None:
        self._sender, self._first_pause_s = sender, first_pause_s
        self._queue: deque[Trace] = deque()
        self._most_queued = most_queued
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self.sent = 0
        """Traces that the collector has taken."""
        self.dropped = 0
        """Traces that were given up."""

    @classmethod
    def of(cls, settings: TraceSettings) -> TraceReporter:
        """Return the reporter for a collector.

        Raises:
            MissingOpenTelemetry: it needs packages that are not installed.
        """
        return cls(_OtlpSender(settings), settings.most_queued)

    def measure(self, group: MetricGroup) -> None:
        """Register how many traces were sent and dropped."""
        group.gauge(SENT, lambda: self.sent)
        group.gauge(DROPPED, lambda: self.dropped)

    def report(self, traces: Iterable[Trace]) -> None:
        """Queue traces; the oldest gives way where there is no room."""
        with self._changed:
            for trace in traces:
                if len(self._queue) >= self._most_queued:
                    self._queue.popleft()
                    self.dropped += 1
                self._queue.append(trace)
            if self._queue and self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._run, name="traces", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def close(self, timeout_s: float = LAST_WORDS_S) -> None:
        """Send what is left, for at most some seconds; what is not sent then is dropped and counted."""
        with self._changed:
            self._stopped.set()
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(timeout_s)
            self._sender.close()
        with self._changed:
            self.dropped += len(self._queue)
            self._queue.clear()
        if self.dropped:
            log.warning("traces were dropped, as the collector did not take them", extra={"dropped": self.dropped})

    def _run(self) -> None:
        pause_s = self._first_pause_s
        while batch := self._next_batch():
            if self._sender.send(batch):
                pause_s = self._first_pause_s
                self._taken(batch)
            elif self._stopped.is_set():
                return
            else:
                if pause_s == self._first_pause_s:
                    log.warning("the collector of traces does not take any; they wait")
                self._stopped.wait(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _next_batch(self) -> list[Trace]:
        """Return the oldest traces, which stay in the queue; [] at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._stopped.is_set())
            return [trace for trace, _ in zip(self._queue, range(MOST_TRACES), strict=False)]

    def _taken(self, batch: list[Trace]) -> None:
        """Remove what was sent, as far as newer traces have not driven it out meanwhile: that was no loss then."""
        with self._changed:
            sent = {id(trace) for trace in batch}
            remaining = [trace for trace in self._queue if id(trace) not in sent]
            self.dropped -= len(batch) - (len(self._queue) - len(remaining))
            self.sent += len(batch)
            self._queue = deque(remaining)


def trace_reporter(config: Mapping[str, object], group: MetricGroup) -> TraceReporter | None:
    """Return the reporter that the options of a job ask for, measured in the group of the job; None: traces are off.

    Raises:
        ConfigError: an option has another value than it takes.
        MissingOpenTelemetry: the reporter needs packages that are not installed.
    """
    settings = TraceSettings.of(config)
    if settings is None:
        return None
    reporter = TraceReporter.of(settings)
    reporter.measure(group)
    return reporter


class _OtlpSender:
    """Sends by OTLP over HTTP."""

    def __init__(self, settings: TraceSettings) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # an extra
            from opentelemetry.sdk.resources import Resource
        except ImportError as error:
            raise MissingOpenTelemetry(error.name or "opentelemetry") from error
        logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)  # the reporter says so once
        version = {"service.version": __version__, "telemetry.sdk.language": "python"}
        self._resource = Resource({**version, **settings.service})
        self._exporter = OTLPSpanExporter(endpoint=settings.endpoint, timeout=settings.timeout_ms / 1000)

    def send(self, traces: Iterable[Trace]) -> bool:
        from opentelemetry.sdk.trace.export import SpanExportResult  # an extra

        spans = [span for trace in traces for span in self._readable(trace)]
        return self._exporter.export(spans) is SpanExportResult.SUCCESS

    def close(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _readable(self, trace: Trace) -> list[ReadableSpan]:
        from opentelemetry.sdk.trace import ReadableSpan  # an extra
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        from opentelemetry.trace import SpanContext, TraceFlags
        from opentelemetry.trace.status import Status, StatusCode

        sampled = TraceFlags(TraceFlags.SAMPLED)
        scope, job = InstrumentationScope(trace.scope, __version__), {"job_id": trace.job_id}
        readable = []
        for identified in trace.spans():
            span, number = identified.span, int(identified.trace_id, 16)
            parent = identified.parent_id
            context = SpanContext(number, int(identified.span_id, 16), False, sampled)
            above = SpanContext(number, int(parent, 16), False, sampled) if parent else None
            attributes: Mapping[str, str | int | float | bool] = {**job, **span.attributes}
            status = Status(StatusCode.ERROR, span.failure) if span.failure else Status(StatusCode.OK)
            readable.append(ReadableSpan(
                span.name, context, above, self._resource, attributes, status=status, instrumentation_scope=scope,
                start_time=span.start_ms * 1_000_000, end_time=max(span.start_ms, span.end_ms) * 1_000_000,
            ))  # fmt: skip
        return readable
