"""The metrics in a job's status as Flink's PrometheusReporter writes them; for whoever has no metric groups at hand.

A status says less than a metric group, so types are read off names: eleven names of one beginning are a histogram,
`count` and `rate` a meter. The reports of operators name the groups that are values of a variable.

Source: apache/flink AbstractPrometheusReporter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from ..job_status import JobStatus
from ..user_code.stalled import STALLED
from .histogram import QUANTILES
from .metric_names import KEY_SAMPLES, PROCESS_SLOTS
from .prometheus import OF_PROCESS, PREFIX, PROCESS_LABELS, SUMMARY, Sample, number, written
from .task_metric_group import TASK_SCOPE
from .waits import WAITS

__all__ = ["job_samples", "operator_samples", "task_samples"]

Status: TypeAlias = Mapping[str, Any]
"""A part of a job's status."""
Metrics: TypeAlias = Mapping[str, object]
_JOB_SCOPE = ("jobmanager", "job")
_STATISTICS = ("min", "max", "mean", "stddev", *QUANTILES)
_NO_METRICS = frozenset(
    ("operators", "scope", "delimiter", "host", "node", "pid", "reportedMs", PROCESS_SLOTS, KEY_SAMPLES, STALLED, WAITS)
)
_ENDED = frozenset(("FINISHED", "CANCELED", "FAILED"))


def job_samples(status: Status, filter_label_values: bool = True) -> Iterator[Sample]:
    """Return the metrics of a job as a whole; none of a job that has ended, as Flink forgets them.

    >>> status = {"jid": "ab", "name": "my job", "state": "RUNNING", "host": "n1", "metrics": {"uptime": 7, "p": "n/a"}}
    >>> [(sample.name, dict(sample.labels), sample.value) for sample in job_samples(status)]
    [('flink_jobmanager_job_uptime', {'host': 'n1', 'job_id': 'ab', 'job_name': 'my_job'}, 7.0)]
    """
    if not _has_ended(status):
        labels = {"host": str(status.get("host") or "localhost"), **_of_job(status)}
        yield from _Place(_JOB_SCOPE, labels, filter_label_values).samples(status.get("metrics", {}), {})


def task_samples(status: Status, filter_label_values: bool = True) -> Iterator[Sample]:
    """Return the metrics of the tasks of a job that have not ended, and those of their processes."""
    for labels, report in _reports(status):
        own = {name: value for name, value in report.items() if name not in _NO_METRICS}
        of_process = {name: value for name, value in own.items() if _is_of_process(name)}
        of_task = {name: value for name, value in own.items() if name not in of_process}
        yield from _Place(TASK_SCOPE, labels, filter_label_values).samples(of_task, {})
        process = {name: labels[name] for name in PROCESS_LABELS}
        yield from _Place((OF_PROCESS,), process, filter_label_values).samples(of_process, {})


def operator_samples(status: Status, filter_label_values: bool = True) -> Iterator[Sample]:
    """Return the metrics of the operators of tasks that have not ended, those of functions and connectors included."""
    for labels, report in _reports(status):
        for operator in report.get("operators", ()):
            own = {**labels, "operator_id": str(operator["id"]), "operator_name": str(operator["name"])}
            place = _Place((*TASK_SCOPE, "operator"), own, filter_label_values)
            yield from place.samples(operator["metrics"], operator.get("variables", {}))


def _reports(status: Status) -> Iterator[tuple[dict[str, str], Status]]:
    """Return the labels and the report of each task that has not ended."""
    if _has_ended(status):
        return
    for vertex in status["vertices"]:
        for subtask in vertex["subtasks"]:
            if subtask["state"] not in _ENDED and subtask["metrics"]:
                yield _of_task(status, vertex, subtask), subtask["metrics"]


def _has_ended(status: Status) -> bool:
    return JobStatus(status["state"]).is_terminal


def _of_job(status: Status) -> dict[str, str]:
    return {"job_id": str(status["jid"]), "job_name": str(status["name"])}


def _of_task(status: Status, vertex: Status, subtask: Status) -> dict[str, str]:
    report = subtask["metrics"]
    host, pid = str(report.get("host") or "localhost"), report.get("pid")
    return {
        "host": host,
        "tm_id": "local" if pid is None else f"{host}:{pid}",
        **_of_job(status),
        "task_id": str(vertex["id"]),
        "task_name": str(vertex["name"]),
        "task_attempt_id": str(subtask["id"]),
        "task_attempt_num": str(subtask["attempt"]),
        "subtask_index": str(subtask["subtask"]),
    }


def _is_of_process(name: str) -> bool:
    return ".Status." in f".{name}"


class _Place:
    """The place of metrics: their logical scope and labels."""

    def __init__(self, scope: tuple[str, ...], labels: Mapping[str, str], filter_values: bool) -> None:
        self._scope, self._filter_values = "_".join(scope), filter_values
        self._labels = {written(name): self._shown(value) for name, value in labels.items()}

    def _shown(self, value: str) -> str:
        return written(value) if self._filter_values else value

    def samples(self, metrics: Metrics, variables: Mapping[str, tuple[str, str]]) -> Iterator[Sample]:
        """Return what is a number; `variables`: group -> variable and value, in whose place a label stands."""
        histograms = {name.removesuffix(".stddev") for name in metrics if name.endswith(".stddev")}
        histograms = {name for name in histograms if all(f"{name}.{part}" in metrics for part in _STATISTICS)}
        meters = {name.removesuffix(".rate") for name in metrics if name.endswith(".rate")}
        meters = {name for name in meters if f"{name}.count" in metrics}
        for name, value in metrics.items():
            owner, _, part = name.rpartition(".")
            if owner in histograms:
                if part == "count" or part in QUANTILES:
                    yield from self._of_histogram(owner, part, value, variables)
            elif owner in meters:
                if part == "rate":
                    yield from self._sample(owner, value, variables)
            else:
                yield from self._sample(name, value, variables)

    def _sample(self, name: str, value: object, variables: Mapping[str, tuple[str, str]]) -> Iterator[Sample]:
        amount = number(value)
        if amount is not None:
            whole, labels, help = self._named(name, variables)
            yield Sample(whole, labels, amount, help)

    def _of_histogram(
        self, name: str, part: str, value: object, variables: Mapping[str, tuple[str, str]]
    ) -> Iterator[Sample]:
        amount = number(value)
        if amount is None:
            return
        whole, labels, help = self._named(name, variables)
        if part == "count":
            yield Sample(f"{whole}_count", labels, amount, help, SUMMARY, whole)
        else:
            yield Sample(whole, {**labels, "quantile": str(QUANTILES[part])}, amount, help, SUMMARY, whole)

    def _named(self, name: str, variables: Mapping[str, tuple[str, str]]) -> tuple[str, dict[str, str], str]:
        """Return the whole name, the labels and the help of a metric."""
        position = name.rfind(".") if variables else -1
        if position < 0:
            whole, help = _written_name(self._scope, name)
            return whole, self._labels, help  # the same labels for all of them, so that they are written once
        logical, labels = name, dict(self._labels)
        while position >= 0:
            group = name[:position]
            if group in variables:
                variable, value = variables[group]
                labels[written(variable)] = self._shown(value)
                logical = group[: -len(value) - 1] + logical[len(group) :]
            position = name.rfind(".", 0, position)
        whole, help = _written_name(self._scope, logical)
        return whole, labels, help


@lru_cache(maxsize=4096)
def _written_name(above: str, name: str) -> tuple[str, str]:
    """Return the whole name and the help of a metric: jobs have the same ones again and again."""
    groups, _, last = name.rpartition(".")
    scope = f"{above}_{written(groups)}" if groups else above
    return f"{PREFIX}_{scope}_{written(last)}", f"{last} (scope: {scope})"
