"""Jobs larger than a test can run: many vertices, subtasks, failures and checkpoints, and long names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rayflink.cluster.jobs.cluster_job import UnknownJob
from tests.cluster_rest.pages.job_statuses import NOW_MS, operator, subtask

LONG = "orders of all customers joined with prices and stock, deduplicated, enriched and summed by the day " * 2
"""A name of 200 characters."""
Edges = Sequence[tuple[int, int]]


def job_id(number: int) -> str:
    """Return the id of the job with a number."""
    return f"{number:032x}"


def layered_edges(layers: int, width: int) -> Edges:
    """Return the edges of a deep and wide graph: a vertex reads two of the layer before, and some read the first."""
    edges = []
    for layer in range(1, layers):
        for place in range(width):
            consumer = layer * width + place
            edges += [((layer - 1) * width + place, consumer), ((layer - 1) * width + (place + 1) % width, consumer)]
    far = [(place, (layers - 1) * width + place) for place in range(width)]
    return [*edges, *far]


class LargeJob:
    """A job as the cluster shows it.

    Args:
        number: of the job.
        name: of the job.
        parallelism: of each vertex.
        edges: between vertices.
        failures: how many kinds of failures it has had.
        checkpoints: in its history.
        state: of the job.
    """

    def __init__(
        self,
        number: int,
        name: str,
        parallelism: Sequence[int] = (1, 1),
        edges: Edges = ((0, 1),),
        failures: int = 0,
        checkpoints: int = 0,
        state: str = "RUNNING",
    ) -> None:
        self.job_id, self._name, self._state = job_id(number), name, state
        self._parallelism, self._edges = parallelism, edges
        self._failures, self._checkpoints = failures, checkpoints
        self.asked = 0

    def status(self) -> dict[str, Any]:
        """Return figures that are others each time."""
        self.asked += 1
        moments = {"CREATED": NOW_MS - 62_000, "RUNNING": NOW_MS - 60_000}
        if self._state != "RUNNING":
            moments[self._state] = NOW_MS - 1_000
        return {
            "jid": self.job_id, "name": self._name, "state": self._state, "timestamps": moments, "recovery": None,
            "metrics": {"uptime": 60_000, "numRestarts": 0},
            "vertices": [self._vertex(index, parallelism) for index, parallelism in enumerate(self._parallelism)],
            "exceptions": [self._exception(index) for index in range(self._failures)],
        }  # fmt: skip

    def description(self) -> dict[str, Any]:
        """Return its plan."""
        vertices = []
        for index, _ in enumerate(self._parallelism):
            inputs = [
                {"id": _vertex_id(source), "ship_strategy": "HASH", "exchange": "pipelined", "gate": 0}
                for source, consumer in self._edges
                if consumer == index
            ]
            vertices.append(
                {"id": _vertex_id(index), "name": self._vertex_name(index), "max_parallelism": 1024, "inputs": inputs}
            )
        head = {"jid": self.job_id, "name": self._name, "mode": "STREAMING", "configuration": {}}
        return {**head, "vertices": vertices}

    def checkpoints(self, checkpoint_id: int | None = None) -> dict[str, Any]:
        """Return the history, or one checkpoint."""
        if checkpoint_id is not None:
            return {"tasks": {}}
        history = [self._checkpoint(number) for number in range(self._checkpoints, 0, -1)]
        counts = {"total": len(history), "completed": len(history), "failed": 0, "in_progress": 0, "restored": 0}
        return {"history": history, "counts": counts, "latest": {}, "summary": {}}

    def accumulators(self) -> dict[str, Any]:
        """Return none."""
        return {}

    def _vertex(self, index: int, parallelism: int) -> dict[str, Any]:
        busy = (index * 37 + self.asked * 11) % 900
        parts = [
            subtask(number, 50 + (number + self.asked) % 9, busy, 0, operators=[operator("in", NOW_MS - 500)])
            for number in range(parallelism)
        ]
        sums = {
            key: sum(part["metrics"][key] for part in parts) for key in ("numRecordsIn", "numRecordsOut")
        }
        head = {"id": _vertex_id(index), "name": self._vertex_name(index), "parallelism": parallelism}
        head |= {"states": {"RUNNING": parallelism}, "numBytesIn": 0, "numBytesOut": 0}
        return {**head, **sums, "subtasks": parts}

    def _vertex_name(self, index: int) -> str:
        return f"step {index}" if index % 10 else f"step {index}: {LONG}"

    def _exception(self, index: int) -> dict[str, Any]:
        place = f'  File "job.py", line {index + 1}, in parse'
        trace = f"Traceback:\n{place}\n    return int(text)\nValueError: order {index}\n"
        return {
            "timestamp": NOW_MS - 60_000 + index, "task": "step 1 (1/2)",
            "exception": f"step 1 failed at order {index}", "traceback": trace,
            "operator": "step 1", "line": f"job.py:{index + 1} in main", "record": "'x'",
        }  # fmt: skip

    def _checkpoint(self, number: int) -> dict[str, Any]:
        return {
            "id": number, "status": "COMPLETED", "is_savepoint": False, "checkpoint_type": "CHECKPOINT",
            "trigger_timestamp": NOW_MS - 10_000 * (self._checkpoints - number),
            "end_to_end_duration": 200 + number % 90,
            "num_acknowledged_subtasks": 4, "num_subtasks": 4, "checkpointed_size": 1000 + number, "state_size": 5000,
            "persisted_data": 0, "external_path": f"/data/chk-{number}", "discarded": False,
        }  # fmt: skip


class LargeJobs:
    """Jobs of a cluster.

    Args:
        jobs: of it.
    """

    def __init__(self, *jobs: LargeJob) -> None:
        self._jobs = {job.job_id: job for job in jobs}

    def statuses(self) -> list[dict[str, Any]]:
        """Return the status of each."""
        return [job.status() for job in self._jobs.values()]

    def view(self, job_id: str) -> LargeJob:
        """Return a job.

        Raises:
            UnknownJob: there is none with this id.
        """
        if job_id not in self._jobs:
            raise UnknownJob(job_id)
        return self._jobs[job_id]

    def running(self, job_id: str) -> Any:
        """Refuse to change a job."""
        raise NotImplementedError


def _vertex_id(index: int) -> str:
    return f"{index:032x}"
