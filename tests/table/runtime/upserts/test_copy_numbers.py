"""Numbers of equal rows of a changelog, under every hardship."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rayflink.common.records.batches import ArrowBatch
from rayflink.common.records.row_kinds import with_kinds
from rayflink.common.types import Row, RowKind
from rayflink.table.runtime.key_columns import KeyColumns
from rayflink.table.runtime.upserts.copy_numbers import CopyNumberOperator, CopySpec
from rayflink.testing import OperatorHarness, rec, verify
from rayflink.testing.elements import Columns, Record, columns

SCHEMA = pa.schema([("word", pa.string()), ("n", pa.int64()), ("$copy", pa.int64())])
COME, GO, AFTER, BEFORE = RowKind.INSERT, RowKind.DELETE, RowKind.UPDATE_AFTER, RowKind.UPDATE_BEFORE
Change = tuple[RowKind, str | None, int | None]


def numbers(ttl_ms: int = 0) -> CopyNumberOperator:
    return CopyNumberOperator(CopySpec((pa.string(), pa.int64()), ttl_ms, "rows"), SCHEMA)


def rows(*changes: Change) -> Columns:
    data = [pa.array([change[place] for change in changes], SCHEMA.types[place - 1]) for place in (1, 2)]
    batch = pa.RecordBatch.from_arrays(data, names=["word", "n"])
    return columns(ArrowBatch(with_kinds(batch, [kind.value for kind, *_ in changes])))


def numbered(kind: RowKind, word: str | None, n: int | None, copy: int) -> Record:
    row = Row(*SCHEMA.names)(word, n, copy)
    row.set_row_kind(kind)
    return rec(row)


def test_equal_rows_have_numbers_of_which_the_last_goes_first():
    changes = [
        rows((COME, "a", 1), (COME, "a", 1), (COME, "a", None)),
        rows((BEFORE, "a", 1), (AFTER, "a", 2), (GO, "b", 1), (COME, "a", 1), (GO, "a", 1), (GO, "a", 1)),
        rows((GO, "a", 1), (COME, "a", 1), (GO, "a", None), (COME, None, None)),
    ]
    then = [
        numbered(COME, "a", 1, 1), numbered(COME, "a", 1, 2), numbered(COME, "a", None, 1),
        numbered(BEFORE, "a", 1, 2), numbered(AFTER, "a", 2, 1), numbered(COME, "a", 1, 2), numbered(GO, "a", 1, 2),
        numbered(GO, "a", 1, 1), numbered(COME, "a", 1, 1), numbered(GO, "a", None, 1), numbered(COME, None, None, 1),
    ]  # fmt: skip
    verify(numbers, elements=changes, then=then, key=KeyColumns(["word", "n"]))


@pytest.mark.parametrize("passed_ms", [5, 50])
def test_numbers_are_forgotten_with_time(passed_ms):
    with OperatorHarness(lambda: numbers(ttl_ms=10)) as harness:
        harness.give(rows((COME, "a", 1)))
        harness.set_processing_time(passed_ms)
        harness.take()
        harness.give(rows((COME, "a", 1)))
        assert list(harness.take()) == [numbered(COME, "a", 1, 2 if passed_ms < 10 else 1)]
