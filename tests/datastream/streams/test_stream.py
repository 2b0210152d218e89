"""Streams of any records: what each step gives, how it is recorded, and what is refused."""

from __future__ import annotations

import gc
import threading

import pytest

from rayflink.common import (
    ConfigError,
    Duration,
    JobFailed,
    NotSerializable,
    OutputTag,
    PlanError,
    Row,
    TypeMismatch,
    Types,
    WatermarkStrategy,
)
from rayflink.common.functions.accumulators import IntCounter
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import (
    FilterFunction,
    FlatMapFunction,
    MapFunction,
    Partitioner,
    ProcessFunction,
    RichFunction,
    SinkFunction,
    SourceFunction,
    StreamExecutionEnvironment,
)
from rayflink.datastream.connectors import DiscardingSink
from rayflink.datastream.window import TumblingEventTimeWindows
from rayflink.graph.attributes import ChainingStrategy
from rayflink.graph.errors import MissingTypeError
from rayflink.graph.job_graph import JobGraph
from rayflink.graph.transformations import MissingType
from rayflink.testing import simulate
from tests.datastream.programs import environment


def node(env, name):
    return next(node for node in env.get_stream_graph().nodes if node.name == name)


def test_map_flat_map_filter_and_project_take_functions_and_function_classes():
    class Double(MapFunction):
        def map(self, value):
            return value * 2

    class Twice(FlatMapFunction):
        def flat_map(self, value):
            yield value
            yield value

    class Even(FilterFunction):
        def filter(self, value):
            return value % 2 == 0

    env = environment()
    assert list(env.from_collection([1, 2]).map(Double()).flat_map(Twice()).execute_and_collect()) == [2, 2, 4, 4]
    assert list(env.from_collection([1, 2, 3]).filter(Even()).execute_and_collect()) == [2]
    assert list(env.from_collection([1, 2, 3]).filter(lambda n: n > 1).map(str).execute_and_collect()) == ["2", "3"]
    assert list(env.from_collection([(1, "a", 2.0)]).project(2, 0).execute_and_collect()) == [(2.0, 1)]


@pytest.mark.slow
def test_map_batches_sees_columns():
    import polars

    def shout(frame: polars.DataFrame) -> polars.DataFrame:
        return frame.with_columns(polars.col("word").str.to_uppercase())

    rows = list(environment().from_collection([{"word": "a"}, {"word": "b"}]).map_batches(shout).execute_and_collect())
    assert [row.word for row in rows] == ["A", "B"]


def test_a_process_function_feeds_its_side_outputs():
    odd = OutputTag("odd")

    class Sorted(ProcessFunction):
        def process_element(self, value, ctx):
            yield (odd, value) if value % 2 else value

    env = environment()
    even = env.from_collection(range(6)).process(Sorted())
    both = even.map(lambda n: ("even", n)).union(even.get_side_output(odd).map(lambda n: ("odd", n)))
    assert sorted(both.execute_and_collect()) == [
        ("even", 0), ("even", 2), ("even", 4), ("odd", 1), ("odd", 3), ("odd", 5)
    ]  # fmt: skip


@pytest.mark.spec("C13")
def test_union_takes_any_number_of_streams():
    env = environment()
    streams = [env.from_collection([n]) for n in range(3)]
    assert sorted(streams[0].union(*streams[1:]).execute_and_collect()) == [0, 1, 2]
    assert list(streams[0].union().execute_and_collect()) == [0]


class Where(RichFunction, MapFunction):
    def map(self, value):
        return self.get_runtime_context().get_index_of_this_subtask(), value


@pytest.mark.parametrize(
    "step",
    [
        lambda stream: stream.key_by("usr"),
        lambda stream: stream.partition_custom(lambda key, n: 0, "usr"),
        lambda stream: stream.key_by("user").sum("usr"),
        lambda stream: stream.key_by("user").window(TumblingEventTimeWindows.of(Duration.of_seconds(1))).max("usr"),
    ],
    ids=["key_by", "partition_custom", "sum", "max"],
)
def test_a_field_that_the_declared_type_does_not_have_is_refused_in_the_users_line(step):
    users = Types.ROW_NAMED(["user", "n"], [Types.STRING(), Types.INT()])
    stream = environment().from_collection([Row("ann", 1)], users)
    with pytest.raises(PlanError, match=r"wants field 'usr'.*did you mean 'user'.*test_stream\.py"):
        step(stream)


@pytest.mark.spec("C03")
@pytest.mark.parametrize(
    ("deal", "subtasks"),
    [
        (lambda s: s.rebalance(), [0, 1]),
        (lambda s: s.shuffle(), [0, 1]),
        (lambda s: s.rescale(), [0, 1]),
        (lambda s: s.global_(), [0]),
        (lambda s: s.partition_custom(lambda key, n: 1, lambda value: value), [1]),
    ],
)
def test_records_are_dealt_as_the_program_says(deal, subtasks):
    found = list(deal(environment(2).from_collection(range(20))).map(Where()).execute_and_collect())
    assert sorted(value for _, value in found) == list(range(20))
    assert sorted({subtask for subtask, _ in found}) == subtasks


@pytest.mark.spec("C03")
def test_broadcast_gives_every_subtask_every_record():
    found = list(environment(2).from_collection([7]).broadcast().map(Where()).execute_and_collect())
    assert sorted(found) == [(0, 7), (1, 7)]


def test_a_partitioner_chooses_by_the_key_of_a_field():
    class ByParity(Partitioner):
        def partition(self, key, num_partitions):
            return key % num_partitions

    stream = environment(2).from_collection([(n, "x") for n in range(4)]).partition_custom(ByParity(), 0)
    assert sorted(stream.map(Where()).execute_and_collect()) == [
        (0, (0, "x")), (0, (2, "x")), (1, (1, "x")), (1, (3, "x"))
    ]  # fmt: skip


@pytest.mark.spec("C36")
def test_each_subtask_works_with_a_function_of_its_own():
    class Counted(MapFunction):
        def __init__(self):
            self.seen = 0

        def map(self, value):
            self.seen += 1
            return self.seen

    counted = Counted()
    found = list(environment(2).from_collection(range(6)).rebalance().map(counted).execute_and_collect())
    assert sorted(found) == [1, 1, 2, 2, 3, 3]
    assert counted.seen == 0


@pytest.mark.spec("C36")
def test_a_function_that_cannot_be_copied_is_refused_in_the_users_line():
    class Locked(MapFunction):
        def __init__(self):
            self.lock = threading.Lock()

        def map(self, value):
            return value

    with pytest.raises(NotSerializable, match=r"function Locked.*lock.*test_stream\.py:\d+"):
        environment().from_collection([1]).map(Locked())


@pytest.mark.spec("C36")
def test_a_function_takes_along_only_what_it_uses_of_what_is_around_it():
    class Program:
        def __init__(self):
            self.lock = threading.Lock()  # cannot be copied
            self.factor = 3

        def unused(self, stream):
            factor = self.factor
            return stream.map(lambda n: n * factor)

        def used(self, stream):
            return stream.map(lambda n: n * self.factor)

    program, stream = Program(), environment().from_collection([1, 2])
    assert list(program.unused(stream).execute_and_collect()) == [3, 6]
    with pytest.raises(NotSerializable, match=r"self.*lock.*test_stream\.py:\d+"):
        program.used(stream)


def test_functions_of_the_wrong_kind_are_refused_in_the_users_line():
    stream = environment().from_collection([1])
    with pytest.raises(TypeError, match="a MapFunction or a callable is wanted, found int"):
        stream.map(3)
    with pytest.raises(ValueError, match="at least one field position"):
        stream.project()
    with pytest.raises(TypeError, match="sink_to needs a Sink, found function; use add_sink"):
        stream.sink_to(lambda value: None)
    with pytest.raises(TypeError, match="from_source needs a Source, found list; use from_collection"):
        environment().from_source([1])
    with pytest.raises(TypeError, match="cannot be looped over before it has run"):
        list(stream)


def test_sinks_get_every_record():
    class Summed(SinkFunction):
        def open(self, runtime_context):
            self.total = IntCounter()
            runtime_context.add_accumulator("total", self.total)

        def invoke(self, value):
            self.total.add(value)

    env = environment(2)
    env.from_sequence(1, 100).add_sink(Summed()).name("sum")
    env.from_sequence(1, 3).sink_to(DiscardingSink())
    assert [n.name for n in env.get_stream_graph().sinks] == ["Sink: sum", "Sink: Discard"]
    result = env.execute("sums")
    assert result.get_accumulator_result("total") == 5050
    assert result.get_all_accumulator_results() == {"total": 5050}


def test_print_writes_records_by_their_declared_type(capsys):
    env = environment()
    pairs = env.from_collection([("a", 1.0), ("b", None)], Types.TUPLE([Types.STRING(), Types.DOUBLE()]))
    pairs.filter(lambda pair: pair[0] == "b").print("typed").set_parallelism(1)
    pairs.map(lambda pair: pair).print("untyped").set_parallelism(1)
    pairs.map(lambda pair: Row(*pair), Types.ROW([Types.STRING(), Types.DOUBLE()])).print("row").set_parallelism(1)
    at_once = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda pair, _: 0)
    timed = pairs.filter(lambda pair: pair[1]).assign_timestamps_and_watermarks(at_once)
    windows = timed.key_by(lambda pair: pair[0]).window(TumblingEventTimeWindows.of(Duration.of_millis(1)))
    assert windows.sum(1).get_type() == windows.reduce(max).get_type() == pairs.get_type()
    assert windows.reduce(max, lambda key, window, pairs: pairs).get_type() == Types.PICKLED_BYTE_ARRAY()
    env.execute()
    assert sorted(line for line in capsys.readouterr().out.splitlines() if "> " in line) == [
        "row> +I[a,1.0]", "row> +I[b,None]", "typed> (b,null)", "untyped> ('a', 1.0)", "untyped> ('b', None)",
    ]  # fmt: skip


def test_print_prefixes_lines_with_the_subtask(capsys):
    env = environment(2)
    env.from_collection(["a"]).global_().print("out")
    env.from_collection(["b"]).print_to_err().set_parallelism(1)
    env.execute()
    assert capsys.readouterr() == ("out:1> a\n", "b\n")


@pytest.mark.spec("C01", "add-source")
def test_a_source_function_is_run_by_one_subtask():
    class Three(SourceFunction):
        def run(self):
            yield from "abc"

    env = environment(2)
    assert sorted(env.add_source(Three()).map(str.upper).execute_and_collect()) == ["A", "B", "C"]
    assert list(env.add_source(lambda: iter([1, 2])).execute_and_collect()) == [1, 2]


def test_a_cached_file_reaches_the_tasks(tmp_path):
    file = tmp_path / "names.txt"
    file.write_text("Ada", encoding="utf-8")

    class Named(MapFunction):
        def open(self, runtime_context):
            with open(runtime_context.get_distributed_cache().get_file("names"), encoding="utf-8") as names:
                self.name = names.read()

        def map(self, value):
            return self.name, value

    env = environment(2)
    env.register_cached_file(str(file), "names")
    assert list(env.from_collection([1]).rebalance().map(Named()).execute_and_collect()) == [("Ada", 1)]


def test_records_are_drawn_while_the_job_runs_and_closing_cancels_it():
    env = environment()
    with env.from_sequence(1, 10**12).map(lambda number: number).execute_and_collect() as found:
        assert next(found) == 1
        assert found.next() == 2
    assert list(found) == []
    found.close()


def test_with_a_limit_records_are_a_list():
    assert environment().from_sequence(1, 10**9).execute_and_collect(limit=2) == [1, 2]
    assert environment().from_sequence(1, 2).execute_and_collect("job", 5) == [1, 2]


def test_records_come_before_the_failure_of_their_job():
    def fragile(number):
        if number == 3:
            raise ValueError("three")
        return number

    found = environment().add_source(lambda: iter([1, 2, 3])).set_buffer_timeout(0).map(fragile).execute_and_collect()
    drawn = []
    with pytest.raises(JobFailed, match="three"):
        for number in found:
            drawn.append(number)
    assert drawn in ([], [1, 2])
    assert list(found) == []


@pytest.mark.slow
def test_a_local_job_whose_records_nobody_draws_says_that_it_did_not_run(capfd):
    found = environment().from_sequence(1, 3).execute_and_collect("undrawn")
    del found
    gc.collect()
    assert "job 'undrawn' did not run to its end" in capfd.readouterr().err


@pytest.mark.spec("I23", "operator")
def test_attributes_reach_the_graph():
    env = environment(2)
    stream = env.from_collection([1]).map(str)
    stream.name("text").uid("u").set_description("as text").set_parallelism(3).set_max_parallelism(64)
    stream.set_buffer_timeout(0).slot_sharing_group("g").set_co_location_group_key("k").start_new_chain()
    stream.print().name("shown").disable_chaining().set_uid_hash("0" * 32)
    text, shown = node(env, "text"), node(env, "Sink: shown")
    assert (text.uid, text.description, text.parallelism, text.max_parallelism) == ("u", "as text", 3, 64)
    assert (text.buffer_timeout_ms, text.slot_sharing_group, text.co_location_group_key) == (0, "g", "k")
    assert text.chaining_strategy is ChainingStrategy.HEAD
    assert (shown.chaining_strategy, shown.uid_hash) == (ChainingStrategy.NEVER, "0" * 32)
    assert shown.slot_sharing_group == "g"


def test_every_step_knows_the_line_that_wrote_it():
    env = environment()
    env.from_collection([1]).map(str).key_by(lambda value: value).process(lambda value, ctx: None).print()
    sites = {n.call_site for n in env.get_stream_graph().nodes}
    assert len(sites) == 1
    assert __file__ in sites.pop()


def test_attributes_out_of_range_are_refused_and_leave_the_old_values():
    env = environment(2)
    stream = env.from_collection([1]).map(str)
    for setting in (
        lambda: stream.set_parallelism(0),
        lambda: stream.set_max_parallelism(40_000),
        lambda: stream.set_buffer_timeout(-2),
        lambda: stream.set_uid_hash("xyz"),
    ):
        with pytest.raises(PlanError):
            setting()
    assert node(env, "Map").parallelism == 2
    assert list(stream.force_non_parallel().execute_and_collect()) == ["1"]


def test_a_source_for_one_reader_is_not_widened():
    with pytest.raises(PlanError, match="can be read by 1 subtask at most, found 2"):
        environment().from_collection([1]).set_parallelism(2)


def test_a_logical_step_has_no_attributes_of_an_operator():
    stream = environment().from_collection([(1, 2)])
    for logical in (stream.rebalance(), stream.key_by(0), stream.union(stream.map(str))):
        with pytest.raises(PlanError, match="which has no operator"):
            logical.set_parallelism(2)
        with pytest.raises(PlanError, match="which has no operator"):
            logical.uid("x")


def test_a_program_without_a_step_cannot_run():
    with pytest.raises(PlanError, match="No operators defined in streaming topology"):
        environment().execute()


def test_options_come_from_the_file_and_from_the_program(tmp_path, monkeypatch):
    file = tmp_path / "conf.yaml"
    file.write_text("parallelism.default: 3\npipeline.max-parallelism: 64\npipeline.name: of file\n", encoding="utf-8")
    monkeypatch.setenv("RAYFLINK_CONF", str(file))
    env = StreamExecutionEnvironment.get_execution_environment({"parallelism.default": 4, "pipeline.name": "program"})
    assert (env.get_parallelism(), env.get_max_parallelism()) == (4, 64)
    env.from_sequence(1, 2).print()
    assert env.get_stream_graph().name == "program"


def test_a_wrong_option_is_refused_when_the_environment_is_made():
    with pytest.raises(ConfigError, match="parallelism.default"):
        environment("two")


def test_settings_of_the_environment():
    env = environment()
    env.set_parallelism(3).set_max_parallelism(99).set_buffer_timeout(-1).disable_operator_chaining()
    assert (env.get_parallelism(), env.get_max_parallelism(), env.get_buffer_timeout()) == (3, 99, -1)
    assert not env.is_chaining_enabled()
    assert env.set_buffer_timeout(5).get_buffer_timeout() == 5
    with pytest.raises(ConfigError, match="-1, 0 or more"):
        env.set_buffer_timeout(-2)


def test_the_steps_of_a_program_are_forgotten_once_it_runs():
    env = environment()
    assert list(env.from_collection([1]).execute_and_collect()) == [1]
    assert list(env.from_collection([2]).execute_and_collect()) == [2]
    assert len(env._sinks) == 0


@pytest.mark.spec("B04", "takes-effect", "B05", "declared", "B07", "row")
def test_declared_types_give_records_their_form():
    env = environment()
    person = Types.ROW_NAMED(["name", "height"], [Types.STRING(), Types.FLOAT()])
    people = env.from_collection([("Ada", 1.1), ("Bob", 1.5)], type_info=person)
    assert list(people.map(lambda row: row.name).execute_and_collect()) == ["Ada", "Bob"]
    again = people.map(lambda row: (row.name, row.height), output_type=person)
    assert [row["height"] for row in again.execute_and_collect()] == [1.100000023841858, 1.5]
    assert again.filter(lambda row: row.height > 1.2).get_type() == person
    longest = people.key_by("name").reduce(lambda first, second: second)
    assert [type(row) for row in longest.execute_and_collect()] == [Row, Row]


@pytest.mark.spec("B01", "travels")
def test_a_declared_type_goes_with_the_job():
    env = environment(2)
    person = Types.ROW_NAMED(["name", "height"], [Types.STRING(), Types.FLOAT()])
    people = env.from_collection([("Ada", 1.5)]).map(lambda pair: pair, output_type=person)
    people.sink_to(CollectSink("people"))
    [row] = simulate(JobGraph.from_bytes(env.get_job_graph().to_bytes()), 1).collected("people")
    assert row == Row(name="Ada", height=1.5) and isinstance(row, Row)


@pytest.mark.spec("B16", "appended")
def test_a_step_behind_one_of_unknown_type_is_refused_where_it_is_appended():
    stream = environment().from_collection([1])
    stream._transformation.output_type = MissingType("a list of what?")
    with pytest.raises(MissingTypeError, match=r"(?s)cannot be determined: a list of what.*test_stream\.py"):
        stream.map(str)


def test_a_result_of_another_type_than_declared_fails_the_job_with_place_and_remedy():
    pair = Types.TUPLE([Types.INT()])
    stream = environment().from_collection(["1", "x"]).map(lambda text: (text, 1), output_type=pair)
    with pytest.raises(JobFailed) as failed:
        list(stream.execute_and_collect())
    assert "result of 'Map'" in str(failed.value)
    assert "test_stream.py" in str(failed.value)
    assert "typed.py" not in str(failed.value)
    with pytest.raises(TypeMismatch, match=r"element of the collection: found str 'x', wanted Integer"):
        environment().from_collection([1, "x"], type_info=Types.INT())


@pytest.mark.spec("B04", "takes-effect", "B05", "declared")
def test_python_types_stand_for_types():
    stream = environment().from_collection([1]).map(str, output_type=str)
    assert stream.get_type() == Types.STRING()
    assert list(stream.execute_and_collect()) == ["1"]
