"""Flink's worked examples that need a whole job."""

from __future__ import annotations

import pytest

from rayflink.actors.messages.commands import DeployTask, SlotsGranted
from rayflink.actors.messages.states import ExecutionState
from rayflink.common.time import Time
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.window import TumblingProcessingTimeWindows
from rayflink.testing import UNRELIABLE_NETWORK, Pause, ScriptedSource, simulate
from tests.actors.job.job_events import Job, names

WINDOW = "Window(TumblingProcessingTimeWindows(5000), ProcessingTimeTrigger, SumAggregator, PassThroughWindowFunction)"


def socket_window_count():
    """Ten words in one line, counted in windows of 5 s by three subtasks."""
    env = StreamExecutionEnvironment.get_execution_environment()
    lines = env.from_source(ScriptedSource(["1 2 3 4 5 6 7 8 9 10", Pause(6_000)]), None, "Socket Stream")
    pairs = lines.flat_map(str.split).map(lambda word: (word, 1)).key_by(lambda pair: pair[0])
    counts = pairs.window(TumblingProcessingTimeWindows.of(Time.seconds(5))).sum(1).set_parallelism(3)
    counts.sink_to(CollectSink("out")).name("Print to Std. Out").set_parallelism(1)
    return env.get_job_graph()


@pytest.mark.spec("X34", "J02", "all")
def test_the_word_count_walk_schedules_five_executions_before_it_deploys_one():
    job = Job(socket_window_count())
    become, moves = type(job.execution("Sink: Print to Std. Out (1/1)")).become, []

    def noted(self, state, now_ms, cause=""):
        moves.append(state)
        become(self, state, now_ms, cause)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(job.execution("Sink: Print to Std. Out (1/1)")), "become", noted)
        job.start()
        commands = job.on(SlotsGranted())
    assert set(names(commands)) == {
        "Source: Socket Stream -> Flat Map -> Map (1/1)",
        *(f"{WINDOW} ({i}/3)" for i in (1, 2, 3)),
        "Sink: Print to Std. Out (1/1)",
    }
    assert {c.deployment.attempt_number for c in commands if isinstance(c, DeployTask)} == {0}
    assert moves == [ExecutionState.SCHEDULED] * 5 + [ExecutionState.DEPLOYING] * 5


@pytest.mark.spec("X34")
@pytest.mark.parametrize("seed", range(4))
def test_the_word_count_walk_counts_each_of_the_ten_words_once(seed):
    story = simulate(socket_window_count(), seed, UNRELIABLE_NETWORK if seed % 2 else ())
    assert sorted(story.collected("out")) == sorted((str(n), 1) for n in range(1, 11))


@pytest.mark.spec("X37", "C21")
@pytest.mark.parametrize("seed", range(4))
def test_the_rolling_word_count_passes_only_counts_above_one(seed):
    env = StreamExecutionEnvironment.get_execution_environment()
    words = env.from_collection(["to be or not to be", "to"]).flat_map(str.split).map(lambda word: (word, 1))
    rolling = words.key_by(lambda pair: pair[0]).sum(1).filter(lambda pair: pair[1] > 1)
    rolling.sink_to(CollectSink("out"))
    graph = env.get_job_graph()
    assert [vertex.name for vertex in graph.vertices][1] == "Keyed Aggregation -> Filter -> Sink: Collect"
    assert sorted(simulate(graph, seed).collected("out")) == [("be", 2), ("to", 2), ("to", 3)]
