"""Metrics under the ids of Flink's interface: of a job, of a vertex, of a subtask, of a metric over several of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, TypedDict

from rayflink.common.metrics.metric_names import CURRENT_INPUT_WATERMARK
from rayflink.common.records.batches import MIN_TIMESTAMP

from ..jobs.cluster_job import Document

__all__ = [
    "Aggregated", "Aggregation", "MetricEntry", "aggregated", "entries", "job_metrics", "subtask_metrics",
    "vertex_metrics",
]  # fmt: skip

_REPLACED = str.maketrans(" .:,", "____")
"""Characters that have no place in names of operators; a dot separates the parts of an id."""
_NO_METRICS = frozenset(("scope", "delimiter", "host", "pid", "node"))
_HISTOGRAM = {".p50": "_median", ".p75": "_p75", ".p90": "_p90", ".p95": "_p95", ".p98": "_p98", ".p99": "_p99",
              ".p999": "_p999", ".min": "_min", ".max": "_max", ".mean": "_mean", ".stddev": "_stddev"}  # fmt: skip
_MOST_SKEW = 100.0
_SOURCE = "Source: "

MetricValues = Mapping[str, str]
"""Id -> value as a text."""


class MetricEntry(TypedDict, total=False):
    """A metric; the value only where it was asked for."""

    id: str
    value: str


class Aggregated(TypedDict, total=False):
    """A metric over several subtasks or jobs: what was asked for of it."""

    id: str
    min: float
    max: float
    avg: float
    sum: float
    skew: float


class Aggregation(Enum):
    """A number that is made of those of several."""

    MIN = "min"
    MAX = "max"
    AVG = "avg"
    SUM = "sum"
    SKEW = "skew"


def job_metrics(status: Document) -> dict[str, str]:
    """Return the metrics of a job as a whole."""
    return _texts(status["metrics"])


def subtask_metrics(subtask: Document) -> dict[str, str]:
    """Return the metrics of a subtask and of its operators, whose names stand before theirs.

    >>> operator = {"name": "Source: a.b", "metrics": {"numRecordsOut": 3}}
    >>> subtask_metrics({"metrics": {"isBackPressured": False, "operators": [operator]}})
    {'isBackPressured': 'false', 'Source__a_b.numRecordsOut': '3'}
    """
    reported = subtask["metrics"]
    metrics = _texts({name: value for name, value in reported.items() if name not in _NO_METRICS})
    operators = reported.get("operators", ())
    if operators and not operators[0]["name"].startswith(_SOURCE):
        watermark = operators[0].get(CURRENT_INPUT_WATERMARK)
        metrics[CURRENT_INPUT_WATERMARK] = str(MIN_TIMESTAMP if watermark is None else watermark)
    for operator in operators:
        name = operator["name"].translate(_REPLACED)
        metrics.update({f"{name}.{metric}": value for metric, value in _texts(operator["metrics"]).items()})
    return metrics


def vertex_metrics(vertex: Document) -> dict[str, str]:
    """Return the metrics of all subtasks of a vertex, whose numbers stand before them: "0.numRecordsIn"."""
    return {
        f"{subtask['subtask']}.{metric}": value
        for subtask in vertex["subtasks"]
        for metric, value in subtask_metrics(subtask).items()
    }


def entries(metrics: MetricValues, wanted: Iterable[str] | None) -> list[MetricEntry]:
    """Return the ids of all metrics, or the values of those that are wanted and known.

    >>> entries({"a": "1", "b": "2"}, None), entries({"a": "1"}, ["a", "c"])
    ([{'id': 'a'}, {'id': 'b'}], [{'id': 'a', 'value': '1'}])
    """
    if wanted is None:
        return [{"id": name} for name in metrics]
    return [{"id": name, "value": metrics[name]} for name in dict.fromkeys(wanted) if name in metrics]


def aggregated(
    of_each: Iterable[MetricValues], wanted: Iterable[str] | None, how: Iterable[Aggregation]
) -> list[Aggregated]:
    """Return the ids of all metrics, or what is asked for of those that are wanted and are numbers somewhere.

    >>> aggregated([{"a": "1"}, {"a": "3"}, {"b": "x"}], ["a", "b"], [Aggregation.MAX, Aggregation.SUM])
    [{'id': 'a', 'max': 3.0, 'sum': 4.0}]
    """
    of_each = list(of_each)
    if wanted is None:
        return [{"id": name} for name in dict.fromkeys(name for metrics in of_each for name in metrics)]
    chosen, results = frozenset(how), []
    for name in dict.fromkeys(wanted):
        numbers = [number for metrics in of_each if (number := _number(metrics.get(name))) is not None]
        if numbers:
            results.append(_aggregate(name, numbers, chosen))
    return results


def _aggregate(name: str, numbers: list[float], chosen: frozenset[Aggregation]) -> Aggregated:
    result: Aggregated = {"id": name}
    total, mean = sum(numbers), sum(numbers) / len(numbers)
    if Aggregation.MIN in chosen:
        result["min"] = min(numbers)
    if Aggregation.MAX in chosen:
        result["max"] = max(numbers)
    if Aggregation.AVG in chosen:
        result["avg"] = mean
    if Aggregation.SUM in chosen:
        result["sum"] = total
    if Aggregation.SKEW in chosen:
        result["skew"] = skew(numbers)
    return result


def skew(numbers: list[float]) -> float:
    """Return how far numbers are from their mean on average, in percent of it, at most 100; 0.0 where that is 0.

    >>> round(skew([210.0, 526.0]), 6), skew([0.0, 0.0, 0.0, 1.0]), skew([0.0])
    (42.934783, 100.0, 0.0)
    """
    mean = sum(numbers) / len(numbers)
    if not mean:
        return 0.0
    deviation = sum(abs(number - mean) for number in numbers) / len(numbers)
    return min(deviation / mean * 100, _MOST_SKEW)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _texts(metrics: Mapping[str, Any]) -> dict[str, str]:
    """Return the metrics that are one value each, with those of histograms named as by Flink."""
    histograms = {name.removesuffix(".p999") for name in metrics if name.endswith(".p999")}
    strings = {name: _text(value) for name, value in metrics.items() if isinstance(value, (bool, int, float, str))}
    return {_named(name, histograms): text for name, text in strings.items()} if histograms else strings


def _named(name: str, histograms: set[str]) -> str:
    base, dot, statistic = name.rpartition(".")
    return f"{base}{_HISTOGRAM[dot + statistic]}" if base in histograms and dot + statistic in _HISTOGRAM else name


def _text(value: bool | int | float | str) -> str:
    """Return a value as Java prints it."""
    return str(value) if value is not True and value is not False else "true" if value else "false"
