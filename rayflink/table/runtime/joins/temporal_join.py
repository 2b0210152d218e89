"""Joins of each row with the version of a row on the other side that holds at its time.

Rows of the left side wait until the watermark has reached them. Rows of the right side are versions: each holds from
its time until that of the next one with its key, or until it is deleted. A version that no row can ask for any more is
removed. A left row behind the watermark is joined with the versions that are left.

Source: apache/flink TemporalRowTimeJoinOperator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import MIN_TIMESTAMP, ArrowBatch, Batch, Element, Watermark
from rayflink.common.records.row_kinds import kinds_of, without_kinds
from rayflink.common.types import RowKind
from rayflink.operators.base import OperatorContext, OperatorSnapshot

from ..aggregates.partial_aggregates import concatenated
from ..keyed_state.comparable_keys import KeyForms, distinct_keys, fingerprints
from ..keyed_state.frame_memory import Columns, FrameMemory
from ..keyed_state.frame_snapshots import FrozenFrames, restored_sides
from ..keyed_state.key_rows import take_rows
from ..keyed_state.keyed_multiset import RowForm
from ..keyed_state.stored_table import StoredTables
from ..keyed_state.table_operator import KeyedTableOperator
from ..keyed_state.waiting_rows import WaitingRows
from ..progress import progress_entry, restored_progress
from ..windows.input_rows import local_ms
from .join_pairs import BLOCK_PAIRS, Matches
from .join_rows import JoinRows, JoinSide, JoinSpec
from .stored_side import SideState, StoredSide

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class TemporalJoinSpec:
    """Specification of a join with versions.

    Args:
        join: which rows match, and the rows of the result; INNER or LEFT. The unique key of the right side is that of
            its rows and their time.
        times: numbers of the columns with the times of the left and the right side.
        ttl_ms: how long a version is known that is not written; 0: as long as rows can ask for it.
    """

    join: JoinSpec
    times: tuple[int, int]
    ttl_ms: int = 0


class TemporalJoinOperator(KeyedTableOperator):
    """Joins rows, at the times that they have, with the versions of the other side; both are partitioned by key.

    Args:
        spec: of the join.
    """

    def __init__(self, spec: TemporalJoinSpec) -> None:
        join = spec.join
        self._left, self._times, self._is_left = join.left, spec.times, join.kind.keeps_left
        self._rows = JoinRows(join)
        self._versions = Versions(join, spec.times[1], spec.ttl_ms)
        about = f"rows that wait for a version: {join.left.state_identity}"
        self._waiting = WaitingRows(join.left.schema.types, join.left.partition_columns, about)
        self._progress = MIN_TIMESTAMP

    # life

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._rows.setup(ctx)
        self._memory = FrameMemory(ctx)
        self._waiting.open(self._memory)
        self._versions.setup(ctx)

    def open(self) -> None:
        self._rows.open()

    def close(self) -> None:
        self._memory.release()
        self._versions.close()
        self._rows.close()

    # state

    @property
    def stored(self) -> StoredTables:
        return self._versions.stored

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self._progress = restored_progress(snapshots, self.ctx)
        for _, _, frame in restored_sides(snapshots, [self._waiting.schema], self.ctx):
            self._waiting.add_frame(frame)
        super().initialize_state(snapshots)
        self._versions.has_restored()

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        frames, width = self._waiting.frames(self._progress), len(self._left.partition_columns)
        groups = FrozenFrames(frames, width, self.ctx.max_parallelism)
        versions = super().snapshot_state(checkpoint_id)
        return replace(versions, lists=progress_entry(self._progress, self.ctx), raw_keyed=groups)

    # rows and time

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        if not len(batch):
            return ()
        if input_index:
            self._versions.add(batch.data, int(self.ctx.clock.now_ms()))
            return ()
        columns = self._left.from_state(self._left.state_columns(batch))
        self._waiting.add(columns, times_of(columns, self._left, self._times[0]))
        return ()

    def process_watermark(self, watermark: Watermark) -> Iterator[Element]:
        if watermark.timestamp > self._progress:
            self._progress = watermark.timestamp
            for columns, times in self._waiting.take_due(watermark.timestamp):
                order = np.argsort(times, kind="stable")
                yield from self._join(take_rows(columns, order), times[order])
            self._versions.prune(watermark.timestamp)
        yield watermark

    def _join(self, columns: Columns, times: Numbers) -> Iterator[Element]:
        """Yield rows, which are in the order of their times, with the versions that hold then."""
        keys = [columns[index] for index in self._left.partition_columns]
        stored = self._versions.at(keys, times, int(self.ctx.clock.now_ms()))
        partners = np.full(len(times), -1, dtype=np.int64)
        has_version = np.flatnonzero(stored >= 0)
        versions = self._versions.side.take(stored[has_version])
        pairs = self._rows.matching(columns, versions, (has_version, np.arange(len(has_version))))
        partners[pairs[0]] = pairs[1]
        chosen = np.arange(len(times)) if self._is_left else np.sort(pairs[0])
        for first in range(0, len(chosen), BLOCK_PAIRS):
            rows = chosen[first : first + BLOCK_PAIRS]
            yield self._rows.pairs(columns, versions, (rows, partners[rows]))


class Versions:
    """The versions of rows by their keys.

    Args:
        join: whose right side they are.
        time: number of the column with the time from which a version holds.
        ttl_ms: how long one is known that is not written; 0: as long as rows can ask for it.
    """

    def __init__(self, join: JoinSpec, time: int, ttl_ms: int) -> None:
        self._right, self._time, self._width = join.right, time, len(join.right.partition_columns)
        self.side = StoredSide(join.right, SideState(RowForm.UNIQUE, ttl_ms, has_matches=True), join.nulls_match)
        self._forms = KeyForms([join.right.schema.types[index] for index in join.right.partition_columns])
        self._changed: list[Columns] = []
        """Keys of which a version may be outdated by a later watermark."""

    def setup(self, ctx: OperatorContext) -> None:
        """Take memory and metrics."""
        self._memory = FrameMemory(ctx)
        self.stored = StoredTables([self.side.open(ctx, self._memory, "right")])

    def has_restored(self) -> None:
        """Look at all keys at the next watermark: the versions that were restored may be outdated."""
        table = self.side.rows.table
        for rows in table.records.in_use():
            if len(rows):
                self._changed.append(self.side.rows.take(rows)[: self._width])

    def close(self) -> None:
        """Give the memory back."""
        self._memory.release()

    def add(self, batch: pa.RecordBatch, now_ms: int) -> None:
        """Add versions; a row that is deleted, or taken back without another one, ends the version before it."""
        kinds, rows = kinds_of(batch), without_kinds(batch)
        is_end = np.zeros(rows.num_rows, dtype=np.int64)
        if kinds is not None:
            chosen = np.flatnonzero(kinds != RowKind.UPDATE_BEFORE.value)
            rows, is_end = rows.take(pa.array(chosen)), (kinds[chosen] == RowKind.DELETE.value).astype(np.int64)
        columns = self.side.state_columns(rows)
        can_match = self.side.can_match(columns)
        if can_match is not None:
            chosen = np.flatnonzero(can_match)
            columns, is_end = take_rows(columns, chosen), is_end[chosen]
        if len(is_end):
            self.side.rows.change(columns, np.ones(len(is_end), dtype=np.int64), is_end, now_ms)
            self._changed.append(columns[: self._width])

    def at(self, keys: Columns, times: Numbers, now_ms: int) -> Numbers:
        """Return the number of the version of each key that holds at a time: int64[n]; -1: there is none."""
        newest, rows = self._newest(self.side.find(keys, self.side.can_match(keys)), times)
        is_known = rows >= 0
        known = rows[is_known]
        is_gone = (self.side.rows.matches(known) != 0) | self.side.rows.is_over(known, now_ms)
        rows[np.flatnonzero(is_known)[is_gone]] = -1
        return rows

    def _newest(self, matches: Matches, until: Numbers) -> tuple[Numbers, Numbers]:
        """Return the greatest time of a version of each key up to a time, and the number of that version."""
        newest = np.full(len(until), MIN_TIMESTAMP, dtype=np.int64)
        rows = np.full(len(until), -1, dtype=np.int64)
        for keys, numbers in matches.pairs(BLOCK_PAIRS):
            times = self._times(numbers.astype(np.int64))
            times = np.where(times <= until[keys], times, MIN_TIMESTAMP)
            order = np.lexsort((times, keys))
            lasts = order[np.append(keys[order][1:] != keys[order][:-1], True)]
            better = lasts[times[lasts] > newest[keys[lasts]]]
            newest[keys[better]], rows[keys[better]] = times[better], numbers[better]
        return newest, rows

    def _times(self, rows: Numbers) -> Numbers:
        return times_of(self.side.take(rows), self._right, self._time)

    def prune(self, until: int) -> None:
        """Remove the versions that end up to a time, and those that are ends."""
        if not self._changed:
            return
        keys = concatenated(self._changed)
        comparable = self._forms.encode(keys)
        _, firsts = distinct_keys(comparable, fingerprints(comparable))
        keys = take_rows(keys, firsts)
        matches = self.side.find(keys, None)
        newest, _ = self._newest(matches, np.full(len(keys[0]), until, dtype=np.int64))
        gone: list[Numbers] = []
        has_later = np.zeros(len(keys[0]), dtype=np.bool_)
        for key_numbers, numbers in matches.pairs(BLOCK_PAIRS):
            stored = numbers.astype(np.int64)
            times = self._times(stored)
            has_later[key_numbers[times > until]] = True
            is_end = (times == newest[key_numbers]) & (self.side.rows.matches(stored) != 0)
            gone.append(stored[(times < newest[key_numbers]) | is_end])
        self._changed = [take_rows(keys, np.flatnonzero(has_later))] if has_later.any() else []
        for numbers in gone:
            self.side.rows.table.remove(numbers)


def times_of(columns: Columns, side: JoinSide, index: int) -> Numbers:
    """Return the times of rows in milliseconds: int64[n]."""
    return local_ms(columns[index], "UTC", side.schema.names[index])


__all__ = ["TemporalJoinOperator", "TemporalJoinSpec"]
