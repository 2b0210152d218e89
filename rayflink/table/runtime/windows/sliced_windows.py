"""Windows that consist of slices: partial rows are collected by slice, and a window merges its slices when it is over.

A row is late when all windows of its slice have fired; it is then counted and dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Batch, Element
from rayflink.operators.base import OperatorContext

from ..aggregates.partial_aggregates import PartialRows
from ..aggregates.reductions import to_numpy
from ..keyed_state.frame_memory import Columns, FrameMemory
from .running_windows import RunningWindows
from .slice_store import SLICE_FIELDS, SliceStore, split_by
from .slicing import Slicing
from .window_contents import WindowContents
from .window_time import WindowTime

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FIRING_WEIGHT = 65_536
"""Windows that are over at once fire together up to this weight; see `PartialRows.weight`."""


class FiredWindow(NamedTuple):
    """A window that is over, by its end, and the pieces of partial rows that it consists of."""

    end: int
    pieces: list[Columns]


class SliceInput(Protocol):
    """The way from batches to partial rows of slices: `RawRows`, `ArrivingPartialRows`, `ArrivingRankedRows`."""

    def read(self, batch: Batch, time: WindowTime) -> tuple[NDArray[np.int64], Columns] | None:
        """Called for each batch. Return the ends of the slices, int64[n], and the columns of the partial rows; None
        where the batch has no rows.
        """
        ...


class WindowFiring(Protocol):
    """The way from windows that are over to rows of the result: `AggregateFiring`, `RankFiring`."""

    def fire(self, windows: Sequence[FiredWindow], store: SliceStore) -> Iterator[ArrowBatch]:
        """Called with one window or several small ones, by their ends. Yield their results."""
        ...


class SlicedWindows(WindowContents):
    """The windows of tumbling, hopping, cumulating and attached kind.

    Args:
        slicing: the slices of the windows.
        partials: how partial rows merge.
        rows: reads batches.
        firing: makes results.
    """

    state_fields = SLICE_FIELDS

    def __init__(self, slicing: Slicing, partials: PartialRows, rows: SliceInput, firing: WindowFiring) -> None:
        self.partials = partials
        self._slicing, self._input, self._firing = slicing, rows, firing
        self.store = SliceStore(partials, slicing.assigner.shares_slices)
        self._running = RunningWindows(self.store, slicing.assigner)
        self.memory: FrameMemory | None = None

    def open(self, ctx: OperatorContext, time: WindowTime) -> None:
        self._time, self.memory = time, FrameMemory(ctx)
        self.store.open(self.memory)

    def close(self) -> None:
        if self.memory is not None:
            self.memory.release()

    def add(self, batch: Batch) -> Iterable[Element]:
        read = self._input.read(batch, self._time)
        if read is None:
            return ()
        ends, columns = read
        is_event_time, progress = self._time.is_event_time, self._time.progress
        for end, piece in split_by(ends, columns):
            if is_event_time and self._slicing.expires_at(end) <= progress:
                self._time.count_late(int(to_numpy(piece[self.partials.rows_column]).sum()))
            else:
                self.store.add(end, piece)
                self._running.changed(end)
        self.store.keep_to_memory()
        return ()

    def next_firing(self, after: int) -> int | None:
        return self._slicing.next_firing(self.store.ends, after) if self.store else None

    def advance(self, after: int, until: int) -> Iterator[Element]:
        ends = self.store.ends
        windows: list[FiredWindow] = []
        weight = 0
        for window, first, stop in self._slicing.windows_due(ends, after, until):
            pieces = self._running.pieces(window, ends[first:stop])
            windows.append(FiredWindow(window, pieces))
            weight += sum(map(self.partials.weight, pieces))
            if weight >= FIRING_WEIGHT:
                yield from self._firing.fire(windows, self.store)
                windows, weight = [], 0
        if windows:
            yield from self._firing.fire(windows, self.store)
        for end in ends:
            if self._slicing.expires_at(end) > until:
                break
            self.store.drop(end)

    def pieces(self) -> Iterator[Columns]:
        return (piece for _, pieces in self.store for piece in pieces)

    def frame(self) -> Callable[[], Columns | None]:
        return self.store.frame()

    def add_frame(self, frame: pa.RecordBatch) -> None:
        self.store.add_frame(frame)
        self._running.forget()
        self.store.keep_to_memory()


__all__ = ["FIRING_WEIGHT", "FiredWindow", "SliceInput", "SlicedWindows", "WindowFiring"]
