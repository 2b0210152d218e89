"""The log of a database, read by a thread beside the task into a bounded queue."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from .table_changes import TableChanges

_WAIT_S = 0.05


@dataclass(frozen=True)
class LogItem:
    """Changes from the log, and the position behind them.

    Args:
        changes: of one table; None: none of these tables, only the position has advanced.
        position: the log is read from here on after a restore.
        transaction: the position of the transaction that is not complete yet; 0: all are.
        skip: changes of that transaction up to here.
        token: what the database needs beside the position to read on; "": nothing.
    """

    changes: TableChanges | None
    position: int
    transaction: int = 0
    skip: int = 0
    token: str = ""


class LogCursor(Protocol):
    """Reads the log of a database; for one thread, except `confirm`."""

    def read(self, wait_s: float) -> LogItem | None:
        """Return the next changes; None: there are none within about `wait_s` seconds."""
        ...

    def keep_alive(self) -> None:
        """Tell the server from time to time that the reader lives, while it cannot take more."""
        ...

    def confirm(self, position: int) -> None:
        """Let the server delete the log before a position, soon; may be called by any thread."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class LogThread:
    """A thread that reads a log ahead of the task.

    Args:
        open_cursor: connects; called in the thread.
        most_items: in the queue.
    """

    def __init__(self, open_cursor: Callable[[], LogCursor], most_items: int = 16) -> None:
        self._open_cursor, self._most_items = open_cursor, most_items
        self._items: deque[LogItem] = deque()
        self._changed = threading.Condition()
        self._error: BaseException | None = None
        self._stopping = False
        self._cursor: LogCursor | None = None
        self._confirmed = -1
        self._thread = threading.Thread(target=self._run, name="rayflink-log-reader", daemon=True)
        self._thread.start()

    def take(self) -> LogItem | None:
        """Return the next item without waiting; None: there is none yet.

        Raises: what ended the thread, once all items before are taken.
        """
        with self._changed:
            if self._items:
                item = self._items.popleft()
                self._changed.notify()
                return item
            if self._error is not None:
                raise self._error
            return None

    def confirm(self, position: int) -> None:
        """Let the server delete the log before a position."""
        with self._changed:
            self._confirmed = position
            if self._cursor is not None:
                self._cursor.confirm(position)

    def close(self) -> None:
        """End the thread and close the connection."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join(timeout=30)

    def _run(self) -> None:
        cursor = None
        try:
            cursor = self._open_cursor()
            with self._changed:
                self._cursor = cursor
                if self._confirmed >= 0:
                    cursor.confirm(self._confirmed)
            while not self._stopping:
                item = cursor.read(_WAIT_S)
                if item is not None:
                    self._put(item, cursor)
        except BaseException as error:
            self._error = error
        finally:
            if cursor is not None:
                cursor.close()

    def _put(self, item: LogItem, cursor: LogCursor) -> None:
        while True:
            with self._changed:
                if len(self._items) < self._most_items or self._stopping:
                    self._items.append(item)
                    return
                self._changed.wait(_WAIT_S)
            cursor.keep_alive()


__all__ = ["LogCursor", "LogItem", "LogThread"]
