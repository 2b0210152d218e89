"""A table in a terminal that is drawn anew where it stands while its query runs."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterable
from typing import TextIO

from rayflink.common.types import Row
from rayflink.table.display.row_slots import RowSlots

from .result_output import ResultColumns, RowStrings, boxed

__all__ = ["LiveTable"]

EVERY_S = 0.1
"""Seconds between two drawings."""


class LiveTable:
    """Draws the rows of a query until it ends.

    Args:
        columns: of the rows.
        limit: rows that are held.
        out: a terminal.
    """

    def __init__(self, columns: ResultColumns, limit: int, out: TextIO) -> None:
        self._columns, self._out = columns, out
        self._slots = RowSlots[RowStrings](limit)
        self._lock = threading.Lock()
        self._changes, self._drawn_changes, self._lines = 0, -1, 0
        self._is_ended = threading.Event()
        self._begin = time.monotonic()

    def follow(self, rows: Iterable[Row]) -> RowSlots[RowStrings]:
        """Draw until the rows end, and return them; the terminal then is as before.

        Whatever ends the rows, as Ctrl-C does, is raised when drawing has ended.
        """
        painter = threading.Thread(target=self._paint, name="live table", daemon=True)
        painter.start()
        try:
            for row in rows:
                strings = self._columns.strings(row)
                with self._lock:
                    self._slots.change(row.get_row_kind(), strings, strings)
                    self._changes += 1
        finally:
            self._is_ended.set()
            painter.join()
            self._erase()
        return self._slots

    @property
    def slots(self) -> RowSlots[RowStrings]:
        """Return the rows as they are now."""
        return self._slots

    def lines(self, width: int, height: int) -> list[str]:
        """Return what is drawn: the last rows that fit, and a line of progress.

        Args:
            width, height: of the terminal, in characters.
        """
        with self._lock:
            rows, changes = self._slots.rows(), self._changes
        room = max(1, height - 7)
        seconds = time.monotonic() - self._begin
        hidden = len(rows) - room
        above = f", {hidden} above" if hidden > 0 else ""
        progress = f"{len(rows)} rows{above}, {changes} changes, {seconds:.0f} s; Ctrl-C ends the query"
        return [line[: width - 1] for line in [*boxed(self._columns, rows[-room:]), progress]]

    def _paint(self) -> None:
        last_s = -1
        while not self._is_ended.wait(EVERY_S):
            second = int(time.monotonic() - self._begin)
            if self._changes == self._drawn_changes and second == last_s:
                continue
            self._drawn_changes, last_s = self._changes, second
            size = shutil.get_terminal_size()
            lines = self.lines(size.columns, size.lines)
            self._erase()
            self._out.write("".join(f"{line}\n" for line in lines))
            self._out.flush()
            self._lines = len(lines)

    def _erase(self) -> None:
        if self._lines:
            self._out.write(f"\x1b[{self._lines}A\x1b[J")
            self._out.flush()
            self._lines = 0
