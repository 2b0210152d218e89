"""Window aggregation over sessions: rows of a key that follow one another within a gap.

A row is late when the session it makes or joins is over; it is then counted and dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import MAX_TIMESTAMP, Batch, Element
from rayflink.operators.base import OperatorSnapshot

from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import Partials, concatenated
from ..aggregates.reductions import to_numpy
from ..aggregates.window_spec import WindowAggregation
from ..keyed_state.frame_memory import Columns, FrameMemory
from .session_store import ARRIVAL, END, SESSION_FIELDS, SessionStore, sessions_of
from .sessions import accepted, merged
from .sliced_rows import local_ms, rows_in
from .table_window_operator import TableWindowOperator
from .window_results import WindowResults
from .zone_shift import last_over, local_time, timer_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ARRIVED = "_arrived"


class SessionWindowAggregate(TableWindowOperator):
    """Aggregates sessions of rows that are partitioned by the key.

    Args:
        aggregation: what is computed, over sessions.
    """

    def __init__(self, aggregation: WindowAggregation) -> None:
        self._partials = Partials(aggregation, has_arrival=True)
        super().__init__(aggregation.window, self._partials, SESSION_FIELDS)
        self._results = WindowResults(aggregation, self._partials)
        self._input = aggregation.input
        self._gap = aggregation.window.gap_ms
        self._store = SessionStore(self._partials)
        self._arrived = 0

    # state

    def begin(self, memory: FrameMemory) -> None:
        self._store.open(memory)

    def frame(self) -> Callable[[], pa.RecordBatch]:
        held, schema = self._store.frame(), self._state_schema

        def frame() -> pa.RecordBatch:
            columns = held()
            if columns is None:
                return pa.RecordBatch.from_pylist([], schema=schema)
            return pa.RecordBatch.from_arrays(columns, schema=schema)

        return frame

    def open_pieces(self) -> list[Columns]:
        return self._store.pieces()

    def take_frame(self, frame: pa.RecordBatch) -> None:
        if frame.num_rows:
            self._store.add(list(frame.columns))

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        super().initialize_state(snapshots)
        entries = [entry for one in snapshots for entry in one.lists.get(_ARRIVED, ("union", ()))[1]]
        self._arrived = max((int.from_bytes(entry, "big") for entry in entries), default=0)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        snapshot = super().snapshot_state(checkpoint_id)
        arrived = {_ARRIVED: ("union", (self._arrived.to_bytes(8, "big"),))}
        return replace(snapshot, lists={**snapshot.lists, **arrived})

    # rows

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        rows = rows_in(batch, self._input)
        if not rows.num_rows:
            return ()
        arrived = np.arange(self._arrived, self._arrived + rows.num_rows)
        self._arrived += rows.num_rows
        times = self._times(rows)
        if self._window.is_event_time:
            late = times + (self._gap - 1) <= last_over(self.progress, self._window.shift_zone)
            if late.any():
                keep = self._in_time(rows, times, late)
                self.count_late(len(keep) - int(keep.sum()))
                rows, times, arrived = rows.filter(pa.array(keep)), times[keep], arrived[keep]
        if rows.num_rows:
            groups = grouped(self._partials.keys_of(rows), rows.num_rows)
            sessions, places = sessions_of(groups, times, times + self._gap, arrived)
            self._store.add(self._partials.from_rows(rows, sessions, arrived) + places)
        return ()

    def _times(self, rows: pa.RecordBatch) -> NDArray[np.int64]:
        window = self._window
        if not window.is_event_time or window.time_column is None:
            return np.full(rows.num_rows, local_time(self.now_ms, window.shift_zone), dtype=np.int64)
        return local_ms(rows.column(window.time_column), window.shift_zone, rows.schema.names[window.time_column])

    def _in_time(self, rows: pa.RecordBatch, times: NDArray[np.int64], late: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which rows are not late, given those that are late by themselves: bool[n]."""
        count, keys, starts, ends, lives = len(times), self._partials.keys_of(rows), times, times + self._gap, ~late
        known = self._store.of_keys([key.filter(pa.array(late)) for key in keys] or [rows.column(0)])
        if known:
            *own, begun, ended = concatenated(known)
            keys = concatenated([keys, own]) if keys else []
            starts, ends = np.concatenate([starts, to_numpy(begun)]), np.concatenate([ends, to_numpy(ended)])
            lives = np.concatenate([lives, np.ones(len(ended), dtype=np.bool_)])
        codes = grouped(keys, len(starts)).codes
        sessions = merged(codes, starts, ends)
        has_life = np.zeros(len(sessions.keys), dtype=np.bool_)
        has_life[sessions.of[lives]] = True
        unsure = np.flatnonzero(late & has_life[sessions.of[:count]])
        keep = ~late
        if len(unsure):
            concerned = np.isin(sessions.of, sessions.of[unsure])
            mine, there = np.flatnonzero(concerned[:count]), np.flatnonzero(concerned[count:]) + count
            intervals = list(zip(codes[there].tolist(), starts[there].tolist(), ends[there].tolist(), strict=True))
            keep[mine] = accepted(codes[mine].tolist(), times[mine].tolist(), late[mine].tolist(), self._gap, intervals)
        return keep

    # time

    def next_firing(self) -> int | None:
        least = self._store.least_end
        return None if least is None else timer_of(least - 1, self._window.shift_zone)

    def advance(self, after: int, until: int) -> Iterator[Element]:
        over = self._store.over(min(last_over(until, self._window.shift_zone) + 1, MAX_TIMESTAMP))
        if over is not None:
            order = np.lexsort((to_numpy(over[ARRIVAL]), to_numpy(over[END])))
            taken = pa.array(order)
            *partial, starts, ends, _ = (one.take(taken) for one in over)
            yield self._results.of(partial, to_numpy(starts), to_numpy(ends))


__all__ = ["SessionWindowAggregate"]
