"""Window aggregation over sessions: rows of a key that follow one another within a gap.

The state is pieces of partial rows, each a part of a session; they are joined when they have doubled, and when a
session may be over. A row is late when the session it makes or joins is over; it is then counted and dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rayflink.common.batches import MAX_TIMESTAMP, Batch, Element
from rayflink.operators.base import OperatorSnapshot

from .frame_memory import Columns
from .grouping import Groups, grouped
from .partials import Partials, concatenated
from .reductions import column, plain
from .sessions import accepted, merged
from .slice_store import LEAST_WEIGHT
from .sliced_rows import local_ms, rows_in
from .window_operator import WindowOperator
from .window_spec import WindowAggregation
from .zones import last_over, local_time, timer_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ARRIVED = "_arrived"
SESSION_FIELDS = (pa.field("start", pa.int64()), pa.field("end", pa.int64()), pa.field("arrival", pa.int64()))
"""The session of a partial row, and the number of the first record in it."""


class SessionWindowAggregate(WindowOperator):
    """Aggregates sessions of rows that are dealt by the key.

    Args:
        aggregation: what is computed, over sessions.
    """

    def __init__(self, aggregation: WindowAggregation) -> None:
        super().__init__(aggregation, Partials(aggregation, has_arrival=True), SESSION_FIELDS)
        self._input = aggregation.input
        self._gap = aggregation.window.gap_ms
        self._pieces: list[Columns] = []
        self._weight = self._joined_weight = 0
        self._arrived = 0
        self._least_end: int | None = None

    # state

    def frame(self) -> Callable[[], pa.RecordBatch]:
        pieces, schema = list(self._pieces), self._state_schema

        def frame() -> pa.RecordBatch:
            if not pieces:
                return pa.RecordBatch.from_pylist([], schema=schema)
            return pa.RecordBatch.from_arrays(self._merged(concatenated(pieces)), schema=schema)

        return frame

    def take_frame(self, frame: pa.RecordBatch) -> None:
        if frame.num_rows:
            self._add(list(frame.columns))

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        super().initialize_state(snapshots)
        entries = [entry for one in snapshots for entry in one.lists.get(_ARRIVED, ("union", ()))[1]]
        self._arrived = max((int.from_bytes(entry, "big") for entry in entries), default=0)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        snapshot = super().snapshot_state(checkpoint_id)
        arrived = {_ARRIVED: ("union", (self._arrived.to_bytes(8, "big"),))}
        return replace(snapshot, lists={**snapshot.lists, **arrived})

    def _add(self, columns: Columns) -> None:
        self._pieces.append(columns)
        self._weight += self._partials.weight(columns)
        least = int(plain(columns[-2]).min())
        self._least_end = least if self._least_end is None else min(least, self._least_end)
        if self._weight > LEAST_WEIGHT and self._weight >= 2 * self._joined_weight:
            self._join()

    def _join(self) -> Columns:
        """Make one piece of the state, which is not empty."""
        if len(self._pieces) > 1:
            self._keep(self._merged(concatenated(self._pieces)))
        self._joined_weight = self._weight
        return self._pieces[0]

    def _keep(self, columns: Columns) -> None:
        """These sessions are the state."""
        count = len(columns[0])
        self._weight = self._joined_weight = self._partials.weight(columns)
        self._pieces = [columns] if count else []
        self._least_end = int(plain(columns[-2]).min()) if count else None

    def _merged(self, columns: Columns) -> Columns:
        """Partial rows as one for each session."""
        *partial, starts, ends, arrived = columns
        groups = grouped(partial[: self._partials.width], len(starts))
        sessions, places = self._sessions(groups, plain(starts), plain(ends), plain(arrived))
        return self._partials.joined(partial, sessions) + places

    def _sessions(
        self, groups: Groups, starts: NDArray[np.int64], ends: NDArray[np.int64], arrived: NDArray[np.int64]
    ) -> tuple[Groups, Columns]:
        """Rows grouped by their sessions, and the columns start, end and arrival of these."""
        found = merged(groups.codes, starts, ends)
        count = len(found.keys)
        first = np.full(count, np.iinfo(np.int64).max)
        np.minimum.at(first, found.of, arrived)
        taken = pa.array(found.keys)
        columns = [column(part, pa.int64()) for part in (found.starts, found.ends, first)]
        return Groups(found.of, count, [key.take(taken) for key in groups.keys]), columns

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
            sessions, places = self._sessions(groups, times, times + self._gap, arrived)
            self._add(self._partials.of_rows(rows, sessions, arrived) + places)
        return ()

    def _times(self, rows: pa.RecordBatch) -> NDArray[np.int64]:
        window = self._window
        if not window.is_event_time or window.time_column is None:
            return np.full(rows.num_rows, local_time(self.now_ms, window.shift_zone), dtype=np.int64)
        return local_ms(rows.column(window.time_column), window.shift_zone, rows.schema.names[window.time_column])

    def _in_time(self, rows: pa.RecordBatch, times: NDArray[np.int64], late: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which rows are not late, given those that are by themselves: bool[n]."""
        keys = self._partials.keys_of(rows)
        starts, ends = times, times + self._gap
        lives = ~late
        known = self._join() if self._pieces else None
        if known is not None:
            keys = concatenated([keys, known[: self._partials.width]]) if keys else []
            starts = np.concatenate([starts, plain(known[-3])])
            ends = np.concatenate([ends, plain(known[-2])])
            lives = np.concatenate([lives, np.ones(len(known[0]), dtype=np.bool_)])
        codes = grouped(keys, len(starts)).codes
        sessions = merged(codes, starts, ends)
        has_life = np.zeros(len(sessions.keys), dtype=np.bool_)
        has_life[sessions.of[lives]] = True
        count = len(times)
        unsure = np.flatnonzero(late & has_life[sessions.of[:count]])
        if not len(unsure):
            return ~late
        concerned = np.isin(sessions.of, sessions.of[unsure])
        mine = np.flatnonzero(concerned[:count])
        there = np.flatnonzero(concerned[count:]) + count
        intervals = list(zip(codes[there].tolist(), starts[there].tolist(), ends[there].tolist(), strict=True))
        keep = ~late
        keep[mine] = accepted(codes[mine].tolist(), times[mine].tolist(), late[mine].tolist(), self._gap, intervals)
        return keep

    # time

    def next_firing(self) -> int | None:
        return None if self._least_end is None else timer_of(self._least_end - 1, self._window.shift_zone)

    def advance(self, after: int, until: int) -> Iterator[Element]:
        bound = min(last_over(until, self._window.shift_zone) + 1, MAX_TIMESTAMP)
        if self._least_end is None or self._least_end > bound:
            return
        columns = self._join()
        ends = plain(columns[-2])
        over = ends <= bound
        if not over.any():
            self._keep(columns)
            return
        self._keep(_filtered(columns, ~over))
        *partial, starts, ended, arrived = _filtered(columns, over)
        order = np.lexsort((plain(arrived), plain(ended)))
        taken = pa.array(order)
        yield self.result([one.take(taken) for one in partial], plain(starts)[order], plain(ended)[order])


def _filtered(columns: Columns, keep: Any) -> Columns:
    wanted = pa.array(keep)
    return [one.filter(wanted) for one in columns]


__all__ = ["SessionWindowAggregate"]
