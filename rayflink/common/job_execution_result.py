"""The result of a finished job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .errors import JobExecutionError
from .job_id import JobID
from .metrics.metric_report import identified


class JobExecutionResult:
    """The runtime and the accumulators of a job that has finished.

    Args:
        job_id: of the job.
        net_runtime_ms: from RUNNING to the end.
        accumulators: name -> merged value.
        vertices: per vertex: name, parallelism, counters summed over subtasks, and each subtask's report.

    >>> print(JobExecutionResult("0" * 32, 250), end="")
    Program execution finished
    Job with JobID 00000000000000000000000000000000 has finished.
    Job Runtime: 250 ms
    """

    def __init__(
        self,
        job_id: str,
        net_runtime_ms: int,
        accumulators: Mapping[str, Any] | None = None,
        vertices: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._job_id, self._net_runtime_ms = JobID(job_id), net_runtime_ms
        self._accumulators = dict(accumulators or {})
        self._vertices = tuple(vertices)

    def get_job_id(self) -> JobID:
        """Return the job's id: 32 hex digits, a str."""
        return self._job_id

    def get_net_runtime(self) -> int:
        """Return the milliseconds from RUNNING to the end."""
        return self._net_runtime_ms

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """Return the merged value of an accumulator; None where no task had one of that name."""
        return self._accumulators.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """Return all accumulators: name -> merged value."""
        return dict(self._accumulators)

    def is_job_execution_result(self) -> bool:
        """Return True: the job has ended."""
        return True

    @property
    def vertices(self) -> tuple[Mapping[str, Any], ...]:
        """Return per vertex: name, parallelism, counters summed over subtasks, average rates, each subtask's report."""
        return self._vertices

    @property
    def metrics(self) -> dict[str, Any]:
        """Return the last values of the metrics of all tasks and operators, by identifier (`metrics.scope.*`)."""
        return identified(self._vertices)

    def __str__(self) -> str:
        lines = [
            "Program execution finished",
            f"Job with JobID {self._job_id} has finished.",
            f"Job Runtime: {self._net_runtime_ms} ms",
        ]
        if self._accumulators:
            lines.append("Accumulator Results: ")
        for name, value in self._accumulators.items():
            many = isinstance(value, (list, tuple, set, frozenset))
            shown = f" [{len(value)} elements]" if many else f": {value}"
            lines.append(f"- {name} ({type(value).__name__}){shown}")
        return "\n".join([*lines, ""]) + ("\n" if self._accumulators else "")


class DetachedJobExecutionResult(JobExecutionResult):
    """The result of a job that goes on without its driver: nothing is known but its id.

    >>> DetachedJobExecutionResult("0" * 32).is_job_execution_result()
    False
    """

    def __init__(self, job_id: str) -> None:
        super().__init__(job_id, 0)

    def get_net_runtime(self) -> int:
        """Refuse, as the job goes on.

        Raises: JobExecutionError: always.
        """
        raise self._unknown("runtime")

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """Refuse, as the job goes on.

        Raises: JobExecutionError: always.
        """
        raise self._unknown("accumulators")

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """Refuse, as the job goes on.

        Raises: JobExecutionError: always.
        """
        raise self._unknown("accumulators")

    def is_job_execution_result(self) -> bool:
        """Return False: the job goes on."""
        return False

    @property
    def vertices(self) -> tuple[Mapping[str, Any], ...]:
        """Refuse, as the job goes on.

        Raises: JobExecutionError: always.
        """
        raise self._unknown("vertices")

    def __str__(self) -> str:
        return f"Job with JobID {self._job_id} was submitted detached and goes on."

    def _unknown(self, what: str) -> JobExecutionError:
        remedy = "run it attached, without --detached and with execution.attached not false, or see `rayflink status`"
        return JobExecutionError(self._job_id, f"was submitted detached, and its {what} are not known here", remedy)


__all__ = ["DetachedJobExecutionResult", "JobExecutionResult"]
