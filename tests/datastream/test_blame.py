"""Whose fault a failure is: it names the step that was given what failed, its line and the record, no frame of ours."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from rayflink.common import Duration, JobFailed, PlanError, Types, WatermarkStrategy
from rayflink.common.errors import InvalidFunction
from rayflink.datastream import (
    AggregateFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    SourceFunction,
)
from rayflink.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from rayflink.datastream.window import TumblingEventTimeWindows
from tests.datastream.programs import environment

WORDS = [("a", 1), ("b", 2), ("c", "x" * 1_000)]


def failure_of(stream: Any) -> JobFailed:
    with pytest.raises(JobFailed) as caught:
        list(stream.execute_and_collect())
    return caught.value


def line_of(frame_offset: int = 0) -> str:
    """The line of the caller, as call sites begin."""
    caller = inspect.stack()[1]
    return f"{caller.filename}:{caller.lineno + frame_offset} "


def engine_frames(error: JobFailed) -> list[str]:
    return re.findall(r'File ".*/(?:rayflink|actors|state)/(?!.*tests).*', error.user_traceback)


class Seventh(KeySelector):
    def get_key(self, value: Any) -> Any:
        return value[7]


@pytest.mark.spec("D08")
@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("selector", [lambda record: record[7], Seventh()])
def test_a_failing_key_selector_is_blamed_on_key_by_whichever_task_called_it(parallelism: int, selector: Any) -> None:
    behind = environment(parallelism).from_collection(WORDS).map(lambda record: record)
    keyed, line = behind.key_by(selector), line_of()
    error = failure_of(keyed.sum(1))
    assert (error.operator, error.record) == ("key_by", "('a', 1)")
    assert error.call_site.startswith(line)
    assert "IndexError: tuple index out of range" in str(error)
    assert error.user_traceback.count("  File ") == 1 and not engine_frames(error)


@pytest.mark.parametrize("parallelism", [1, 2])
def test_windows_and_either_of_two_streams_blame_their_own_key_by(parallelism: int) -> None:
    class Pairs(KeyedCoProcessFunction):
        def process_element1(self, value: Any, ctx: Any) -> Any:
            yield value

        process_element2 = process_element1

    env = environment(parallelism)
    left, right = env.from_collection(WORDS[:1]), env.from_collection(WORDS)
    keyed, line = left.key_by(0).connect(right.key_by(lambda record: record[7])), line_of()
    error = failure_of(keyed.process(Pairs()))
    assert (error.operator, error.record) == ("key_by", "('a', 1)") and error.call_site.startswith(line)


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_key_that_cannot_be_one_is_told_without_a_traceback(parallelism: int) -> None:
    keyed, line = environment(parallelism).from_collection(WORDS[2:]).key_by(lambda record: {record: 1}), line_of()
    error = failure_of(keyed.sum(1))
    assert error.operator == "key_by" and error.call_site.startswith(line)
    assert str(error).count("key is a dict, which cannot be a key; use tuple(sorted(d.items())) of it") == 1
    assert error.record.startswith("('c', 'xxx") and len(error.record) < 250
    assert "Traceback" not in str(error)


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize(("field", "wanted"), [(5, "field 5"), ("word", "field 'word'"), ((0, 9), "fields 0, 9")])
def test_a_field_that_a_record_does_not_have_is_named(parallelism: int, field: Any, wanted: str) -> None:
    error = failure_of(environment(parallelism).from_collection(WORDS).key_by(field).sum(1))
    assert f"key_by wants {wanted} of each record" in str(error)
    assert error.record == "('a', 1)" and "Traceback" not in str(error)


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_key_of_another_type_than_declared_is_refused_with_its_record(parallelism: int) -> None:
    stream = environment(parallelism).from_collection([(1, 1), ("b", 2)])
    error = failure_of(stream.key_by(lambda record: record[0], key_type=Types.INT()).sum(1))
    assert "TypeMismatch: key: found str 'b', wanted Integer" in str(error)
    assert (error.operator, error.record) == ("key_by", "('b', 2)")


def test_keys_that_arrive_as_columns_are_held_to_their_type_as_well() -> None:
    stream = environment(2).from_collection([("a", 1)] * 600)
    assert "wanted Integer" in str(failure_of(stream.key_by(0, key_type=Types.INT()).sum(1)))
    stream = environment(2).from_collection([("a", 1)] * 600)
    assert len(list(stream.key_by(0, key_type=Types.STRING()).sum(1).execute_and_collect())) == 600


def test_both_key_types_of_connected_streams_are_checked() -> None:
    env = environment(2)
    streams = env.from_collection([1]).connect(env.from_collection(["b"]))
    keyed = streams.key_by(lambda value: value, lambda value: value, key_type=Types.INT())

    class Nothing(KeyedCoProcessFunction):
        def process_element1(self, value: Any, ctx: Any) -> None:
            pass

        process_element2 = process_element1

    assert "found str 'b', wanted Integer" in str(failure_of(keyed.process(Nothing())))


def test_a_failing_partitioner_is_blamed_on_partition_custom() -> None:
    stream = environment(2).from_collection(WORDS).map(lambda record: record)
    dealt, line = stream.partition_custom(lambda key, channels: 1 // 0, lambda record: record[0]), line_of()
    error = failure_of(dealt.map(lambda record: record))
    assert (error.operator, error.record) == ("partition_custom", "('a', 1)")
    assert error.call_site.startswith(line) and not engine_frames(error)


def test_what_a_failure_was_raised_from_is_shown_where_the_program_had_part_in_it() -> None:
    def parse(value: Any) -> Any:
        try:
            return int(value)
        except ValueError as error:
            raise RuntimeError("no number") from error

    error = failure_of(environment().from_collection(["x"]).map(parse))
    assert "invalid literal" in error.user_traceback and "direct cause" in error.user_traceback
    assert error.user_traceback.count("  File ") == 2 and not engine_frames(error)


class NoArgument(MapFunction):
    def map(self) -> Any:  # type: ignore[override]
        return 1


@pytest.mark.parametrize(
    ("step", "arguments", "told"),
    [
        ("map", [lambda a, b: a], "map wants a function of 1 argument, found one of 2"),
        ("map", [NoArgument()], "map wants a function of 1 argument, found one of 0"),
        ("map", [3], "map: a MapFunction or a callable is wanted, found int: 3; pass a function of 1 argument"),
        ("filter", [lambda: True], "filter wants a function of 1 argument, found one of 0"),
        ("flat_map", [lambda a, b: a], "flat_map wants a function of 1 argument"),
        ("process", [lambda a: a], "process wants a function of 2 arguments, found one of 1"),
        ("key_by", [lambda x, y: x], "key_by wants a function of 1 argument, found one of 2"),
        ("partition_custom", [lambda key: 0, 0], "partition_custom wants a function of 2 arguments"),
        ("add_sink", [lambda: None], "add_sink wants a function of 1 argument"),
    ],
)
def test_a_function_that_cannot_be_called_is_refused_in_its_line(step: str, arguments: Any, told: str) -> None:
    stream = environment().from_collection(WORDS)
    with pytest.raises(InvalidFunction, match=re.escape(told)) as caught:
        getattr(stream, step)(*arguments)
    assert caught.value.line.startswith(f"{__file__}:")


def test_a_timestamp_assigner_takes_the_record_and_its_timestamp_so_far() -> None:
    with pytest.raises(
        InvalidFunction, match="with_timestamp_assigner wants a function of 2 arguments, found one of 1"
    ):
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda record: record)


def test_a_reducer_takes_two_and_what_does_not_tell_is_taken_as_it_is() -> None:
    with pytest.raises(InvalidFunction, match="reduce wants a function of 2 arguments, found one of 1"):
        environment().from_collection(WORDS).key_by(0).reduce(lambda value: value)
    values = environment().from_collection([1, 2])
    assert list(values.map(str).map(lambda value, times=2: value * times).execute_and_collect()) == ["11", "22"]
    assert list(environment().from_collection([1]).map(lambda *values: values).execute_and_collect()) == [(1,)]


class ForgetsTheAccumulator(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any) -> Any:  # type: ignore[override]
        return value

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a


@pytest.mark.parametrize(
    ("step", "function", "keyed", "wanted"),
    [
        ("apply", lambda window, records: records, True, "apply wants a function of 3 arguments, found one of 2"),
        ("apply", lambda key, window, records: records, False, "apply wants a function of 2 arguments, found one of 3"),
        ("reduce", lambda value: value, True, "reduce wants a function of 2 arguments, found one of 1"),
        ("aggregate", ForgetsTheAccumulator(), True, "aggregate wants a function of 2 arguments, found one of 1"),
    ],
)
def test_a_function_of_windows_that_cannot_be_called_is_refused_in_its_line(
    step: str, function: Any, keyed: bool, wanted: str
) -> None:
    stream, windows = environment().from_collection(WORDS), TumblingEventTimeWindows.of(Duration.of_seconds(1))
    windowed = stream.key_by(0).window(windows) if keyed else stream.window_all(windows)
    with pytest.raises(InvalidFunction, match=re.escape(wanted)) as caught:
        getattr(windowed, step)(function)
    assert caught.value.line.startswith(f"{__file__}:")


def test_a_generator_function_that_is_a_source_takes_nothing() -> None:
    with pytest.raises(InvalidFunction, match="add_source wants a function of 0 arguments, found one of 1"):
        environment().add_source(lambda context: [1])
    assert list(environment().add_source(lambda: [1, 2]).execute_and_collect()) == [1, 2]


def test_the_run_of_a_source_function_yields_and_takes_nothing() -> None:
    class AsInJava(SourceFunction):
        def run(self, ctx):
            ctx.collect(1)

    with pytest.raises(InvalidFunction, match=r"yields the records, wants a function of 0 .*run\(ctx\)") as caught:
        environment().add_source(AsInJava())
    assert caught.value.line.startswith(f"{__file__}:")


def test_functions_that_need_keys_are_refused_on_streams_without() -> None:
    class Keyed(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield value

    class BothKeyed(KeyedCoProcessFunction):
        def process_element1(self, value: Any, ctx: Any) -> Any:
            yield value

        process_element2 = process_element1

    stream = environment().from_collection(WORDS)
    with pytest.raises(PlanError, match=r"KeyedProcessFunction Keyed .* call key_by\(...\) before process") as caught:
        stream.process(Keyed())
    assert caught.value.line.startswith(f"{__file__}:")
    with pytest.raises(PlanError, match="KeyedCoProcessFunction BothKeyed"):
        stream.connect(stream).process(BothKeyed())


def test_a_result_of_another_type_than_declared_is_shown_whole_as_the_record() -> None:
    error = failure_of(environment().from_collection([1]).map(lambda n: (n, "x", 2.0), output_type=Types.INT()))
    assert error.record == "(1, 'x', 2.0)"
    assert "found tuple (1, 'x', 2.0), wanted Integer" in str(error) and "Traceback" not in str(error)


def test_a_file_that_is_not_there_is_told_once_and_the_path_is_to_be_corrected() -> None:
    stream, line = environment().read_text_file("/nope/in.txt"), line_of()
    text = str(failure_of(stream))
    assert text.count("no file, folder or match for '/nope/in.txt'") == 1
    assert line in text and "; correct the path, or put the file there on every node; correct that and" in text


class Last(AggregateFunction):
    """The last value added."""

    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return value

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_b


UPDATES = [
    (ValueStateDescriptor("seen", Types.INT()), "get_state", lambda state, value: state.update(value)),
    (ListStateDescriptor("seen", Types.INT()), "get_list_state", lambda state, value: state.add(value)),
    (ListStateDescriptor("seen", Types.INT()), "get_list_state", lambda state, value: state.update([value])),
    (MapStateDescriptor("seen", Types.STRING(), Types.INT()), "get_map_state", lambda state, v: state.put("k", v)),
    (MapStateDescriptor("seen", Types.INT(), Types.STRING()), "get_map_state", lambda state, v: state.put(v, "v")),
    (ReducingStateDescriptor("seen", lambda a, b: b, Types.INT()), "get_reducing_state", lambda state, v: state.add(v)),
    (AggregatingStateDescriptor("seen", Last(), Types.INT()), "get_aggregating_state", lambda state, v: state.add(v)),
]


@pytest.mark.parametrize(("descriptor", "getter", "update"), UPDATES)
def test_state_takes_values_of_its_declared_type_only(descriptor: Any, getter: str, update: Any) -> None:
    class Keeps(KeyedProcessFunction):
        def open(self, runtime_context: Any) -> None:
            self.state = getattr(runtime_context, getter)(descriptor)

        def process_element(self, value: Any, ctx: Any) -> Any:
            update(self.state, value)
            yield value

    def run(values: list[Any]) -> Any:
        return environment().from_collection(values).key_by(lambda value: 0).process(Keeps())

    assert list(run([1, 2]).execute_and_collect()) == [1, 2]
    error = failure_of(run([1, "text"]))
    assert "state 'seen': found str 'text', wanted Integer" in str(error)
    assert error.record == "'text'" and "in process_element" in error.user_traceback and not engine_frames(error)


def test_the_type_of_a_state_is_a_type_information() -> None:
    class Keeps(KeyedProcessFunction):
        def open(self, runtime_context: Any) -> None:
            runtime_context.get_state(ValueStateDescriptor("seen", "int"))

        def process_element(self, value: Any, ctx: Any) -> None:
            pass

    error = failure_of(environment().from_collection([1]).key_by(lambda value: 0).process(Keeps()))
    assert "the type of a state must be a TypeInformation such as Types.INT(), found 'int'" in str(error)
