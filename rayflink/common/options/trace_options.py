"""The options of traces; `registry` has them with all others."""

from __future__ import annotations

from .option_declaring import LONGER_THAN_ZERO as _LONGER_THAN_ZERO
from .option_declaring import NAME as _NAME
from .option_declaring import POSITIVE as _POSITIVE
from .option_declaring import declare as _option
from .option_declaring import millis as _ms
from .option_types import DURATION, INT, LIST, MAP, STRING, enum_type
from .option_values import SpanDetail

TRACES = "Traces"
"""The heading of these options."""
TRACE_REPORTERS = _option(TRACES, "traces.reporters", LIST, None,
                          "Reporters of traces. The only one is `otel`, which sends checkpoints, starts, restarts and "
                          "rescalings to a collector of OpenTelemetry. If not set, it reports if its endpoint is set.",
                          test=(lambda value: set(value) <= {"otel"}, "`otel`, or an empty list"))
SPAN_DETAIL = _option(TRACES, "traces.checkpoint.span-detail-level", enum_type(SpanDetail),
                      SpanDetail.SPAN_PER_CHECKPOINT,
                      "Detail of the trace of a checkpoint: one span; one with figures of each task; a child for each "
                      "task; below that a child for each subtask, with its alignment and its snapshot.")
OTEL_ENDPOINT = _option(TRACES, "traces.reporter.otel.exporter.endpoint", STRING, None,
                        "Address of the collector, such as `http://collector:4318`; `/v1/traces` is added if it has "
                        "no path. Reporting requires `rayflink[otel]`.",
                        test=(lambda value: value.startswith(("http://", "https://")), "an address of HTTP"))
OTEL_PROTOCOL = _option(TRACES, "traces.reporter.otel.exporter.protocol", STRING, "HTTP",
                        "Protocol of the collector. Flink's default, `gRPC`, is not supported.",
                        test=(lambda value: value.upper() == "HTTP", "`HTTP`: collectors take it on port 4318"))
OTEL_TIMEOUT = _option(TRACES, "traces.reporter.otel.exporter.timeout", DURATION, _ms(10_000),
                       "Longest time for a request to the collector.", test=_LONGER_THAN_ZERO)
OTEL_SERVICE_NAME = _option(TRACES, "traces.reporter.otel.service.name", STRING, "rayflink",
                            "Name of the service in the traces.", test=_NAME)
OTEL_SERVICE_VERSION = _option(TRACES, "traces.reporter.otel.service.version", STRING, None,
                               "Version of the service in the traces; that of rayflink if not set.")
OTEL_VARIABLES = _option(TRACES, "traces.reporter.otel.scope.variables.additional", MAP, None,
                         "Further attributes of the service: `region:eu-west-1,environment:test`.")
OTEL_QUEUE = _option(TRACES, "rayflink.traces.max-queued", INT, 1_000,
                     "Traces of a job that wait for the collector; beyond that the oldest is dropped and counted.",
                     test=_POSITIVE)
OTEL_FACTORY = _option(TRACES, "traces.reporter.otel.factory.class", STRING, None, "The Java class of the reporter.",
                       unheeded="has one reporter of that name, and no Java class")
