"""Programs as a whole: their parts, their shape, the graphs they become, how they are named, sized, run and ended."""

from __future__ import annotations

import os
import threading

import pytest

from rayflink.actors.job.deployment import Deployer
from rayflink.actors.messages.commands import DeployTask, SlotsGranted
from rayflink.actors.messages.scheduling import Slot
from rayflink.actors.messages.states import JobStatus
from rayflink.common import ConfigError, PlanError
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import (
    KeyedCoProcessFunction,
    MapFunction,
    RichFunction,
    StreamExecutionEnvironment,
)
from rayflink.datastream.environment import intercepted
from rayflink.datastream.state import ValueStateDescriptor
from rayflink.operators.keyed.keyed_two_input import KeyedCoProcessOperator
from rayflink.testing import CancelJob, StopJob, at, in2, rec, simulate, verify, wm
from tests.actors.job.job_events import Job, ids
from tests.datastream.programs import environment, timed

RAN: list[str] = []
"""What the functions below did in this process."""


def noted(word):
    RAN.append(word)
    return word.upper()


@pytest.mark.spec("A06", "A01", "deployment-local", "datastream", "I04")
def test_a_program_has_five_parts_and_nothing_runs_before_the_last(capsys):
    RAN.clear()
    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "local"})  # where it runs
    words = env.from_collection(["to", "be"])  # the data it begins with
    shouted = words.map(noted)  # what becomes of the data
    shouted.print()  # where results go
    assert (RAN, capsys.readouterr().out) == ([], "")
    env.execute()  # only now it runs
    assert (RAN, capsys.readouterr().out) == (["to", "be"], "TO\nBE\n")


class Both(KeyedCoProcessFunction):
    """Counts the records of a key on both streams, and tells the count by each of the clocks."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element1(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(10)

    def process_element2(self, value, ctx):
        self.count.update((self.count.value() or 0) + 100)
        ctx.timer_service().register_processing_time_timer(20)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), ctx.time_domain().name, self.count.value()


def _first(record):
    return record[0]


@pytest.mark.slow
@pytest.mark.spec("A02")
def test_a_process_function_has_two_streams_durable_state_and_both_clocks():
    env = environment(2)
    left, right = timed(env, [("a", 1), ("a", 2), ("b", 3)]), timed(env, [("a", 4)])
    told = left.connect(right).key_by(0, 0).process(Both())
    assert sorted(row for row in told.execute_and_collect() if row[1] == "EVENT_TIME") == [
        ("a", "EVENT_TIME", 102), ("b", "EVENT_TIME", 1)
    ]  # fmt: skip
    verify(  # restored after each step and each record, among other hardships
        lambda: KeyedCoProcessOperator(_first, _first, Both()),
        [rec(("a",), 1), in2(rec(("a",), 2)), rec(("b",), 3), wm(10), in2(wm(10)), rec(("a",), 12), at(20)],
        [rec(("a", "EVENT_TIME", 101), 10), rec(("b", "EVENT_TIME", 1), 10), wm(10),
         rec(("a", "PROCESSING_TIME", 102))],
    )  # fmt: skip


@pytest.mark.spec("A07", "A03", "bounded")
def test_a_program_is_any_graph_from_sources_to_sinks_without_cycles_but_iterations():
    env = environment()
    numbers = env.from_collection([1, 2]).name("numbers")
    words = env.from_collection(["a"]).name("words")
    odd, even = numbers.filter(lambda n: n % 2).name("odd"), numbers.filter(lambda n: n % 2 == 0).name("even")
    joined = odd.connect(words).map((str, str)).name("joined")
    joined.union(even.map(str).name("text")).sink_to(CollectSink("all")).name("all")
    even.sink_to(CollectSink("even")).name("even")
    graph = env.get_stream_graph()
    name = {node.id: node.name for node in graph.nodes}
    edges = {(name[edge.source], name[edge.target]) for edge in graph.edges}
    assert edges == {
        ("Source: numbers", "odd"), ("Source: numbers", "even"), ("odd", "joined"), ("Source: words", "joined"),
        ("even", "text"), ("text", "Sink: all"), ("joined", "Sink: all"), ("even", "Sink: even"),
    }  # fmt: skip
    assert {found for found, _ in edges} - {found for _, found in edges} == {"Source: numbers", "Source: words"}
    assert {found for _, found in edges} - {found for found, _ in edges} == {"Sink: all", "Sink: even"}
    found = env.execute().get_all_accumulator_results()
    assert (sorted(found["all"]), found["even"]) == (["1", "2", "a"], [2])

    loop = env.from_collection([5]).iterate()
    less = loop.map(lambda n: n - 1)
    loop.close_with(less.filter(bool))
    assert sorted(less.execute_and_collect()) == [0, 1, 2, 3, 4]
    first = env.from_collection([1]).map(str)
    second = first.map(str)
    first._transformation.input = second._transformation
    with pytest.raises(PlanError, match="is an input of itself"):
        second.execute_and_collect()


@pytest.mark.spec("A08", "A01", "runtime", "A03", "aggregations", "I01")
def test_calls_become_graphs_and_what_is_submitted_becomes_executions_in_slots():
    env = environment(2)
    pairs = env.from_sequence(1, 4).map(lambda n: (n % 2, n))
    pairs.key_by(0).sum(1).sink_to(CollectSink("sums"))
    submitted = []
    with intercepted(lambda stream, job: submitted.append((stream, job))):
        env.execute_async("sums")
    [(stream, graph)] = submitted
    assert [(node.name, node.parallelism) for node in stream.nodes] == [
        ("Source: Sequence Source", 2), ("Map", 2), ("Keyed Aggregation", 2), ("Sink: Collect", 2)
    ]  # fmt: skip
    vertices = ["Source: Sequence Source -> Map", "Keyed Aggregation -> Sink: Collect"]
    assert [vertex.name for vertex in graph.vertices] == vertices
    job = Job(graph)
    job.start()
    deployed = [command for command in job.on(SlotsGranted()) if isinstance(command, DeployTask)]
    assert [(command.deployment.name, command.slot) for command in deployed] == [
        (f"{name} ({subtask + 1}/2)", Slot("default", subtask)) for name in vertices for subtask in (0, 1)
    ]
    sums = simulate(graph, 1).collected("sums")  # whose first number comes first is open: two subtasks read them
    assert [max(total for key, total in sums if key == wanted) for wanted in (0, 1)] == [6, 4] and len(sums) == 4


class WhoAndWhere(RichFunction, MapFunction):
    def map(self, value):
        context = self.get_runtime_context()
        return os.getpid(), context.get_job_id(), context.get_task_name(), context.get_index_of_this_subtask()


@pytest.mark.slow
@pytest.mark.spec("A14", "data", "tasks", "jobs", "S09", "threads")
def test_one_process_runs_subtasks_of_several_operators_and_jobs_at_once():
    env = environment(2)
    env.set_buffer_timeout(0).disable_operator_chaining()

    def endless(name):
        numbers = env.from_sequence(1, 10**12)
        return numbers.map(WhoAndWhere()).name(name).map(lambda who: (who, os.getpid())).execute_and_collect()

    with endless("first") as first, endless("second") as second:
        found = [next(rows) for _ in range(300) for rows in (first, second)]
    whos = {who for who, _ in found}
    assert {pid for pid, *_ in whos} | {pid for _, pid in found} == {os.getpid()}
    assert len({job for _, job, _, _ in whos}) == 2, "of two jobs, neither of which had ended"
    assert {(task, subtask) for _, _, task, subtask in whos} == {
        (name, subtask) for name in ("first", "second") for subtask in (0, 1)
    }


@pytest.mark.spec("C27", "S16")
def test_an_environment_is_made_by_options_or_for_this_process(tmp_path, monkeypatch):
    file = tmp_path / "conf.yaml"
    file.write_text("parallelism.default: 3\nexecution.target: ray\npipeline.name: of file\n", encoding="utf-8")
    monkeypatch.setenv("RAYFLINK_CONF", str(file))
    assert StreamExecutionEnvironment.get_execution_environment().get_parallelism() == 3
    env = StreamExecutionEnvironment.create_local_environment(1, {"pipeline.name": "walk", "execution.target": "ray"})
    assert env.get_parallelism() == 1
    assert set(env.from_collection([1, 2]).map(lambda _: os.getpid()).execute_and_collect()) == {os.getpid()}
    env.from_collection([1]).print()
    assert env.get_stream_graph().name == "walk"
    assert StreamExecutionEnvironment.create_local_environment().get_parallelism() == 3
    with pytest.raises(ConfigError, match=r"parallelism\.default"):
        StreamExecutionEnvironment.create_local_environment(0)


@pytest.mark.spec("C28")
def test_execute_builds_the_graph_and_runs_it_under_the_name_it_is_given():
    def name_of(*given, **options):
        env = environment(**options)
        env.from_collection([1]).print()
        names = []
        with intercepted(lambda stream, job: names.append((stream.name, job.name))):
            env.execute_async(*given)
        return names

    assert name_of() == [("Flink Streaming Job",) * 2]
    assert name_of("mine") == [("mine",) * 2]
    assert name_of(**{"pipeline.name": "of the options"}) == [("of the options",) * 2]
    assert name_of("mine", **{"pipeline.name": "of the options"}) == [("mine",) * 2]
    RAN.clear()
    env = environment()
    env.from_collection(["a"]).map(noted).print()
    env.execute("mine")
    assert RAN == ["a"]


@pytest.mark.spec("C31")
def test_the_parallelism_of_an_operator_comes_before_that_of_the_environment():
    class Wide(RichFunction, MapFunction):
        def map(self, value):
            return self.get_runtime_context().get_number_of_parallel_subtasks()

    env = environment(1)
    counts = env.from_collection(range(6)).map(lambda n: (n, 1)).key_by(0).sum(1).set_parallelism(3).name("count")
    counts.map(Wide()).set_parallelism(2).name("two").sink_to(CollectSink("widths"))
    result = env.execute()
    assert {vertex["name"]: vertex["parallelism"] for vertex in result.vertices} == {
        "Source: Collection Source -> Map": 1, "count": 3, "two": 2, "Sink: Collect": 1,
    }  # fmt: skip
    assert result.get_accumulator_result("widths") == [2] * 6


@pytest.mark.spec("C32")
@pytest.mark.parametrize(("own", "written"), [(None, 70), (-1, 70), (0, 0), (7, 7)])
def test_the_buffer_timeout_of_an_operator_reaches_its_task_where_it_is_not_negative(own, written):
    env = environment().set_buffer_timeout(70)
    mapped = env.from_collection([1]).map(str).name("it")
    if own is not None:
        mapped.set_buffer_timeout(own)
    mapped.rebalance().sink_to(CollectSink()).set_parallelism(2)
    [node] = [node for node in env.get_stream_graph().nodes if node.name == "it"]
    assert node.buffer_timeout_ms == written
    graph = env.get_job_graph()
    [output] = Deployer(graph, ids(), {}).deployment(graph.vertices[0], 0, 0).outputs
    assert (output.buffer_timeout_ms, output.subpartitions) == (written, 2)


def counting(until):
    env = environment(2)
    env.from_sequence(1, until).map(lambda n: n).rebalance().sink_to(CollectSink("out"))
    return env.get_job_graph()


def states_of(story):
    return {task["state"] for vertex in story.result.vertices for task in vertex["subtasks"]}


@pytest.mark.slow
@pytest.mark.spec("T06")
@pytest.mark.parametrize("seed", range(3))
def test_a_job_finishes_at_the_end_of_its_input_and_not_before(seed):
    ended = simulate(counting(20), seed)
    assert ended.status is JobStatus.FINISHED and states_of(ended) == {"FINISHED"}
    assert sorted(ended.collected("out")) == list(range(1, 21))
    endless = simulate(counting(10**15), seed, [CancelJob(move=500)])
    assert endless.status is JobStatus.CANCELED and states_of(endless) == {"CANCELED"}
    stopped = simulate(counting(10**15), seed, [StopJob(move=500)])
    assert stopped.status is JobStatus.FINISHED and states_of(stopped) == {"FINISHED"}, "the sources came to an end"


def test_a_local_job_answers_a_thread_while_another_waits_for_its_end(tmp_path):
    env = StreamExecutionEnvironment({"execution.target": "local", "execution.checkpointing.dir": str(tmp_path)})
    env.from_sequence(0, 1 << 40).filter(lambda number: False).sink_to(CollectSink())
    client = env.execute_async("endless")
    waiting = threading.Thread(target=client.get_job_execution_result().result, daemon=True)
    waiting.start()
    while client.get_job_status().result().name != "RUNNING":
        pass
    assert client.trigger_savepoint(str(tmp_path / "savepoints")).result()
    assert client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
    waiting.join(20)
    assert not waiting.is_alive()
