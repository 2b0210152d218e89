"""Metrics on the metrics port of the Ray node, where Prometheus finds them: `ray_` and the name Flink gives them,
which Ray writes in lower case.

Ray's dashboard agent serves the port where what `ray[default]` brings is installed; elsewhere nothing is reported.
Ray drops a series that has not been reported for 20 s, so those of an ended task vanish.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from ray.util.metrics import Gauge

from rayflink.common.configuration import Configuration
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.metrics.prometheus import Sample, samples
from rayflink.common.options import registry as options
from rayflink.common.text_output.logs import get_logger

log = get_logger(__name__)

_SERVED_BY = ("opencensus", "opentelemetry", "prometheus_client")
_gauges: dict[str, tuple[Gauge, tuple[str, ...]]] = {}
_refused: set[str] = set()
_making = threading.Lock()


class PrometheusReports:
    """Reports groups of metrics, of a task or a job each, at most once an interval.

    Args:
        config: of the job, option key -> value.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        configuration = Configuration.from_dict(dict(config))
        self.enabled = "prom" in (configuration.get(options.REPORTERS) or ()) and all(map(find_spec, _SERVED_BY))
        interval = configuration.get(options.PROM_INTERVAL)
        self._interval_s = 0.0 if interval is None else interval.to_millis() / 1000
        self._filtered = bool(configuration.get(options.PROM_FILTER_LABELS))
        self._due = float("-inf")

    def report(self, group: MetricGroup, now_s: float) -> None:
        """Report all metrics of a group, when it is time to."""
        if not self.enabled or now_s < self._due:
            return
        self._due = now_s + self._interval_s
        for sample in samples(group, self._filtered):
            _record(sample)


def _record(sample: Sample) -> None:
    known = _gauges.get(sample.name)
    if known is None:
        with _making:
            known = _gauges.get(sample.name)
            if known is None:
                keys = tuple(sample.labels)
                known = _gauges[sample.name] = Gauge(sample.name, sample.help, keys), keys
    gauge, keys = known
    if set(keys) == set(sample.labels):
        gauge.set(sample.value, dict(sample.labels))
    elif sample.name not in _refused:
        _refused.add(sample.name)
        problem = f"labels {sorted(sample.labels)}, and {sorted(keys)} elsewhere"
        remedy = "give groups of one name the same variables"
        log.warning("not reported to Prometheus: metric %s has %s; %s", sample.name, problem, remedy)
