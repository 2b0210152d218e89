"""Tasks that end while others of their job run on: what they leave, and what a restart makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from rayflink.actors.messages.states import ExecutionState
from rayflink.common.connector_base.commits import CommitRequest
from rayflink.common.connector_base.sink import Committer, Sink, SinkWriter, WriterContext
from rayflink.common.functions.accumulators import IntCounter
from rayflink.common.functions.function_classes import MapFunction
from rayflink.common.records.batches import Batch
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.graph.job_graph import JobGraph
from rayflink.testing import KillTask, Pause, ScriptedSource, simulate
from rayflink.testing.faults import ClusterFault, CrashBeforeNotify

OPTIONS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "50",
    "restart-strategy.fixed-delay.delay": "10 ms",
    "execution.checkpointing.interval": "5 ms",
}


class Counting(MapFunction):
    """Counts its records in an accumulator."""

    def __init__(self, accumulator: str) -> None:
        self._accumulator = accumulator

    def open(self, ctx):
        self._seen = IntCounter()
        ctx.add_accumulator(self._accumulator, self._seen)

    def map(self, value):
        self._seen.add(1)
        return value


def unequal_sources() -> JobGraph:
    """One source ends at once, and with it a sink; another goes on, in the same region."""
    env = StreamExecutionEnvironment(OPTIONS)
    env.disable_operator_chaining()
    early = env.from_collection(range(100))
    script = [part for number in range(100, 125) for part in (number, Pause(20))]
    late = env.from_source(ScriptedSource(script), None, "late")
    early.map(Counting("seen early")).sink_to(CollectSink("early")).name("Early")
    early.union(late).map(Counting("seen late")).sink_to(CollectSink("late")).name("Late")
    return env.get_job_graph()


@dataclass(frozen=True)
class KillOnceTheEarlyEnded(ClusterFault):
    """Kills the sink that goes on, once a checkpoint without the sink that has ended is complete."""

    latest: list[int] = field(default_factory=list)

    def inject(self, cluster, move):
        states = {execution.vertex.name: execution.state for execution in cluster.job.executions.values()}
        if states["Sink: Early"] is not ExecutionState.FINISHED:
            return False
        self.latest.append(cluster.job.checkpoints.latest.checkpoint_id)
        return self.latest[-1] > self.latest[0] + 1 and cluster.kill_named("Late")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_what_a_task_gathered_that_had_ended_is_kept_over_a_restart(seed):
    story = simulate(unequal_sources(), seed, [KillOnceTheEarlyEnded()])
    assert [happening.who for happening in story.happenings if happening.what == "kill"] == ["Sink: Late (1/1)"]
    assert sorted(story.collected("early")) == list(range(100))
    assert sorted(story.collected("late")) == list(range(125))
    assert story.result.accumulators["seen early"] == 100


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_an_accumulator_of_a_function_counts_what_its_last_attempt_did(seed):
    story = simulate(unequal_sources(), seed, [KillOnceTheEarlyEnded()])
    assert story.result.accumulators["seen late"] < 125


@pytest.mark.spec("H36", "held-up")
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8, 12))
def test_a_checkpoint_missed_by_a_task_that_ended_does_not_delay_the_next(seed):
    story = simulate(unequal_sources(), seed)
    assert sorted(story.collected("late")) == list(range(125))
    assert story.happenings[-1].now_ms - story.happenings[0].now_ms < 10_000


def test_the_last_checkpoint_waits_for_no_interval_after_another_region_restarted():
    restarts = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "10 ms"}
    env = StreamExecutionEnvironment.get_execution_environment({**restarts, "execution.checkpointing.interval": "1 h"})
    env.from_collection([1, 2, 3]).sink_to(CollectSink("early"))
    slow = env.from_source(ScriptedSource([1, Pause(500), 2, Pause(500), 3]), WatermarkStrategy.no_watermarks(), "slow")
    slow.sink_to(CollectSink("late"))
    story = simulate(env.get_job_graph(), 0, [KillTask("slow", move=60)])
    assert story.restarts == 1 and story.collected("late") == [1, 2, 3]
    assert story.result is not None and story.result.runtime_ms < 60_000


class _Outage(Committer):
    """Nothing can be committed for the first calls."""

    calls_left: int
    done: ClassVar[list[str]] = []

    def commit(self, requests: Sequence[CommitRequest[str]]) -> None:
        for request in requests:
            if _Outage.calls_left > 0:
                request.retry_later(ConnectionError("nobody is there"))
            else:
                self.done.append(request.get_committable())
        _Outage.calls_left -= 1


class _AtTheEnd(Sink, SinkWriter):
    """Prepares one commit, at the end of its input."""

    _prepared: Sequence[str] = ()

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        return self

    def create_committer(self) -> Committer:
        return _Outage()

    def write(self, batch: Batch) -> None:
        """Nothing but the end counts."""

    def flush(self, end_of_input: bool) -> None:
        self._prepared = ["all"] if end_of_input else []

    def prepare_commit(self) -> Sequence[str]:
        return self._prepared

    def close(self) -> None:
        """There is nothing open."""


@pytest.mark.parametrize("outage", [0, 1, 4])
def test_what_a_finished_task_had_still_to_commit_is_committed_after_a_restart(outage: int) -> None:
    _Outage.calls_left, _Outage.done = outage, []
    options = {**OPTIONS, "execution.checkpointing.interval": "1 h", "execution.checkpointing.dir": "/checkpoints"}
    env = StreamExecutionEnvironment.get_execution_environment(options)
    env.from_collection([1, 2]).sink_to(_AtTheEnd())
    story = simulate(env.get_job_graph(), 0, [CrashBeforeNotify(name="Collection")])
    assert story.restarts == 1 and _Outage.done == ["all"]
