"""Words for tests of operators that follow the last row of each key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch
from rayflink.common.records.row_kinds import with_kinds
from rayflink.common.types import Row, RowKind
from rayflink.operators.base import Operator
from rayflink.table.plan.groups import MiniBatch
from rayflink.table.runtime.upserts.last_row_operators import LastRowOperator, MiniBatchLastRowOperator
from rayflink.table.runtime.upserts.last_rows import LastRowSpec
from rayflink.table.runtime.upserts.materialize_operator import MaterializeOperator
from rayflink.table.runtime.upserts.materialized_rows import MaterializeSpec
from rayflink.testing.elements import Columns, Record, columns, rec

WORD, N, TAGS = range(3)
SCHEMA: pa.Schema = pa.schema([("word", pa.string()), ("n", pa.int64()), ("tags", pa.list_(pa.string()))])
INSERT, BEFORE, AFTER, DELETE = RowKind
Change = tuple[RowKind, tuple[Any, ...]]


def batch(*changes: Change) -> Columns:
    """Changes as one batch, with kinds where not all rows come."""
    data = [pa.array([values[place] for _, values in changes], kind) for place, kind in enumerate(SCHEMA.types)]
    rows = pa.RecordBatch.from_arrays(data, schema=SCHEMA)
    kinds = np.array([kind.value for kind, _ in changes], dtype=np.int8)
    return columns(ArrowBatch(with_kinds(rows, kinds) if kinds.any() else rows))


def out(kind: RowKind, *values: Any) -> Record:
    """A change of the result."""
    row = Row(*SCHEMA.names)(*values)
    row.set_row_kind(kind)
    return rec(row)


def last_rows(*keys: int, ttl_ms: int = 0, with_before: bool = True) -> Callable[[], Operator]:
    """The last rows of keys."""
    spec = LastRowSpec(tuple(SCHEMA.types), keys, ttl_ms, with_before, "rows")
    return lambda: LastRowOperator(spec, SCHEMA)


TIMED: pa.Schema = pa.schema([("word", pa.string()), ("ts", pa.timestamp("ms")), ("n", pa.int64())])
NUMBERED = TIMED.append(pa.field("number", pa.int64(), False))
TS = 1


def timed(*values: tuple[str, int, int]) -> Columns:
    """Rows with a time in milliseconds."""
    data = [pa.array([row[place] for row in values], kind) for place, kind in enumerate(TIMED.types)]
    return columns(ArrowBatch(pa.RecordBatch.from_arrays(data, schema=TIMED)))


def numbered(kind: RowKind, word: str, ms: int, n: int) -> Record:
    """A change of the result with its number."""
    row = Row(*NUMBERED.names)(word, datetime(1970, 1, 1) + timedelta(milliseconds=ms), n, 1)
    row.set_row_kind(kind)
    return rec(row)


def deduplicated(is_event_time: bool, limits: MiniBatch | None = None, ttl_ms: int = 0) -> Callable[[], Operator]:
    """The last rows of words by event time, or by arrival with the time of it in a column."""
    times = (TS, None) if is_event_time else (None, TS)
    spec = LastRowSpec(tuple(TIMED.types), (0,), ttl_ms, True, "rows", *times)
    if limits is None:
        return lambda: LastRowOperator(spec, NUMBERED)
    return lambda: MiniBatchLastRowOperator(spec, NUMBERED, limits)


def changes_of(output: Iterable[Any]) -> list[Change]:
    """Return the changes among what an operator emitted."""
    return [(record.value.get_row_kind(), tuple(record.value)) for record in output if isinstance(record, Record)]


@dataclass
class LastRowModel:
    """Follows the last row of each key in a dict, as Flink's DeduplicateFunctionHelper does."""

    keys: Sequence[int]
    with_before: bool = True
    rows: dict[tuple[Any, ...], tuple[Any, ...]] = field(default_factory=dict)
    dropped: int = 0

    def add(self, changes: Iterable[Change]) -> list[Change]:
        """Return the changes of the last rows."""
        result: list[Change] = []
        for kind, values in changes:
            key = tuple(values[column] for column in self.keys)
            before = self.rows.get(key)
            if kind in (INSERT, AFTER):
                self.rows[key] = values
                if before is None:
                    result.append((INSERT, values))
                elif before != values:
                    result += [(BEFORE, before)] * self.with_before + [(AFTER, values)]
            elif kind is DELETE and before is not None:
                result.append((DELETE, self.rows.pop(key)))
            else:
                self.dropped += kind is DELETE
        return result


PAIRS: pa.Schema = pa.schema([("word", pa.string()), ("n", pa.int64()), ("x", pa.float64())])


def pairs(*changes: Change) -> Columns:
    """Changes of rows that are written to a table."""
    data = [pa.array([values[place] for _, values in changes], kind) for place, kind in enumerate(PAIRS.types)]
    rows = pa.RecordBatch.from_arrays(data, schema=PAIRS)
    kinds = np.array([kind.value for kind, _ in changes], dtype=np.int8)
    return columns(ArrowBatch(with_kinds(rows, kinds) if kinds.any() else rows))


def materialized(*compared: int, ttl_ms: int = 0) -> Callable[[], Operator]:
    """The rows of words."""
    spec = MaterializeSpec(tuple(PAIRS.types), (0,), compared or (0, 1, 2), ttl_ms, "rows")
    return lambda: MaterializeOperator(spec, PAIRS)


def written(kind: RowKind, word: str, n: int, x: float | None = None) -> Record:
    """A change of the table."""
    row = Row(*PAIRS.names)(word, n, x)
    row.set_row_kind(kind)
    return rec(row)


@dataclass
class MaterializedModel:
    """Lists the rows of each key, as Flink's SinkUpsertMaterializer does; an update of one key is one change."""

    compared: tuple[int, ...] = (1, 2)
    rows: dict[Any, list[tuple[Any, ...]]] = field(default_factory=dict)
    dropped: int = 0

    def add(self, changes: Sequence[Change]) -> list[tuple[RowKind, tuple[Any, ...]]]:
        """Return the changes of the table; of a batch all are given at once."""
        result: list[Change] = []
        paired: set[int] = set()
        """Places of changes that update the row before of the next change."""
        before: dict[Any, int] = {}
        """Places of the last changes of keys."""
        for number, (kind, values) in enumerate(changes):
            rows, previous = self.rows.setdefault(values[0], []), before.get(values[0])
            before[values[0]] = number
            if kind in (INSERT, AFTER):
                result.append((AFTER if rows or previous in paired else INSERT, values))
                rows.append(values)
                continue
            identity = [values[place] for place in self.compared]
            equal = [place for place, row in enumerate(rows) if [row[column] for column in self.compared] == identity]
            if not equal:
                self.dropped += 1
                continue
            was_last = equal[0] == len(rows) - 1
            del rows[equal[0]]
            later = [change for change in changes[number + 1 :] if change[1][0] == values[0]]
            if kind is BEFORE and later and later[0][0] in (INSERT, AFTER):
                paired.add(number)
            elif not rows:
                result.append((DELETE, values))
            elif was_last:
                result.append((AFTER, rows[-1]))
        return result
