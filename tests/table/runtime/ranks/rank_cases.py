"""Words for tests of ranking: rows in windows, rankings, and a slow model that goes row by row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from rayflink.table.plan.logical import WindowKind
from rayflink.table.runtime.aggregates.window_spec import WindowSpec
from rayflink.table.runtime.ranks.ranking import Ranking
from rayflink.table.runtime.ranks.window_rank import local_rank, window_rank
from rayflink.table.types import DataTypes
from rayflink.testing.elements import Columns, columns

from ..windows.window_cases import schema_of

WORD, N, X, START, END = range(5)
ROWS = DataTypes.ROW(
    [("word", DataTypes.STRING()), ("n", DataTypes.BIGINT()), ("x", DataTypes.DOUBLE()),
     ("window_start", DataTypes.TIMESTAMP(3, False)), ("window_end", DataTypes.TIMESTAMP(3, False))]
)  # fmt: skip
RESULT: pa.Schema = schema_of(ROWS).append(pa.field("number", pa.int64(), False))
WINDOWS = WindowSpec(WindowKind.TUMBLE, size_ms=10, start_column=START, end_column=END)
Row = tuple[Any, ...]


def ms(value: int) -> datetime:
    return datetime(1970, 1, 1) + timedelta(milliseconds=value)


def rows(*values: Row) -> Columns:
    """Rows as columns: (word, n, x, start of the window, its end)."""
    schema = schema_of(ROWS)
    data = [pa.array([row[at] for row in values], kind) for at, kind in enumerate(schema.types)]
    return columns(pa.RecordBatch.from_arrays(data, schema=schema))


def row(word: str | None, n: int | None, window: int = 0, x: float | None = None) -> Row:
    """A row of the window that begins at ten times `window`."""
    return (word, n, x, ms(window * 10), ms(window * 10 + 10))


def ranking(*order: tuple[int, bool, bool], last: int = 2, first: int = 1, keys: Sequence[int] = (WORD,),
            newest_first: bool = False, window: WindowSpec | None = WINDOWS) -> Ranking:  # fmt: skip
    return Ranking(ROWS, tuple(keys), order, first, last, window, newest_first)


def two_phases(what: Ranking) -> Any:
    assert what.window is not None
    return lambda: [local_rank(what), window_rank(what, WINDOWS, RESULT)]


def place_in_order(one: Row, order: Sequence[tuple[int, bool, bool]]) -> tuple[Any, ...]:
    """What Python sorts a row by."""
    found: list[Any] = []
    for at, descending, nulls_first in order:
        value = one[at]
        there = value is not None
        found.append(there if nulls_first else not there)
        if not there:
            found.append(0)
        elif isinstance(value, str):
            found.append(tuple(-byte for byte in (*value.encode(), -1)) if descending else value)
        elif isinstance(value, float) and math.isnan(value):
            found.append(-math.inf if descending else math.inf)
        else:
            found.append(-value if descending else value)
    return tuple(found)


def wanted(what: Ranking, given: Sequence[Row]) -> list[Row]:
    """The rows that are wanted of those of a key, with their numbers."""
    ordered = sorted(reversed(given) if what.newest_first else given, key=lambda one: place_in_order(one, what.order))
    return [(*one, at) for at, one in enumerate(ordered, 1) if what.first <= at <= what.last]


@dataclass
class Model:
    """Window ranking row by row."""

    what: Ranking
    late: int = 0
    watermark: int = -(2**63)
    held: dict[int, dict[Any, list[Row]]] = field(default_factory=dict)

    def add(self, one: Row) -> None:
        end = round((one[END] - ms(0)) / timedelta(milliseconds=1))
        if end - 1 <= self.watermark:
            self.late += 1
        else:
            key = tuple(one[at] for at in (*self.what.keys, START))
            self.held.setdefault(end, {}).setdefault(key, []).append(one)

    def advance(self, watermark: int) -> list[Row]:
        self.watermark = max(watermark, self.watermark)
        over = sorted(end for end in self.held if end - 1 <= self.watermark)
        return [one for end in over for given in self.held.pop(end).values() for one in wanted(self.what, given)]
