"""From transformations to the stream graph."""

from __future__ import annotations

import pickle

import pytest

from rayflink.common.functions.callables import SplitBy
from rayflink.graph.attributes import DEFAULT_SLOT_SHARING_GROUP, ChainingStrategy, NodeKind, ResourceSpec
from rayflink.graph.errors import (
    EmptyProgramError,
    ForwardParallelismError,
    MissingTypeError,
    PlanError,
    UnknownTransformationError,
)
from rayflink.graph.partitioners import (
    Broadcast,
    Custom,
    DistributionPattern,
    Forward,
    Global,
    KeyGroup,
    Partitioner,
    Rebalance,
    Rescale,
    Shuffle,
)
from rayflink.graph.transformations import (
    CoFeedback,
    Feedback,
    MissingType,
    MultipleInput,
    OneInput,
    Partition,
    Select,
    SideOutput,
    Source,
    Split,
    Transformation,
    TwoInput,
    Union,
)
from rayflink.graph.translation import PlanSettings, stream_graph

from .programs import first, key_by, operator, sink, source, step


@pytest.mark.spec("C29", "X63")
def test_a_program_without_operators_is_refused_in_flinks_words() -> None:
    with pytest.raises(EmptyProgramError) as refused:
        stream_graph([])
    flinks = "No operators defined in streaming topology. Cannot execute."
    assert str(refused.value).startswith(f"{flinks} Give a stream a sink, such as print(), before execute()")
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


@pytest.mark.spec("I05", "unknown")
def test_a_transformation_of_unknown_kind_is_refused() -> None:
    with pytest.raises(UnknownTransformationError, match=r"^Unknown transformation: Transformation\(name='odd'"):
        stream_graph([Transformation(name="odd")])


@pytest.mark.spec("I03", "I12", "I05", "one-input", "source-and-sink")
def test_operators_become_nodes_and_their_inputs_edges_at_both_ends() -> None:
    graph = stream_graph([sink(step(source()))])
    assert [(node.id, node.name, node.kind) for node in graph.nodes] == [
        (1, "Source: Socket Stream", NodeKind.SOURCE),
        (2, "Map", NodeKind.ONE_INPUT),
        (3, "Sink: Print to Std. Out", NodeKind.SINK),
    ]
    assert [str(edge) for edge in graph.edges] == ["1->2", "2->3"]
    assert graph.out_edges(1) == graph.in_edges(2) == (graph.edges[0],)
    assert (graph.sources, graph.sinks) == (graph.nodes[:1], graph.nodes[2:])


@pytest.mark.spec("I07")
def test_an_input_that_two_steps_share_is_translated_once() -> None:
    shared = step(source())
    left, right = step(shared, "Left"), step(shared, "Right")
    graph = stream_graph([left, right, left])
    assert [node.name for node in graph.nodes] == ["Source: Socket Stream", "Map", "Left", "Right"]
    assert [str(edge) for edge in graph.edges] == ["1->2", "2->3", "2->4"]


@pytest.mark.spec("D02", "X42")
@pytest.mark.parametrize(("upstream", "downstream", "chosen"), [(2, 2, Forward()), (2, 3, Rebalance())])
def test_an_edge_without_partitioner_is_forward_or_rebalance_by_parallelism(
    upstream: int, downstream: int, chosen: Partitioner
) -> None:
    graph = stream_graph([step(source(parallelism=upstream), parallelism=downstream)])
    assert graph.edges[0].partitioner == chosen


@pytest.mark.spec("D03")
def test_forward_between_different_parallelisms_is_refused_in_flinks_words() -> None:
    with pytest.raises(ForwardParallelismError) as refused:
        stream_graph([step(Partition(source(parallelism=2), Forward()), "Count", parallelism=3)])
    assert str(refused.value) == (
        "Forward partitioning does not allow change of parallelism. Upstream operation: Source: Socket Stream "
        "parallelism: 2, downstream operation: Count parallelism: 3 You must use another partitioning strategy, "
        "such as broadcast, rebalance, shuffle or global."
    )


@pytest.mark.spec("D11", "I10", "I05", "partition")
def test_a_partition_is_no_node_but_a_property_of_the_edge() -> None:
    graph = stream_graph([step(key_by(source()))])
    assert len(graph.nodes) == 2
    assert graph.edges[0].partitioner == KeyGroup(first)


@pytest.mark.spec("I11")
def test_the_partitioner_nearest_to_the_consumer_wins() -> None:
    graph = stream_graph([step(Partition(Partition(source(), Broadcast()), Shuffle()))])
    assert graph.edges[0].partitioner == Shuffle()
    graph = stream_graph([step(SideOutput(SideOutput(source(), "far"), "near"))])
    assert graph.edges[0].tag_id == "near"


@pytest.mark.spec("I11", "I05", "side-output", "C17", "edge", "I03", "I10")
def test_partition_and_side_output_are_folded_into_one_edge() -> None:
    graph = stream_graph([step(Partition(SideOutput(source(), "late"), Rescale()))])
    assert len(graph.nodes) == 2
    assert (graph.edges[0].tag_id, graph.edges[0].partitioner) == ("late", Rescale())


@pytest.mark.spec("I10", "I05", "union")
def test_a_union_gives_its_consumer_one_edge_a_stream_with_its_own_partitioner() -> None:
    left, right = source("Left"), source("Right")
    graph = stream_graph([step(Union((Partition(left, Global()), right)))])
    assert [(str(edge), edge.partitioner, edge.ordinal) for edge in graph.edges] == [
        ("1->3", Global(), 0),
        ("2->3", Forward(), 1),
    ]


@pytest.mark.spec("I10", "I11")
def test_a_partition_behind_a_union_applies_to_every_stream_of_it() -> None:
    graph = stream_graph([step(Partition(Union((source("Left"), source("Right"))), Broadcast()))])
    assert [edge.partitioner for edge in graph.edges] == [Broadcast(), Broadcast()]


@pytest.mark.spec("C16", "logical", "overrides", "I10", "I03", "I11")
def test_select_is_no_node_and_a_later_selection_replaces_an_earlier_one() -> None:
    split = Split(source(), SplitBy(first))
    graph = stream_graph([step(Select(Select(split, ("even",)), ("odd", "big")))])
    assert len(graph.nodes) == 2
    assert graph.edges[0].selected_names == ("odd", "big")
    assert graph.node(1).output_selectors == (SplitBy(first),)


@pytest.mark.spec("C16", "logical")
def test_two_splits_of_a_stream_are_distinct_and_a_selection_is_not_split_again() -> None:
    numbers = source()
    ones = [Split(numbers, SplitBy(selector)) for selector in (first, key_by)]
    graph = stream_graph([step(Select(Union(tuple(ones)), ("even",))), step(Select(ones[1], ("odd",))), step(numbers)])
    assert [(edge.selector, edge.selected_names) for edge in graph.edges] == [
        (0, ("even",)), (1, ("even",)), (1, ("odd",)), (0, ()),
    ]  # fmt: skip
    again = Select(Split(Select(ones[0], ("even",)), SplitBy(first)), ("big",))
    with pytest.raises(PlanError, match="split again.*side outputs.*test_translation.py"):
        stream_graph([step(again)])


@pytest.mark.spec("B16", "graph")
def test_a_type_that_cannot_be_determined_is_refused_when_the_graph_is_made() -> None:
    untyped = step(source(), output_type=MissingType("a list of what?"))
    with pytest.raises(MissingTypeError, match="output type of 'Map' cannot be determined: a list of what.*job.py:2"):
        stream_graph([sink(untyped)])
    assert stream_graph([sink(step(source()))]).node(2).output_type is None


def test_streams_of_different_known_types_do_not_unite() -> None:
    union = Union((source(output_type="INT"), source(), source(output_type="STRING")))
    with pytest.raises(PlanError, match="Cannot union streams of different types: INT and STRING"):
        stream_graph([step(union)])


@pytest.mark.spec("C33", "I08", "J12")
def test_every_attribute_reaches_the_node() -> None:
    small, large = ResourceSpec(0.5, 100), ResourceSpec(0.5, 200, (("GPU", 1.0),))
    counted = OneInput(
        key_by(source()),
        operator,
        first,
        name="Count",
        description="counts words",
        uid="count",
        uid_hash="ab" * 16,
        parallelism=3,
        max_parallelism=64,
        slot_sharing_group="heavy",
        co_location_group_key="together",
        buffer_timeout_ms=7,
        min_resources=small,
        preferred_resources=large,
        chaining_strategy=ChainingStrategy.NEVER,
    )
    node = stream_graph([counted]).node(2)
    found = (node.name, node.description, node.uid, node.uid_hash, node.parallelism, node.max_parallelism)
    assert found == ("Count", "counts words", "count", "ab" * 16, 3, 64)
    assert (node.slot_sharing_group, node.co_location_group_key) == ("heavy", "together")
    assert (node.min_resources, node.preferred_resources, node.buffer_timeout_ms) == (small, large, 7)
    assert node.chaining_strategy is ChainingStrategy.NEVER
    assert (node.operator_factory, node.key_selectors) == (operator, (first,))
    assert "test_translation.py" in node.call_site and node.call_site.endswith(
        "in test_every_attribute_reaches_the_node"
    )


@pytest.mark.spec("C33")
@pytest.mark.parametrize(
    "wrong",
    [
        {"parallelism": 0},
        {"max_parallelism": 32769},
        {"buffer_timeout_ms": -2},
        {"uid_hash": "xyz"},
        {"min_resources": ResourceSpec(2.0), "preferred_resources": ResourceSpec(1.0)},
    ],
)
def test_an_attribute_out_of_range_is_refused_with_the_line_that_set_it(wrong: dict[str, object]) -> None:
    with pytest.raises(PlanError, match=r"'Map' has .*job\.py:2"):
        stream_graph([step(source(), **wrong)])


@pytest.mark.spec("I09", "J11")
def test_a_slot_sharing_group_is_inherited_when_all_inputs_agree_on_it() -> None:
    heavy, light = source(slot_sharing_group="heavy"), source(slot_sharing_group="light")
    inherited = step(key_by(step(heavy)))
    mixed = step(Union((inherited, light)))
    own = step(mixed, slot_sharing_group="own")
    groups = [node.slot_sharing_group for node in stream_graph([own]).nodes]
    assert groups == ["heavy", "light", "heavy", "heavy", DEFAULT_SLOT_SHARING_GROUP, "own"]


@pytest.mark.spec("I05", "two-input", "I03")
def test_the_inputs_of_a_two_input_operator_are_told_apart() -> None:
    rules = source("Rules")
    joined = TwoInput(key_by(source()), Partition(rules, Broadcast()), operator, first, None, name="Join")
    graph = stream_graph([joined])
    assert [(edge.source, edge.input_index, str(edge.partitioner)) for edge in graph.in_edges(3)] == [
        (2, 0, "HASH"),
        (1, 1, "BROADCAST"),
    ]
    assert graph.node(3).key_selectors == (first, None)


def test_an_operator_takes_any_number_of_inputs_by_their_numbers():
    inputs = [key_by(source()) for _ in range(3)]
    graph = stream_graph([MultipleInput((*inputs,), operator, (first, None, first), name="Join")])
    assert [(edge.source, edge.input_index) for edge in graph.edges] == [(1, 0), (2, 1), (3, 2)]
    node = graph.node(4)
    assert (node.kind.value, node.key_selectors, node.is_keyed) == ("MULTIPLE_INPUT", (first, None, first), True)


@pytest.mark.spec("I05", "feedback", "I13", "loops", "C18", "no-recursion", "head-and-tail")
def test_an_iteration_becomes_a_head_and_a_tail_without_a_cycle() -> None:
    loop = Feedback(source(parallelism=2), wait_ms=500)
    body = step(loop, "Body", parallelism=2)
    loop.add_feedback_edge(Partition(body, Rebalance()))
    graph = stream_graph([sink(body, parallelism=2)])
    kinds = {node.kind: node for node in graph.nodes}
    head, tail = kinds[NodeKind.ITERATION_HEAD], kinds[NodeKind.ITERATION_TAIL]
    assert (head.iteration, head.parallelism, head.iteration_wait_ms) == (tail.iteration, tail.parallelism, 500)
    assert head.co_location_group_key == tail.co_location_group_key is not None
    assert not graph.in_edges(head.id) and not graph.out_edges(tail.id)
    assert [graph.node(edge.source).name for edge in graph.in_edges(kinds[NodeKind.ONE_INPUT].id)] == [
        "Source: Socket Stream",
        "IterationSource-Feedback",
    ]
    assert graph.in_edges(tail.id)[0].partitioner == Rebalance()


@pytest.mark.spec("I05", "co-feedback")
def test_a_co_iteration_gives_only_what_is_fed_back() -> None:
    loop = CoFeedback(parallelism=1)
    body = TwoInput(source(), loop, operator, name="Body")
    loop.add_feedback_edge(body)
    graph = stream_graph([body])
    shown = sorted(
        (graph.node(e.source).kind.value, e.input_index, graph.node(e.target).kind.value) for e in graph.edges
    )
    assert shown == [
        ("ITERATION_HEAD", 1, "TWO_INPUT"),
        ("SOURCE", 0, "TWO_INPUT"),
        ("TWO_INPUT", 0, "ITERATION_TAIL"),
    ]


def test_an_iteration_without_feedback_or_of_another_parallelism_is_refused() -> None:
    with pytest.raises(PlanError, match="Iteration 'Feedback' does not have any feedback edges"):
        stream_graph([step(Feedback(source()))])
    loop = Feedback(source())
    loop.add_feedback_edge(step(loop, parallelism=4))
    with pytest.raises(PlanError, match=r"parallelism 4, the iteration 1.*set_parallelism\(1\).*for 4 subtasks"):
        stream_graph([loop])


def test_a_cycle_outside_an_iteration_is_refused() -> None:
    one = step(source())
    one.input = step(one)
    with pytest.raises(PlanError, match="is an input of itself"):
        stream_graph([one])


def test_a_pipeline_longer_than_the_interpreters_stack_translates() -> None:
    end: Transformation = source()
    for _ in range(1100):
        end = step(end)
    assert len(stream_graph([end]).nodes) == 1101
    assert repr(end).startswith("OneInput(name='Map'")


def test_defaults_come_from_the_environment() -> None:
    graph = stream_graph([step(source())], PlanSettings("job", parallelism=5, buffer_timeout_ms=3))
    assert [(node.parallelism, node.buffer_timeout_ms) for node in graph.nodes] == [(5, 3), (5, 3)]


@pytest.mark.spec("I03")
def test_two_translations_of_one_program_are_equal_and_print_alike() -> None:
    def program() -> list[Transformation]:
        return [sink(step(key_by(source()), parallelism=2))]

    one, other = stream_graph(program()), stream_graph(program())
    assert one == other and str(one) == str(other)
    assert str(one).splitlines()[2:4] == ["  2 Map x2", "    <- 1 HASH"]
    assert one != stream_graph([sink(step(source(), parallelism=2))])


@pytest.mark.spec("D01", "D06", "all-to-all")
def test_partitioners_have_flinks_names_and_patterns() -> None:
    printed = {
        "FORWARD": Forward(),
        "RESCALE": Rescale(),
        "REBALANCE": Rebalance(),
        "BROADCAST": Broadcast(),
        "SHUFFLE": Shuffle(),
        "GLOBAL": Global(),
        "HASH": KeyGroup(first, 128),
        "CUSTOM": Custom(lambda key, n: 0, first),
    }
    assert {str(partitioner) for partitioner in printed.values()} == set(printed)
    assert all(str(partitioner) == name for name, partitioner in printed.items())
    pointwise = {name for name, p in printed.items() if p.pattern is DistributionPattern.POINTWISE}
    assert pointwise == {"FORWARD", "RESCALE"}
    aligned_only = {name for name, p in printed.items() if not p.supports_unaligned}
    assert aligned_only == {"FORWARD", "RESCALE", "BROADCAST"}


def test_the_call_site_is_the_programs_line_not_ours() -> None:
    made = Source(operator, name="here")
    file, _, line = made.call_site.rpartition(":")
    assert file.endswith("test_translation.py")
    assert line.endswith("in test_the_call_site_is_the_programs_line_not_ours")
