"""Windows that emit results more than once: for each key its partial row, and the result that was emitted last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import PartialAggregates, concatenated
from ..aggregates.reductions import to_arrow, to_numpy
from ..keyed_state.frame_memory import Columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLAGS = (pa.field("has_shown", pa.bool_()), pa.field("was_over", pa.bool_()))
"""True if a result was emitted for a key, and whether its window's end has come while the key was in it."""


@dataclass
class OpenWindow:
    """A window that accepts rows.

    Args:
        rows: a row for each key: its partial row, `FLAGS`, and the results that were emitted; None: no key yet.
        pieces: partial rows that came since.
        is_over: whether its end has come.
        since: processing time from which its intervals run; None: no row came since the last change of phase.
        due: processing time at which it emits its results again; None: they have not changed.
    """

    rows: Columns | None = None
    pieces: list[Columns] = field(default_factory=list)
    is_over: bool = False
    since: int | None = None
    due: int | None = None

    def request_refresh(self, now_ms: int, delay_ms: int) -> None:
        """Emit the results, which have changed, when the next interval ends."""
        if self.since is None:
            self.since = now_ms
        if self.due is None:
            self.due = now_ms + delay_ms - (now_ms - self.since) % delay_ms

    def end(self, windows: OpenWindows) -> None:
        """Mark that its end has come and its results were emitted."""
        self.is_over, self.since, self.due = True, None, None
        if self.rows is not None:
            everywhere = np.ones(len(self.rows[0]), dtype=np.bool_)
            self.rows = windows.with_results(windows.partial_rows(self.rows), windows.results(self.rows), everywhere)


class OpenWindows:
    """Stores all windows by their ends.

    Args:
        partials: the partial row of a key.
        results: fields of the results.
    """

    def __init__(self, partials: PartialAggregates, results: list[pa.Field]) -> None:
        self._partials, self._results = partials, results
        self._key_width, self._partial_width = partials.width, len(partials.schema)
        self._by_end: dict[int, OpenWindow] = {}

    def __iter__(self) -> Iterator[tuple[int, OpenWindow]]:
        return iter(sorted(self._by_end.items()))

    def window(self, end: int) -> OpenWindow:
        """Return the window with this end, a new one if there is none."""
        if end not in self._by_end:
            self._by_end[end] = OpenWindow()
        return self._by_end[end]

    def drop(self, end: int) -> None:
        """Forget a window."""
        del self._by_end[end]

    def merge(self, window: OpenWindow) -> Columns | None:
        """Merge the pieces of a window, and return its rows, one for each key."""
        if window.pieces:
            window.rows, window.pieces = self._merged(window.rows, window.pieces), []
        return window.rows

    def _merged(self, rows: Columns | None, pieces: list[Columns]) -> Columns:
        known = [] if rows is None else [rows]
        return self._merge_rows(concatenated([*known, *map(self.without_results, pieces)])) if pieces else known[0]

    def _merge_rows(self, columns: Columns) -> Columns:
        groups = grouped(columns[: self._key_width], len(columns[0]))
        firsts = np.empty(groups.count, dtype=np.int64)
        firsts[groups.codes[::-1]] = np.arange(len(groups.codes) - 1, -1, -1)
        first_rows = pa.array(firsts)
        partial = self._partials.merge(columns[: self._partial_width], groups)
        return [*partial, *(column.take(first_rows) for column in columns[self._partial_width :])]

    # parts of rows

    def partial_rows(self, rows: Columns) -> Columns:
        """Return the partial rows of keys."""
        return rows[: self._partial_width]

    def results(self, rows: Columns) -> Columns:
        """Return the results that were emitted last."""
        return rows[self._partial_width + len(FLAGS) :]

    def has_results(self, rows: Columns) -> NDArray[np.bool_]:
        """Return of which rows a result was emitted: bool[n]."""
        flags: NDArray[np.bool_] = rows[self._partial_width].to_numpy(zero_copy_only=False)
        return flags

    def was_over(self, rows: Columns) -> NDArray[np.bool_]:
        """Return which rows were in the window when its end came: bool[n]."""
        flags: NDArray[np.bool_] = rows[self._partial_width + 1].to_numpy(zero_copy_only=False)
        return flags

    def without_results(self, columns: Columns) -> Columns:
        """Return partial rows as rows of which no result was emitted."""
        count = len(columns[0])
        no = to_arrow(np.zeros(count, dtype=np.bool_), pa.bool_())
        return [*columns, no, no, *(pa.nulls(count, result.type) for result in self._results)]

    def with_results(self, partial: Columns, results: Columns, was_over: NDArray[np.bool_]) -> Columns:
        """Return partial rows as rows of which these results were emitted."""
        yes = to_arrow(np.ones(len(partial[0]), dtype=np.bool_), pa.bool_())
        return [*partial, yes, to_arrow(was_over, pa.bool_()), *results]

    # snapshots

    @property
    def state_fields(self) -> tuple[pa.Field, ...]:
        """Return the columns of a frame behind those of partial rows."""
        results = [pa.field(f"shown{index}", result.type) for index, result in enumerate(self._results)]
        return (*FLAGS, *results, *(pa.field(name, pa.int64()) for name in ("window_end", "since", "place")))

    def frame(self) -> Callable[[], Columns | None]:
        """Return a function that returns the rows of all windows as they are now, as columns of one frame."""
        windows = [
            (end, window.rows, list(window.pieces), window.since)
            for end, window in self
            if window.rows is not None or window.pieces
        ]

        def frame() -> Columns | None:
            parts = [_frame_part(end, self._merged(rows, pieces), since) for end, rows, pieces, since in windows]
            return concatenated(parts) if parts else None

        return frame

    def add_frame(self, frame: pa.RecordBatch) -> None:
        """Add the rows of a frame; changes that were not emitted are due when the next interval ends."""
        order = pa.array(np.argsort(to_numpy(frame.column(frame.num_columns - 1)), kind="stable"))
        *columns, ends, since, _ = (column.take(order) for column in frame.columns)
        for end in np.unique(to_numpy(ends)).tolist():
            mask = pa.array(to_numpy(ends) == end)
            window = self.window(end)
            rows = [column.filter(mask) for column in columns]
            window.rows = rows if window.rows is None else self._merge_rows(concatenated([window.rows, rows]))
            starts = [start for start in since.filter(mask).to_pylist() if start is not None]
            if starts:
                window.since = min([*starts, *([] if window.since is None else [window.since])])


def _frame_part(end: int, rows: Columns, since: int | None) -> Columns:
    """Return the rows of a window with its end, the start of its intervals, and the order of the rows."""
    count = len(rows[0])
    ends = to_arrow(np.full(count, end, dtype=np.int64), pa.int64())
    places = to_arrow(np.arange(count, dtype=np.int64), pa.int64())
    return [*rows, ends, pa.repeat(pa.scalar(since, pa.int64()), count), places]


__all__ = ["FLAGS", "OpenWindow", "OpenWindows"]
