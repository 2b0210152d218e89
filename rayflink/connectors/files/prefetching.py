"""A split that is read by a thread of its own, so that the task never waits for a store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from queue import Empty, Full, Queue
from typing import TYPE_CHECKING

from rayflink.common.connector_base.source import PENDING, Polled
from rayflink.common.connector_base.split_reader import SplitCursor
from rayflink.common.records.batches import ArrowBatch, RowBatch

if TYPE_CHECKING:
    from .file_blocks import FileSplit

BATCH_RECORDS = 8192
"""Records of a batch that is read ahead, about."""
BATCHES = 4
"""Batches that wait in memory for the task, at most."""
LOOK_MS = 2
"""Milliseconds until the task looks again for a batch that was not there."""
_PATIENCE_S = 0.1


class PrefetchingCursor:
    """Reads a split beside the task; the position is that of the last record given out.

    Args:
        split: what to read.
        open_split: opens it; may wait for the store, as the cursor that it returns may.
    """

    def __init__(self, split: FileSplit, open_split: Callable[[], SplitCursor]) -> None:
        self._position, self._open = split, open_split
        self._queue: Queue[tuple[Polled | None, FileSplit] | Exception] = Queue(BATCHES)
        self._rest: RowBatch | ArrowBatch | None = None
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="read object", daemon=True)
        self._thread.start()

    def read(self, max_records: int) -> Polled | None:
        if self._rest is None:
            try:
                item = self._queue.get_nowait()
            except Empty:
                return PENDING
            if isinstance(item, Exception):
                raise item
            element, self._position = item
            if not isinstance(element, RowBatch | ArrowBatch) or len(element) < 2 * max_records:
                return element
            self._rest = element
            self._position = replace(self._position, skip=self._position.skip - len(element))
        return self._part(self._rest, max_records)

    def _part(self, rest: RowBatch | ArrowBatch, max_records: int) -> RowBatch | ArrowBatch:
        count = len(rest) if len(rest) < 2 * max_records else max_records
        self._rest = None if count == len(rest) else rest.slice(count, len(rest))
        self._position = replace(self._position, skip=self._position.skip + count)
        return rest.slice(0, count)

    def position(self) -> FileSplit:
        return replace(self._position, path=str(self._position.path))

    def close(self) -> None:
        self._is_closed.set()

    def _run(self) -> None:
        try:
            cursor = self._open()
            try:
                element: Polled | None = PENDING
                while element is not None and not self._is_closed.is_set():
                    element = cursor.read(BATCH_RECORDS)
                    self._put((element, cursor.position()))
            finally:
                cursor.close()
        except Exception as error:  # raised where the task asks
            self._put(error)

    def _put(self, item: tuple[Polled | None, FileSplit] | Exception) -> None:
        while not self._is_closed.is_set():
            try:
                return self._queue.put(item, timeout=_PATIENCE_S)
            except Full:
                continue


__all__ = ["LOOK_MS", "PrefetchingCursor"]
