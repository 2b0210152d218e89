"""The simulator itself: one seed tells one story, time is virtual, and a run that hangs is explained."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rayflink.actors.messages.messages import CheckpointDeclined
from rayflink.actors.messages.states import JobStatus
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.testing import (
    CRASH,
    UNRELIABLE_NETWORK,
    CancelJob,
    FreezeTask,
    KillTask,
    Pause,
    ScriptedSource,
    SlowSink,
    SlowTask,
    StopJob,
    TriggerCheckpoint,
    rec,
    simulate,
)
from rayflink.testing.faults import CallFault, ClusterFault, FaultTarget
from rayflink.testing.simulator import cluster
from tests.golden_jobs import GOLDEN_JOBS

JOBS = {job.name: job for job in GOLDEN_JOBS}


def program(*scripts: list[Any], parallelism: int = 2, **options: str) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment({k.replace("_", "."): v for k, v in options.items()})
    env.set_parallelism(parallelism)
    stream = env.from_source(ScriptedSource(*scripts)).rebalance().map(lambda n: n).name("Map")
    stream.rebalance().sink_to(CollectSink("out"))
    return env


@pytest.mark.parametrize("name", ["word count", "windowed count", "user exception"])
@pytest.mark.parametrize("faults", [(), UNRELIABLE_NETWORK], ids=["smooth", "rough"])
def test_one_seed_tells_one_story(name, faults):
    graph = JOBS[name].graph()
    one, again, other = simulate(graph, 11, faults), simulate(graph, 11, faults), simulate(graph, 12, faults)
    assert one.happenings == again.happenings
    assert one == again
    assert one.happenings != other.happenings


def test_an_environment_may_be_given_instead_of_a_graph():
    assert sorted(simulate(program([3, 1, 2])).collected("out")) == [1, 2, 3]


@pytest.mark.parametrize("seed", range(3))
def test_a_slow_task_goes_on_as_soon_as_its_step_is_over(seed):
    program = StreamExecutionEnvironment.get_execution_environment({"rayflink.batch.max-rows": "1000"})
    program.set_parallelism(1)
    program.from_source(ScriptedSource([Pause(20), rec(range(50))])).rebalance().flat_map(iter).sink_to(
        CollectSink("out")
    )
    story = simulate(program, seed, [SlowTask("Flat Map", ms=5)])
    steps = [each for each in story.happenings if each.what == "step" and "Flat Map" in each.who]
    pauses = [after.now_ms - one.now_ms for one, after in zip(steps, steps[1:], strict=False) if one.detail == "busy"]
    assert len(pauses) > 3 and all(5 <= pause < 50 for pause in pauses)
    assert story.collected("out") == [*range(50)]


def test_waiting_takes_virtual_time_alone():
    started = time.monotonic()
    story = simulate(program([1, Pause(100_000), 2]), seed=3)
    assert sorted(story.collected("out")) == [1, 2]
    assert story.happenings[-1].now_ms - story.happenings[0].now_ms > 100_000
    assert time.monotonic() - started < 30


def test_a_crash_in_the_script_fails_the_job():
    story = simulate(program([1, CRASH, 2]))
    assert story.status is JobStatus.FAILED
    assert "ScriptedCrash: the script says so" in story.failure
    with pytest.raises(AssertionError, match=r"(?s)^seed 0: the job is FAILED: .*the last moves:\n.*EndJob|TaskState"):
        story.collected("out")


class Swallow(CallFault):
    """No call that carries data arrives, and nobody is told."""

    def transmit(self, call: Any, number: int, draw: Any) -> list[Any]:
        return [] if "BufferResponse" in call.frames else [call]


@pytest.mark.slow
def test_a_run_that_hangs_says_what_each_task_waits_for():
    with pytest.raises(AssertionError) as caught:
        simulate(program([1, 2]), seed=4, faults=[Swallow()])
    told = str(caught.value)
    assert told.startswith("seed 4: no progress for 240000 ms of virtual time; the job is RUNNING")
    assert "Map (1/2) waits for input on channels [0]" in told
    assert "has finished, waits until 1 partitions are fetched" in told


class Breaks(ClusterFault):
    def inject(self, cluster: FaultTarget, move: int) -> bool:
        raise RuntimeError("a defect")


def test_a_defect_shows_the_seed_and_the_story():
    with pytest.raises(AssertionError, match="(?s)^seed 8: RuntimeError: a defect\nthe last moves:"):
        simulate(program([1]), seed=8, faults=[Breaks()])


def test_a_frozen_task_is_found_by_its_missing_heartbeats():
    story = simulate(program([1, Pause(100_000), 2], heartbeat_timeout="20 s"), 2, [FreezeTask("Map (2/2)", move=30)])
    assert story.status is JobStatus.FAILED
    assert story.failure.startswith("lost task Map (2/2) (attempt #0): no heartbeat for 20")


def test_a_task_that_is_frozen_for_a_time_goes_on_beside_its_successor():
    options = {"heartbeat_timeout": "1 h", "task_cancellation_timeout": "5 s", "restart-strategy_type": "fixed-delay"}
    faults = [FreezeTask("Map (2/2)", move=30, for_ms=15_000), KillTask("Sink", move=60)]
    story = simulate(program([1, Pause(20_000), 2], **options), 2, faults)
    assert sorted(story.collected("out")) == [1, 2]
    own = [one.what for one in story.happenings if one.who == "Map (2/2)"]
    assert [what for what in own if what in ("start", "freeze", "thaw")] == ["start", "freeze", "start", "thaw"]


@pytest.mark.spec("K07")
def test_a_stopped_job_finishes_and_keeps_what_it_has():
    endless = [*range(50), Pause(10_000_000), *range(1000, 1100)]
    story = simulate(program(endless), 5, [StopJob(move=2_000)])
    assert story.status is JobStatus.FINISHED
    assert sorted(story.collected("out")) == list(range(50))


@pytest.mark.parametrize("at", [0, 1, 5, 20, 60, 150])
def test_a_job_can_be_cancelled_at_any_moment(at):
    for seed in range(4):
        story = simulate(program([1, Pause(10_000_000), 2]), seed, [*UNRELIABLE_NETWORK, CancelJob(at)])
        assert story.status is JobStatus.CANCELED


@pytest.mark.parametrize("fault", [KillTask("Flat Map", move=60), CancelJob(move=70), FreezeTask("Flat Map", move=60)])
def test_a_batch_job_that_ends_badly_leaves_no_spill_files(fault, tmp_path):
    graph = JOBS["word count"].graph({"execution.runtime-mode": "BATCH", "io.tmp.dirs": str(tmp_path)})
    for seed in range(3):
        assert simulate(graph, seed, [fault]).status in (JobStatus.FAILED, JobStatus.CANCELED)
        assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("P01")
@pytest.mark.slow
def test_a_slow_sink_stops_the_source_and_what_is_held_stays_bounded():
    env = StreamExecutionEnvironment.get_execution_environment(
        {
            "taskmanager.network.memory.buffers-per-channel": "2",
            "taskmanager.network.memory.floating-buffers-per-gate": "1",
            "rayflink.batch.max-rows": "10",
            "rayflink.batch.max-bytes": "110 bytes",
            "execution.buffer-timeout.interval": "0 ms",
        }
    )
    numbers = env.from_source(ScriptedSource(list(range(20_000)))).rebalance().map(lambda n: n).set_parallelism(2)
    numbers.rebalance().sink_to(CollectSink("out")).set_parallelism(1)
    for length in (1, 2):
        story = simulate(env.get_job_graph(), length, [SlowSink(ms=100), StopJob(move=3_000 * length)])
        assert 0 < len(story.collected("out")) < 5_000
        # a pool of 2 x 2 + 1 buffers, and one slice of at most 1,024 records over it, at least 4 in a buffer
        assert story.peak_buffers.pop("Source: Custom Source (1/1)") <= 5 + 256
        # the same pool on both sides, and again a slice of at most one batch
        assert max(story.peak_buffers.values()) <= 12, story.peak_buffers


@pytest.mark.slow
def test_a_checkpoint_is_acknowledged_by_every_task_or_declined():
    graph = JOBS["word count"].graph()
    complete = 0
    for seed in range(8):
        story = simulate(graph, seed, [*UNRELIABLE_NETWORK, TriggerCheckpoint(1, move=25)])
        JOBS["word count"].check(story.result)
        if story.declined:
            assert all(isinstance(d, CheckpointDeclined) for d in story.declined)
        complete += len(story.acknowledged.get(1, {})) == 5
    assert complete


def test_a_job_that_restarts_for_ever_is_given_up_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "MOST_MOVES", 500)
    options = {
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1000000",
        "restart-strategy.fixed-delay.delay": "1 ms",
        "rayflink.restart-strategy.same-failure.attempts": "1000000",
    }
    env = StreamExecutionEnvironment(options)
    env.from_collection([0]).map(lambda number: 1 // number).sink_to(CollectSink())
    why = r"no end after 500 moves; .*, restarts: \d+\n  failed before that: .*by zero"
    with pytest.raises(AssertionError, match=why):
        simulate(env)


@pytest.mark.parametrize("fault", ["kill", KillTask])
def test_a_fault_that_is_none_is_refused(fault: Any) -> None:
    remedy = r"give those of rayflink.testing, as KillTask\('Map', move=10\)"
    with pytest.raises(TypeError, match=f"wanted a Fault; {remedy}"):
        simulate(StreamExecutionEnvironment(), faults=[fault])
