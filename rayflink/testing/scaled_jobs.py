"""Whole simulated jobs whose parallelism follows a load curve, and what they cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from rayflink.actors.messages.states import JobStatus
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.graph.job_graph import JobGraph

from .faults import Fault
from .load_curves import LoadCurve, LoadCurveSource, RecordCost
from .simulation import SimulatedCluster
from .simulator.context import START_MS

OPTIONS = {
    "job.autoscaler.enabled": "true",
    "autoscaler.standalone.control-loop.interval": "1 s",
    "job.autoscaler.metrics.window": "10 s",
    "job.autoscaler.stabilization.interval": "2 s",
    "job.autoscaler.catch-up.duration": "20 s",
    "job.autoscaler.restart.time": "1 s",
    "job.autoscaler.scale-down.interval": "15 s",
    "job.autoscaler.vertex.max-parallelism": "16",
    "execution.checkpointing.interval": "1 h",
    "execution.checkpointing.dir": "/checkpoints",
    "pipeline.max-parallelism": "32",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "1000",
    "restart-strategy.fixed-delay.delay": "10 ms",
    "rayflink.batch.max-rows": "8",
    "heartbeat.timeout": "10 min",
}


def keyed_counts(source: LoadCurveSource, keys: int, parallelism: int, **options: str) -> JobGraph:
    """Return a job of keyed counts; in the names of options `__` stands for a dot, and `_` for a hyphen."""
    changed = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    env = StreamExecutionEnvironment({**OPTIONS, **changed})
    env.set_parallelism(parallelism)
    numbers = env.from_source(source, source_name="in")
    counts = numbers.map(lambda number: (number % keys, 1)).key_by(lambda pair: pair[0]).sum(1).name("Count")
    counts.sink_to(CollectSink())
    return env.get_job_graph("scaled")


@dataclass
class ScaledRun:
    """The course of a job under a curve.

    Args:
        widths: (second, subtasks of the counts), each time that they change.
        slot_seconds: slots times the seconds for which the job had them.
        lags: records that waited, by the second.
        reasons: those of all plans of vertices.
    """

    cluster: SimulatedCluster
    widths: list[tuple[int, int]] = field(default_factory=list)
    slot_seconds: int = 0
    lags: list[int] = field(default_factory=list)
    reasons: set[str] = field(default_factory=set)
    _seen_s: int = -1

    def look(self) -> None:
        """Note the state of the job, once a second."""
        second = (self.cluster.clock.now_ms() - START_MS) // 1000
        if second == self._seen_s:
            return
        vertices = self.cluster.job.graph.vertices
        width = next(vertex.parallelism for vertex in vertices if vertex.name.startswith("Count"))
        if not self.widths or self.widths[-1][1] != width:
            self.widths.append((second, width))
        self.slot_seconds += (second - self._seen_s) * max(vertex.parallelism for vertex in vertices)
        waiting = [e.metrics["operators"][0]["metrics"].get("pendingRecords", 0)
                   for e in self.cluster.job.executions.values()
                   if e.vertex.is_input and e.metrics.get("operators")]  # fmt: skip
        self.lags += [sum(waiting)] * (second - self._seen_s)
        self._seen_s = second
        if (plan := self.cluster.job.autoscaler.plan) is not None:
            self.reasons |= {vertex.reason for vertex in plan.vertices.values()}

    @property
    def turns(self) -> int:
        """Return how often the width has gone down after it went up, or the other way round."""
        widths = [width for _, width in self.widths]
        ups = [after > before for before, after in zip(widths, widths[1:], strict=False)]
        return sum(a != b for a, b in zip(ups, ups[1:], strict=False))

    def width_at(self, second: int) -> int:
        """Return the subtasks of the counts at a second."""
        return [width for since, width in self.widths if since <= second][-1]


def run_scaled(
    curve: LoadCurve | LoadCurveSource,
    cost: RecordCost,
    seed: int = 1,
    keys: int = 64,
    parallelism: int = 1,
    faults: tuple[Fault, ...] = (),
    **options: str,
) -> ScaledRun:
    """Run a job under a curve to its end.

    Args:
        curve: of a source that reports what waits; or another source, which begins at `START_MS`.
        cost: of each record, in the counts.
        keys: the number of different ones.
        parallelism: at the start.
        options: of the job, named as in `keyed_counts`.

    Raises:
        AssertionError: a record is lost, or was counted twice; or the job did not finish.
    """
    source = curve if isinstance(curve, LoadCurveSource) else LoadCurveSource(curve, START_MS)
    total = source.curve.total
    cluster = SimulatedCluster(keyed_counts(source, keys, parallelism, **options), seed, [cost, *faults])
    run = ScaledRun(cluster)
    result = cluster.run(run.look)
    assert result.status is JobStatus.FINISHED, cluster.story.describe(cluster.story.failure)
    last: Counter[int] = Counter()
    collected = cluster.story.collected()
    assert len(collected) == total
    for key, count in collected:
        last[key] = max(last[key], count)
    assert last == Counter(number % keys for number in range(total))
    return run
