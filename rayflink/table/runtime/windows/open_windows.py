"""Windows that show their results more than once: for each key what it is made of, and what was shown of it last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import Partials, concatenated
from ..aggregates.reductions import to_arrow, to_numpy
from ..keyed_state.frame_memory import Columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLAGS = (pa.field("has_shown", pa.bool_()), pa.field("was_over", pa.bool_()))
"""Whether anything was shown of a key, and whether its window's end has come while it was there."""


@dataclass
class OpenWindow:
    """A window.

    Args:
        rows: a row for each key: its partial row, `FLAGS`, and the results that were shown; None: there is none yet.
        pieces: partial rows that came since.
        is_over: whether its end has come.
        since: processing time from which its intervals run; None: nothing came since the last change of phase.
        due: processing time at which it shows its results again; None: nothing has changed.
    """

    rows: Columns | None = None
    pieces: list[Columns] = field(default_factory=list)
    is_over: bool = False
    since: int | None = None
    due: int | None = None

    def ask(self, now_ms: int, delay_ms: int) -> None:
        """Something has changed: it is shown when the next interval ends."""
        if self.since is None:
            self.since = now_ms
        if self.due is None:
            self.due = now_ms + delay_ms - (now_ms - self.since) % delay_ms

    def end(self, windows: OpenWindows) -> None:
        """Mark that its end has come and its rows were emitted."""
        self.is_over, self.since, self.due = True, None, None
        if self.rows is not None:
            there = np.ones(len(self.rows[0]), dtype=np.bool_)
            self.rows = windows.with_shown(windows.partial(self.rows), windows.shown(self.rows), there)


class OpenWindows:
    """All windows by their ends.

    Args:
        partials: what a key is made of.
        shown: fields of the results.
    """

    def __init__(self, partials: Partials, shown: list[pa.Field]) -> None:
        self._partials, self._shown = partials, shown
        self._width, self._made = partials.width, len(partials.schema)
        self._by_end: dict[int, OpenWindow] = {}

    def __bool__(self) -> bool:
        return bool(self._by_end)

    def __iter__(self) -> Iterator[tuple[int, OpenWindow]]:
        return iter(sorted(self._by_end.items()))

    def of(self, end: int) -> OpenWindow:
        """Return the window with this end."""
        if end not in self._by_end:
            self._by_end[end] = OpenWindow()
        return self._by_end[end]

    def known(self, end: int) -> OpenWindow | None:
        """Return the same, if there is one."""
        return self._by_end.get(end)

    def drop(self, end: int) -> None:
        """Forget a window."""
        del self._by_end[end]

    def fresh(self, columns: Columns) -> Columns:
        """Partial rows as rows of which nothing was shown."""
        count = len(columns[0])
        no = to_arrow(np.zeros(count, dtype=np.bool_), pa.bool_())
        return [*columns, no, no, *(pa.nulls(count, one.type) for one in self._shown)]

    def merge(self, window: OpenWindow) -> Columns | None:
        """Return the rows of a window, one for each key."""
        if window.pieces:
            window.rows, window.pieces = self._with(window.rows, window.pieces), []
        return window.rows

    def _with(self, rows: Columns | None, pieces: list[Columns]) -> Columns:
        known = [] if rows is None else [rows]
        return self._as_one(concatenated([*known, *map(self.fresh, pieces)])) if pieces else known[0]

    def _as_one(self, columns: Columns) -> Columns:
        groups = grouped(columns[: self._width], len(columns[0]))
        firsts = np.empty(groups.count, dtype=np.int64)
        firsts[groups.codes[::-1]] = np.arange(len(groups.codes) - 1, -1, -1)
        taken = pa.array(firsts)
        made = self._partials.merge(columns[: self._made], groups)
        return [*made, *(one.take(taken) for one in columns[self._made :])]

    # parts of rows

    def partial(self, rows: Columns) -> Columns:
        """Return the partial rows of results."""
        return rows[: self._made]

    def shown(self, rows: Columns) -> Columns:
        """Return the results that were shown."""
        return rows[self._made + len(FLAGS) :]

    def has_shown(self, rows: Columns) -> NDArray[np.bool_]:
        """Return which rows were emitted before."""
        found: NDArray[np.bool_] = rows[self._made].to_numpy(zero_copy_only=False)
        return found

    def was_over(self, rows: Columns) -> NDArray[np.bool_]:
        """Return which rows were there when the window's end came."""
        found: NDArray[np.bool_] = rows[self._made + 1].to_numpy(zero_copy_only=False)
        return found

    def with_shown(self, partial: Columns, shown: Columns, was_over: NDArray[np.bool_]) -> Columns:
        """Return rows of which this was shown."""
        yes = to_arrow(np.ones(len(partial[0]), dtype=np.bool_), pa.bool_())
        return [*partial, yes, to_arrow(was_over, pa.bool_()), *shown]

    # snapshots

    @property
    def fields(self) -> list[pa.Field]:
        """Return columns of a frame behind those of partial rows."""
        own = [pa.field(f"shown{at}", one.type) for at, one in enumerate(self._shown)]
        return [*FLAGS, *own, *(pa.field(name, pa.int64()) for name in ("window_end", "since", "place"))]

    def framed(self, schema: pa.Schema) -> Callable[[], pa.RecordBatch]:
        """Gives the windows as one frame, as they are now, when it is called later; columns never change."""
        held = [(end, window.rows, list(window.pieces), window.since) for end, window in self]

        def frame() -> pa.RecordBatch:
            return _frame_of([(end, self._with(rows, pieces), since) for end, rows, pieces, since in held
                             if rows is not None or pieces], schema)  # fmt: skip

        return frame

    def take(self, frame: pa.RecordBatch) -> None:
        """Add rows of a frame; what was not shown is due when the next interval ends."""
        order = pa.array(np.argsort(to_numpy(frame.column(frame.num_columns - 1)), kind="stable"))
        *columns, ends, since, _ = (one.take(order) for one in frame.columns)
        for end in np.unique(to_numpy(ends)).tolist():
            mask = pa.array(to_numpy(ends) == end)
            window = self.of(end)
            rows = [one.filter(mask) for one in columns]
            window.rows = rows if window.rows is None else self._as_one(concatenated([window.rows, rows]))
            begun = [one for one in since.filter(mask).to_pylist() if one is not None]
            if begun:
                window.since = min([*begun, *([] if window.since is None else [window.since])])


def _frame_of(held: list[tuple[int, Columns, int | None]], schema: pa.Schema) -> pa.RecordBatch:
    """Return windows as one frame."""
    parts: list[Columns] = []
    for end, rows, since in held:
        count = len(rows[0])
        ends = to_arrow(np.full(count, end, dtype=np.int64), pa.int64())
        places = to_arrow(np.arange(count, dtype=np.int64), pa.int64())
        parts.append([*rows, ends, pa.repeat(pa.scalar(since, pa.int64()), count), places])
    if not parts:
        return pa.RecordBatch.from_pylist([], schema=schema)
    return pa.RecordBatch.from_arrays(concatenated(parts), schema=schema)


__all__ = ["FLAGS", "OpenWindow", "OpenWindows"]
