"""The first row of each key by arrival, at once; those that come later are dropped and counted."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import MIN_TIMESTAMP, ArrowBatch, Batch, Element
from rayflink.operators.base import Operator, OperatorContext, OperatorSnapshot
from rayflink.operators.capabilities import Upkeep

from ...types import DataType
from ..aggregates.grouping import grouped
from ..keyed_state.frame_memory import Columns, FrameMemory
from ..keyed_state.frame_snapshots import ABOUT, FrozenFrames, restored_sides
from ..keyed_state.key_rows import taken
from ..keyed_state.seen_keys import ACCESSED, SeenKeys
from ..windows.input_rows import rows_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..aggregates.grouping import Codes

DUPLICATES, EXPIRED = "numDuplicatesDropped", "numStateEntriesExpired"
"""Metrics: rows that were not the first of their key, and keys that were forgotten since their time was over."""
_NO_KEY = pa.array([0], pa.int8())


class FirstOfKey(Operator, Upkeep):
    """The common part of operators that give one row per key: the keys that had theirs, and snapshots.

    Args:
        input: type of the rows that come in.
        keys: numbers of the columns by which they are partitioned; none: all rows have one key.
        ttl_ms, refreshes: see `SeenKeys`.
        state_identity: which rows of the query the state belongs to; other state is refused on restore.
    """

    def __init__(self, input: DataType, keys: Sequence[int], ttl_ms: int, refreshes: bool, state_identity: str) -> None:
        self._input, self._keys = input, tuple(keys)
        self._fields = [field.type.to_arrow_field(field.name) for field in input.fields]
        kinds = [self._fields[at].type for at in self._keys] or [_NO_KEY.type]
        self._seen = SeenKeys(kinds, ttl_ms, refreshes)
        self._width, self._expires = len(kinds), ttl_ms > 0
        keyed = [pa.field(f"k{at}", kind) for at, kind in enumerate(kinds)]
        self._schemas = [pa.schema(fields, {ABOUT: f"keys that had their row: {state_identity}".encode()})
                         for fields in (keyed, [*keyed, ACCESSED])]  # fmt: skip
        self.progress = MIN_TIMESTAMP
        """The watermark, where time counts."""

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._memory = FrameMemory(ctx)
        self._seen.open(self._memory)
        metrics = ctx.metrics
        self._duplicates = None if metrics is None else metrics.counter(DUPLICATES)
        if metrics is not None and self._expires:
            self._seen.expired = metrics.counter(EXPIRED).inc

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        now_ms = self._now_ms
        for side, _, frame in restored_sides(snapshots, [*self._schemas, *self.more_schemas()], self.ctx):
            if side < len(self._schemas):
                self._seen.restore(frame, self._width, now_ms)
            else:
                self.take_frame(frame)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        schema = self._schemas[1 if self._expires else 0]
        frames = [*self._seen.frames(schema, self._now_ms), *self.more_frames()]
        frames_by_progress = [(self.progress, frame) for frame in frames]
        return OperatorSnapshot(raw_keyed=FrozenFrames(frames_by_progress, len(self._keys), self.ctx.max_parallelism))

    def more_schemas(self) -> list[pa.Schema]:
        """Return the schemas of further frames in snapshots."""
        return []

    def more_frames(self) -> list[Callable[[], pa.RecordBatch]]:
        """Return functions that give these frames, with the keys in front, when they are called later."""
        return []

    def take_frame(self, frame: pa.RecordBatch) -> None:
        """Add rows of such a frame to the state."""

    @property
    def _now_ms(self) -> int:
        return int(self.ctx.clock.now_ms())

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        rows = rows_in(batch, self._input)
        return self.process_rows(rows) if rows.num_rows else ()

    @abstractmethod
    def process_rows(self, rows: pa.RecordBatch) -> Iterable[Element]:
        """Work rows, at least one."""

    def keys_of(self, rows: pa.RecordBatch) -> Columns:
        """Return the columns of their keys, in the form in which they are compared."""
        if not self._keys:
            return [_NO_KEY.take(pa.array(np.zeros(rows.num_rows, dtype=np.int64)))]
        columns = [rows.column(at) for at in self._keys]
        kinds = [self._fields[at].type for at in self._keys]
        return self._seen.kept([one if one.type == kind else one.cast(kind)
                                for one, kind in zip(columns, kinds, strict=True)])  # fmt: skip

    def count_duplicates(self, rows: int) -> None:
        """Count rows that are dropped because their key had its row."""
        if self._duplicates is not None and rows:
            self._duplicates.inc(rows)

    def next_upkeep_ms(self) -> int | None:
        return self._seen.sweep_at

    def upkeep(self, now_ms: int) -> None:
        if self._seen.sweep_at is not None and self._seen.sweep_at <= now_ms:
            self._seen.sweep(now_ms)

    def close(self) -> None:
        self._memory.release()


class FirstRows(FirstOfKey):
    """Gives the first row of each key that comes.

    Args:
        given: numbers of the columns of the result.
        schema: of the result; with one field more behind these for the row's number, which is 1.
    """

    def __init__(
        self, input: DataType, keys: Sequence[int], given: Sequence[int], schema: pa.Schema, ttl_ms: int,
        refreshes: bool, state_identity: str = "",
    ) -> None:  # fmt: skip
        super().__init__(input, keys, ttl_ms, refreshes, state_identity)
        self._given, self._schema = tuple(given), schema

    def process_rows(self, rows: pa.RecordBatch) -> Iterable[Element]:
        groups = grouped(self.keys_of(rows), rows.num_rows)
        is_first = self._seen.first(groups.keys, self._now_ms)
        chosen = np.sort(first_places(groups.codes, groups.count)[is_first])
        self.count_duplicates(rows.num_rows - len(chosen))
        if len(chosen):
            yield given_rows([rows.column(at) for at in self._given], chosen, self._schema)


def first_places(codes: Codes, count: int) -> NDArray[np.intp]:
    """Return the first row of each group: intp[count]."""
    found = np.empty(count, dtype=np.intp)
    found[codes[::-1]] = np.arange(len(codes))[::-1]
    return found


def given_rows(columns: Sequence[pa.Array], chosen: NDArray[np.intp], schema: pa.Schema) -> ArrowBatch:
    """Return some rows as a batch, each with the number 1 where the schema has one field more."""
    are_all = np.array_equal(chosen, np.arange(len(columns[0])))
    made = list(columns) if are_all else taken(columns, chosen)
    if len(made) < len(schema):
        made.append(pa.array(np.ones(len(chosen), dtype=np.int64)))
    made = [one if one.type == field.type else one.cast(field.type) for one, field in zip(made, schema, strict=True)]
    return ArrowBatch(pa.RecordBatch.from_arrays(made, schema=schema))


__all__ = ["DUPLICATES", "EXPIRED", "FirstOfKey", "FirstRows", "first_places", "given_rows"]
