"""Records that go to the outputs whose names they have."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.functions.callables import SplitBy
from rayflink.common.records.batches import ArrowBatch, RowBatch, Tagged
from rayflink.operators.base import UserCodeError
from rayflink.operators.chain import ChainEdge, ChainLink, ChainOutput, OperatorChain
from rayflink.operators.selection import Selection, SplitBatch
from rayflink.operators.stateless import MapOperator
from tests.operators.laws import context


class Written:
    """A result partition that keeps what is written."""

    def __init__(self) -> None:
        self.elements: list[Any] = []

    def write(self, element: Any) -> None:
        self.elements.append(element)


def parity(number: int) -> list[str]:
    return ["even" if number % 2 == 0 else "odd"]


def divided(selector: Any, *values: Any) -> SplitBatch:
    return SplitBatch(RowBatch(list(values)), (SplitBy(selector, "job.py:3"),))


def chain(links: list[ChainLink]) -> OperatorChain:
    for link in links:
        link.operator.setup(context())
        link.operator.initialize_state(())
        link.operator.open()
    return OperatorChain(links, lambda: False)


@pytest.mark.spec("D12", "selectors")
@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 9)), st.sets(st.sampled_from("abc"), min_size=1))
def test_an_output_gets_in_order_the_records_that_have_one_of_its_names(values: list[int], names: set[str]) -> None:
    def named(number: int) -> list[str]:
        return [name for place, name in enumerate("abc") if number >> place & 1]

    batch = RowBatch(values, list(range(len(values))))
    wanted = [(n, stamp) for stamp, n in enumerate(values) if names & set(named(n))]
    part: Any = SplitBatch(batch, (SplitBy(named),)).part(Selection(0, frozenset(names)))
    assert list(zip(part.values, part.timestamps, strict=True)) == wanted


@pytest.mark.spec("D12", "selectors", "all")
def test_a_selector_is_asked_once_a_record_and_unselected_outputs_get_all() -> None:
    asked = []

    def selector(number: int) -> Any:
        asked.append(number)
        return {1: None, 2: "even", 3: ()}[number]

    batch = divided(selector, 1, 2, 3)
    assert batch.part(None) == RowBatch([1, 2, 3])
    assert batch.part(Selection(0, frozenset({"even"}))) == RowBatch([2])
    assert batch.part(Selection(0, frozenset({"e"}))) == RowBatch([])
    assert asked == [1, 2, 3]


def test_columns_stay_columns() -> None:
    whole = ArrowBatch(pa.record_batch({"n": [1, 2, 4]}))
    part = SplitBatch(whole, (SplitBy(lambda row: parity(row["n"])),)).part(Selection(0, frozenset({"even"})))
    assert part == ArrowBatch(pa.record_batch({"n": [2, 4]}))


def test_what_is_no_name_is_blamed_on_the_line_and_the_record() -> None:
    wanted = r"'split' \(created at job.py:3\) failed in select on record 7.*gave 0 as the name.*list of names"
    with pytest.raises(UserCodeError, match=wanted) as failure:
        divided(lambda number: [number % 7], 7).part(Selection(0, frozenset({"x"})))
        pytest.fail("it was taken")
    assert isinstance(failure.value.__cause__, TypeError)


@pytest.mark.spec("C16", "by-name", "D12", "selectors", "C17", "main")
def test_chained_and_written_outputs_of_two_splits_get_their_own_records() -> None:
    even, big, all_of_them, late = (Written() for _ in range(4))
    links = [
        ChainLink(
            MapOperator(lambda n: n),
            (ChainEdge(1, selection=Selection(0, frozenset({"even"}))),),
            (
                ChainOutput(big, selection=Selection(1, frozenset({"big"}))),
                ChainOutput(all_of_them),
                ChainOutput(late, "late", Selection(0, frozenset({"odd"}))),
            ),
            (SplitBy(parity), SplitBy(lambda n: ["big"] if n > 2 else [])),
        ),
        ChainLink(MapOperator(lambda n: -n), (), (ChainOutput(even),)),
    ]
    run = chain(links)
    for element in (RowBatch([1, 2, 3, 4]), RowBatch([1])):
        run.feed(element)
        assert run.run(lambda: True)
    run.emit(0, [Tagged("late", RowBatch([6, 7]))])
    assert run.run(lambda: True)
    assert [written.elements for written in (even, big, all_of_them, late)] == [
        [RowBatch([-2, -4])], [RowBatch([3, 4])], [RowBatch([1, 2, 3, 4]), RowBatch([1])], [RowBatch([7])],
    ]  # fmt: skip
