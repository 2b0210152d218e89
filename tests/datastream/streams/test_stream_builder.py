"""What other front ends add to a stream program: operators, partitioning, identities and parallelism."""

from __future__ import annotations

import pytest

from rayflink.common.functions.function_classes import KeyBy
from rayflink.common.typeinfo import Types
from rayflink.connectors.discard import DiscardingSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.streams.step import transformation_of
from rayflink.datastream.streams.stream_builder import StreamBuilder, keep_parallelism, set_sink_identity
from rayflink.graph import transformations as graph
from rayflink.graph.partitioners import Broadcast, Global, KeyGroup
from rayflink.operators.factory import Factory
from rayflink.operators.stateless import MapOperator
from rayflink.operators.two_input import CoMapOperator

DOUBLE = Factory(MapOperator, lambda n: 2 * n)
SAME = Factory(CoMapOperator, (lambda n: n, lambda n: -n))


@pytest.fixture
def env():
    return StreamExecutionEnvironment({"execution.target": "local"})


@pytest.fixture
def numbers(env):
    return StreamBuilder(env.from_collection([1, 2, 3]))


def step_of(builder: StreamBuilder) -> graph.Transformation:
    return transformation_of(builder.stream)


def test_an_operator_has_its_name_key_and_identity(numbers):
    key = KeyBy(abs, "here.py:1", None)
    step = step_of(numbers.hash_partition(key).add_operator("Double", DOUBLE, key, "doubled numbers"))
    assert isinstance(step, graph.OneInput)
    assert (step.name, step.key_selector, step.identity) == ("Double", key, "doubled numbers")


def test_the_steps_run(numbers):
    other = StreamBuilder(numbers.stream.map(lambda n: 10 * n))
    both = numbers.add_two_input_operator(other.broadcast(), "Both", SAME, identity="both")
    assert step_of(both).identity == "both"
    assert sorted(both.union(numbers).stream.execute_and_collect()) == [-30, -20, -10, 1, 1, 2, 2, 3, 3]


def test_rows_are_partitioned(numbers):
    key = KeyBy(abs, "here.py:1", None)
    streams = numbers.hash_partition(key), numbers.single_partition(), numbers.broadcast()
    partitioners = [step_of(stream).partitioner for stream in streams]
    assert partitioners == [KeyGroup(key), Global(), Broadcast()]


def test_a_step_keeps_the_parallelism_before_it_unless_it_has_its_own(numbers):
    before = numbers.add_operator("Double", DOUBLE).set_parallelism(3)
    assert before.add_operator("Double", DOUBLE).keep_parallelism(before).parallelism == 3
    assert before.add_operator("Double", DOUBLE).set_parallelism(2).keep_parallelism(before).parallelism == 2
    sink = before.stream.sink_to(DiscardingSink())
    keep_parallelism(sink, before)
    assert transformation_of(sink).parallelism == 3


def test_the_parallelism_of_a_union_is_that_of_all_its_inputs(numbers):
    two, three = (numbers.add_operator("Double", DOUBLE).set_parallelism(number) for number in (2, 3))
    assert two.union(two).parallelism == 2
    assert two.union(three).parallelism is None


def test_sources_and_sinks_have_identities_and_other_steps_of_the_user_keep_theirs(env, numbers):
    newest = graph.next_id()
    read = StreamBuilder(env.from_collection([4])).union(numbers).add_operator("Double", DOUBLE)
    read.set_source_identity("from orders", newest)
    sources = step_of(read).input.inputs
    assert [source.identity for source in sources] == ["from orders", None]
    sink = read.stream.sink_to(DiscardingSink())
    set_sink_identity(sink, "into orders")
    set_sink_identity(read.stream, "into orders")
    assert (transformation_of(sink).identity, step_of(read).identity) == ("into orders", None)


def test_a_type_is_declared_and_a_source_without_an_end_is_known(env, numbers):
    assert numbers.set_type(Types.LONG()).declared_type == Types.LONG()
    assert numbers.endless_source() is None


def test_an_end_of_a_program_needs_no_sink(env, numbers):
    doubled = numbers.add_operator("Unread", DOUBLE)
    doubled.run_without_sink()
    assert "Unread" in env.get_execution_plan()
