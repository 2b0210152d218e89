"""The metric group of one attempt of one subtask: who it is, what it counts, gone when the task ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from . import metric_names as names
from .metric_group import Counter, MetricGroup
from .metric_scopes import ScopeFormats

__all__ = ["OperatorMetrics", "TaskFacts", "TaskMetricGroup", "add_task_for_job"]

TASK_SCOPE = ("taskmanager", "job", "task")
"""Flink's logical scope of a task."""


@dataclass(frozen=True)
class TaskFacts:
    """The facts that distinguish one attempt from all others.

    Args:
        job_id: 32 hex digits, like `vertex_id` and `attempt_id`.
        task_name: name of the vertex.
        subtask_index: in [0, parallelism).
        attempt_number: attempts of the subtask before this one.
    """

    job_id: str
    job_name: str
    vertex_id: str
    attempt_id: str
    task_name: str
    subtask_index: int
    attempt_number: int


def add_task_for_job(root: MetricGroup, task: TaskFacts, detailed_network: bool = False) -> TaskMetricGroup:
    """Add the group of an attempt below its job; `detailed_network` as taskmanager.network.detailed-metrics says."""
    job = root.add_group(task.job_id)
    return TaskMetricGroup(job, task, detailed_network)


class TaskMetricGroup:
    """Counters of one attempt, under Flink's names.

    The counters are attributes, so that the data path adds to them without a look-up.
    """

    def __init__(self, job: MetricGroup, task: TaskFacts, detailed_network: bool = False) -> None:
        self.task = task
        self.group = job.add_group(task.attempt_id)
        self._detailed_network = detailed_network
        self.num_records_in = self.group.counter(names.NUM_RECORDS_IN)
        self.num_records_out = self.group.counter(names.NUM_RECORDS_OUT)
        self.num_bytes_in = self.group.counter(names.NUM_BYTES_IN)
        self.num_bytes_out = self.group.counter(names.NUM_BYTES_OUT)
        self.num_buffers_in = self.group.counter(names.NUM_BUFFERS_IN)
        self.num_buffers_out = self.group.counter(names.NUM_BUFFERS_OUT)
        self.group.meter_view(names.NUM_RECORDS_IN_RATE, self.num_records_in)
        self.group.meter_view(names.NUM_RECORDS_OUT_RATE, self.num_records_out)
        self.group.meter_view(names.NUM_BYTES_IN_RATE, self.num_bytes_in)
        self.group.meter_view(names.NUM_BYTES_OUT_RATE, self.num_bytes_out)
        self.group.meter_view(names.NUM_BUFFERS_IN_RATE, self.num_buffers_in)
        self.group.meter_view(names.NUM_BUFFERS_OUT_RATE, self.num_buffers_out)
        self._host, self._process_id = "localhost", "local"
        self._operators: list[OperatorMetrics] = []
        self._formats: ScopeFormats | None = None

    def identify(self, formats: ScopeFormats, host: str, process_id: str) -> None:
        """Set where the task runs and how its metrics are named: of the operators that are there, and those to come."""
        self._formats, self._host, self._process_id = formats, host, process_id
        variables = self.variables()
        scope = formats.bound(formats.task, variables)
        self.group.identify(scope, formats.delimiter, TASK_SCOPE, variables)
        for operator in self._operators:
            self._identify(operator)

    def _identify(self, operator: OperatorMetrics) -> None:
        formats = self._formats
        if formats is not None:
            variables = {**self.variables(), **operator.variables}
            scope = formats.bound(formats.operator, variables)
            operator.group.identify(scope, formats.delimiter, (*TASK_SCOPE, "operator"), variables)

    def variables(self) -> dict[str, str]:
        """Return Flink's scope variables of the task, by name in angle brackets."""
        task = self.task
        return {
            "<host>": self._host,
            "<tm_id>": self._process_id,
            "<job_id>": str(task.job_id),
            "<job_name>": task.job_name,
            "<task_id>": str(task.vertex_id),
            "<task_name>": task.task_name,
            "<task_attempt_id>": str(task.attempt_id),
            "<task_attempt_num>": str(task.attempt_number),
            "<subtask_index>": str(task.subtask_index),
        }

    def operator(self, operator_name: str, operator_id: str = "") -> OperatorMetrics:
        """Return the metrics of one operator of the task's chain; with its id, operators of one name are kept apart."""
        group = self.group.add_group(operator_id or operator_name)
        known = next((operator for operator in self._operators if operator.group is group), None)
        if known is None:
            variables = {"<operator_id>": operator_id, "<operator_name>": operator_name}
            known = OperatorMetrics(group, variables)
            self._operators.append(known)
            self._identify(known)
        return known

    def network_buffers(self, gauges: Mapping[str, Callable[[], float]]) -> None:
        """Report how full the network buffers are: ``Input.<name>`` and ``Output.<name>`` -> gauge.

        The lengths of queues are reported under ``Network`` too, where detailed network metrics are on.
        """
        shuffle, network = self.group.add_group("Shuffle").add_group("Netty"), None
        if self._detailed_network:
            network = self.group.add_group("Network")
        for path, gauge in gauges.items():
            side, _, name = path.partition(".")
            shuffle.add_group(side).add_group("Buffers").gauge(name, gauge)
            if network is not None and name in (names.INPUT_QUEUE_LENGTH, names.OUTPUT_QUEUE_LENGTH):
                network.add_group(side).gauge(name, gauge)

    def close(self) -> None:
        """End the reports of the task's metrics, as it has ended."""
        self.group.close()


class OperatorMetrics:
    """Counters, rates and watermarks of one operator.

    Args:
        variables: Flink's scope variables of the operator alone.
    """

    def __init__(self, group: MetricGroup, variables: Mapping[str, str] | None = None) -> None:
        self.group, self.variables = group, dict(variables or {})
        self.num_records_in: Counter = group.counter(names.NUM_RECORDS_IN)
        self.num_records_out: Counter = group.counter(names.NUM_RECORDS_OUT)
        group.meter_view(names.NUM_RECORDS_IN_RATE, self.num_records_in)
        group.meter_view(names.NUM_RECORDS_OUT_RATE, self.num_records_out)

    @property
    def num_late_records_dropped(self) -> Counter:
        """Return the counter of records that came after their windows were over; reported from the first look on."""
        return self.group.counter(names.NUM_LATE_RECORDS_DROPPED)

    def watermarks(self, current_input: Callable[[], int | None], current_output: Callable[[], int | None]) -> None:
        """Report the current input and output watermark, in epoch milliseconds; None before the first."""
        self.group.gauge(names.CURRENT_INPUT_WATERMARK, current_input)
        self.group.gauge(names.CURRENT_OUTPUT_WATERMARK, current_output)
