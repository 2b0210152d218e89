"""Rows beside the elements of their collections, under every hardship and beside a model that goes row by row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.records.batches import ArrowBatch
from rayflink.common.records.row_kinds import ROW_KIND, with_kinds
from rayflink.common.types import Row
from rayflink.operators.base import OperatorContext
from rayflink.table.conversion.arrow_columns import arrow_schema
from rayflink.table.plan.logical import Attribute
from rayflink.table.plan.typed import Column, Session
from rayflink.table.runtime import unnest
from rayflink.table.runtime.unnest import UnnestOperator
from rayflink.table.types import DataType, DataTypes, Root
from rayflink.testing import rec, verify, wm
from rayflink.testing.elements import columns

NUMBERS = DataTypes.ARRAY(DataTypes.INT())
PAIRS = DataTypes.ARRAY(
    DataTypes.ROW([DataTypes.FIELD("p", DataTypes.INT()), DataTypes.FIELD("q", DataTypes.STRING())])
)
MAP = DataTypes.MAP(DataTypes.STRING(), DataTypes.INT())
BAG = DataTypes.MULTISET(DataTypes.STRING())
PARTS = {NUMBERS: [DataTypes.INT()], PAIRS: [DataTypes.INT(), DataTypes.STRING()],
         MAP: [DataTypes.STRING(), DataTypes.INT()], BAG: [DataTypes.STRING()]}  # fmt: skip


def operator(kind: DataType, is_left: bool = False, has_ordinality: bool = False) -> UnnestOperator:
    made = [DataTypes.BIGINT(), *PARTS[kind], *([DataTypes.INT()] if has_ordinality else [])]
    schema = arrow_schema(tuple(Attribute(f"c{at}", one) for at, one in enumerate(made)))
    is_multiset = kind.root is Root.MULTISET
    return UnnestOperator(Column(kind, 1, "a"), (0,), is_left, is_multiset, has_ordinality, schema, Session())


def batch(kind: DataType, rows: list[tuple[int, Any]]) -> pa.RecordBatch:
    ids, collections = zip(*rows, strict=True) if rows else ((), ())
    data = [pa.array(ids, pa.int64()), pa.array(collections, kind.to_arrow())]
    return pa.RecordBatch.from_arrays(data, names=["id", "a"])


def given_by(operator: UnnestOperator, given: ArrowBatch) -> list[Any]:
    operator.setup(OperatorContext("0" * 32, "unnest"))
    return list(operator.process(given, 0))


def rows_of(given: Any) -> list[tuple[Any, ...]]:
    return list(zip(*given.data.to_pydict().values(), strict=True))


def out(*values: Any) -> Any:
    return rec(Row(*(f"c{at}" for at in range(len(values))))(*values))


@pytest.mark.parametrize("is_left", [False, True])
def test_it_gives_the_same_under_every_hardship(is_left):
    first, second = batch(NUMBERS, [(1, [7, None]), (2, []), (3, None)]), batch(NUMBERS, [(4, [5])])
    alone = [out(2, None, None), out(3, None, None)] if is_left else []
    verify(
        lambda: operator(NUMBERS, is_left, True),
        elements=[columns(ArrowBatch(first)), wm(3), columns(ArrowBatch(second))],
        then=[out(1, 7, 1), out(1, None, 2), *alone, wm(3), out(4, 5, 1)],
    )


def model(rows: list[tuple[int, Any]], width: int, is_left: bool) -> Iterator[tuple[Any, ...]]:
    for number, collection in rows:
        for at, item in enumerate(collection or [], 1):
            yield (number, *item, at)
        if is_left and not (collection and len(collection)):
            yield (number, *[None] * width, None)


strings, integers = st.text("ab", max_size=2), st.none() | st.integers(0, 3)
COLLECTIONS: dict[DataType, Any] = {
    NUMBERS: st.lists(integers, max_size=4),
    PAIRS: st.lists(st.none() | st.tuples(integers, st.none() | strings), max_size=4),
    MAP: st.dictionaries(strings, integers, max_size=3),
    BAG: st.dictionaries(strings, st.integers(1, 3), max_size=3),
}


def items_of(kind: DataType, collection: Any) -> list[tuple[Any, ...]]:
    if kind is NUMBERS:
        return [(one,) for one in collection]
    if kind is PAIRS:
        return [one for one in collection if one is not None]
    if kind is MAP:
        return list(collection.items())
    return [(one,) for one, times in collection.items() for _ in range(times)]


@pytest.mark.parametrize("kind", COLLECTIONS, ids=str)
@given(data=st.data(), is_left=st.booleans(), start=st.integers(0, 3))
def test_it_gives_what_a_model_gives_also_of_a_part_of_a_batch(kind, data, is_left, start):
    lists = data.draw(st.lists(st.none() | COLLECTIONS[kind], max_size=6))
    given_as = [list(one.items()) if isinstance(one, dict) else one for one in lists]
    whole = batch(kind, list(enumerate(given_as)))
    part = ArrowBatch(whole).slice(min(start, len(lists)), len(lists))
    found = [row for one in given_by(operator(kind, is_left, True), part) for row in rows_of(one)]
    rows = [(at, None if one is None else items_of(kind, one)) for at, one in enumerate(lists)][start:]
    assert found == list(model(rows, len(PARTS[kind]), is_left))


def test_a_null_that_hides_elements_has_none():
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 2, 3]), pa.array([1, 2, 3], pa.int32()), mask=pa.array([True, False])
    )
    data = pa.RecordBatch.from_arrays([pa.array([1, 2]), hidden], names=["id", "a"])
    [found] = given_by(operator(NUMBERS), ArrowBatch(data))
    assert found.data.to_pydict() == {"c0": [2], "c1": [3]}


def test_rows_keep_their_kinds():
    data = with_kinds(batch(NUMBERS, [(1, [5, 6]), (2, [7])]), [1, 2])
    [found] = given_by(operator(NUMBERS), ArrowBatch(data))
    assert found.data.to_pydict() == {"c0": [1, 1, 2], "c1": [5, 6, 7], ROW_KIND: [1, 1, 2]}


def test_what_becomes_many_rows_is_given_in_parts(monkeypatch):
    monkeypatch.setattr(unnest, "MOST_ROWS", 3)
    rows = [(1, list(range(5))), (2, []), (3, [9])]
    found = given_by(operator(NUMBERS, True), ArrowBatch(batch(NUMBERS, rows)))
    assert [len(one) for one in found] == [3, 3, 1]
    assert [row for one in found for row in rows_of(one)] == [(1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (2, None), (3, 9)]
