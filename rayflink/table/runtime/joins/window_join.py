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

from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import to_arrow, to_numpy
from ..keyed_state.frame_memory import Columns, divided, size_of
from ..windows.input_rows import local_ms
from ..windows.slice_store import split_by
from ..windows.zone_shift import last_over, timer_of
from .join_operator import Frame, JoinOperator, rows_of_columns
from .join_pairs import matches
from .join_rows import JoinSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIRING_ROWS = 65_536
"""Rows that are joined at once at least, where more than one window is over."""
_FIELDS = (pa.field("window", pa.int64()), pa.field("arrival", pa.int64()))
_WHOLE = 0
"""In place of a window's end where there are no windows."""


@dataclass
class _Rows:
    """The rows of one side and window: pieces in files, and those in memory, which came later."""

    filed: list[Columns] = field(default_factory=list)
    pieces: list[Columns] = field(default_factory=list)

    @property
    def all(self) -> list[Columns]:
        """Return all pieces."""
        return [*self.filed, *self.pieces]


class WindowJoinOperator(JoinOperator):
    """Joins rows of equal windows that are partitioned by key.

    Args:
        spec: of the join.
        bounds: of each side the numbers of the columns window_start and window_end; None: the sides are whole tables.
        zone: in whose local time the windows lie.
    """

    def __init__(self, spec: JoinSpec, bounds: tuple[tuple[int, int], tuple[int, int]] | None, zone: str) -> None:
        super().__init__(spec, "a join of windows", _FIELDS)
        self._zone = zone
        self._starts = None if bounds is None else (bounds[0][0], bounds[1][0])
        self._ends = None if bounds is None else (bounds[0][1], bounds[1][1])
        self._windows: dict[int, tuple[_Rows, _Rows]] = {}
        """End of the windows -> rows of the left side, of the right side."""
        self._size = 0

    # state

    def frame(self, side: int) -> Frame:
        held = [(end, pieces) for end, sides in self._windows.items() if (pieces := sides[side].all)]
        schema = self._state_schemas[side]

        def frame() -> pa.RecordBatch:
            parts: list[Columns] = []
            for end, pieces in held:
                columns = concatenated(pieces)
                rows = rows_of_columns(columns)
                ends, arrival = np.full(rows, end, dtype=np.int64), np.arange(rows, dtype=np.int64)
                parts.append([*columns, to_arrow(ends, pa.int64()), to_arrow(arrival, pa.int64())])
            if not parts:
                return pa.RecordBatch.from_pylist([], schema=schema)
            return pa.RecordBatch.from_arrays(concatenated(parts), schema=schema)

        return frame

    def take_frame(self, side: int, frame: pa.RecordBatch) -> None:
        *columns, ends, arrival = frame.columns
        order = pa.array(np.lexsort((to_numpy(arrival), to_numpy(ends))))
        self._add(side, to_numpy(ends.take(order)), [one.take(order) for one in columns])

    def _add(self, side: int, ends: NDArray[np.int64], columns: Columns) -> None:
        for end, piece in split_by(ends, columns):
            self._windows.setdefault(end, (_Rows(), _Rows()))[side].pieces.append(piece)
            self._size += size_of(piece)
        if self.memory is not None and not self.memory.hold(self._size):
            self._write()

    def _write(self) -> None:
        """Have all rows in files."""
        assert self.memory is not None
        for side in (0, 1):
            held = [sides[side] for sides in self._windows.values() if sides[side].pieces]
            if held:
                written = self.memory.written(concatenated(one.pieces) for one in held)
                for one, piece in zip(held, written, strict=True):
                    one.filed.append(piece)
                    one.pieces = []
        self._size = 0
        self.memory.hold(0)

    # rows

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        if not len(batch):
            return ()
        columns = self.held_columns(batch, input_index)
        if self._ends is None:
            self._add(input_index, np.full(len(batch), _WHOLE, dtype=np.int64), columns)
            return ()
        side = self.spec.sides[input_index]
        at = self._ends[input_index]
        ends = local_ms(columns[side.places[at]], "UTC", side.schema.names[at])
        late = ends - 1 <= last_over(self.progress, self._zone)
        if late.any():
            self.count_late(int(late.sum()))
            kept = pa.array(~late)
            ends, columns = ends[~late], [one.filter(kept) for one in columns]
        if len(ends):
            self._add(input_index, ends, columns)
        return ()

    # time

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        if self._ends is None:  # whole tables are not over with it: what aggregates them gives rows behind the last one
            return
        if watermark.timestamp > self.progress:
            self.progress = watermark.timestamp
            yield from self._fired()
        yield watermark

    def finish(self) -> Iterable[Element]:
        if self._ends is None:
            self.progress = MAX_TIMESTAMP
            yield from self._fired()
            yield Watermark(MAX_TIMESTAMP)

    def _fired(self) -> Iterator[Element]:
        """Yield the rows of all windows that are over, which are then forgotten."""
        due: list[int] = []
        rows = 0
        for end in sorted(self._windows):
            if self._fires_at(end) > self.progress:
                break
            due.append(end)
            rows += sum(len(piece[0]) for one in self._windows[end] for piece in one.all)
            if rows >= FIRING_ROWS:
                yield from self._joined(due)
                due, rows = [], 0
        if due:
            yield from self._joined(due)
        if not self._windows and self.memory is not None:
            self._size = 0
            self.memory.hold(0)

    def _fires_at(self, end: int) -> int:
        return MAX_TIMESTAMP if self._ends is None else timer_of(end - 1, self._zone)

    def _joined(self, due: list[int]) -> Iterator[Element]:
        """Yield the rows of some windows."""
        windows = [self._windows.pop(end) for end in due]
        sides = [[piece for window in windows for piece in window[side].all] for side in (0, 1)]
        sizes = [sum(map(size_of, pieces)) for pieces in sides]
        self._size -= sum(size_of(piece) for window in windows for one in window for piece in one.pieces)
        parts = 1
        if self.memory is not None and self.spec.left.partition_columns and len(due) == 1:
            parts = self.memory.parts(sum(sizes))
        if parts == 1:
            yield from self._of(*sides)
            return
        width = len(self.spec.left.partition_columns)
        for part in zip(*(divided(pieces, width, parts) for pieces in sides), strict=True):
            yield from self._of(*([piece for piece in own if len(piece[0])] for own in part))

    def _of(self, *pieces: list[Columns]) -> Iterator[Element]:
        columns, keys, rows = [], [], []
        for at, side in enumerate(self.spec.sides):
            if pieces[at]:
                own = side.as_they_are(concatenated(pieces[at]))
            else:
                own = [pa.array([], kind) for kind in side.schema.types]
            columns.append(own)
            rows.append(rows_of_columns(own))
            bounds = () if self._starts is None or self._ends is None else (self._starts[at], self._ends[at])
            keys.append([own[key] for key in (*side.keys, *bounds)])
        nulls = (*self.spec.nulls_match, *(() if self._ends is None else (False, False)))
        found = matches(keys[0], keys[1], nulls, rows[0], rows[1])
        yield from self.rows.joined(columns[0], columns[1], (rows[0], rows[1]), found.pairs())


__all__ = ["FIRING_ROWS", "WindowJoinOperator"]
