"""The buffer a task is working: its batches, decoded one at a time and given out slice by slice."""

from __future__ import annotations

from collections import deque

from rayflink.common.batches import Batch

from .exchange.codec import decode_batch, encode_batch, split_batches


class WorkedBuffer:
    """Holds at most one buffer, and of that at most one decoded batch."""

    def __init__(self) -> None:
        self.channel = self.input_index = 0
        self._batch: Batch | None = None
        self._done = self._announced = 0
        self._encoded: deque[bytes | memoryview] = deque()

    @property
    def empty(self) -> bool:
        """Whether all records have been given out."""
        return self._batch is None

    @property
    def rows(self) -> int:
        """Records of the current batch that were not given out yet."""
        return 0 if self._batch is None else len(self._batch) - self._done

    def load(self, body: bytes, channel: int, input_index: int) -> None:
        """Take a buffer of a channel; the one before must have been given out."""
        assert self.empty, f"channel {self.channel} still has {self.rows} records to be worked"
        self.channel, self.input_index = channel, input_index
        self._encoded.extend(split_batches(body))
        self._decode_next()

    def take(self, rows: int) -> Batch:
        """The next `rows` records of the current batch; `rows` is in [0, `self.rows`]."""
        batch, start = self._batch, self._done
        assert batch is not None, "a buffer was asked for records it does not have"
        self._done += rows
        piece = batch if rows == len(batch) else batch.slice(start, self._done)
        if self._done == len(batch):
            self._decode_next()
        return piece

    def unannounced(self, rows: int) -> Batch | None:
        """The next `rows` records at most, once those that were given by this before have been taken; else None."""
        if self._batch is None or self._done < self._announced:
            return None
        self._announced = min(len(self._batch), self._done + rows)
        return self._batch.slice(self._done, self._announced)

    @property
    def rows_announced(self) -> int:
        """Records that `unannounced` gave and that were not taken yet."""
        return max(0, self._announced - self._done)

    def remainder(self) -> list[bytes]:
        """What was not given out yet, encoded anew."""
        if self._batch is None:
            return []
        left = encode_batch(self._batch.slice(self._done, len(self._batch)))
        return [left, *map(bytes, self._encoded)]

    def drop(self) -> None:
        """Forget what was not given out."""
        self._batch = None
        self._encoded.clear()

    def _decode_next(self) -> None:
        self._batch = decode_batch(self._encoded.popleft()) if self._encoded else None
        self._done = self._announced = 0
