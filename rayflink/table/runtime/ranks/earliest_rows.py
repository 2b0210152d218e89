"""The first row of each key by event time: it waits until the watermark says that none can come before it.

A earlier row the watermark is late: it is dropped and counted.

Source: apache/flink RowTimeDeduplicateKeepFirstRowFunction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.common.metrics.metric_names import NUM_LATE_RECORDS_DROPPED
from rayflink.common.records.batches import Element, Watermark
from rayflink.operators.base import OperatorContext, OperatorSnapshot

from ...types import DataType
from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import to_numpy
from ..keyed_state.comparable_keys import prints_of
from ..keyed_state.frame_memory import Columns, size_of
from ..keyed_state.frame_snapshots import ABOUT
from ..keyed_state.key_rows import taken
from ..progress import progress_entry, restored_progress
from ..windows.input_rows import local_ms
from .first_rows import FirstOfKey, given_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..aggregates.grouping import Codes

LEAST_ROWS = 32_768
"""Fewer rows that wait are left as they are."""
BLOCK_ROWS = 1 << 16
_ARRIVAL = pa.field("$arrival", pa.int64())
"""In a snapshot, in which order rows came."""


@dataclass
class _Waiting:
    """Rows that wait.

    Args:
        columns: of the rows.
        times: int64[n].
        prints: of their keys: uint32[n].
    """

    columns: Columns
    times: NDArray[np.int64]
    prints: NDArray[np.uint32]
    is_filed: bool = False

    @property
    def size(self) -> int:
        return self.times.nbytes + self.prints.nbytes + (0 if self.is_filed else size_of(self.columns))

    def among(self, rows: NDArray[np.intp]) -> _Waiting:
        return _Waiting(taken(self.columns, rows), self.times[rows], self.prints[rows])


class EarliestRows(FirstOfKey):
    """Gives the row of each key with the least time, when the watermark has come to it; of equal times the one that
    came first.

    Args:
        time: number of the time attribute.
        schema: of the result, with one field more than the rows that come in for the row's number, which is 1.
    """

    def __init__(
        self, input: DataType, keys: Sequence[int], time: int, schema: pa.Schema, ttl_ms: int, state_identity: str = ""
    ) -> None:
        super().__init__(input, keys, ttl_ms, False, state_identity)
        self._time, self._schema = time, schema
        self._order = [*self._keys, *(at for at in range(len(self._fields)) if at not in self._keys)]
        """In a snapshot the columns of the key come first."""
        fields = [self._fields[at].with_name(f"c{at}") for at in self._order]
        self._waiting_schema = pa.schema([*fields, _ARRIVAL], {ABOUT: f"rows that wait: {state_identity}".encode()})
        self._waiting: list[_Waiting] = []
        self._joined_rows = 0

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._late = None if ctx.metrics is None else ctx.metrics.counter(NUM_LATE_RECORDS_DROPPED)

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self.progress = restored_progress(snapshots, self.ctx)
        super().initialize_state(snapshots)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        lists = progress_entry(self.progress, self.ctx)
        return OperatorSnapshot(lists=lists, raw_keyed=super().snapshot_state(checkpoint_id).raw_keyed)

    def more_schemas(self) -> list[pa.Schema]:
        return [self._waiting_schema]

    def more_frames(self) -> list[Callable[[], pa.RecordBatch]]:
        return [partial(self._frame, list(self._waiting))] if self._waiting else []

    def _frame(self, waiting: list[_Waiting]) -> pa.RecordBatch:
        columns = concatenated([one.columns for one in waiting])
        arrived = pa.array(np.arange(len(columns[0])))
        return pa.RecordBatch.from_arrays([*(columns[at] for at in self._order), arrived], schema=self._waiting_schema)

    def take_frame(self, frame: pa.RecordBatch) -> None:
        frame = frame.take(pa.array(np.argsort(to_numpy(frame.column(_ARRIVAL.name)), kind="stable")))
        columns = [frame.column(self._order.index(at)) for at in range(len(self._order))]
        self._add(pa.RecordBatch.from_arrays(columns, schema=pa.schema(self._fields)))

    # rows

    def process_rows(self, rows: pa.RecordBatch) -> Iterable[Element]:
        times = self._times(rows)
        late = times < self.progress
        if late.any():
            if self._late is not None:
                self._late.inc(int(late.sum()))
            rows = rows.filter(pa.array(~late))
        if rows.num_rows:
            self._add(rows)
        return ()

    def _times(self, rows: pa.RecordBatch) -> NDArray[np.int64]:
        return local_ms(rows.column(self._time), "UTC", rows.schema.names[self._time])

    def _add(self, rows: pa.RecordBatch) -> None:
        kept, times = self.keys_of(rows), self._times(rows)
        groups = grouped(kept, rows.num_rows)
        chosen = earliest(groups.codes, times)
        chosen = chosen[~self._seen.knows(groups.keys, self._now_ms)[groups.codes[chosen]]]
        self.count_duplicates(rows.num_rows - len(chosen))
        if not len(chosen):
            return
        columns = rows.columns[: len(self._fields)]
        self._waiting.append(_Waiting(taken(columns, chosen), times[chosen], prints_of(taken(kept, chosen))))
        if self._rows_waiting > max(LEAST_ROWS, 2 * self._joined_rows):
            self._join()
        self._keep_to_memory()

    @property
    def _rows_waiting(self) -> int:
        return sum(len(one.times) for one in self._waiting)

    def _join(self) -> None:
        """Have one row of each key."""
        whole = _whole(self._waiting)
        groups = grouped(self._keys_of(whole.columns), len(whole.times))
        chosen = earliest(groups.codes, whole.times)
        self.count_duplicates(len(whole.times) - len(chosen))
        self._waiting, self._joined_rows = [whole.among(chosen)], len(chosen)

    def _keys_of(self, columns: Columns) -> Columns:
        return self.keys_of(pa.RecordBatch.from_arrays(columns, schema=pa.schema(self._fields)))

    def _keep_to_memory(self) -> None:
        self._seen.beside = sum(one.size for one in self._waiting)
        self._seen.keep_to_memory()
        if self._memory.limit is not None and self._seen.beside > self._memory.limit // 2:
            loose = [one for one in self._waiting if not one.is_filed]
            for one, columns in zip(loose, self._memory.written(one.columns for one in loose) if loose else (),
                                    strict=True):  # fmt: skip
                one.columns, one.is_filed = columns, True
            self._seen.beside = sum(one.size for one in self._waiting)

    # time

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        if watermark.timestamp > self.progress:
            self.progress = watermark.timestamp
            yield from self._due()
        yield watermark

    def _due(self) -> Iterator[Element]:
        """Yield the rows to which time has come, and no other of their keys waits any more."""
        is_due = [one.times <= self.progress for one in self._waiting]
        if not any(one.any() for one in is_due):
            return
        pairs = list(zip(self._waiting, is_due, strict=True))
        due = _whole([one.among(np.flatnonzero(mask)) for one, mask in pairs if mask.any()])
        self._waiting = [one if not mask.any() else one.among(np.flatnonzero(~mask)) for one, mask in pairs
                         if not mask.all()]  # fmt: skip
        groups = grouped(self._keys_of(due.columns), len(due.times))
        chosen = earliest(groups.codes, due.times)
        is_first = self._seen.first(groups.keys, self._now_ms)
        self.count_duplicates(len(due.times) - len(chosen))
        self._forget(due.prints)
        self._joined_rows = min(self._joined_rows, self._rows_waiting)
        chosen = chosen[is_first[groups.codes[chosen]]]
        chosen = chosen[np.argsort(due.times[chosen], kind="stable")]
        self._keep_to_memory()
        for first in range(0, len(chosen), BLOCK_ROWS):
            yield given_rows(due.columns, chosen[first : first + BLOCK_ROWS], self._schema)

    def _forget(self, prints: NDArray[np.uint32]) -> None:
        """Drop what waits of keys that have had their row by now; only such with one of these prints may have."""
        now_ms = self._now_ms
        buckets = np.zeros(1 << 16, dtype=np.bool_)
        buckets[prints & 0xFFFF] = True
        left: list[_Waiting] = []
        for one in self._waiting:
            rows = np.flatnonzero(buckets[one.prints & 0xFFFF])
            gone = rows[self._seen.knows(self._keys_of(taken(one.columns, rows)), now_ms)] if len(rows) else rows
            self.count_duplicates(len(gone))
            if len(gone) < len(one.times):
                left.append(one if not len(gone) else one.among(np.delete(np.arange(len(one.times)), gone)))
        self._waiting = left


def earliest(codes: Codes, times: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the row with the least time of each group, the first of equal ones: ascending row numbers."""
    order = np.lexsort((times, codes))
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = np.diff(codes[order]) != 0
    return np.sort(order[is_first])


def _whole(waiting: Sequence[_Waiting]) -> _Waiting:
    if len(waiting) == 1:
        return waiting[0]
    times, prints = (np.concatenate([getattr(one, name) for one in waiting]) for name in ("times", "prints"))
    return _Waiting(concatenated([one.columns for one in waiting]), times, prints)


__all__ = ["EarliestRows", "earliest"]
