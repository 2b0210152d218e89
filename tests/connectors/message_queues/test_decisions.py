"""The decisions of sources of brokers: what is acknowledged, and what was seen before."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rayflink.connectors.message_queues.deliveries import Deliveries, DeliveryRun, QueueSplit
from rayflink.connectors.message_queues.seen_ids import SeenIds
from rayflink.connectors.message_queues.unacknowledged import Acknowledgement, UnacknowledgedDeliveries


@given(st.lists(st.integers(0, 5)), st.lists(st.integers(0, 30)))
def test_each_delivery_is_acknowledged_once_and_in_order(sizes: list[int], numbers: list[int]) -> None:
    deliveries = UnacknowledgedDeliveries()
    tags = list(range(1, sum(sizes) + 1))
    start = 0
    for size in sizes:
        assert deliveries.add(1, tags[start : start + size]) == start
        start += size
    acknowledged: list[object] = []
    for number in numbers:
        found = deliveries.confirm(number)
        acknowledged += [] if found is None else found.tags
        assert acknowledged == tags[: max([n for n in numbers[: numbers.index(number) + 1]] + [len(acknowledged)])]
    assert len(deliveries) == len(tags) - len(acknowledged)


def test_a_new_connection_makes_tags_of_the_old_one_useless() -> None:
    deliveries = UnacknowledgedDeliveries()
    deliveries.add(1, ["a", "b"])
    assert deliveries.add(2, ["a", "c"]) == 2
    assert len(deliveries) == 2
    assert deliveries.confirm(2) is None, "the broker has taken them back"
    assert deliveries.confirm(3) == Acknowledgement(2, ["a"])


def test_positions_are_behind_what_was_left_out() -> None:
    run = DeliveryRun("q", "queue 'q'", Deliveries("abcde", range(5), timestamps=range(10, 15)), 1)
    run.number(100, [1, 3])
    assert run.messages == ["b", "d"] and run.timestamps(0, 2) == [11, 13]
    assert [run.split_after(count) for count in range(3)] == [QueueSplit("q", at) for at in (101, 103, 105)]
    assert run.place_of(1) == "queue 'q', delivery 3"
    run = DeliveryRun("q", "queue 'q'", Deliveries("ab", range(2)), 1)
    run.number(7, [])
    assert run.split_after(0) == QueueSplit("q", 9) and run.timestamps(0, 0) is None


def test_ids_of_a_checkpoint_are_those_that_were_given_out() -> None:
    seen = SeenIds()
    assert seen.take(["a", "b", "c"], 0) == [0, 1, 2]
    assert seen.given_out(2) == ("a", "b"), "c is not in the checkpoint: it has to come again"
    restored = SeenIds()
    restored.restore(seen.given_out(2), 0)
    assert restored.take(["c", "b", "a"], 0) == [0]


def test_an_id_is_forgotten_when_its_message_cannot_come_again() -> None:
    seen = SeenIds(retention_ms=100)
    seen.take(["a", "b"], 0)
    seen.forget(1_000, 0)
    assert len(seen) == 2, "neither is acknowledged"
    seen.acknowledge(1, 1_000)
    seen.forget(1_099, 0)
    seen.forget(5_000, None)
    seen.forget(5_000, 4_950)
    assert seen.given_out(1) == ("a",), "the acknowledgement may have been lost with the connection"
    assert seen.take(["a"], 2) == [], "it was lost"
    seen.forget(9_000, 4_950)
    assert seen.given_out(1) == ("a",), "the second delivery is not acknowledged"
    seen.acknowledge(3, 9_000)
    seen.forget(9_099, 4_950)
    assert seen.given_out(3) == ("b", "a")
    seen.forget(9_100, 4_950)
    assert len(seen) == 0 and seen.take(["a"], 3) == [0]


def test_ids_of_acknowledged_messages_are_bounded() -> None:
    seen = SeenIds(most_acknowledged=2)
    seen.take(["a", "b", "c", "d"], 0)
    seen.acknowledge(3, 0)
    seen.forget(0, None)
    assert seen.given_out(4) == ("b", "c", "d")


@given(st.lists(st.sampled_from("abcdef")), st.lists(st.integers(1, 4)))
def test_each_id_comes_once_whatever_the_runs(ids: list[str], sizes: list[int]) -> None:
    seen, before, kept = SeenIds(), 0, []
    for size in [*sizes, len(ids)]:
        run = ids[before : before + size]
        kept += [run[index] for index in seen.take(run, before)]
        before += len(run)
    assert kept == list(Counter(ids))
