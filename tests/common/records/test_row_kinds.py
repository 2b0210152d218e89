"""What a row of columns does is a column at the end, which becomes the kind of a Row."""

from __future__ import annotations

import pickle

import pyarrow

from rayflink.common.records.batches import ArrowBatch, rows_of
from rayflink.common.records.row_kinds import ROW_KIND, kinds_of, with_kinds, without_kinds
from rayflink.common.types import Row, RowKind
from rayflink.table.plan.typed import Call, Column, Literal, Session, named
from rayflink.table.runtime.calc import evaluated
from rayflink.table.types import DataTypes

DATA = pyarrow.record_batch({"n": [1, 2, 2, 2]})
CHANGED = with_kinds(DATA, [0, 0, 1, 3])


def test_a_batch_without_kinds_inserts():
    assert kinds_of(DATA) is None
    assert without_kinds(DATA) is DATA
    assert [row.get_row_kind() for row in rows_of(ArrowBatch(DATA))] == [RowKind.INSERT] * 4


def test_rows_of_columns_have_the_kinds_of_the_last_column():
    kinds = [RowKind.INSERT, RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.DELETE]
    wanted = [Row.of_kind(kind, n=n) for kind, n in zip(kinds, [1, 2, 2, 2], strict=True)]
    found = rows_of(ArrowBatch(CHANGED))
    assert found == wanted
    assert pickle.loads(pickle.dumps(found)) == wanted


def test_columns_without_their_kinds_are_as_before():
    assert CHANGED.schema.names == ["n", ROW_KIND]
    assert without_kinds(CHANGED).equals(DATA)


def test_a_projection_and_a_filter_keep_kinds():
    column = Column(DataTypes.BIGINT(), 0, "n")
    two = Literal(DataTypes.BIGINT(False), 2)
    condition = Call(DataTypes.BOOLEAN(), named("="), (column, two))
    sums = Call(DataTypes.BIGINT(), named("+"), (column, two))
    schema = pyarrow.schema([("m", pyarrow.int64())])
    found = evaluated(CHANGED, condition, (sums,), schema, Session("UTC"))
    assert found.to_pydict() == {"m": [4, 4, 4], ROW_KIND: [0, 1, 3]}
    kept = evaluated(CHANGED, condition, (), schema, Session("UTC"))
    assert kept.to_pydict() == {"n": [2, 2, 2], ROW_KIND: [0, 1, 3]}
