"""Joins of rows whose times lie near each other: a pair is given when its second row comes.

Rows of both sides are kept until no partner can come, see `interval_bounds`; an outer join then gives those without
one. A late row is joined with what is still there; one that finds nothing and is not kept is counted and dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, ArrowBatch, Batch, Element, Watermark
from rayflink.operators.base import OperatorSnapshot
from rayflink.operators.capabilities import ProcessingTimers

from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import to_arrow, to_numpy
from ..keyed_state.frame_memory import Columns
from ..windows.input_rows import local_ms
from .interval_bounds import IntervalBounds
from .join_operator import Frame, JoinOperator
from .join_pairs import BLOCK_PAIRS
from .join_rows import JoinSpec
from .timed_rows import Piece, TimedRows, gathered, hashes_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .timed_rows import Rows, Times

_FIELDS = (pa.field("time", pa.int64()), pa.field("arrival", pa.int64()), pa.field("met", pa.bool_()))
_LEAST_SEGMENT_MS = 100


@dataclass(frozen=True)
class _Incoming:
    """Rows that come.

    Args:
        alone: those that are given by themselves at once where they have no partner.
        met: those that have some, which is written.
    """

    side: int
    columns: Columns
    alone: NDArray[np.bool_]
    met: NDArray[np.bool_]


class TimeIntervalJoinOperator(JoinOperator, ProcessingTimers):
    """Joins rows by key and time; they are partitioned by key.

    Args:
        spec: of the join.
        bounds: which times go together.
        is_event_time: else the times are those at which rows come.
    """

    def __init__(self, spec: JoinSpec, bounds: IntervalBounds, is_event_time: bool) -> None:
        about = f"a join of times {bounds.lower_ms} to {bounds.upper_ms} ms apart"
        super().__init__(spec, about, _FIELDS)
        self._bounds, self._is_event_time = bounds, is_event_time
        segment = max((bounds.upper_ms - bounds.lower_ms) // 2, _LEAST_SEGMENT_MS)
        self._held = [TimedRows(len(side.partition_columns), segment) for side in spec.sides]
        self._keeps = (spec.kind.keeps_left, spec.kind.keeps_right)
        self._arrived = 0
        self._due: int | None = None
        self._is_due_known = False

    # state

    def frame(self, side: int) -> Frame:
        held, schema = self._held[side], self._state_schemas[side]
        # `met` is written in place
        pieces = [(one.columns, one.times, one.arrived, one.met.copy()) for one in held]
        forgotten = held.forgotten

        def frame() -> pa.RecordBatch:
            parts: list[Columns] = []
            for columns, times, arrived, met in pieces:
                own = [*columns, to_arrow(times, pa.int64()), to_arrow(arrived, pa.int64()), pa.array(met)]
                kept = times > forgotten
                parts.append(own if kept.all() else [one.filter(pa.array(kept)) for one in own])
            if not parts:
                return pa.RecordBatch.from_pylist([], schema=schema)
            return pa.RecordBatch.from_arrays(concatenated(parts), schema=schema)

        return frame

    def take_frame(self, side: int, frame: pa.RecordBatch) -> None:
        if not frame.num_rows:
            return
        *columns, times, arrived, met = frame.columns
        own = to_numpy(arrived)
        self._arrived = max(self._arrived, int(own.max()) + 1)
        self._held[side].add(columns, to_numpy(times), own, met.to_numpy(zero_copy_only=False).copy())
        self._is_due_known = False
        self._keep_to_memory()

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        super().initialize_state(snapshots)
        for side in (0, 1):
            self._held[side].forget(self._bounds.forgotten(side, self.progress), False)

    def _keep_to_memory(self) -> None:
        size = sum(one.size for one in self._held)
        if self.memory is not None and not self.memory.hold(size):
            for one in self._held:
                one.file(self.memory)
            self.memory.hold(0)

    # rows

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        rows = len(batch)
        if not rows:
            return
        columns = self.held_columns(batch, input_index)
        times = self._times(columns, input_index, rows)
        held = self._held[input_index]
        stays = times > held.forgotten
        met = np.zeros(rows, dtype=np.bool_)
        yield from self._joined(input_index, columns, times, stays, met)
        kept = self._keeps[input_index]
        if not kept:
            late = ~stays & ~met & (times <= self._bounds.sides[input_index].passed(self.progress))
            self.count_late(int(late.sum()))
        arrived = np.arange(self._arrived, self._arrived + rows, dtype=np.int64)
        self._arrived += rows
        if not stays.all():
            chosen = pa.array(stays)
            columns = [one.filter(chosen) for one in columns]
            times, arrived, met = times[stays], arrived[stays], met[stays]
        if len(times):
            held.add(columns, times, arrived, met)
            self._is_due_known = False
            self._keep_to_memory()

    def _times(self, columns: Columns, side: int, rows: int) -> Times:
        at = self._bounds.sides[side].column
        if at is None:
            return np.full(rows, self.now_ms, dtype=np.int64)
        own = self.spec.sides[side]
        return local_ms(columns[own.places[at]], "UTC", own.schema.names[at])  # instants are compared as they are

    def _joined(self, side: int, columns: Columns, times: Times, stays: NDArray[np.bool_],
                met: NDArray[np.bool_]) -> Iterator[ArrowBatch]:  # fmt: skip
        """Yield the pairs of rows that come with those that are there; `met` is set for those that have some."""
        other = self._held[1 - side]
        least, most = self._bounds.partners(side)
        lows = np.maximum(_sum(times, least), min(other.forgotten, MAX_TIMESTAMP - 1) + 1)
        highs = _sum(times, most)
        pieces = other.pieces(int(lows.min()), int(highs.max()))
        width = len(self.spec.left.partition_columns)
        keys = columns[:width]
        hashes = hashes_of(keys, len(times))
        known = self._known(keys, len(times))
        order = np.argsort(hashes)
        hashes, lows, highs = hashes[order], lows[order], highs[order]
        found = []
        counts = np.zeros(len(times), dtype=np.int64)
        for piece in pieces:
            index = piece.index(hashes)
            first, count = (_put_back(one, order) for one in index.ranges(hashes, lows, highs))
            count[~known] = 0
            counts += count
            found.append((index.rows, first, count))
        came = _Incoming(side, columns, self._keeps[side] & ~stays, met)
        if counts.any() or came.alone.any():
            for block in _blocks(counts):
                yield from self._block(came, pieces, found, block)

    def _block(self, came: _Incoming, pieces: Sequence[Piece], found: Sequence[tuple[Rows, Rows, Rows]],
               block: tuple[int, int]) -> Iterator[ArrowBatch]:  # fmt: skip
        """Yield the results of some rows that come: of each its pairs, as their partners came; or the row by itself."""
        start, stop = block
        rest = np.flatnonzero(came.alone[start:stop]) + start
        own, of, rows = [], [], []
        for number, (order, first, count) in enumerate(found):
            counts = count[start:stop]
            total = int(counts.sum())
            if total:
                begins = np.cumsum(counts) - counts
                probe = np.repeat(np.arange(start, stop), counts)
                own.append(probe)
                rows.append(order[first[probe] + np.arange(total) - begins[probe - start]])
                of.append(np.full(total, number, dtype=np.intp))
        if own:
            probes, pieces_of, numbers = np.concatenate(own), np.concatenate(of), np.concatenate(rows)
            arrived = np.concatenate([pieces[int(one[0])].arrived[row] for one, row in zip(of, rows, strict=True)])
            order = np.lexsort((arrived, probes))
            for at in range(0, len(order), BLOCK_PAIRS):
                part = order[at : at + BLOCK_PAIRS]
                own_part = probes[part], pieces_of[part], numbers[part]
                is_last = at + BLOCK_PAIRS >= len(order)
                yield from self._pairs(came, pieces, own_part, rest if is_last else rest[:0])
        else:
            yield from self.rows.alone(self._as_they_are(came.columns, came.side), rest, of_right=came.side == 1)

    def _pairs(self, came: _Incoming, pieces: Sequence[Piece], found: tuple[Rows, NDArray[np.intp], Rows],
               rest: Rows) -> Iterator[ArrowBatch]:  # fmt: skip
        """Pairs whose keys are equal and whose condition is true.

        Args:
            found: of each pair the row that comes, and the piece and number of the one that is there.
            rest: rows that come which are given by themselves if they have no pair.
        """
        side, columns, met = came.side, came.columns, came.met
        probes, of, numbers = found
        others = gathered(pieces, of, numbers)
        mine, theirs = self._as_they_are(columns, side), self._as_they_are(others, 1 - side)
        pairs = probes, np.arange(len(probes))
        equal = self._equal(columns, others, pairs)
        if not equal.all():
            pairs = pairs[0][equal], pairs[1][equal]
        left, right = (theirs, mine) if side else (mine, theirs)
        pairs = pairs[::-1] if side else pairs
        pairs = self.rows.fulfilled(left, right, pairs)
        given, partners = pairs[::-1] if side else pairs
        met[given] = True
        for number in np.unique(of[partners]).tolist():
            pieces[number].met[numbers[partners[of[partners] == number]]] = True
        if len(rest):
            rest = rest[~met[rest]]
            order = np.argsort(np.concatenate([given, rest]), kind="stable")
            given = np.concatenate([given, rest])[order]
            partners = np.concatenate([partners, np.full(len(rest), -1)])[order]
        if len(given):
            yield self.rows.of_pairs(left, right, (partners, given) if side else (given, partners))

    def _equal(self, columns: Columns, others: Columns, pairs: tuple[Rows, Rows]) -> NDArray[np.bool_]:
        """Return whether keys are equal, not their hashes alone: bool[n]."""
        equal = np.ones(len(pairs[0]), dtype=np.bool_)
        own = pa.array(pairs[0])
        for at in range(len(self.spec.left.partition_columns)):
            one, other = _as_keys(columns[at].take(own)), _as_keys(others[at])
            found = pc.equal(one, other)
            if found.null_count:
                found = pc.if_else(found.is_valid(), found, pc.and_(one.is_null(), other.is_null()))
            equal &= found.to_numpy(zero_copy_only=False)
        return equal

    def _known(self, keys: Columns, rows: int) -> NDArray[np.bool_]:
        """Return rows whose key can be equal to another: bool[n]."""
        known = np.ones(rows, dtype=np.bool_)
        for key, nulls in zip(keys, self.spec.nulls_match, strict=True):
            if key.null_count and not nulls:
                known &= key.is_valid().to_numpy(zero_copy_only=False)
        return known

    def _as_they_are(self, columns: Columns, side: int) -> Columns:
        return self.spec.sides[side].as_they_are(columns)

    # time

    @property
    def now_ms(self) -> int:
        """Processing time; never one that is over."""
        return max(int(self.ctx.clock.now_ms()), self.progress + 1)

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        if not self._is_event_time:
            if watermark.timestamp == MAX_TIMESTAMP:
                yield from self._forgotten(MAX_TIMESTAMP)
            yield watermark
            return
        if watermark.timestamp > self.progress:
            yield from self._forgotten(watermark.timestamp)
        if watermark.timestamp == MAX_TIMESTAMP:
            yield watermark
        elif watermark.timestamp - self._bounds.delay_ms > MIN_TIMESTAMP:
            yield Watermark(watermark.timestamp - self._bounds.delay_ms)

    def next_processing_time(self) -> int | None:
        """Return the millisecond after the last one at which a partner of the first row may come."""
        if self._is_event_time:
            return None
        if not self._is_due_known:
            dues = [
                least + self._bounds.partners(side)[1] + 1
                for side, held in enumerate(self._held)
                if (least := held.least) is not None
            ]
            self._due, self._is_due_known = min(dues, default=None), True
        return self._due

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        if not self._is_event_time and now_ms - 1 > self.progress:
            yield from self._forgotten(now_ms - 1)

    def _forgotten(self, progress: int) -> Iterator[ArrowBatch]:
        """Time has come so far: rows without a partner whose time is over, then all such rows are forgotten."""
        self.progress = progress
        self._is_due_known = False
        alone = [
            held.forget(self._bounds.forgotten(side, progress), self._keeps[side])
            for side, held in enumerate(self._held)
        ]
        for side, found in enumerate(alone):
            if found:
                pieces = [piece for piece, _ in found]
                of = np.repeat(np.arange(len(found)), [len(rows) for _, rows in found])
                numbers = np.concatenate([rows for _, rows in found])
                order = np.argsort(np.concatenate([piece.arrived[rows] for piece, rows in found]), kind="stable")
                for at in range(0, len(order), BLOCK_PAIRS):
                    part = order[at : at + BLOCK_PAIRS]
                    columns = self._as_they_are(gathered(pieces, of[part], numbers[part]), side)
                    yield from self.rows.alone(columns, np.arange(len(part)), of_right=side == 1)
        self._keep_to_memory()


def _as_keys(values: pa.Array) -> pa.Array:
    """Convert values so that they are equal where keys are: NaN equals NaN, 0.0 does not equal -0.0."""
    if values.type == pa.float64():
        return pc.if_else(pc.is_nan(values), float("nan"), values).view(pa.int64())
    if values.type == pa.float32():
        return pc.if_else(pc.is_nan(values), pa.scalar(float("nan"), pa.float32()), values).view(pa.int32())
    return values


def _put_back(numbers: Rows, order: NDArray[np.intp]) -> Rows:
    """Return numbers that were computed in an order, as they were before."""
    found = np.empty_like(numbers)
    found[order] = numbers
    return found


def _sum(times: Times, by: int) -> Times:
    """Times later by so much, within 64 bits."""
    room = np.iinfo(np.int64)
    return np.clip(times, max(room.min, room.min - by), min(room.max, room.max - by)) + by


def _blocks(counts: Rows) -> Iterator[tuple[int, int]]:
    """Yield rows [start, stop) that have about `BLOCK_PAIRS` pairs together, or one row."""
    totals = np.cumsum(counts + 1)
    start = 0
    while start < len(counts):
        before = int(totals[start - 1]) if start else 0
        stop = max(int(np.searchsorted(totals, before + BLOCK_PAIRS, side="right")), start + 1)
        yield start, stop
        start = stop


__all__ = ["TimeIntervalJoinOperator"]
