"""One row for each key of a stream: the operator, and the keys that had their row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import MIN_TIMESTAMP, ArrowBatch, Batch, Element, Watermark
from rayflink.operators.base import Operator, OperatorContext, OperatorSnapshot
from rayflink.operators.capabilities import Upkeep

from ...types import DataType
from ..keyed_state.frame_memory import Columns, FrameMemory
from ..keyed_state.frame_snapshots import ABOUT, FrozenFrames, restored_sides
from ..keyed_state.key_rows import take_rows
from ..keyed_state.keyed_table import EXPIRED
from ..keyed_state.seen_keys import ACCESSED, SeenKeys
from ..windows.input_rows import rows_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

DUPLICATES = "numDuplicatesDropped"
"""Metrics: rows that were not the first of their key, and keys that were forgotten since their time was over."""
_NO_KEY = pa.array([0], pa.int8())


class KeysWithRow:
    """Remembers the keys that had their row.

    Args:
        input: type of the rows that come in.
        keys: numbers of the columns by which they are partitioned; none: all rows have one key.
        ttl_ms, refreshes: see `SeenKeys`.
        state_identity: which rows of the query the state belongs to; other state is refused on restore.
    """

    def __init__(self, input: DataType, keys: Sequence[int], ttl_ms: int, refreshes: bool, state_identity: str) -> None:
        self.columns = tuple(keys)
        self.fields: list[pa.Field] = [field.type.to_arrow_field(field.name) for field in input.fields]
        kinds = [self.fields[index].type for index in self.columns] or [_NO_KEY.type]
        self.seen = SeenKeys(kinds, ttl_ms, refreshes)
        self._width, self._expires = len(kinds), ttl_ms > 0
        keyed = [pa.field(f"k{number}", kind) for number, kind in enumerate(kinds)]
        about = {ABOUT: f"keys that had their row: {state_identity}".encode()}
        self.state_schemas = [pa.schema(keyed, about), pa.schema([*keyed, ACCESSED], about)]
        """Schemas of keys that never expire, and of keys with the time of their last access."""

    def setup(self, ctx: OperatorContext) -> None:
        """Take memory, clock and metrics."""
        self._clock = ctx.clock
        self.memory = FrameMemory(ctx)
        self.seen.open(self.memory)
        self._duplicates = None if ctx.metrics is None else ctx.metrics.counter(DUPLICATES)
        if ctx.metrics is not None and self._expires:
            self.seen.expired = ctx.metrics.counter(EXPIRED).inc

    @property
    def now_ms(self) -> int:
        """Return processing time, by which keys expire."""
        return int(self._clock.now_ms())

    def of(self, rows: pa.RecordBatch) -> Columns:
        """Return the key columns of rows, in the form in which they are compared."""
        if not self.columns:
            return [_NO_KEY.take(pa.array(np.zeros(rows.num_rows, dtype=np.int64)))]
        kinds = [self.fields[index].type for index in self.columns]
        columns = [rows.column(index) for index in self.columns]
        return self.seen.comparable([column if column.type == kind else column.cast(kind)
                               for column, kind in zip(columns, kinds, strict=True)])  # fmt: skip

    def count_duplicates(self, rows: int) -> None:
        """Count rows that are dropped because their key had its row."""
        if self._duplicates is not None and rows:
            self._duplicates.inc(rows)

    def frames(self) -> list[Callable[[], pa.RecordBatch]]:
        """Return functions that return the keys as they are now, whenever they are called."""
        return self.seen.frames(self.state_schemas[1 if self._expires else 0], self.now_ms)

    def add_frame(self, frame: pa.RecordBatch) -> None:
        """Add the keys of a frame."""
        self.seen.restore(frame, self._width, self.now_ms)


class RowChoice(ABC):
    """The rule for which row of a key is emitted, and when: `FirstByArrival`, `FirstByTime`."""

    progress = MIN_TIMESTAMP
    """The watermark, where time matters."""
    state_schemas: Sequence[pa.Schema] = ()
    """Schemas of its frames in a snapshot."""

    @abstractmethod
    def process(self, rows: pa.RecordBatch) -> Iterable[Element]:
        """Called with rows, at least one. Return those that can be emitted at once."""

    def setup(self, ctx: OperatorContext) -> None:  # noqa: B027
        """Called once, before anything else. Take the metrics."""

    def advance(self, watermark: int) -> Iterable[Element]:
        """Called with each watermark that is greater than `progress`. Return the rows that can be emitted now."""
        return ()

    def restore(self, snapshots: tuple[OperatorSnapshot, ...], ctx: OperatorContext) -> None:  # noqa: B027
        """Called once, before frames are added. Restore what `lists` returned."""

    def add_frame(self, frame: pa.RecordBatch) -> None:  # noqa: B027
        """Called for each frame of a snapshot that is restored. Add its rows to the state."""

    def frames(self) -> list[Callable[[], pa.RecordBatch]]:
        """Called for each snapshot. Return functions that return frames, keys first, whenever they are called."""
        return []

    def lists(self, ctx: OperatorContext) -> Mapping[str, tuple[str, tuple[bytes, ...]]]:
        """Called for each snapshot. Return operator state that is not by key: name -> (mode, entries)."""
        return {}


class FirstOfKeyOperator(Operator, Upkeep):
    """Emits one row for each key, and drops the others.

    Args:
        input: type of the rows that come in.
        keys: the keys that had their row.
        choice: which row of a key is emitted.
    """

    def __init__(self, input: DataType, keys: KeysWithRow, choice: RowChoice) -> None:
        self._input, self.keys, self._choice = input, keys, choice

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self.keys.setup(ctx)
        self._choice.setup(ctx)

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self._choice.restore(snapshots, self.ctx)
        schemas = [*self.keys.state_schemas, *self._choice.state_schemas]
        for number, _, frame in restored_sides(snapshots, schemas, self.ctx):
            if number < len(self.keys.state_schemas):
                self.keys.add_frame(frame)
            else:
                self._choice.add_frame(frame)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        frames = [(self._choice.progress, frame) for frame in [*self.keys.frames(), *self._choice.frames()]]
        groups = FrozenFrames(frames, len(self.keys.columns), self.ctx.max_parallelism)
        return OperatorSnapshot(lists=self._choice.lists(self.ctx), raw_keyed=groups)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        rows = rows_in(batch, self._input)
        return self._choice.process(rows) if rows.num_rows else ()

    def process_watermark(self, watermark: Watermark) -> Iterator[Element]:
        if watermark.timestamp > self._choice.progress:
            yield from self._choice.advance(watermark.timestamp)
        yield watermark

    def next_upkeep_ms(self) -> int | None:
        return self.keys.seen.sweep_at

    def upkeep(self, now_ms: int) -> None:
        sweep_at = self.keys.seen.sweep_at
        if sweep_at is not None and sweep_at <= now_ms:
            self.keys.seen.sweep(now_ms)

    def close(self) -> None:
        self.keys.memory.release()


def numbered_rows(columns: Sequence[pa.Array], chosen: NDArray[np.intp], schema: pa.Schema) -> ArrowBatch:
    """Return some rows as a batch, each with the number 1 where the schema has one field more."""
    is_all = np.array_equal(chosen, np.arange(len(columns[0])))
    result = list(columns) if is_all else take_rows(columns, chosen)
    if len(result) < len(schema):
        result.append(pa.array(np.ones(len(chosen), dtype=np.int64)))
    result = [column if column.type == field.type else column.cast(field.type)
              for column, field in zip(result, schema, strict=True)]  # fmt: skip
    return ArrowBatch(pa.RecordBatch.from_arrays(result, schema=schema))


__all__ = ["DUPLICATES", "EXPIRED", "FirstOfKeyOperator", "KeysWithRow", "RowChoice", "numbered_rows"]
