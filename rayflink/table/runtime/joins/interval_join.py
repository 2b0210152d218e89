"""Joins of rows whose times lie near each other: a pair is emitted when its second row comes.

Rows of both sides are stored until no partner can come, see `interval_bounds`; an outer join then emits those without
one. A late row is joined with the rows that are still stored; one that finds no partner and is in no outer join is
counted and dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, ArrowBatch, Batch, Element, Watermark
from rayflink.operators.base import Operator, OperatorContext, OperatorSnapshot
from rayflink.operators.capabilities import ProcessingTimers

from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import to_arrow, to_numpy
from ..keyed_state.frame_memory import Columns, FrameMemory
from ..progress import restored_progress
from ..windows.input_rows import local_ms
from ..windows.window_time import WindowTime
from .interval_bounds import IntervalBounds
from .join_pairs import BLOCK_PAIRS
from .join_rows import JoinRows, JoinSpec
from .join_snapshots import Frame, JoinSnapshots
from .timed_rows import Piece, TimedRows, gather, hashes_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .timed_rows import Rows, Times

_FIELDS = (pa.field("time", pa.int64()), pa.field("arrival", pa.int64()), pa.field("met", pa.bool_()))
"""In a snapshot: the time of a row, its place in the order in which rows came, and whether it has a partner."""
_LEAST_SEGMENT_MS = 100


@dataclass(frozen=True)
class _Probe:
    """The rows of a batch, which look for partners on the other side.

    Args:
        side: their side.
        columns: in the order of the state.
        emits_alone: which are emitted by themselves at once if they have no partner: bool[n].
        has_partner: which have one; it is changed in place: bool[n].
    """

    side: int
    columns: Columns
    emits_alone: NDArray[np.bool_]
    has_partner: NDArray[np.bool_]


@dataclass(frozen=True)
class _Matches:
    """The rows of a stored piece that have the hash and the time of a partner: probe row i has `count[i]` of them.

    Args:
        piece: the piece.
        rows: numbers of rows in the piece; those of probe row i begin at `first[i]`.
        first, count: of each probe row.
    """

    piece: Piece
    rows: Rows
    first: Rows
    count: Rows


@dataclass(frozen=True)
class _Candidates:
    """Pairs with equal hashes and matching times: the probe row, and the piece and number of the stored row.

    They are in the order of the probe rows, those of one in the order in which the stored rows came.
    """

    probe_rows: Rows
    pieces: NDArray[np.intp]
    rows: Rows

    def part(self, start: int, stop: int) -> _Candidates:
        """Return the pairs [start, stop)."""
        return _Candidates(self.probe_rows[start:stop], self.pieces[start:stop], self.rows[start:stop])


class TimeIntervalJoinOperator(Operator, ProcessingTimers):
    """Joins rows by key and time; they are partitioned by key.

    Args:
        spec: of the join.
        bounds: which times match.
        is_event_time: whether rows have times in a column; else the times are those at which they come.
    """

    def __init__(self, spec: JoinSpec, bounds: IntervalBounds, is_event_time: bool) -> None:
        self._spec, self._bounds = spec, bounds
        self._rows = JoinRows(spec)
        about = f"a join of times {bounds.lower_ms} to {bounds.upper_ms} ms apart"
        self._snapshots = JoinSnapshots(spec, about, _FIELDS)
        self._time = WindowTime(is_event_time)
        self._memory: FrameMemory | None = None
        segment = max((bounds.upper_ms - bounds.lower_ms) // 2, _LEAST_SEGMENT_MS)
        self._sides = [TimedRows(len(side.partition_columns), segment) for side in spec.sides]
        self._is_outer = (spec.kind.keeps_left, spec.kind.keeps_right)
        self._arrived = 0
        """Number of rows that came so far."""
        self._due: int | None = None
        self._is_due_known = False

    # life

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._memory = FrameMemory(ctx)
        self._rows.setup(ctx)
        self._time.setup(ctx)

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self._time.progress = restored_progress(snapshots, self.ctx)
        for side, frame in self._snapshots.restore(snapshots, self.ctx):
            if frame.num_rows:
                self._add_frame(side, frame)
        for side in (0, 1):
            self._sides[side].drop(self._bounds.droppable_until(side, self._time.progress), False)

    def open(self) -> None:
        self._rows.open()

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        return self._snapshots.snapshot([_frame(side) for side in self._sides], self._time.progress, self.ctx)

    def _add_frame(self, side: int, frame: pa.RecordBatch) -> None:
        *columns, times, arrivals, has_partner = frame.columns
        numbers = to_numpy(arrivals)
        self._arrived = max(self._arrived, int(numbers.max()) + 1)
        self._store(side, columns, to_numpy(times), numbers, has_partner.to_numpy(zero_copy_only=False).copy())

    def close(self) -> None:
        if self._memory is not None:
            self._memory.release()
        self._rows.close()

    # rows

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        count = len(batch)
        if not count:
            return
        columns = self._spec.sides[input_index].state_columns(batch)
        times = self._times(columns, input_index, count)
        is_stored = times > self._sides[input_index].dropped_until
        is_outer, has_partner = self._is_outer[input_index], np.zeros(count, dtype=np.bool_)
        probe = _Probe(input_index, columns, is_outer & ~is_stored, has_partner)
        yield from self._probe(probe, times)
        if not is_outer:
            is_late = times <= self._bounds.sides[input_index].passed(self._time.progress)
            self._time.count_late(int((is_late & ~is_stored & ~has_partner).sum()))
        arrivals = np.arange(self._arrived, self._arrived + count, dtype=np.int64)
        self._arrived += count
        if not is_stored.all():
            mask = pa.array(is_stored)
            columns = [column.filter(mask) for column in columns]
            times, arrivals, has_partner = times[is_stored], arrivals[is_stored], has_partner[is_stored]
        if len(times):
            self._store(input_index, columns, times, arrivals, has_partner)

    def _times(self, columns: Columns, side: int, rows: int) -> Times:
        index = self._bounds.sides[side].column
        if index is None:
            return np.full(rows, self._time.now_ms, dtype=np.int64)
        spec = self._spec.sides[side]
        return local_ms(columns[spec.state_places[index]], "UTC", spec.schema.names[index])  # instants as they are

    def _store(
        self, side: int, columns: Columns, times: Times, arrivals: Rows, has_partner: NDArray[np.bool_]
    ) -> None:
        self._sides[side].add(columns, times, arrivals, has_partner)
        self._is_due_known = False
        self._keep_to_memory()

    def _keep_to_memory(self) -> None:
        """Write all rows to files if they exceed the memory."""
        size = sum(side.size for side in self._sides)
        if self._memory is not None and not self._memory.reserve(size):
            for side in self._sides:
                side.file(self._memory)
            self._memory.reserve(0)

    # pairs

    def _probe(self, probe: _Probe, times: Times) -> Iterator[ArrowBatch]:
        """Yield the pairs of rows of a batch with stored rows; `times` are those of the batch."""
        other = self._sides[1 - probe.side]
        least, most = self._bounds.partners(probe.side)
        lows = np.maximum(_add_clipped(times, least), min(other.dropped_until, MAX_TIMESTAMP - 1) + 1)
        highs = _add_clipped(times, most)
        pieces = other.pieces(int(lows.min()), int(highs.max()))
        keys = probe.columns[: len(self._spec.left.partition_columns)]
        hashes, can_match = hashes_of(keys, len(times)), self._can_match(keys, len(times))
        order = np.argsort(hashes)
        hashes, lows, highs = hashes[order], lows[order], highs[order]
        matches: list[_Matches] = []
        counts = np.zeros(len(times), dtype=np.int64)
        for piece in pieces:
            index = piece.index(hashes)
            first, count = (_unsorted(numbers, order) for numbers in index.ranges(hashes, lows, highs))
            count[~can_match] = 0
            counts += count
            matches.append(_Matches(piece, index.rows, first, count))
        if counts.any() or probe.emits_alone.any():
            for start, stop in _blocks(counts):
                yield from self._block(probe, pieces, matches, start, stop)

    def _block(
        self, probe: _Probe, pieces: Sequence[Piece], matches: Sequence[_Matches], start: int, stop: int
    ) -> Iterator[ArrowBatch]:
        """Yield the results of probe rows [start, stop): of each its pairs, as the partners came; or the row alone."""
        alone = np.flatnonzero(probe.emits_alone[start:stop]) + start
        candidates = _candidates(matches, start, stop)
        if candidates is None:
            columns = self._spec.sides[probe.side].from_state(probe.columns)
            yield from self._rows.unmatched(columns, alone, is_right=probe.side == 1)
            return
        total = len(candidates.rows)
        for first in range(0, total, BLOCK_PAIRS):
            is_last = first + BLOCK_PAIRS >= total
            part = candidates.part(first, first + BLOCK_PAIRS)
            yield from self._pairs(probe, pieces, part, alone if is_last else alone[:0])

    def _pairs(
        self, probe: _Probe, pieces: Sequence[Piece], candidates: _Candidates, alone: Rows
    ) -> Iterator[ArrowBatch]:
        """Yield the candidates whose keys are equal and whose condition is true.

        Args:
            alone: probe rows that are emitted by themselves if they have no partner.
        """
        is_right, has_partner = probe.side == 1, probe.has_partner
        stored = gather(pieces, candidates.pieces, candidates.rows)
        sides = self._spec.sides
        columns = sides[probe.side].from_state(probe.columns), sides[1 - probe.side].from_state(stored)
        pairs = candidates.probe_rows, np.arange(len(candidates.rows))
        is_equal = self._equal_keys(probe.columns, stored, pairs)
        if not is_equal.all():
            pairs = pairs[0][is_equal], pairs[1][is_equal]
        left, right = columns[::-1] if is_right else columns
        matching = self._rows.matching(left, right, pairs[::-1] if is_right else pairs)
        probe_rows, partners = matching[::-1] if is_right else matching
        has_partner[probe_rows] = True
        for number in np.unique(candidates.pieces[partners]).tolist():
            is_in_piece = candidates.pieces[partners] == number
            pieces[number].has_partner[candidates.rows[partners[is_in_piece]]] = True
        if len(alone):
            alone = alone[~has_partner[alone]]
            order = np.argsort(np.concatenate([probe_rows, alone]), kind="stable")
            probe_rows = np.concatenate([probe_rows, alone])[order]
            partners = np.concatenate([partners, np.full(len(alone), -1)])[order]
        if len(probe_rows):
            yield self._rows.pairs(left, right, (partners, probe_rows) if is_right else (probe_rows, partners))

    def _equal_keys(self, columns: Columns, stored: Columns, pairs: tuple[Rows, Rows]) -> NDArray[np.bool_]:
        """Return whether keys are equal, not their hashes alone: bool[n]."""
        is_equal = np.ones(len(pairs[0]), dtype=np.bool_)
        probe_rows = pa.array(pairs[0])
        for index in range(len(self._spec.left.partition_columns)):
            values, others = _comparable(columns[index].take(probe_rows)), _comparable(stored[index])
            equal = pc.equal(values, others)
            if equal.null_count:
                equal = pc.if_else(equal.is_valid(), equal, pc.and_(values.is_null(), others.is_null()))
            is_equal &= equal.to_numpy(zero_copy_only=False)
        return is_equal

    def _can_match(self, keys: Columns, rows: int) -> NDArray[np.bool_]:
        """Return which rows have a key that can be equal to another: bool[n]."""
        can_match = np.ones(rows, dtype=np.bool_)
        for key, nulls_match in zip(keys, self._spec.nulls_match, strict=True):
            if key.null_count and not nulls_match:
                can_match &= key.is_valid().to_numpy(zero_copy_only=False)
        return can_match

    # time

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        timestamp = watermark.timestamp
        if not self._time.is_event_time:
            if timestamp == MAX_TIMESTAMP:
                yield from self._drop(MAX_TIMESTAMP)
            yield watermark
            return
        if timestamp > self._time.progress:
            yield from self._drop(timestamp)
        if timestamp == MAX_TIMESTAMP:
            yield watermark
        elif timestamp - self._bounds.delay_ms > MIN_TIMESTAMP:
            yield Watermark(timestamp - self._bounds.delay_ms)

    def next_processing_time(self) -> int | None:
        """Return the millisecond after the last one at which a partner of the first row may come."""
        if self._time.is_event_time:
            return None
        if not self._is_due_known:
            dues = [
                least + self._bounds.partners(number)[1] + 1
                for number, side in enumerate(self._sides)
                if (least := side.least) is not None
            ]
            self._due, self._is_due_known = min(dues, default=None), True
        return self._due

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        if not self._time.is_event_time and now_ms - 1 > self._time.progress:
            yield from self._drop(now_ms - 1)

    def _drop(self, progress: int) -> Iterator[ArrowBatch]:
        """Drop rows without a partner to come at this progress of time, and yield those that had none."""
        self._time.progress = progress
        self._is_due_known = False
        unmatched = [
            side.drop(self._bounds.droppable_until(number, progress), self._is_outer[number])
            for number, side in enumerate(self._sides)
        ]
        for number, parts in enumerate(unmatched):
            if parts:
                yield from self._unmatched(number, parts)
        self._keep_to_memory()

    def _unmatched(self, side: int, parts: Sequence[tuple[Piece, Rows]]) -> Iterator[ArrowBatch]:
        """Yield rows of pieces by themselves, in the order in which they came."""
        pieces = [piece for piece, _ in parts]
        numbers = np.repeat(np.arange(len(parts)), [len(rows) for _, rows in parts])
        rows = np.concatenate([rows for _, rows in parts])
        order = np.argsort(np.concatenate([piece.arrivals[rows] for piece, rows in parts]), kind="stable")
        for first in range(0, len(order), BLOCK_PAIRS):
            block = order[first : first + BLOCK_PAIRS]
            columns = self._spec.sides[side].from_state(gather(pieces, numbers[block], rows[block]))
            yield from self._rows.unmatched(columns, np.arange(len(block)), is_right=side == 1)


def _frame(side: TimedRows) -> Frame:
    """Return the frame of a side: it shares the columns, which never change; whether rows have partners is copied."""
    pieces = [(piece.columns, piece.times, piece.arrivals, piece.has_partner.copy()) for piece in side]
    dropped_until = side.dropped_until

    def frame() -> Columns | None:
        parts: list[Columns] = []
        for columns, times, arrivals, has_partner in pieces:
            rows = [*columns, to_arrow(times, pa.int64()), to_arrow(arrivals, pa.int64()), pa.array(has_partner)]
            is_stored = times > dropped_until
            parts.append(rows if is_stored.all() else [column.filter(pa.array(is_stored)) for column in rows])
        return concatenated(parts) if parts else None

    return frame


def _candidates(matches: Sequence[_Matches], start: int, stop: int) -> _Candidates | None:
    """Return the candidates of probe rows [start, stop); None: there are none."""
    probe_rows, pieces, rows, arrivals = [], [], [], []
    for number, match in enumerate(matches):
        counts = match.count[start:stop]
        total = int(counts.sum())
        if total:
            begins = np.cumsum(counts) - counts
            probes = np.repeat(np.arange(start, stop), counts)
            stored = match.rows[match.first[probes] + np.arange(total) - begins[probes - start]]
            probe_rows.append(probes)
            pieces.append(np.full(total, number, dtype=np.intp))
            rows.append(stored)
            arrivals.append(match.piece.arrivals[stored])
    if not probe_rows:
        return None
    probes = np.concatenate(probe_rows)
    order = np.lexsort((np.concatenate(arrivals), probes))
    return _Candidates(probes[order], np.concatenate(pieces)[order], np.concatenate(rows)[order])


def _comparable(values: pa.Array) -> pa.Array:
    """Convert values so that they are equal where keys are: NaN equals NaN, 0.0 does not equal -0.0."""
    if values.type == pa.float64():
        return pc.if_else(pc.is_nan(values), float("nan"), values).view(pa.int64())
    if values.type == pa.float32():
        return pc.if_else(pc.is_nan(values), pa.scalar(float("nan"), pa.float32()), values).view(pa.int32())
    return values


def _unsorted(numbers: Rows, order: NDArray[np.intp]) -> Rows:
    """Return numbers that were computed in an order, in the original one."""
    original = np.empty_like(numbers)
    original[order] = numbers
    return original


def _add_clipped(times: Times, ms: int) -> Times:
    """Return times later by some milliseconds, within 64 bits."""
    room = np.iinfo(np.int64)
    return np.clip(times, max(room.min, room.min - ms), min(room.max, room.max - ms)) + ms


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
