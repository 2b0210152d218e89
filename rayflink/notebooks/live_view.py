"""A table of a notebook that follows its query: a widget where ipywidgets is installed, else HTML and text."""

from __future__ import annotations

import threading
import time

from rayflink.common.errors import JobCancelled, RayflinkError
from rayflink.common.types import Row
from rayflink.table.display.html_tables import html_note, html_rows
from rayflink.table.display.row_slots import RowSlots
from rayflink.table.plan.logical import Attribute
from rayflink.table.table import Table
from rayflink.table.table_result import Printing, TableResult, printed

from .canvases import canvas, current_cell, show_elsewhere

__all__ = ["LiveView", "live"]

EVERY_S = 0.25
"""Seconds between two drawings."""
MOST_ROWS = 10_000
"""Rows that are held; the oldest are forgotten first."""


class LiveView:
    """A table that follows its query; `live` makes it.

    Args:
        result: of the query.
        limit: rows that are shown, the last ones.
    """

    def __init__(self, result: TableResult, limit: int) -> None:
        columns = result.get_resolved_schema().get_columns()
        self._schema = [Attribute(column.get_name(), column.get_data_type()) for column in columns]
        self._rows, self._zone, self._limit = result.collect(), result.zone, limit
        self._slots, self._lock = RowSlots[Row](MOST_ROWS), threading.Lock()
        self._changes, self._begin = 0, time.monotonic()
        self._cell = current_cell()
        self._ended = threading.Event()
        self._error: RayflinkError | None = None
        self._canvas = canvas("End query", self.stop)
        self._reader = threading.Thread(target=self._read, name="live table of a notebook", daemon=True)
        self._painter = threading.Thread(target=self._paint, name="drawing of a live table", daemon=True)
        self._draw(False)  # here, so that it is in the output of the cell that runs now
        self._reader.start()
        self._painter.start()

    @property
    def is_running(self) -> bool:
        """Return whether the query runs."""
        return not self._ended.is_set()

    def rows(self) -> list[Row]:
        """Return the rows as they are now."""
        with self._lock:
            return self._slots.rows()

    def stop(self) -> None:
        """End the query; the rows that came stay."""
        self._rows.close()
        self.wait()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the query has ended; an interrupt of the cell ends it.

        Args:
            timeout_s: at most so long; None: as long as it runs.

        Raises:
            RayflinkError: the query failed.
        """
        try:
            self._painter.join(timeout_s)
        except KeyboardInterrupt:
            self._rows.close()
            self._painter.join()
        if self._error is not None:
            raise self._error

    def _ipython_display_(self) -> None:
        """Show the state in a line, but not below the cell that draws it already."""
        show_elsewhere(self, self._cell)

    def __repr__(self) -> str:
        return f"LiveView({self._state()})"

    def _read(self) -> None:
        try:
            for row in self._rows:
                with self._lock:
                    self._slots.change(row.get_row_kind(), repr(tuple(row)), row)
                    self._changes += 1
        except JobCancelled:
            return
        except RayflinkError as error:
            self._error = error
        finally:
            self._ended.set()

    def _paint(self) -> None:
        drawn = (-1, -1)
        while True:
            is_last = self._ended.wait(EVERY_S)
            state = self._changes, int(time.monotonic() - self._begin)
            if is_last or state != drawn:
                drawn = state
                self._draw(is_last)
            if is_last:
                return

    def _draw(self, is_last: bool) -> None:
        rows, note = self.rows()[-self._limit :], self._state()
        html = html_rows(self._schema, rows, self._zone) + html_note(note)
        lines = [*printed(self._schema, rows, False, Printing(self._zone)), note]
        self._canvas.draw(html, "\n".join(lines), is_last)

    def _state(self) -> str:
        rows, seconds = len(self._slots), time.monotonic() - self._begin
        hidden = f" (the last {self._limit} are shown)" if rows > self._limit else ""
        state = "runs" if self.is_running else "has ended" if self._error is None else f"failed: {self._error}"
        return f"rows: {rows}{hidden}, changes: {self._changes}, {seconds:.0f} s; the query {state}"


def live(table: Table, rows: int = 20, block: bool = False) -> LiveView:
    """Show a table that is drawn anew, four times a second at most, while its query runs.

    With ipywidgets it has a button that ends the query; without, call `stop()`. Where there is no notebook, it is
    printed once, when it has ended.

    Args:
        table: whose query is run.
        rows: that are shown, the last ones.
        block: wait until the query has ended; an interrupt of the cell ends it.

    Raises:
        SqlError: the query cannot be run.
        RayflinkError: `block` is set, and the query failed.
    """
    view = LiveView(table.execute(), rows)
    if block:
        view.wait()
    return view
