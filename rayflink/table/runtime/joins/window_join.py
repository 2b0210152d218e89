"""Joins of rows of equal windows, when the windows are over; and of whole tables, at their ends.

The state is the rows of each side by the end of their window, in the order in which they came. A row whose window is
over is late; it is then counted and dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import MAX_TIMESTAMP, Batch, Element, Watermark
from rayflink.operators.base import Operator, OperatorContext, OperatorSnapshot

from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import to_arrow, to_numpy
from ..keyed_state.frame_memory import Columns, FrameMemory, divided, size_of
from ..progress import restored_progress
from ..windows.input_rows import local_ms
from ..windows.slice_store import split_by
from ..windows.window_time import WindowTime
from ..windows.zone_shift import last_over, timer_of
from .join_pairs import match_keys
from .join_rows import JoinRows, JoinSpec
from .join_snapshots import Frame, JoinSnapshots

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRING_ROWS = 65_536
"""Windows that are over at once are joined together up to this number of rows."""
_FIELDS = (pa.field("window", pa.int64()), pa.field("arrival", pa.int64()))
_WHOLE = 0
"""In place of a window's end where there are no windows."""


@dataclass
class _SideRows:
    """The rows of one side and window: pieces in files, and those in memory, which came later."""

    filed: list[Columns] = field(default_factory=list)
    pieces: list[Columns] = field(default_factory=list)

    @property
    def all(self) -> list[Columns]:
        """Return all pieces."""
        return [*self.filed, *self.pieces]


class WindowJoinOperator(Operator):
    """Joins rows of equal windows that are partitioned by key.

    Args:
        spec: of the join.
        bounds: of each side the numbers of the columns window_start and window_end; None: the sides are whole tables.
        zone: in whose local time the windows lie.
    """

    def __init__(self, spec: JoinSpec, bounds: tuple[tuple[int, int], tuple[int, int]] | None, zone: str) -> None:
        self._spec, self._zone, self._bounds = spec, zone, bounds
        self._rows = JoinRows(spec)
        self._snapshots = JoinSnapshots(spec, "a join of windows", _FIELDS)
        self._time = WindowTime(True)
        self._memory: FrameMemory | None = None
        self._windows: dict[int, tuple[_SideRows, _SideRows]] = {}
        """End of the windows -> rows of the left side, of the right side."""
        self._size = 0

    # life

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._memory = FrameMemory(ctx)
        self._rows.setup(ctx)
        self._time.setup(ctx)

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self._time.progress = restored_progress(snapshots, self.ctx)
        for side, frame in self._snapshots.restore(snapshots, self.ctx):
            *columns, ends, arrival = frame.columns
            order = pa.array(np.lexsort((to_numpy(arrival), to_numpy(ends))))
            self._add(side, to_numpy(ends.take(order)), [column.take(order) for column in columns])

    def open(self) -> None:
        self._rows.open()

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        return self._snapshots.snapshot([self._frame(side) for side in (0, 1)], self._time.progress, self.ctx)

    def _frame(self, side: int) -> Frame:
        windows = [(end, pieces) for end, sides in self._windows.items() if (pieces := sides[side].all)]

        def frame() -> Columns | None:
            parts: list[Columns] = []
            for end, pieces in windows:
                columns = concatenated(pieces)
                rows = len(columns[0])
                ends, arrival = np.full(rows, end, dtype=np.int64), np.arange(rows, dtype=np.int64)
                parts.append([*columns, to_arrow(ends, pa.int64()), to_arrow(arrival, pa.int64())])
            return concatenated(parts) if parts else None

        return frame

    def close(self) -> None:
        if self._memory is not None:
            self._memory.release()
        self._rows.close()

    # rows

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        if not len(batch):
            return ()
        side = self._spec.sides[input_index]
        columns = side.state_columns(batch)
        if self._bounds is None:
            self._add(input_index, np.full(len(batch), _WHOLE, dtype=np.int64), columns)
            return ()
        end = self._bounds[input_index][1]
        ends = local_ms(columns[side.state_places[end]], "UTC", side.schema.names[end])
        is_late = ends - 1 <= last_over(self._time.progress, self._zone)
        if is_late.any():
            self._time.count_late(int(is_late.sum()))
            in_time = pa.array(~is_late)
            ends, columns = ends[~is_late], [column.filter(in_time) for column in columns]
        if len(ends):
            self._add(input_index, ends, columns)
        return ()

    def _add(self, side: int, ends: NDArray[np.int64], columns: Columns) -> None:
        for end, piece in split_by(ends, columns):
            self._windows.setdefault(end, (_SideRows(), _SideRows()))[side].pieces.append(piece)
            self._size += size_of(piece)
        if self._memory is not None and not self._memory.reserve(self._size):
            self._write(self._memory)

    def _write(self, memory: FrameMemory) -> None:
        """Write all rows to files."""
        for side in (0, 1):
            in_memory = [sides[side] for sides in self._windows.values() if sides[side].pieces]
            if in_memory:
                written = memory.written(concatenated(rows.pieces) for rows in in_memory)
                for rows, piece in zip(in_memory, written, strict=True):
                    rows.filed.append(piece)
                    rows.pieces = []
        self._size = 0
        memory.reserve(0)

    # time

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        if self._bounds is None:  # whole tables are over at their ends, and aggregates emit rows behind the last one
            return
        if watermark.timestamp > self._time.progress:
            self._time.progress = watermark.timestamp
            yield from self.fire()
        yield watermark

    def finish(self) -> Iterable[Element]:
        if self._bounds is None:
            self._time.progress = MAX_TIMESTAMP
            yield from self.fire()
            yield Watermark(MAX_TIMESTAMP)

    def fire(self) -> Iterator[Element]:
        """Yield the rows of all windows that are over, which are then forgotten."""
        due: list[int] = []
        rows = 0
        for end in sorted(self._windows):
            if self._fires_at(end) > self._time.progress:
                break
            due.append(end)
            rows += sum(len(piece[0]) for side in self._windows[end] for piece in side.all)
            if rows >= FIRING_ROWS:
                yield from self._join_windows(due)
                due, rows = [], 0
        if due:
            yield from self._join_windows(due)
        if not self._windows and self._memory is not None:
            self._size = 0
            self._memory.reserve(0)

    def _fires_at(self, end: int) -> int:
        return MAX_TIMESTAMP if self._bounds is None else timer_of(end - 1, self._zone)

    def _join_windows(self, due: list[int]) -> Iterator[Element]:
        """Yield the rows of some windows, in parts by key where memory is short."""
        windows = [self._windows.pop(end) for end in due]
        sides = [[piece for window in windows for piece in window[side].all] for side in (0, 1)]
        self._size -= sum(size_of(piece) for window in windows for side in window for piece in side.pieces)
        width, parts = len(self._spec.left.partition_columns), 1
        if self._memory is not None and width and len(due) == 1:
            parts = self._memory.parts(sum(size_of(piece) for pieces in sides for piece in pieces))
        if parts == 1:
            yield from self._join(sides)
            return
        for part in zip(*(divided(pieces, width, parts) for pieces in sides), strict=True):
            yield from self._join([[piece for piece in pieces if len(piece[0])] for pieces in part])

    def _join(self, sides: list[list[Columns]]) -> Iterator[Element]:
        """Yield the rows of pairs with equal keys and windows; `sides` are pieces of the left and the right side."""
        columns, keys = [], []
        for number, side in enumerate(self._spec.sides):
            columns.append(side.from_state(concatenated(sides[number])) if sides[number] else side.no_rows())
            bounds = () if self._bounds is None else self._bounds[number]
            keys.append([columns[number][key] for key in (*side.keys, *bounds)])
        nulls_match = (*self._spec.nulls_match, *(() if self._bounds is None else (False, False)))
        rows = len(columns[0][0]), len(columns[1][0])
        matches = match_keys(keys[0], keys[1], nulls_match, *rows)
        yield from self._rows.join(columns[0], columns[1], rows, matches.pairs())


__all__ = ["FIRING_ROWS", "WindowJoinOperator"]
