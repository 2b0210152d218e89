"""The options of a job's traces, parsed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from ..configuration import reading
from ..errors import ConfigError
from ..options import registry as options
from ..options.option_values import SpanDetail

__all__ = ["TraceSettings"]

PATH = "/v1/traces"
"""The path on which collectors take traces."""


@dataclass(frozen=True)
class TraceSettings:
    """The collector of a job's traces, and their detail.

    >>> config = {"traces.reporter.otel.exporter.endpoint": "http://collector:4318"}
    >>> TraceSettings.of(config).endpoint, TraceSettings.of({})
    ('http://collector:4318/v1/traces', None)

    Args:
        endpoint: address of a collector that speaks OTLP over HTTP.
        timeout_ms: of a request.
        detail: of checkpoints.
        most_queued: traces that wait.
        service: attributes of the service, with "service.name".
    """

    endpoint: str
    timeout_ms: int
    detail: SpanDetail
    most_queued: int
    service: Mapping[str, str]

    @classmethod
    def of(cls, config: Mapping[str, object]) -> TraceSettings | None:
        """Parse the settings from option key -> value; None: traces are off.

        Raises:
            ConfigError: a value does not parse, or the reporter has no endpoint.
        """
        get = reading(config).get
        reporters, endpoint = get(options.TRACE_REPORTERS), get(options.OTEL_ENDPOINT)
        if "otel" not in (["otel"] if reporters is None and endpoint else reporters or []):
            return None
        if not endpoint:
            remedy = "set it, or leave `otel` out of traces.reporters"
            raise ConfigError(options.OTEL_ENDPOINT.key, "none", "the address of a collector", remedy)
        get(options.OTEL_PROTOCOL)  # refused where it is not HTTP
        variables = get(options.OTEL_VARIABLES)
        service = {"service.name": get(options.OTEL_SERVICE_NAME), **(variables or {})}
        if version := get(options.OTEL_SERVICE_VERSION):
            service["service.version"] = version
        whole = endpoint if urlsplit(endpoint).path.strip("/") else endpoint.rstrip("/") + PATH
        timeout_ms = get(options.OTEL_TIMEOUT).to_millis()
        return cls(whole, timeout_ms, get(options.SPAN_DETAIL), get(options.OTEL_QUEUE), service)
