"""Metrics out of a job's status: by their identifiers, and those of user functions over the subtasks of an operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..user_code.stalled import STALLED
from .metric_names import KEY_SAMPLES, OF_EVERY_OPERATOR, PROCESS_SLOTS, SPLIT
from .waits import WAITS

Status = Mapping[str, Any]
USER_METRIC_COLUMNS = ("operator", "metric", "sum", "min", "max")
"""The columns of `user_metrics`."""
_FACTS = frozenset((
    "operators", "scope", "delimiter", "host", "node", "pid", "begin", "reportedMs", PROCESS_SLOTS, KEY_SAMPLES,
    STALLED, WAITS,
))  # fmt: skip
"""The parts of a task's report that are no metrics."""
_OF_SOURCES = ("latency.", f"{SPLIT}.")
"""Beginnings of the names of metrics that are stored for each source or split."""


def identified(vertices: Iterable[Status]) -> dict[str, Any]:
    """Map identifiers (`metrics.scope.*`, then the name) to values, for all tasks and operators that have reported.

    >>> operator = {"scope": "n1.taskmanager.a.job.Map.0", "metrics": {"hits": 3}}
    >>> report = {"scope": "n1.taskmanager.a.job.Map -> Out.0", "numBytesIn": 7, "operators": [operator]}
    >>> identified([{"subtasks": [{"metrics": report}]}])
    {'n1.taskmanager.a.job.Map -> Out.0.numBytesIn': 7, 'n1.taskmanager.a.job.Map.0.hits': 3}
    """
    metrics: dict[str, Any] = {}
    for vertex in vertices:
        for subtask in vertex["subtasks"]:
            report = subtask["metrics"]
            delimiter = report.get("delimiter", ".")
            if "scope" in report:
                own = {name: value for name, value in report.items() if name not in _FACTS}
                metrics.update(_under(report["scope"], own, delimiter))
            for operator in report.get("operators", ()):
                metrics.update(_under(operator["scope"], operator["metrics"], delimiter))
    return metrics


def user_metrics(vertices: Iterable[Status]) -> list[tuple[Any, ...]]:
    """Return `USER_METRIC_COLUMNS` of each metric that a function or connector registered, over the subtasks.

    What is no number has its first value in place of the sum. Latencies are left out. Of several operators of one name
    each has the beginning of its id behind it.
    """
    values: dict[tuple[str, str, str], list[Any]] = {}
    for operator_id, operator, name, value in _of_users(vertices):
        values.setdefault((operator_id, operator, name), []).append(value)
    bearers = Counter(operator for operator, _ in {(operator, number) for number, operator, _ in values})
    return [
        (f"{operator} {number[:8]}" if bearers[operator] > 1 else operator, name, *_summed(metric_values))
        for (number, operator, name), metric_values in values.items()
    ]


def _of_users(vertices: Iterable[Status]) -> Iterator[tuple[str, str, str, Any]]:
    for vertex in vertices:
        for subtask in vertex["subtasks"]:
            for operator in subtask["metrics"].get("operators", ()):
                for name, value in operator["metrics"].items():
                    if name.rpartition(".")[2] not in OF_EVERY_OPERATOR and not name.startswith(_OF_SOURCES):
                        yield operator["id"], operator["name"], name, value


def _summed(values: list[Any]) -> tuple[Any, Any, Any]:
    numbers = [value for value in values if isinstance(value, (int, float)) and value == value]
    if not numbers or len(numbers) < len(values):
        return (numbers[0] if numbers else values[0], None, None)
    return sum(numbers), min(numbers), max(numbers)


def _under(scope: str, metrics: Status, delimiter: str) -> dict[str, Any]:
    return {f"{scope}{delimiter}{name}": value for name, value in metrics.items()}


__all__ = ["USER_METRIC_COLUMNS", "identified", "user_metrics"]
