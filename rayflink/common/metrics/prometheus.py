"""Metrics as Flink's PrometheusReporter writes them: names, labels and values.

Counters, gauges and meters are gauges there, a meter by its rate; a histogram is its count and one value a quantile.

Source: apache/flink AbstractPrometheusReporter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

from ..text_output.logs import get_logger
from .histogram import QUANTILES
from .metric_group import Counter, Gauge, Histogram, Meter, Metric, MetricGroup

PREFIX = "flink"
SUMMARY = "summary"
_NOT_ALLOWED = re.compile(r"[^a-zA-Z0-9:_]")
OF_PROCESS = "taskmanager"
"""The logical scope of a process that runs tasks."""
PROCESS_LABELS = ("host", "tm_id")

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Sample:
    """One value.

    Args:
        name: of letters, digits, ":" and "_".
        labels: name -> value.
        value: neither infinite nor NaN.
        help: the metric's name and its logical scope.
        type: of its family: gauge, counter, summary or histogram.
        family: name of the family; "": that of the sample.
    """

    name: str
    labels: Mapping[str, str]
    value: float
    help: str
    type: str = "gauge"
    family: str = ""


def samples(root: MetricGroup, filter_label_values: bool = True) -> Iterator[Sample]:
    """Return all metrics from `root` on that are numbers or truth values now; others are left out.

    Meters are not updated: a report has done that. Of metrics whose names begin with "Status." the process is the
    scope, as its tasks report the same.
    """
    places: dict[int, _Place] = {}
    for group, name, metric in root.walk():
        place = places.get(id(group))
        if place is None:
            place = places[id(group)] = _Place(group, filter_label_values)
        prefix, scope, labels = place.of_process if ".Status." in f".{name}" else place.of_group
        whole, help = f"{prefix}_{written(name)}", f"{name} (scope: {scope})"
        if isinstance(metric, Histogram):
            yield from _summary(metric, whole, labels, help)
            continue
        value = number(_value(metric))
        if value is not None:
            yield Sample(whole, labels, value, help)


class _Place:
    """The place of a group's metrics, and of those that are their process's: prefix, logical scope and labels."""

    def __init__(self, group: MetricGroup, filter_label_values: bool) -> None:
        labels = _labels(group, filter_label_values)
        scope = "_".join(map(written, group.get_logical_scope()))
        self.of_group = (f"{PREFIX}_{scope}" if scope else PREFIX, scope, labels)
        of_process = {key: labels[key] for key in PROCESS_LABELS if key in labels}
        self.of_process = (f"{PREFIX}_{OF_PROCESS}", OF_PROCESS, of_process)


def _summary(histogram: Histogram, name: str, labels: dict[str, str], help: str) -> Iterator[Sample]:
    yield Sample(f"{name}_count", labels, histogram.get_count(), help, SUMMARY, name)
    try:
        statistics = histogram.statistics()
    except Exception as error:  # of values that cannot be added up; the report has logged it as a warning
        log.debug("histogram not reported: %r", error)
        return
    for quantile, fraction in QUANTILES.items():
        value = number(statistics[quantile])
        if value is not None:
            yield Sample(name, {**labels, "quantile": str(fraction)}, value, help, SUMMARY, name)


def _labels(group: MetricGroup, filter_values: bool) -> dict[str, str]:
    labels = {}
    for variable, value in group.get_all_variables().items():
        name = variable[1:-1] if variable.startswith("<") and variable.endswith(">") else variable
        labels[written(name)] = written(value) if filter_values else value
    return labels


def _value(metric: Metric) -> Any:
    if isinstance(metric, Counter):
        return metric.count
    if isinstance(metric, Meter):
        return metric.get_rate()
    assert isinstance(metric, Gauge)
    try:
        return metric.get_value()
    except Exception as error:  # a user's gauge may raise anything; the report has logged it as a warning
        log.debug("gauge not reported: %r", error)
        return None


def number(value: object) -> float | None:
    """Return a number or truth value as Prometheus takes it; None for all else, infinity and NaN."""
    if not isinstance(value, Real):
        return None
    try:
        result = float(value)
    except OverflowError:  # a whole number that no float holds
        return None
    return result if math.isfinite(result) else None


def written(text: str) -> str:
    """Return a name as Prometheus takes it: "_" stands for all but letters, digits, ":" and "_"."""
    return _NOT_ALLOWED.sub("_", text)


__all__ = ["OF_PROCESS", "PREFIX", "PROCESS_LABELS", "SUMMARY", "Sample", "number", "samples", "written"]
