"""Session windows: rows of a key that follow one another within a gap.

A row is late when the session that it makes or joins is over; it is then counted and dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import MAX_TIMESTAMP, ArrowBatch, Batch, Element
from rayflink.operators.base import OperatorContext, OperatorSnapshot

from ...types import DataType
from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import PartialAggregates, concatenated
from ..aggregates.reductions import to_numpy
from ..aggregates.window_spec import WindowAggregation
from ..keyed_state.frame_memory import Columns, FrameMemory
from .aggregate_firing import WindowProjection
from .input_rows import local_ms, rows_in
from .session_store import ARRIVAL, END, SESSION_FIELDS, SessionStore, sessions_of
from .sessions import accept_late, merge_intervals
from .window_contents import WindowContents
from .window_time import WindowTime
from .zone_shift import last_over, local_time, timer_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ARRIVED = "_arrived"
"""Name of the state with the number of rows that came so far."""


class RowFormat(Protocol):
    """The form of rows on their way into sessions and out of them: `PlainRows`, `PackedRows`."""

    def read(self, batch: Batch) -> pa.RecordBatch:
        """Called for each batch. Return the rows to aggregate."""
        ...

    def write(self, results: ArrowBatch) -> Iterable[Element]:
        """Called with the results of sessions that are over. Return the rows to emit."""
        ...


class PlainRows:
    """Passes rows and results as they are; a `RowFormat`.

    Args:
        row: type of the rows that come in.
    """

    def __init__(self, row: DataType) -> None:
        self._row = row

    def read(self, batch: Batch) -> pa.RecordBatch:
        return rows_in(batch, self._row)

    def write(self, results: ArrowBatch) -> Iterable[Element]:
        return (results,)


class SessionWindows(WindowContents):
    """Sessions of rows that are partitioned by the key.

    Args:
        aggregation: what is computed, over sessions.
        row_format: reads rows, and writes results.
    """

    state_fields = SESSION_FIELDS

    def __init__(self, aggregation: WindowAggregation, row_format: RowFormat) -> None:
        self.partials = self._partials = PartialAggregates(aggregation, has_arrival=True)
        self._window, self._format = aggregation.window, row_format
        self._projection = WindowProjection(aggregation, self._partials)
        self._gap = aggregation.window.gap_ms
        self._store = SessionStore(self._partials)
        self._arrived = 0
        self.memory: FrameMemory | None = None

    def open(self, ctx: OperatorContext, time: WindowTime) -> None:
        self._time, self.memory = time, FrameMemory(ctx)
        self._store.open(self.memory)

    def close(self) -> None:
        if self.memory is not None:
            self.memory.release()

    # rows

    def add(self, batch: Batch) -> Iterable[Element]:
        rows = self._format.read(batch)
        if not rows.num_rows:
            return ()
        arrived = np.arange(self._arrived, self._arrived + rows.num_rows)
        self._arrived += rows.num_rows
        times = self._times(rows)
        if self._window.is_event_time:
            is_late = times + (self._gap - 1) <= last_over(self._time.progress, self._window.shift_zone)
            if is_late.any():
                accepted = self._accept(rows, times, is_late)
                self._time.count_late(len(accepted) - int(accepted.sum()))
                rows, times, arrived = rows.filter(pa.array(accepted)), times[accepted], arrived[accepted]
        if rows.num_rows:
            groups = grouped(self._partials.keys_of(rows), rows.num_rows)
            sessions, places = sessions_of(groups, times, times + self._gap, arrived)
            self._store.add(self._partials.from_rows(rows, sessions, arrived) + places)
        return ()

    def _times(self, rows: pa.RecordBatch) -> NDArray[np.int64]:
        window = self._window
        if not window.is_event_time or window.time_column is None:
            return np.full(rows.num_rows, local_time(self._time.now_ms, window.shift_zone), dtype=np.int64)
        return local_ms(rows.column(window.time_column), window.shift_zone, rows.schema.names[window.time_column])

    def _accept(
        self, rows: pa.RecordBatch, times: NDArray[np.int64], is_late: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Return which rows are in time, or join a session that is not over; `is_late` by themselves: bool[n]."""
        count, keys = len(times), self._partials.keys_of(rows)
        starts, ends, is_live = times, times + self._gap, ~is_late
        late_keys = [key.filter(pa.array(is_late)) for key in keys] or [rows.column(0)]
        stored = self._store.bounds_of_keys(late_keys)
        if stored:
            *stored_keys, stored_starts, stored_ends = concatenated(stored)
            keys = concatenated([keys, stored_keys]) if keys else []
            starts = np.concatenate([starts, to_numpy(stored_starts)])
            ends = np.concatenate([ends, to_numpy(stored_ends)])
            is_live = np.concatenate([is_live, np.ones(len(stored_ends), dtype=np.bool_)])
        codes = grouped(keys, len(starts)).codes
        sessions = merge_intervals(codes, starts, ends)
        has_live = np.zeros(len(sessions.keys), dtype=np.bool_)
        has_live[sessions.codes[is_live]] = True
        uncertain = np.flatnonzero(is_late & has_live[sessions.codes[:count]])
        accepted = ~is_late
        if len(uncertain):
            concerned = np.isin(sessions.codes, sessions.codes[uncertain])
            new, old = np.flatnonzero(concerned[:count]), np.flatnonzero(concerned[count:]) + count
            known = list(zip(codes[old].tolist(), starts[old].tolist(), ends[old].tolist(), strict=True))
            accepted[new] = accept_late(
                codes[new].tolist(), times[new].tolist(), is_late[new].tolist(), self._gap, known
            )
        return accepted

    # time

    def next_firing(self, after: int) -> int | None:
        least = self._store.least_end
        return None if least is None else timer_of(least - 1, self._window.shift_zone)

    def advance(self, after: int, until: int) -> Iterator[Element]:
        over = self._store.take_over(min(last_over(until, self._window.shift_zone) + 1, MAX_TIMESTAMP))
        if over is not None:
            order = pa.array(np.lexsort((to_numpy(over[ARRIVAL]), to_numpy(over[END]))))
            *partial, starts, ends, _ = (column.take(order) for column in over)
            yield from self._format.write(self._projection.project(partial, to_numpy(starts), to_numpy(ends)))

    # snapshots

    def pieces(self) -> list[Columns]:
        return self._store.pieces()

    def frame(self) -> Callable[[], Columns | None]:
        return self._store.frame()

    def add_frame(self, frame: pa.RecordBatch) -> None:
        if frame.num_rows:
            self._store.add(list(frame.columns))

    def lists(self) -> Mapping[str, tuple[str, tuple[bytes, ...]]]:
        return {_ARRIVED: ("union", (self._arrived.to_bytes(8, "big"),))}

    def add_lists(self, snapshots: Iterable[OperatorSnapshot]) -> None:
        entries = [entry for snapshot in snapshots for entry in snapshot.lists.get(_ARRIVED, ("union", ()))[1]]
        self._arrived = max((int.from_bytes(entry, "big") for entry in entries), default=0)


__all__ = ["PlainRows", "RowFormat", "SessionWindows"]
