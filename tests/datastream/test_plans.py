"""From calls on streams to the graphs that run: defaults, and what the runtime mode changes."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from rayflink.actors.messages.settings import JobSettings
from rayflink.common import Types
from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError, NotSerializable
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.graph.attributes import ChainingStrategy
from rayflink.graph.job_graph import JobGraph, ScheduleMode
from rayflink.graph.transformations import OneInput, Source
from rayflink.operators.stateless import MapOperator


def environment(**options: str) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment({**options})


def counted(mode: str) -> JobGraph:
    env = environment(**{"execution.runtime-mode": mode, "parallelism.default": "2"})
    pairs = env.from_collection(["a"]).map(lambda word: (word, 1))
    pairs.key_by(lambda pair: pair[0]).sum(1).sink_to(CollectSink("out"))
    return env.get_job_graph("count")


@pytest.mark.spec("I06", "I04")
def test_a_call_on_a_stream_records_input_name_operator_and_registers_it() -> None:
    env = environment(**{"parallelism.default": "3"})
    numbers = env.from_collection([1])
    mapped = numbers.map(lambda n: n, Types.LONG())
    step = mapped._transformation
    assert isinstance(step, OneInput)
    assert step.output_type == Types.LONG()
    assert step.operator_factory is not None
    assert step.inputs == (numbers._transformation,)
    assert (step.name, type(step.operator_factory())) == ("Map", MapOperator)
    assert env._sinks == [step]
    [node] = [node for node in env.get_stream_graph().nodes if node.name == "Map"]
    assert node.parallelism == 3


@pytest.mark.spec("C30", "environment")
def test_an_environment_gives_the_plan_of_its_program_as_json() -> None:
    env = environment()
    env.from_collection([1]).map(str).print()
    nodes = json.loads(env.get_execution_plan())["nodes"]
    assert [node["type"] for node in nodes] == ["Source: Collection Source", "Map", "Sink: Print to Std. Out"]


@pytest.mark.spec("I02", "both", "V17", "J02", "default")
def test_both_modes_give_equal_vertices_and_differ_in_exchange_and_scheduling() -> None:
    stream, batch = counted("STREAMING"), counted("BATCH")
    assert [vertex.name for vertex in stream.vertices] == [vertex.name for vertex in batch.vertices]
    assert (stream.schedule_mode, batch.schedule_mode) == (ScheduleMode.EAGER, ScheduleMode.LAZY_FROM_SOURCES)
    assert {edge.partition_type.is_pipelined for edge in stream.edges} == {True}
    assert {edge.partition_type.is_pipelined for edge in batch.edges} == {False}


@pytest.mark.spec("V18")
def test_all_operators_are_in_the_slot_sharing_group_default() -> None:
    assert {vertex.slot_sharing_group for vertex in counted("STREAMING").vertices} == {"default"}


@pytest.mark.spec("V19")
def test_sources_begin_chains_and_all_else_may_be_chained_anywhere() -> None:
    env = environment()
    numbers = env.from_collection([1])
    steps = [numbers.map(len), numbers.flat_map(len), numbers.filter(bool)]
    assert isinstance(numbers._transformation, Source)
    assert numbers._transformation.chaining_strategy is ChainingStrategy.HEAD
    assert {step._transformation.chaining_strategy for step in steps} == {ChainingStrategy.ALWAYS}
    assert env.is_chaining_enabled()


@pytest.mark.spec("V21", "timeout")
def test_the_jobs_cancellation_timeout_wins_over_the_clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("task.cancellation.timeout: 60 s\ntask.cancellation.interval: 7 s\n", encoding="utf-8")
    monkeypatch.setenv("RAYFLINK_CONF", str(file))

    def timeout(**options: str) -> int:
        env = environment(**options)
        env.from_collection([1]).sink_to(CollectSink())
        return JobSettings.of(env.get_job_graph().configuration).cancellation_timeout_ms

    assert timeout() == 60_000
    assert timeout(**{"task.cancellation.timeout": "5 s"}) == 5_000
    assert timeout(**{"task.cancellation.timeout": "0 s"}) == 0
    with pytest.raises(ConfigError, match="at least 0"):
        Configuration.from_dict({"task.cancellation.timeout": "-1 s"}).check()


@pytest.mark.spec("B17")
def test_what_cannot_be_sent_to_a_task_is_refused_before_anything_runs() -> None:
    lock = threading.Lock()
    env = environment()
    said = r"could not serialize function <lambda>: .* variable lock, a lock: TypeError: cannot pickle .*test_plans"
    with pytest.raises(NotSerializable, match=said):
        env.from_collection([1]).map(lambda n: (lock, n))
    with pytest.raises(ConfigError, match=r"option 'my.option': found <unlocked _thread.lock"):
        StreamExecutionEnvironment.get_execution_environment({"my.option": lock})
    env.get_configuration().add_all(Configuration.from_dict({"my.option": lock}))
    with pytest.raises(ConfigError, match=r"option 'my.option': found <unlocked _thread.lock"):
        env.get_job_graph()
