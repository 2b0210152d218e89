"""The first row of each key by event time, emitted when the watermark asserts that none can come before it.

A row earlier than the watermark is late: it is dropped and counted.

Source: apache/flink RowTimeDeduplicateKeepFirstRowFunction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.common.metrics.metric_names import NUM_LATE_RECORDS_DROPPED
from rayflink.common.records.batches import MIN_TIMESTAMP, Element
from rayflink.operators.base import OperatorContext, OperatorSnapshot

from ...types import DataType
from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import to_numpy
from ..keyed_state.comparable_keys import fingerprints
from ..keyed_state.frame_memory import Columns, size_of
from ..keyed_state.frame_snapshots import ABOUT
from ..keyed_state.key_rows import take_rows
from ..progress import progress_entry, restored_progress
from ..windows.input_rows import local_ms
from .first_of_key import FirstOfKeyOperator, KeysWithRow, RowChoice, numbered_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..aggregates.grouping import Codes

LEAST_ROWS = 32_768
"""Fewer rows that wait are not reduced to one for each key."""
BLOCK_ROWS = 1 << 16
_ARRIVAL = pa.field("$arrival", pa.int64())
"""In a snapshot, the order in which rows came."""


@dataclass
class _Waiting:
    """Rows that wait until the watermark has reached them.

    Args:
        columns: of the rows.
        times: of the rows in milliseconds: int64[n].
        prints: of their keys: uint32[n].
    """

    columns: Columns
    times: NDArray[np.int64]
    prints: NDArray[np.uint32]
    is_filed: bool = False

    @property
    def size(self) -> int:
        """Return the bytes in memory."""
        return self.times.nbytes + self.prints.nbytes + (0 if self.is_filed else size_of(self.columns))

    def take(self, rows: NDArray[np.intp]) -> _Waiting:
        """Return some of the rows."""
        return _Waiting(take_rows(self.columns, rows), self.times[rows], self.prints[rows])


class FirstByTime(RowChoice):
    """Emits the row of each key with the least time when the watermark has reached it; of equal times the one that
    came first.

    Args:
        keys: the keys that had their row.
        time: number of the time attribute.
        schema: of the result, with one field more than the rows that come in for the row's number, which is 1.
        state_identity: which rows of the query the state belongs to; other state is refused on restore.
    """

    def __init__(self, keys: KeysWithRow, time: int, schema: pa.Schema, state_identity: str) -> None:
        self._keys, self._time, self._schema = keys, time, schema
        self._input_schema: pa.Schema = pa.schema(keys.fields)
        self._state_order = [*keys.columns, *(index for index in range(len(keys.fields)) if index not in keys.columns)]
        """Numbers of the columns in a snapshot, where those of the key come first."""
        fields = [keys.fields[index].with_name(f"c{index}") for index in self._state_order]
        about = {ABOUT: f"rows that wait: {state_identity}".encode()}
        self._state_schema: pa.Schema = pa.schema([*fields, _ARRIVAL], about)
        self.state_schemas = [self._state_schema]
        self._waiting: list[_Waiting] = []
        self._reduced_rows = 0
        """Rows that waited after they were last reduced to one for each key."""
        self.progress = MIN_TIMESTAMP

    def setup(self, ctx: OperatorContext) -> None:
        self._late = None if ctx.metrics is None else ctx.metrics.counter(NUM_LATE_RECORDS_DROPPED)

    # rows

    def process(self, rows: pa.RecordBatch) -> Iterable[Element]:
        is_late = self._times(rows) < self.progress
        if is_late.any():
            if self._late is not None:
                self._late.inc(int(is_late.sum()))
            rows = rows.filter(pa.array(~is_late))
        if rows.num_rows:
            self._add(rows)
        return ()

    def _times(self, rows: pa.RecordBatch) -> NDArray[np.int64]:
        return local_ms(rows.column(self._time), "UTC", rows.schema.names[self._time])

    def _add(self, rows: pa.RecordBatch) -> None:
        keys, times = self._keys.of(rows), self._times(rows)
        groups = grouped(keys, rows.num_rows)
        chosen = earliest(groups.codes, times)
        chosen = chosen[~self._keys.seen.knows(groups.keys, self._keys.now_ms)[groups.codes[chosen]]]
        self._keys.count_duplicates(rows.num_rows - len(chosen))
        if not len(chosen):
            return
        columns = rows.columns[: len(self._keys.fields)]
        self._waiting.append(_Waiting(take_rows(columns, chosen), times[chosen], fingerprints(take_rows(keys, chosen))))
        if self._waiting_rows > max(LEAST_ROWS, 2 * self._reduced_rows):
            self._reduce()
        self._keep_to_memory()

    @property
    def _waiting_rows(self) -> int:
        return sum(len(part.times) for part in self._waiting)

    def _reduce(self) -> None:
        """Reduce the rows that wait to one for each key."""
        waiting = _concatenated(self._waiting)
        groups = grouped(self._keys_of(waiting.columns), len(waiting.times))
        chosen = earliest(groups.codes, waiting.times)
        self._keys.count_duplicates(len(waiting.times) - len(chosen))
        self._waiting, self._reduced_rows = [waiting.take(chosen)], len(chosen)

    def _keys_of(self, columns: Columns) -> Columns:
        return self._keys.of(pa.RecordBatch.from_arrays(columns, schema=self._input_schema))

    def _keep_to_memory(self) -> None:
        """Write the rows that wait to a file if they take more than half of the memory."""
        seen, memory = self._keys.seen, self._keys.memory
        seen.beside = sum(part.size for part in self._waiting)
        seen.keep_to_memory()
        if memory.limit is not None and seen.beside > memory.limit // 2:
            in_memory = [part for part in self._waiting if not part.is_filed]
            written = memory.written(part.columns for part in in_memory) if in_memory else ()
            for part, columns in zip(in_memory, written, strict=True):
                part.columns, part.is_filed = columns, True
            seen.beside = sum(part.size for part in self._waiting)

    # time

    def advance(self, watermark: int) -> Iterator[Element]:
        self.progress = watermark
        is_due = [part.times <= watermark for part in self._waiting]
        if not any(mask.any() for mask in is_due):
            return
        pairs = list(zip(self._waiting, is_due, strict=True))
        due = _concatenated([part.take(np.flatnonzero(mask)) for part, mask in pairs if mask.any()])
        self._waiting = [part if not mask.any() else part.take(np.flatnonzero(~mask)) for part, mask in pairs
                         if not mask.all()]  # fmt: skip
        groups = grouped(self._keys_of(due.columns), len(due.times))
        chosen = earliest(groups.codes, due.times)
        is_first = self._keys.seen.first(groups.keys, self._keys.now_ms)
        self._keys.count_duplicates(len(due.times) - len(chosen))
        self._drop_keys(due.prints)
        self._reduced_rows = min(self._reduced_rows, self._waiting_rows)
        chosen = chosen[is_first[groups.codes[chosen]]]
        chosen = chosen[np.argsort(due.times[chosen], kind="stable")]
        self._keep_to_memory()
        for first in range(0, len(chosen), BLOCK_ROWS):
            yield numbered_rows(due.columns, chosen[first : first + BLOCK_ROWS], self._schema)

    def _drop_keys(self, prints: NDArray[np.uint32]) -> None:
        """Drop waiting rows of keys that have had their row by now; only keys with one of these prints may have."""
        now_ms = self._keys.now_ms
        buckets = np.zeros(1 << 16, dtype=np.bool_)
        buckets[prints & 0xFFFF] = True
        left: list[_Waiting] = []
        for part in self._waiting:
            rows = np.flatnonzero(buckets[part.prints & 0xFFFF])
            dropped = rows
            if len(rows):
                dropped = rows[self._keys.seen.knows(self._keys_of(take_rows(part.columns, rows)), now_ms)]
            self._keys.count_duplicates(len(dropped))
            if len(dropped) < len(part.times):
                left.append(part.take(np.delete(np.arange(len(part.times)), dropped)) if len(dropped) else part)
        self._waiting = left

    # snapshots

    def restore(self, snapshots: tuple[OperatorSnapshot, ...], ctx: OperatorContext) -> None:
        self.progress = restored_progress(snapshots, ctx)

    def add_frame(self, frame: pa.RecordBatch) -> None:
        frame = frame.take(pa.array(np.argsort(to_numpy(frame.column(_ARRIVAL.name)), kind="stable")))
        columns = [frame.column(self._state_order.index(index)) for index in range(len(self._state_order))]
        self._add(pa.RecordBatch.from_arrays(columns, schema=self._input_schema))

    def frames(self) -> list[Callable[[], pa.RecordBatch]]:
        return [partial(self._frame, list(self._waiting))] if self._waiting else []

    def _frame(self, waiting: list[_Waiting]) -> pa.RecordBatch:
        columns = concatenated([part.columns for part in waiting])
        arrival = pa.array(np.arange(len(columns[0])))
        in_order = [columns[index] for index in self._state_order]
        return pa.RecordBatch.from_arrays([*in_order, arrival], schema=self._state_schema)

    def lists(self, ctx: OperatorContext) -> Mapping[str, tuple[str, tuple[bytes, ...]]]:
        return progress_entry(self.progress, ctx)


def earliest(codes: Codes, times: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the row with the least time of each group, the first of equal ones: ascending row numbers."""
    order = np.lexsort((times, codes))
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = np.diff(codes[order]) != 0
    return np.sort(order[is_first])


def _concatenated(waiting: Sequence[_Waiting]) -> _Waiting:
    if len(waiting) == 1:
        return waiting[0]
    times, prints = np.concatenate([part.times for part in waiting]), np.concatenate([part.prints for part in waiting])
    return _Waiting(concatenated([part.columns for part in waiting]), times, prints)


def earliest_rows(
    input: DataType, keys: Sequence[int], time: int, schema: pa.Schema, ttl_ms: int, state_identity: str = ""
) -> FirstOfKeyOperator:
    """Return an operator that emits the row of each key with the least time when the watermark has reached it.

    Args:
        input: type of the rows that come in.
        keys: numbers of the columns by which they are partitioned; none: all rows have one key.
        time: number of the time attribute.
        schema: of the result, with one field more than the rows that come in for the row's number, which is 1.
        ttl_ms: how long a key is remembered; 0: for ever.
        state_identity: which rows of the query the state belongs to; other state is refused on restore.
    """
    known = KeysWithRow(input, keys, ttl_ms, False, state_identity)
    return FirstOfKeyOperator(input, known, FirstByTime(known, time, schema, state_identity))


__all__ = ["FirstByTime", "earliest", "earliest_rows"]
