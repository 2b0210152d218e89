"""The operators that write one row of each key of a table when the watermark has passed its changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, ArrowBatch, Batch, Element, Watermark
from rayflink.common.records.row_kinds import kinds_of, with_kinds, without_kinds
from rayflink.operators.base import Operator, OperatorContext, OperatorSnapshot
from rayflink.operators.user_function import UserCode

from ..aggregates.reductions import to_numpy
from ..changes import signs_of
from ..keyed_state.frame_memory import FrameMemory
from ..keyed_state.frame_snapshots import FrozenFrames, restored_sides
from ..keyed_state.key_rows import take_rows
from ..keyed_state.stored_table import StoredTables
from ..keyed_state.table_operator import KeyedTableOperator
from ..keyed_state.waiting_rows import WaitingRows
from .compacted_rows import CompactedRows, CompactSpec
from .last_row_operators import UNKNOWN_DELETES

CONFLICTS = "numConflictsDropped"
"""Metric: rows that were dropped since another row of the query has their primary key."""
SENT_AT = "$sent_at"
"""The column of the watermark at which a row was sent."""


class StampOperator(Operator):
    """Adds to each row the watermark at which it is sent, before rows of several subtasks meet."""

    def __init__(self) -> None:
        self._watermark = MIN_TIMESTAMP

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        kinds, rows = kinds_of(batch.data), without_kinds(batch.data)
        sent_at = pa.array(np.full(rows.num_rows, self._watermark, dtype=np.int64))
        stamped = rows.append_column(SENT_AT, sent_at)
        yield ArrowBatch(stamped if kinds is None else with_kinds(stamped, kinds))

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        self._watermark = watermark.timestamp
        yield watermark


class CompactOperator(KeyedTableOperator):
    """Emits the row of each key when all inputs have passed the watermark at which its changes were sent.

    An input that is at a watermark still sends changes at it, so these wait until all inputs have a later one, or end.

    After a restore changes that wait, and those that were under way, are worked at the first watermark, since those
    that are sent then are sent at none: the ones that wait in the order of their watermarks, then others as they come.

    Args:
        spec: the rows; those that come in have the watermark at which they were sent behind their columns.
        schema: of the result.
    """

    def __init__(self, spec: CompactSpec, schema: pa.Schema) -> None:
        self._spec, self._rows = spec, CompactedRows(spec, schema)
        about = f"changes that wait for the watermark: {spec.state_identity}"
        self._waiting = WaitingRows([*spec.columns, pa.int64()], spec.keys, about)
        self._watermark = MIN_TIMESTAMP
        self._is_restored = False

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._memory = FrameMemory(ctx)
        self._waiting.open(self._memory)

    @property
    def stored(self) -> StoredTables:
        return StoredTables([self._rows.state.stored])

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        for _, _, frame in restored_sides(snapshots, [self._waiting.schema], self.ctx):
            self._waiting.add_frame(frame)
        for columns, times in list(self._waiting.take_due(MAX_TIMESTAMP)):
            in_order = take_rows(columns, np.argsort(times, kind="stable"))
            self._waiting.add(in_order, np.full(len(times), MIN_TIMESTAMP, dtype=np.int64))
        self._is_restored = bool(snapshots)
        self._rows.state.open(self.ctx)
        super().initialize_state(snapshots)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        frames, width = self._waiting.frames(MIN_TIMESTAMP), len(self._spec.keys)
        groups = FrozenFrames(frames, width, self.ctx.max_parallelism)
        return replace(super().snapshot_state(checkpoint_id), raw_keyed=groups)

    def close(self) -> None:
        self._memory.release()
        self._rows.state.close()

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        kinds, rows = kinds_of(batch.data), without_kinds(batch.data)
        if rows.num_rows:
            *columns, sent_at = rows.columns
            columns = [column if column.type == kind else column.cast(kind)
                       for column, kind in zip(columns, self._spec.columns, strict=True)]  # fmt: skip
            signs, times = pa.array(signs_of(kinds, rows.num_rows)), to_numpy(sent_at)
            if self._is_restored and self._watermark == MIN_TIMESTAMP:
                times = np.full(rows.num_rows, MIN_TIMESTAMP, dtype=np.int64)
            self._waiting.add([*columns, signs], times)
        return ()

    def process_watermark(self, watermark: Watermark) -> Iterator[Element]:
        self._watermark = watermark.timestamp
        yield from self._compacted(watermark.timestamp - 1)
        yield watermark

    def finish(self) -> Iterator[Element]:
        return self._compacted(MAX_TIMESTAMP)

    def _compacted(self, until: int) -> Iterator[Element]:
        """Emit the changes of the table that changes sent up to a watermark make."""
        for columns, times in self._waiting.take_due(until):
            with UserCode(self.ctx, "the query"):
                compacted = self._rows.compact(columns[:-1], to_numpy(columns[-1]), times)
            if self.ctx.metrics is not None:
                self.ctx.metrics.counter(CONFLICTS).inc(compacted.conflicts)
                self.ctx.metrics.counter(UNKNOWN_DELETES).inc(compacted.unknown)
            if compacted.rows.num_rows:
                yield ArrowBatch(compacted.rows)


__all__ = ["CONFLICTS", "SENT_AT", "CompactOperator", "StampOperator"]
