"""Which vertices a wish for other parallelisms concerns, and which wishes cannot be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rayflink.actors.checkpoints.completed import CompletedCheckpoint
from rayflink.actors.checkpoints.files import CheckpointFiles
from rayflink.actors.job.job_checkpoints import JobStart
from rayflink.actors.job.recovery import Beginning
from rayflink.actors.job.rescaled_graph import rescaled_graph
from rayflink.common.errors import PlanError
from rayflink.connectors.collected import DrawnSink
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.graph.job_graph import JobGraph
from rayflink.state.storage.manifest import CheckpointManifest, OperatorManifest
from rayflink.state.storage.memory_storage import MemoryStorage


@pytest.fixture
def graph() -> JobGraph:
    env = StreamExecutionEnvironment.get_execution_environment({"parallelism.default": "2"})
    env.set_max_parallelism(8)
    numbers = env.from_collection([1, 2, 3]).rebalance().map(lambda n: n).name("Double").uid("double")
    later = numbers.key_by(lambda n: n).sum().uid("sum").disable_chaining()
    later.filter(lambda n: True).name("Keep").disable_chaining().sink_to(CollectSink()).name("Out")
    return env.get_job_graph("three")


def parallelism(graph: JobGraph) -> dict[str, int]:
    return {vertex.name: vertex.parallelism for vertex in graph.vertices}


def test_an_operator_is_meant_by_its_uid_its_name_or_the_beginning_of_its_id(graph):
    before = parallelism(graph)
    wanted = {**before, "Double": 5}
    node = next(node for vertex in graph.vertices for node in vertex.operators if node.uid == "double")
    for name in ("double", "Double", node.operator_id[:6]):
        assert parallelism(rescaled_graph(graph, {name: 5})) == wanted
    assert parallelism(graph) == before


def test_what_is_joined_by_forward_edges_has_one_parallelism(graph):
    changed = parallelism(rescaled_graph(graph, {"Keep": 4}))
    assert {name: n for name, n in changed.items() if n == 4}.keys() >= {"Keep", "Keyed Aggregation"}
    assert changed["Double"] == 2
    with pytest.raises(PlanError, match="should have 3 and 4 subtasks: the operators named are joined"):
        rescaled_graph(graph, {"sum": 3, "Keep": 4})


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"Duoble": 2}, "no operator 'Duoble'; did you mean 'Double'"),
        ({"sum": 9}, "cannot have 9 subtasks; choose from 1 to 8, its max parallelism"),
        ({"sum": 0}, "cannot have 0 subtasks; choose from 1 to 8"),
        ({"sum": "3"}, "found 'sum': '3', wanted the name of an operator and its number of subtasks"),
        ({"sum": 1.5}, "found 'sum': 1.5, wanted"),
        ({"sum": True}, "found 'sum': True, wanted"),
        ({3: 3}, "found 3: 3, wanted .* write it as in {'counts': 2}"),
        ({"Source: Collection Source": 2}, "cannot have 2 subtasks; choose from 1 to 1"),
    ],
)
def test_what_cannot_be_says_why(graph, wanted, said):
    with pytest.raises(PlanError, match=said):
        rescaled_graph(graph, wanted)


def test_rows_that_a_program_draws_come_from_one_subtask():
    env = StreamExecutionEnvironment.get_execution_environment({"parallelism.default": "1"})
    numbers = env.from_sequence(1, 9).map(lambda n: n).name("Map")
    numbers.add_sink(DrawnSink()).name("Collect")
    graph = env.get_job_graph("drawn")
    assert len(graph.vertices) == 1, "the program's sink is chained with what may be rescaled"
    with pytest.raises(PlanError, match="cannot have 2 subtasks; choose from 1 to 1, what 'Sink: Collect' can have"):
        rescaled_graph(graph, {"Map": 2})


def test_a_new_coordinator_uses_the_parallelisms_of_the_newest_checkpoint(graph):
    ran = parallelism(rescaled_graph(graph, {"double": 5, "Keep": 3}))
    operators = tuple(
        OperatorManifest(node.operator_id, "", node.name, ran[vertex.name], 8, (None,) * ran[vertex.name])
        for vertex in graph.vertices
        for node in vertex.operators
    )
    newest = CheckpointManifest("checkpoint", 7, 1, graph.id, graph.name, 0, 1, False, operators)
    older = replace(newest, checkpoint_id=6, operators=())
    start = JobStart(2, tuple(CompletedCheckpoint("/c", manifest) for manifest in (older, newest)))
    files = CheckpointFiles(lambda url: MemoryStorage(url), "/c")
    assert parallelism(Beginning(start, files, recovered=True).laid_out(graph)) == ran
    assert Beginning(start, files).laid_out(graph) is graph, "another job's savepoint does not say how wide this one is"
