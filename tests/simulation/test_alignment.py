"""Aligned sources in whole jobs: an idle one, a silent one and one that ends; nobody waits for ever."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from rayflink.common.time import Duration
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import ProcessFunction, StreamExecutionEnvironment
from rayflink.testing import UNRELIABLE_NETWORK, KillTask, Pause, ScriptedSource, rec, simulate

SILENCE_MS = 20_000
ALIGNED = (
    WatermarkStrategy.for_monotonous_timestamps()
    .with_emit_every(1)
    .with_watermark_alignment("all", Duration.of_millis(30), Duration.of_millis(200))
)


class ReadAt(ProcessFunction):
    """Each record with the time at which it was read."""

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        yield value, ctx.timer_service().current_processing_time()


def last_read_ms(other: list[Any], strategy: WatermarkStrategy, seed: int, parallelism: int = 1) -> int:
    """How long after its first record a fast source gave its last, beside another source."""
    env = StreamExecutionEnvironment.get_execution_environment({})
    fast = [item for n in range(20) for item in (rec(n, 10 * n), Pause(1))]
    scripts = [fast, *[[] for _ in range(parallelism - 1)]]
    read = env.from_source(ScriptedSource(*scripts), strategy, "fast").set_parallelism(parallelism).process(ReadAt())
    read.sink_to(CollectSink("out"))
    env.from_source(ScriptedSource(other), strategy, "other").sink_to(CollectSink("other"))
    story = simulate(env.get_job_graph(), seed, UNRELIABLE_NETWORK if seed % 2 else ())
    assert story.result is not None and story.result.failure is None, story.describe("the job must end")
    times = [at for _, at in story.result.accumulators["out"]]
    assert len(times) == 20
    return max(times) - min(times)


@pytest.mark.parametrize("seed", range(2))
def test_a_source_that_is_silent_holds_back_its_group_until_it_ends(seed: int) -> None:
    silent = [rec("x", 0), Pause(SILENCE_MS)]
    assert SILENCE_MS / 2 < last_read_ms(silent, ALIGNED, seed) < 2 * SILENCE_MS


@pytest.mark.parametrize("seed", range(2))
def test_one_that_is_idle_or_has_ended_or_has_no_split_holds_nobody_back(seed: int) -> None:
    silent = [rec("x", 0), Pause(SILENCE_MS)]
    assert last_read_ms(silent, ALIGNED.with_idleness(Duration.of_seconds(1)), seed) < 8_000
    assert last_read_ms([rec("x", 0)], ALIGNED, seed, parallelism=2) < 8_000


@pytest.mark.parametrize("seed", range(2))
def test_attempts_that_others_have_followed_hold_nobody_back(seed: int) -> None:
    restarts = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "10 ms"}
    env = StreamExecutionEnvironment.get_execution_environment(restarts)
    script = [item for n in range(20) for item in (rec(n, 10 * n), Pause(50))]
    one, other = (env.from_source(ScriptedSource(script), ALIGNED, name) for name in ("one", "other"))
    one.union(other).sink_to(CollectSink())
    assert len(simulate(env.get_job_graph(), seed, [KillTask("one", move=300)]).collected()) == 40
