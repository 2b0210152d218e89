"""Who gets which record and which state, seen from whole programs."""

from __future__ import annotations

from collections import Counter, namedtuple

import pytest

from rayflink.actors.job.deployment import Deployer
from rayflink.common import PlanError, Types
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import (
    AggregateFunction,
    AllWindowedStream,
    DataStream,
    KeyedStream,
    MapFunction,
    ProcessWindowFunction,
    RichFunction,
    WindowedStream,
)
from rayflink.datastream.state import ValueStateDescriptor
from rayflink.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows
from rayflink.graph.partitioners import KeyGroup
from rayflink.state.keys import key_hash
from rayflink.state.keys.key_groups import default_max_parallelism, key_group, subtask_of
from tests.actors.job.job_events import ids
from tests.datastream.programs import environment, timed

Word = namedtuple("Word", "word count at")
WORDS = [Word("a", 1, 0), Word("b", 5, 1_000), Word("a", 2, 2_000), Word("b", 3, 30_000)]
TEN = TumblingEventTimeWindows.of(10_000)


class Where(RichFunction, MapFunction):
    def map(self, value):
        return self.get_runtime_context().get_index_of_this_subtask(), value


@pytest.mark.spec("C03", "C01", "partitions")
def test_rebalance_evens_out_skew_over_as_many_subpartitions_as_there_are_receivers():
    env = environment(3)
    skewed = env.from_sequence(1, 300).global_().map(Where()).name("m1")
    skewed.rebalance().map(Where()).name("map").sink_to(CollectSink("out"))
    graph = env.get_job_graph()
    deployer = Deployer(graph, ids(), {})
    [sender] = [vertex for vertex in graph.vertices if vertex.name == "m1"]
    deployments = [deployer.deployment(sender, subtask, 0) for subtask in range(3)]
    assert [[output.subpartitions for output in found.outputs] for found in deployments] == [[3]] * 3
    found = env.execute().get_accumulator_result("out")
    assert Counter(first for _, (first, _) in found) == {0: 300}, "one subtask had everything"
    assert Counter(second for second, _ in found) == {0: 100, 1: 100, 2: 100}


class Running(MapFunction):
    """Counts the records of each key in keyed state."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def map(self, value):
        self.count.update((self.count.value() or 0) + 1)
        return value[0], self.count.value()


@pytest.mark.spec("C04", "A03", "state")
@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_keyed_stream_is_a_transformation_whose_records_see_the_state_of_their_key(parallelism):
    keyed = environment(parallelism).from_collection(WORDS).key_by("word")
    assert type(keyed) is KeyedStream and isinstance(keyed._transformation.partitioner, KeyGroup)
    steps = [
        keyed.map(Running()), keyed.filter(bool), keyed.flat_map(str), keyed.reduce(max), keyed.sum(1),
        keyed.process(lambda value, ctx: None), keyed.window(TEN).sum(1),
    ]  # fmt: skip
    assert {type(step) for step in steps} == {DataStream}
    keyed = environment(parallelism).from_collection(WORDS).key_by("word")
    worked = keyed.map(Running())
    assert worked._transformation.key_selector is keyed.key_selector
    assert keyed._transformation.partitioner.key_selector(WORDS[1]) == "b"
    assert sorted(worked.execute_and_collect()) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


ASKED: Counter[str] = Counter()
"""How often the key of a record was asked for."""
GIVEN: list[int] = []
"""The keys that a selector gave which must not be written like this."""


def asked(record):
    ASKED[record["word"]] += 1
    return record["word"]


def another_each_time(record):
    GIVEN.append(len(GIVEN))
    return GIVEN[-1]


@pytest.mark.spec("C06")
def test_the_key_is_asked_for_each_time_it_is_needed_and_must_be_the_same_again():
    records = [{"word": word} for word in "abc"]
    ASKED.clear()
    GIVEN.clear()
    keyed = environment(2).from_collection(records).key_by(asked)
    seen = list(keyed.process(lambda value, ctx: [(ctx.get_current_key(), value)]).execute_and_collect())
    assert sorted(key for key, _ in seen) == ["a", "b", "c"]
    assert [value for _, value in sorted(seen, key=str)] == records, "the key is no part of the record"
    assert ASKED == {"a": 2, "b": 2, "c": 2}, "where the stream is divided, and where it is worked"
    once = environment(2).from_collection(records).key_by(another_each_time)
    keys = list(once.process(lambda value, ctx: [ctx.get_current_key()]).execute_and_collect())
    assert len(set(keys)) == 3 and len(GIVEN) == 6, "asked again, so not the keys by which they were divided"


class InWhichSubtask(ProcessWindowFunction, RichFunction):
    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def process(self, key, context, elements):
        yield key, self.subtask, sum(element[1] for element in elements)


@pytest.mark.spec("C07")
def test_windows_of_different_keys_are_worked_by_different_subtasks():
    keys = [f"k{number}" for number in range(20)]
    windowed = timed(environment(2), [(key, 1, 0) for key in keys * 3]).key_by(0).window(TEN)
    assert type(windowed) is WindowedStream
    totals = windowed.process(InWhichSubtask())
    assert type(totals) is DataStream
    found = list(totals.execute_and_collect())
    groups = default_max_parallelism(2)
    where = {key: subtask_of(key_group(key_hash(key), groups), 2, groups) for key in keys}
    assert sorted(found) == sorted((key, where[key], 3) for key in keys)
    assert {subtask for _, subtask, _ in found} == {0, 1}


@pytest.mark.spec("C08")
def test_windows_of_all_records_are_windows_of_one_key_in_one_subtask():
    windowed = timed(environment(2), list(WORDS)).rebalance().window_all(TEN)
    assert type(windowed) is AllWindowedStream and isinstance(windowed, WindowedStream)
    totals = windowed.sum(1).map(Where())
    assert sorted(value[1] for _, value in totals.execute_and_collect()) == [3, 8]
    with pytest.raises(PlanError, match="parallelism"):
        windowed.sum(1).set_parallelism(2)


@pytest.mark.spec("C13")
def test_a_union_has_all_records_of_streams_of_one_type():
    env = environment(2)
    first = env.from_collection([1, 2], Types.INT())
    second, third = env.from_collection([2, 3], Types.INT()), env.from_sequence(4, 6).map(int, Types.INT())
    assert sorted(first.union(second, third).map(lambda n: n).execute_and_collect()) == [1, 2, 2, 3, 4, 5, 6]
    assert first.union(second).get_type() == Types.INT()
    words = env.from_collection(["a"], Types.STRING())
    with pytest.raises(PlanError, match=r"(?s)Cannot union streams of different types.*test_dealing\.py"):
        first.union(words)


@pytest.mark.spec("C19")
@pytest.mark.parametrize(("kind", "windows"), [("sum", [3, 3, 5]), ("min", [1, 3, 5]), ("max", [2, 3, 5])])
def test_sum_min_and_max_of_windows_go_by_name_or_position(kind, windows):
    for field in ("count", 1):
        windowed = timed(environment(2), WORDS).key_by("word").window(TEN)
        assert sorted(word.count for word in getattr(windowed, kind)(field).execute_and_collect()) == windows


class Folded(AggregateFunction):
    """Begins with a text and adds to it, as a FoldFunction did."""

    def create_accumulator(self):
        return "start"

    def add(self, value, accumulator):
        return f"{accumulator} {value[1]}"

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b.removeprefix("start")


@pytest.mark.spec("C20", "apply", "reduce")
def test_session_windows_are_applied_reduced_or_aggregated():
    windowed = timed(environment(2), list(WORDS)).key_by(0).window(EventTimeSessionWindows.with_gap(5_000))
    applied = windowed.apply(lambda key, window, words: [(key, window.start, len(list(words)))])
    assert sorted(applied.execute_and_collect()) == [("a", 0, 2), ("b", 1_000, 1), ("b", 30_000, 1)]
    reduced = windowed.reduce(lambda x, y: x._replace(count=x.count * 10 + y.count))
    assert sorted(word.count for word in reduced.execute_and_collect()) == [3, 5, 12]
    assert sorted(windowed.aggregate(Folded()).execute_and_collect()) == ["start 1 2", "start 3", "start 5"]
