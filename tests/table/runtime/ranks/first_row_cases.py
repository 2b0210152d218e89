"""Words for tests of operators that give the first row of each key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from rayflink.common.types import Row
from rayflink.table.runtime.ranks.earliest_rows import earliest_rows
from rayflink.table.runtime.ranks.first_of_key import FirstOfKeyOperator
from rayflink.table.runtime.ranks.first_rows import first_rows
from rayflink.table.types import DataTypes
from rayflink.testing import OperatorHarness, rec
from rayflink.testing.elements import Columns, Record, columns

from ..windows.window_cases import schema_of

WORD, N, X, TS = range(4)
ROWS = DataTypes.ROW(
    [("word", DataTypes.STRING()), ("n", DataTypes.BIGINT()), ("x", DataTypes.DOUBLE()), ("ts", DataTypes.TIMESTAMP(3))]
)
SCHEMA: pa.Schema = schema_of(ROWS)
NUMBERED = SCHEMA.append(pa.field("number", pa.int64(), False))
Values = tuple[Any, ...]


def row(word: str | None, n: int | None = None, ms: int = 0, x: float | None = None) -> Values:
    return (word, n, x, datetime(1970, 1, 1) + timedelta(milliseconds=ms))


def rows(*values: Values) -> Columns:
    data = [pa.array([one[at] for one in values], kind) for at, kind in enumerate(SCHEMA.types)]
    return columns(pa.RecordBatch.from_arrays(data, schema=SCHEMA))


def out(*values: Any, of: pa.Schema = NUMBERED) -> Record:
    """A row of the result, with its number where it has one."""
    return rec(Row(*of.names)(*values, *([1] if len(of) > len(values) else [])))


def distinct(*keys: int, ttl_ms: int = 0) -> Callable[[], FirstOfKeyOperator]:
    """SELECT DISTINCT of columns."""
    schema = pa.schema([SCHEMA.field(at) for at in keys])
    return lambda: first_rows(ROWS, keys, keys, schema, ttl_ms, True, "rows")


def first(*keys: int, ttl_ms: int = 0) -> Callable[[], FirstOfKeyOperator]:
    """The first rows by arrival."""
    return lambda: first_rows(ROWS, keys, range(len(SCHEMA)), NUMBERED, ttl_ms, False, "rows")


def earliest(*keys: int, ttl_ms: int = 0) -> Callable[[], FirstOfKeyOperator]:
    """The first rows by event time."""
    return lambda: earliest_rows(ROWS, keys, TS, NUMBERED, ttl_ms, "rows")


def values_of(harness: OperatorHarness) -> list[Values]:
    """What came out since the last call."""
    return [tuple(one.value) for one in harness.take() if isinstance(one, Record)]


def batches(values: Sequence[Values], size: int) -> list[Columns]:
    return [rows(*values[at : at + size]) for at in range(0, len(values), size)]
