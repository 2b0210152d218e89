"""A cursor that reads in a thread of its own, so that the task never waits for an object store."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from rayflink.common.connector_base.source import PENDING, Poll
from rayflink.common.connector_base.split_reader import share_of
from rayflink.common.records.batches import ArrowBatch

from .data_file_reading import DataFileSplit

MOST_WAITING = 4
"""Batches that are read ahead."""
READ_ROWS = 1 << 16


class BlockCursor(Protocol):
    """The cursor that the thread drives: each batch is within one row group."""

    def read(self, max_records: int) -> ArrowBatch | None:
        """Return the next rows; None at the end."""
        ...

    def position(self) -> DataFileSplit:
        """Return the split with the position behind the last rows."""
        ...

    def close(self) -> None:
        """Release the file."""
        ...


class BackgroundCursor:
    """Reads a data file ahead, in a thread that ends with the file or when the cursor is closed.

    Args:
        split: from its position on.
        open_split: opens the file; called in the thread.
    """

    def __init__(self, split: DataFileSplit, open_split: Callable[[DataFileSplit], BlockCursor]) -> None:
        self._position, self._open_split = split, open_split
        self._waiting: queue.Queue[tuple[ArrowBatch | None, DataFileSplit] | Exception] = queue.Queue(MOST_WAITING)
        self._closed = threading.Event()
        self._current: ArrowBatch | None = None
        self._behind = split
        self._thread = threading.Thread(target=self._run, name=f"reads {split.path}"[:60], daemon=True)
        self._thread.start()

    def read(self, max_records: int) -> ArrowBatch | Poll | None:
        """Return the next rows; PENDING while they are under way, None at the end.

        Raises: what the thread ran into.
        """
        if self._current is None:
            try:
                answer = self._waiting.get_nowait()
            except queue.Empty:
                return PENDING
            if isinstance(answer, Exception):
                raise answer
            self._current, self._behind = answer
            if self._current is None:
                return None
        data = self._current.data
        rows = share_of(data.num_rows, max_records)
        if rows == data.num_rows:
            self._current, self._position = None, self._behind
            return ArrowBatch(data)
        self._current = ArrowBatch(data.slice(rows))
        self._position = replace(self._behind, skip=self._behind.skip - (data.num_rows - rows))
        return ArrowBatch(data.slice(0, rows))

    def position(self) -> DataFileSplit:
        """Return the split with the position behind the rows that `read` returned."""
        return self._position

    def close(self) -> None:
        """Let the thread end; it closes the file."""
        self._closed.set()

    def _run(self) -> None:
        try:
            cursor = self._open_split(self._position)
        except Exception as error:
            self._put(error)
            return
        try:
            while not self._closed.is_set():
                batch = cursor.read(READ_ROWS)
                if not self._put((batch, cursor.position())) or batch is None:
                    return
        except Exception as error:
            self._put(error)
        finally:
            cursor.close()

    def _put(self, answer: tuple[ArrowBatch | None, DataFileSplit] | Exception) -> bool:
        while not self._closed.is_set():
            try:
                self._waiting.put(answer, timeout=0.2)
            except queue.Full:
                continue
            return True
        return False


__all__ = ["BackgroundCursor"]
