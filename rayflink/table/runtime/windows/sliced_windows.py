"""Windows that are made of slices: the state is partial rows of slices, and windows give theirs when they are over.

A row is late when all windows of its slice have fired; it is then counted and dropped.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from rayflink.common.records.batches import MIN_TIMESTAMP, ArrowBatch, Element

from ..aggregates.partial_aggregates import PartialRows
from ..aggregates.reductions import to_numpy
from ..aggregates.window_spec import WindowSpec
from ..keyed_state.frame_memory import Columns, FrameMemory
from .running_windows import RunningWindows
from .slice_frames import SLICE_FIELDS, frame_of, frames_into
from .slice_store import SliceStore, split_by
from .slicing import Slicing
from .table_window_operator import TableWindowOperator

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FIRING_WEIGHT = 65_536
"""So much is worked at once at least, where more than one window fires; see `PartialRows.weight`."""


class SlicedWindows(TableWindowOperator):
    """Keeps partial rows that are partitioned by key.

    Args:
        window: windows that are not sessions.
        partials: what is kept of their rows.
    """

    def __init__(self, window: WindowSpec, partials: PartialRows) -> None:
        super().__init__(window, partials, SLICE_FIELDS)
        self._slicing = Slicing(window)
        self._store = SliceStore(partials, not self._slicing.is_alone)
        self._running = RunningWindows(self._store, self._slicing)

    @abstractmethod
    def fired(self, windows: list[tuple[int, list[Columns]]]) -> Iterator[ArrowBatch]:
        """Return the results of windows, given as (end, pieces of partial rows)."""

    def begin(self, memory: FrameMemory) -> None:
        self._store.open(memory)

    def frame(self) -> Callable[[], pa.RecordBatch]:
        return frame_of(self._store, self._state_schema)

    def take_frame(self, frame: pa.RecordBatch) -> None:
        frames_into(self._store, frame)
        self._running.forget()
        self._store.keep_to_memory()

    def open_pieces(self) -> Iterator[Columns]:
        return (piece for _, pieces in self._store for piece in pieces)

    def next_firing(self) -> int | None:
        after = MIN_TIMESTAMP if self._may_be_over else self.progress
        return self._slicing.next_firing(self._store.ends, after) if self._store else None

    def add(self, ends: NDArray[np.int64], columns: Columns) -> None:
        """Add partial rows to the slices with these ends; late ones are counted and dropped."""
        slicing, is_event_time = self._slicing, self._window.is_event_time
        for end, piece in split_by(ends, columns):
            if is_event_time and slicing.fires_at(slicing.last_window(end)) <= self.progress:
                self.count_late(int(to_numpy(piece[self._kept.rows_column]).sum()))
            else:
                self._store.add(end, piece)
                self._running.changed(end)
        self._store.keep_to_memory()

    def advance(self, after: int, until: int) -> Iterator[Element]:
        ends = self._store.ends
        windows: list[tuple[int, list[Columns]]] = []
        weight = 0
        for window, first, stop in self._slicing.windows_due(ends, after, until):
            pieces = self._running.pieces(window, ends[first:stop])
            windows.append((window, pieces))
            weight += sum(map(self._kept.weight, pieces))
            if weight >= FIRING_WEIGHT:
                yield from self.fired(windows)
                windows, weight = [], 0
        if windows:
            yield from self.fired(windows)
        for end in ends:
            if self._slicing.fires_at(self._slicing.last_window(end)) > until:
                break
            self._store.drop(end)


__all__ = ["FIRING_WEIGHT", "SlicedWindows"]
