"""Enumerators that do work beside the coordinator's decisions, and readers that are notified of checkpoints."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from rayflink.common.errors import JobFailed
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.testing import KillCoordinator, KillTask, simulate
from rayflink.testing.faults import Fault

from .discovering_source import NOTIFIED, DiscoveringSource

OPTIONS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "50",
    "restart-strategy.fixed-delay.delay": "10 ms",
    "parallelism.default": "2",
    "execution.checkpointing.interval": "5 ms",
    "execution.checkpointing.dir": "/checkpoints",
}
SPLITS, SIZE = 6, 10
FAULTS: list[tuple[Fault, ...]] = [
    (),
    (KillTask("Source: found (1/2)", move=200), KillTask("Source: found (2/2)", move=400)),
    (KillTask("Source", move=150), KillCoordinator(move=300)),
]


def _job(source: DiscoveringSource, **options: str) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment({**OPTIONS, **options})
    env.from_source(source, source_name="found").map(lambda value: value).sink_to(CollectSink())
    return env


@pytest.mark.parametrize("faults", FAULTS, ids=["no faults", "readers die", "readers and the coordinator die"])
@pytest.mark.parametrize("seed", range(5))
def test_splits_that_are_discovered_beside_the_decisions_are_read_once(seed: int, faults: tuple[Fault, ...]) -> None:
    story = simulate(_job(DiscoveringSource(SPLITS, SIZE)).get_job_graph(), seed, faults)
    assert sorted(story.collected()) == list(range(SPLITS * SIZE))


def test_the_work_is_repeated_after_its_period() -> None:
    env = _job(DiscoveringSource(SPLITS, SIZE, period_ms=10_000), **{"execution.checkpointing.interval": "1 h"})
    assert simulate(env.get_job_graph(), 1).result.runtime_ms >= (SPLITS - 1) * 10_000


def test_a_reader_is_notified_of_a_complete_checkpoint_with_its_splits() -> None:
    simulate(_job(DiscoveringSource(SPLITS, SIZE, name="notified")).get_job_graph(), 3)
    numbers = [number for number, _ in NOTIFIED["notified"]]
    assert len(set(numbers)) > 1 and all(numbers.count(number) <= 2 for number in numbers)
    assert max(splits for _, splits in NOTIFIED["notified"]) >= 1


@pytest.mark.parametrize("seed", range(3))
def test_an_answer_that_raises_fails_the_job_or_restarts_it(seed: int) -> None:
    graph = _job(DiscoveringSource(SPLITS, SIZE, fails_at=2), **{"restart-strategy.type": "none"}).get_job_graph()
    failure = simulate(graph, seed).result.failure
    assert "the enumerator of source 'Source: found' failed: ConnectionError: the listing failed" in failure.message


def test_in_process_the_work_runs_in_a_thread_of_its_own() -> None:
    threads: list[str] = []

    class Noting(DiscoveringSource):
        def create_enumerator(self, ctx: Any) -> Any:
            enumerator = super().create_enumerator(ctx)
            work = enumerator._list_next

            def noting() -> Any:
                threads.append(threading.current_thread().name)
                return work()

            enumerator._list_next = noting
            return enumerator

    env = _job(Noting(3, SIZE), **{"execution.target": "local", "execution.checkpointing.dir": ""})
    stream = env.from_source(Noting(3, SIZE), source_name="found")
    assert sorted(stream.execute_and_collect()) == list(range(3 * SIZE))
    assert set(threads) == {"enumerator"}


def test_in_process_a_failing_listing_is_reported() -> None:
    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "local"})
    stream = env.from_source(DiscoveringSource(3, fails_at=1), source_name="found")
    with pytest.raises(JobFailed, match="of source 'Source: found' failed: ConnectionError: the listing failed"):
        list(stream.execute_and_collect())
