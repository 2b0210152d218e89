"""The jobs that tests of requests run: events, parsed, summed by key in windows; the same as those of RestJobs.java."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rayflink.actors.local.in_process import InProcessCluster
from rayflink.actors.messages.commands import RescaleRequested, SavepointRequested
from rayflink.cluster.jobs.cluster_job import Document, JobView, UnknownJob
from rayflink.common.functions.accumulators import IntCounter
from rayflink.common.functions.function_classes import MapFunction
from rayflink.common.job_status import JobStatus
from rayflink.common.time import Time
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.discard import DiscardingSink
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.window import TumblingEventTimeWindows
from rayflink.graph.job_description import describe_graph
from rayflink.graph.job_graph import JobGraph
from rayflink.state.clock import ManualClock

KINDS = ("running", "finished", "failed", "restarting")
BROKEN, COUNT = 50, 200
CHECKPOINTS = 4


class Parse(MapFunction):
    """Counts what it has seen, and fails at one record."""

    def __init__(self, broken: int) -> None:
        self.broken = broken

    def open(self, runtime_context: Any) -> None:
        self.parsed = IntCounter()
        runtime_context.add_accumulator("parsed", self.parsed)

    def map(self, number: Any) -> Any:
        if number == self.broken:
            raise RuntimeError(f"record {number} is broken") from ValueError("price is -1")
        self.parsed.add(1)
        return number


def environment(kind: str, directory: str = "", **options: str) -> StreamExecutionEnvironment:
    """Return an environment with the program of a job that will be in one of the states `KINDS`.

    Args:
        directory: of the checkpoints of the running one; "": they are in memory.
        options: further ones, with "_" in place of "." and "-".
    """
    chosen = {"parallelism.default": "2", "restart-strategy.type": "none"}
    if kind == "restarting":
        chosen |= {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "3",
                   "restart-strategy.fixed-delay.delay": "1 h"}  # fmt: skip
    if kind == "running":
        chosen |= {"execution.checkpointing.interval": "500 ms",
                   "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"}  # fmt: skip
        chosen |= {"execution.checkpointing.dir": directory} if directory else {}
    env = StreamExecutionEnvironment({**chosen, **options})
    env.get_config().set_global_job_parameters({"kind": kind})
    numbers = DataGeneratorSource(count=None if kind == "running" else COUNT, records_per_second=200)
    watermarks = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda number, timestamp: number * 10
    )
    events = env.from_source(numbers, watermarks, "events")
    parsed = events.map(Parse(BROKEN if kind in ("failed", "restarting") else -1)).name("parse")
    windows = parsed.key_by(lambda number: number % 7).window(TumblingEventTimeWindows.of(Time.seconds(1)))
    windows.reduce(lambda left, right: left + right).name("sum").sink_to(DiscardingSink()).name("discard")
    return env


def job_graph(kind: str, directory: str = "") -> JobGraph:
    """Return the job."""
    return environment(kind, directory).get_job_graph(f"{kind} job")


class LocalJobView:
    """A job in this thread, brought into its state by a clock that waits for nothing."""

    def __init__(self, kind: str, directory: str = "") -> None:
        self._graph = job_graph(kind, directory)
        clock = ManualClock(int(time.time() * 1000) - 60_000)
        self.cluster = InProcessCluster(self._graph, clock, lambda ms: clock.advance(max(1, int(ms))))
        self._run(_REACHED[kind])
        if kind == "running" and directory:
            self._take_savepoint(f"{directory}/savepoints")

    def _take_savepoint(self, directory: str) -> None:
        request = SavepointRequested("5" * 32, directory, None)
        self.cluster.request(request)
        self._run(lambda cluster: request.request_id in cluster.answers)

    def _run(self, is_reached: Callable[[InProcessCluster], bool]) -> None:
        for _ in range(100_000):
            if is_reached(self.cluster):
                return
            if not self.cluster.turn():
                self.cluster.pause()
        raise AssertionError("the job has not come into its state")

    def rescale(self, parallelism: int) -> str:
        """Change the parallelism of all vertices, and return the id of the request when all tasks run again."""
        request = RescaleRequested("7" * 32, {vertex.id: parallelism for vertex in self._graph.vertices})
        self.cluster.request(request)
        self._run(lambda cluster: request.request_id in cluster.answers)
        return request.request_id

    def status(self) -> Document:
        return self.cluster.job.report.describe()

    def description(self) -> Document:
        return describe_graph(self._graph)

    def checkpoints(self, checkpoint_id: int | None = None) -> Document | None:
        return self.cluster.job.checkpoints.history.describe(checkpoint_id)

    def accumulators(self) -> Document:
        return self.cluster.job.report.accumulators()


def _runs(cluster: InProcessCluster) -> bool:
    job = cluster.job
    windows = [execution for execution in job.attempts if not execution.vertex.is_input]
    has_fired = all(execution.metrics.get("operators", [{}])[0].get("numRecordsOut") for execution in windows)
    return has_fired and job.checkpoints.history.counts()["completed"] >= CHECKPOINTS


def _restarts(cluster: InProcessCluster) -> bool:
    return cluster.job.status is JobStatus.RESTARTING and cluster.job.attempts.have_ended


_REACHED: dict[str, Callable[[InProcessCluster], bool]] = {
    "running": _runs,
    "finished": lambda cluster: cluster.result is not None,
    "failed": lambda cluster: cluster.result is not None,
    "restarting": _restarts,
}


class JobsOfTests:
    """One job of each kind, by the protocol of a cluster's jobs.

    Args:
        directory: of the checkpoints of the running one.
    """

    def __init__(self, directory: str = "") -> None:
        self.by_kind: dict[str, JobView] = {kind: LocalJobView(kind, directory) for kind in KINDS}
        self._by_id = {str(view.status()["jid"]): view for view in self.by_kind.values()}

    def statuses(self) -> list[Document]:
        return [view.status() for view in self._by_id.values()]

    def view(self, job_id: str) -> JobView:
        if job_id not in self._by_id:
            raise UnknownJob(job_id)
        return self._by_id[job_id]

    def replace(self, kind: str, view: JobView) -> None:
        """Let another view of a job answer for it."""
        self.by_kind[kind] = view
        self._by_id[str(view.status()["jid"])] = view

    def running(self, job_id: str) -> Any:
        raise AssertionError("requests that read ask a job for nothing")
