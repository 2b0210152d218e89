"""What one consumer of a stream does to its records, no other consumer sees."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.output_tag import OutputTag
from rayflink.common.records.aliasing import FanOutError, own_copies
from rayflink.common.records.batches import Element, RowBatch
from rayflink.common.types import Row
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.operators.base import Operator, UserCodeError
from rayflink.operators.chain import ChainEdge, ChainLink, ChainOutput, OperatorChain
from rayflink.operators.process import ProcessOperator
from rayflink.operators.stateless import MapOperator
from tests.operators.running import opened


class Waiting:
    """A writer in which records wait, unencoded, until the end."""

    def __init__(self) -> None:
        self.batches: list[Any] = []

    def write(self, element: Element) -> None:
        self.batches.append(element)

    def values(self) -> list[Any]:
        return [value for batch in self.batches for value in batch.values]


def grown(value: Any) -> Any:
    value["n"].append(7)
    return value


def identity(value: Any) -> Any:
    return value


def passed(links: list[ChainLink], values: list[Any]) -> None:
    chain = OperatorChain(links, lambda: False)
    for link in links:
        opened(link.operator)
    chain.feed(RowBatch(values))
    assert chain.run(lambda: True)


def test_records_that_wait_in_a_writer_are_not_those_a_chained_operator_changes() -> None:
    waiting, changed = Waiting(), Waiting()
    links = [
        ChainLink(MapOperator(identity), (ChainEdge(1),), (ChainOutput(waiting),)),
        ChainLink(MapOperator(grown), (), (ChainOutput(changed),)),
    ]
    passed(links, [{"n": [1]}, {"n": [2]}])
    assert waiting.values() == [{"n": [1]}, {"n": [2]}]
    assert changed.values() == [{"n": [1, 7]}, {"n": [2, 7]}]


@pytest.mark.parametrize("changer", [1, 2, 3])
def test_of_chained_siblings_each_changes_its_own_records(changer: int) -> None:
    outs = [Waiting(), Waiting(), Waiting()]
    siblings = [
        ChainLink(MapOperator(grown if index == changer else identity), (), (ChainOutput(outs[index - 1]),))
        for index in (1, 2, 3)
    ]
    passed([ChainLink(MapOperator(identity), tuple(map(ChainEdge, (1, 2, 3)))), *siblings], [{"n": [1]}])
    assert [out.values() for out in outs] == [
        [{"n": [1, 7]}] if index == changer else [{"n": [1]}] for index in (1, 2, 3)
    ]


def test_two_readers_of_a_side_output_have_records_of_their_own() -> None:
    tag = OutputTag("side")
    waiting, changed = Waiting(), Waiting()
    to_side: Operator = ProcessOperator(lambda value, ctx: [(tag, value)])
    links = [
        ChainLink(to_side, (ChainEdge(1, "side"),), (ChainOutput(waiting, "side"),)),
        ChainLink(MapOperator(grown), (), (ChainOutput(changed),)),
    ]
    passed(links, [{"n": [1]}])
    assert (waiting.values(), changed.values()) == ([{"n": [1]}], [{"n": [1, 7]}])


def test_records_are_copied_only_for_all_consumers_but_one_and_never_on_a_single_way() -> None:
    first, second, only = Waiting(), Waiting(), Waiting()
    record = {"n": [1]}
    ends = [ChainLink(MapOperator(identity), (), (ChainOutput(out),)) for out in (first, second)]
    passed([ChainLink(MapOperator(identity), (ChainEdge(1), ChainEdge(2))), *ends], [record])
    assert first.values()[0] is not record and second.values()[0] is record
    end = ChainLink(MapOperator(identity), (), (ChainOutput(only),))
    passed([ChainLink(MapOperator(identity), (ChainEdge(1),)), end], [record])
    assert only.values()[0] is record


def test_a_record_that_cannot_be_copied_is_an_error_with_operator_and_remedy() -> None:
    links = [
        ChainLink(MapOperator(identity), (ChainEdge(1), ChainEdge(2))),
        *[ChainLink(MapOperator(identity), (), (ChainOutput(Waiting()),)) for _ in range(2)],
    ]
    with pytest.raises(UserCodeError, match="operator 'op'.*type lock goes to several.*__deepcopy__") as failure:
        passed(links, [threading.Lock()])
    assert isinstance(failure.value.__cause__, FanOutError)


@pytest.mark.parametrize("max_rows", [1, 2, 8192])
@pytest.mark.parametrize("chained", [True, False])
def test_a_job_gives_the_same_whatever_is_chained_and_however_large_batches_are(chained: bool, max_rows: int) -> None:
    env = StreamExecutionEnvironment({"execution.target": "local", "rayflink.batch.max-rows": max_rows})
    env.set_parallelism(1)
    if not chained:
        env.disable_operator_chaining()
    stream = env.from_collection([{"n": [i]} for i in range(6)]).map(identity)
    ends = stream.map(grown).map(lambda d: ("changed", *d["n"]))
    plain, sent = stream.map(lambda d: ("plain", *d["n"])), stream.rebalance().map(lambda d: ("sent", *d["n"]))
    found = list(ends.union(plain, sent).execute_and_collect())
    assert sorted(found) == sorted(
        [("changed", i, 7) for i in range(6)] + [("plain", i) for i in range(6)] + [("sent", i) for i in range(6)]
    )


class Point(NamedTuple):
    x: Any


class Tagging(tuple[Any, ...]):
    """A tuple that can carry attributes."""


@dataclass(frozen=True)
class Frozen:
    x: Any


@pytest.mark.parametrize(
    "record",
    [1, "a", None, (1, "a"), (1, ("a", (2.5, None))), frozenset({(1, 2)}), (Fraction(1, 2),), Point(1),
     Frozen((1, "a")), (Point(1), Frozen("a"))],
    ids=repr,
)  # fmt: skip
def test_what_cannot_change_is_handed_on_as_it_is(record: Any) -> None:
    assert own_copies([record, 1])[0] is record


def test_a_batch_of_what_cannot_change_stays_the_same_list() -> None:
    values = [1, "a", (1, "b"), ((2, 3), frozenset({4})), ()]
    assert own_copies(values) is values


@pytest.mark.parametrize(
    "make",
    [lambda: [1], lambda: {"a": 1}, lambda: {1}, lambda: bytearray(b"a"), lambda: deque([1]), lambda: Row(1, 2),
     lambda: (1, [2]), lambda: ((1, ([2],)),), lambda: Point([1]), lambda: Frozen([1]), lambda: (Point([1]), 2),
     lambda: [[1], [2]], lambda: {"a": {"b": [1]}}, lambda: Tagging((1,))],
)  # fmt: skip
def test_what_can_change_is_copied_in_all_its_parts(make: Callable[[], Any]) -> None:
    record = make()
    copied = own_copies([1, record])[1]
    assert copied == record and copied is not record and type(copied) is type(record)
    for mine, theirs in zip(mutable_parts(record), mutable_parts(copied), strict=True):
        assert mine is not theirs


def mutable_parts(value: Any) -> list[Any]:
    own = [value] if isinstance(value, (list, dict, set, bytearray, deque)) else []
    parts: Any = value.values() if isinstance(value, dict) else getattr(value, "__dict__", {}).values()
    if isinstance(value, (list, tuple, deque)):
        parts = value
    return own + [found for part in parts for found in mutable_parts(part)]


plain = st.recursive(st.integers() | st.text(max_size=2), lambda parts: st.lists(parts) | st.tuples(parts, parts))


@pytest.mark.slow
@given(st.lists(plain, max_size=6))
def test_copies_are_equal_and_share_no_list(values: list[Any]) -> None:
    copies = own_copies(values)
    assert copies == values
    theirs = {id(part) for value in values for part in mutable_parts(value)}
    assert not theirs & {id(part) for value in copies for part in mutable_parts(value)}
