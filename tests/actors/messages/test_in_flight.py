"""Who gets the records that a checkpoint caught on their way."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.actors.job.rescaled_graph import rescaled_graph
from rayflink.actors.job.restoring import RestoreError, Restoring
from rayflink.actors.messages.in_flight import CHANNELS, RecordsInFlight, received, to_send, without_records
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.graph.job_graph import JobGraph, JobVertex
from rayflink.state.snapshots import StoredSnapshot
from rayflink.state.storage.manifest import CheckpointManifest, OperatorManifest


def job(parallelism: int) -> JobGraph:
    env = StreamExecutionEnvironment({"parallelism.default": parallelism, "pipeline.max-parallelism": 8})
    numbers = env.from_sequence(0, 9).uid("numbers")
    numbers.key_by(lambda n: n).sum().uid("sums").sink_to(CollectSink()).uid("out")
    return env.get_job_graph()


def ends(graph: JobGraph) -> tuple[JobVertex, JobVertex, str]:
    first, second = graph.vertices
    return first, second, second.inputs[0].dataset_id


def written(width: int) -> dict[str, OperatorManifest]:
    """A checkpoint of `width` subtasks: two batches received and one to be sent on each channel."""
    producer, consumer, edge = ends(job(width))
    sent = [
        {to_send(edge, c): (CHANNELS, (f"{p}>{c} 2".encode(),)) for c in range(width)} | {"own": ("split", (b"x",))}
        for p in range(width)
    ]
    came = [
        {received(edge, p): (CHANNELS, (f"{p}>{c} 0".encode(), f"{p}>{c} 1".encode())) for p in range(width)}
        for c in range(width)
    ]
    return {
        vertex.head.operator_id: OperatorManifest(
            operator_id=vertex.head.operator_id, uid="", name=vertex.name, parallelism=width, max_parallelism=8,
            subtasks=tuple(StoredSnapshot(lists=part) for part in lists), finished=frozenset(),
        )
        for vertex, lists in ((producer, sent), (consumer, came))
    }  # fmt: skip


def test_where_both_ends_are_as_wide_as_before_each_batch_is_where_it_was() -> None:
    producer, consumer, edge = ends(job(2))
    records = RecordsInFlight(written(2), job(2))
    assert records.of(producer, 1).to_send == {(edge, 0): (b"1>0 2",), (edge, 1): (b"1>1 2",)}
    assert records.of(consumer, 0).received == {(edge, 0): (b"0>0 0", b"0>0 1"), (edge, 1): (b"1>0 0", b"1>0 1")}
    assert not records.of(producer, 0).to_redistribute and not records.unclaimed


@given(st.integers(1, 4), st.integers(1, 4))
def test_else_the_producers_deal_all_of_it_and_the_order_of_each_channel_stays(before: int, after: int) -> None:
    if before == after:
        return
    graph = job(after)
    producer, consumer, edge = ends(graph)
    records = RecordsInFlight(written(before), graph)
    redistributed = [records.of(producer, subtask).to_redistribute.get(edge, ()) for subtask in range(after)]
    names = [bytes(blob).decode() for part in redistributed for blob in part]  # type: ignore[arg-type]
    assert sorted(names) == sorted(f"{p}>{c} {n}" for p in range(before) for c in range(before) for n in range(3))
    for channel in {name[:3] for name in names}:
        assert [name[4] for name in names if name[:3] == channel] == ["0", "1", "2"]
    for subtask in range(after):
        assert not records.of(producer, subtask).to_send and not records.of(consumer, subtask).received


def test_operators_do_not_see_them() -> None:
    snapshot = StoredSnapshot(lists={"own": ("split", (b"x",)), received("d", 0): (CHANNELS, (b"y",))})
    alone = without_records(snapshot)
    assert alone is not None and dict(alone.lists) == {"own": ("split", (b"x",))}
    assert without_records(None) is None


def test_records_on_an_edge_that_the_job_does_not_have_are_refused() -> None:
    operators = tuple(written(2).values())
    manifest = CheckpointManifest(
        kind="checkpoint", checkpoint_id=3, epoch=0, job_id="0" * 32, job_name="before", timestamp_ms=0,
        completed_ms=1, own_base=True, operators=operators,
    )  # fmt: skip
    env = StreamExecutionEnvironment({"parallelism.default": 2, "pipeline.max-parallelism": 8})
    numbers: Any = env.from_sequence(0, 9).uid("numbers").rebalance().map(lambda n: n).uid("new")
    numbers.key_by(lambda n: n).sum().uid("sums").sink_to(CollectSink()).uid("out")
    with pytest.raises(RestoreError, match=r"checkpoint 3 of job 'before' holds records .* on 1 edges.*savepoint"):
        Restoring(manifest, "", env.get_job_graph())


@pytest.mark.parametrize("on_their_way", [True, False])
def test_a_finished_task_runs_again_where_it_may_receive_records_in_flight(
    on_their_way: bool,
) -> None:
    graph = job(2)
    producer, consumer, edge = ends(graph)
    lists = {received(edge, 0): (CHANNELS, (b"batch",))} if on_their_way else {}
    operators = tuple(
        OperatorManifest(
            operator_id=node.operator_id, uid="", name=node.name, parallelism=2, max_parallelism=8,
            subtasks=(StoredSnapshot(lists=lists if node == consumer.head else {}), StoredSnapshot()),
            finished=frozenset({1}),
        )
        for vertex in (producer, consumer) for node in vertex.operators
    )  # fmt: skip
    manifest = CheckpointManifest(
        kind="checkpoint", checkpoint_id=3, epoch=0, job_id="0" * 32, job_name="before", timestamp_ms=0,
        completed_ms=1, own_base=True, operators=operators,
    )  # fmt: skip

    def finished(graph: JobGraph) -> list[list[bool]]:
        restoring = Restoring(manifest, "", graph)
        return [[restoring.is_finished(one, subtask) for subtask in range(one.parallelism)] for one in graph.vertices]

    assert finished(graph) == [[False, True], [False, True]], "each batch goes back to where it was"
    assert finished(rescaled_graph(graph, {"numbers": 3})) == [[False] * 3, [False, not on_their_way]]
