"""The plans of a script: it runs up to each `execute`, which gives its graphs here instead of running them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from rayflink.common.job_client import JobClient
from rayflink.common.job_execution_result import JobExecutionResult
from rayflink.common.job_status import JobStatus
from rayflink.datastream.environment import intercepted
from rayflink.graph.explain import explain
from rayflink.graph.job_graph import JobGraph
from rayflink.graph.plan_json import plan_json
from rayflink.graph.stream_graph import StreamGraph
from rayflink.graph.svg import to_svg

from .script import run_script


class PlannedJob(JobClient):
    """Stands for the job that was not run: it has finished at once, and no stream gave a record."""

    def __init__(self, stream: StreamGraph, job: JobGraph) -> None:
        super().__init__(job.id)
        self.stream, self.job = stream, job

    def status(self) -> dict[str, Any]:
        """Return the status FINISHED, without vertices."""
        return {"jid": self.job.id, "name": self.job.name, "state": JobStatus.FINISHED.value, "vertices": []}

    def _checkpoints(self, checkpoint_id: int | None) -> dict[str, Any]:
        return {}

    def draw(self) -> None:
        """Return None: there are no rows."""

    def abandon(self) -> None:
        """Do nothing, as nothing runs."""

    def _cancel(self) -> None:
        """Do nothing, as nothing runs."""

    def _accumulators(self) -> dict[str, Any]:
        return {}

    def _ask_savepoint(self, *asked: object) -> tuple[str, str]:
        return "", "the job is only planned, and does not run"

    def _ask_rescale(self, *asked: object) -> tuple[int, str]:
        return 0, "the job is only planned, and does not run"

    def _ask_result(self, timeout_s: float | None, on_progress: object = None) -> JobExecutionResult:
        return JobExecutionResult(self.job.id, 0)


def plans_of(
    program: str, arguments: Sequence[str], options: Mapping[str, str], is_module: bool = False
) -> tuple[list[PlannedJob], int]:
    """Run a program, a file or a module, without running its jobs.

    Returns: one entry for each `execute`, in order, and the script's exit code. A script that works on the results of a
        first job may fail, since there are none; the jobs up to there are returned.
    """
    planned: list[PlannedJob] = []

    def keep(stream: StreamGraph, job: JobGraph) -> PlannedJob:
        planned.append(PlannedJob(stream, job))
        return planned[-1]

    with intercepted(keep), redirect_stdout(sys.stderr):  # what the script prints is not the plan
        code = run_script(program, arguments, options, is_module)
    return planned, code


def as_text(planned: Sequence[PlannedJob]) -> str:
    """Return the job graphs for the terminal."""
    return "\n\n\n".join(explain(entry.job) for entry in planned)


def as_json(planned: Sequence[PlannedJob]) -> str:
    """Return the execution plan in Flink's JSON form; a list of plans where the script has several jobs."""
    plans = [plan_json(entry.stream) for entry in planned]
    if len(plans) == 1:
        return plans[0]
    return json.dumps([json.loads(plan) for plan in plans], indent=2, ensure_ascii=False)


def write_svg(planned: Sequence[PlannedJob], file: Path) -> list[Path]:
    """Draw the job graphs; of several the second goes to `name-2.svg`, and so on."""
    written = []
    for number, entry in enumerate(planned, start=1):
        target = file if number == 1 else file.with_name(f"{file.stem}-{number}{file.suffix}")
        target.write_text(to_svg(entry.job), encoding="utf-8")
        written.append(target)
    return written


__all__ = ["PlannedJob", "as_json", "as_text", "plans_of", "write_svg"]
