"""Collects what a task emits into one batch a channel and hands full batches, encoded, to the result partition.

A batch closes when it holds `max_rows` records (fewer once their bytes are known to exceed `max_bytes`), when the buffer
timeout has passed since its first record, or when an event must follow it.

Source: apache/flink RecordWriter; timeout -1 sends full buffers only, 0 sends after every write.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rayflink.common.batches import ArrowBatch, Batch, Element, EndOfPartition, Event, RowBatch

from .codec import encode_batch
from .partition import ResultPartition
from .selectors import ChannelSelector
from .subpartition import Buffer


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """When a channel's batch is full, and how long it may wait.

    Args:
        max_rows: records, >= 1.
        max_bytes: encoded bytes that a batch aims not to exceed; one larger record still goes, alone.
        timeout_ms: -1 never, 0 at once, else milliseconds.
    Raises: ValueError: a timeout below -1.
    """

    max_rows: int = 16384
    max_bytes: int = 1 << 20
    timeout_ms: int = 100

    def __post_init__(self) -> None:
        if self.timeout_ms < -1:
            raise ValueError(f"buffer timeout must be -1 (only full buffers), 0 or more ms, found {self.timeout_ms}")


class _Open:
    """A channel's batch that is still being filled."""

    __slots__ = ("arrow", "count", "since_ms", "stamps", "values")

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.stamps: list[int] | None = None
        self.arrow: list[ArrowBatch] = []
        self.count = 0
        self.since_ms = 0


class RecordWriter:
    """Writes one operator's output to one result partition.

    Args:
        partition: where full batches go.
        selector: which channel gets which record.
        limits: when a batch is full.
    """

    def __init__(self, partition: ResultPartition, selector: ChannelSelector, limits: BatchLimits) -> None:
        self.partition = partition
        self._selector = selector
        self._limits = limits
        self._open = [_Open() for _ in partition.subpartitions]
        self._pending = 0
        self._oldest_ms: int | None = None
        self._now_ms = 0
        self._target_rows = limits.max_rows
        self.rows_written = 0
        self.effective_timeout_ms = 0.0

    def write(self, element: Element) -> None:
        """Take a batch, or an event, which goes to every channel behind the records before it."""
        if isinstance(element, (RowBatch, ArrowBatch)):
            self.rows_written += len(element)
            for channel, part in self._selector.split(element):
                self._append(channel, part)
            if self._limits.timeout_ms == 0:
                self.flush()
        else:
            self.broadcast(element)  # type: ignore[arg-type]

    def broadcast(self, event: Event) -> None:
        """Send an event on every channel, after closing the channel's batch."""
        for channel, sub in enumerate(self.partition.subpartitions):
            self._close(channel)
            sub.add(event)

    def finish(self) -> None:
        """Close all batches and say that nothing follows."""
        self.broadcast(EndOfPartition())

    def flush(self) -> None:
        """Close all batches now."""
        if self._pending:
            for channel in range(len(self._open)):
                self._close(channel)
        self._oldest_ms = None

    def tick(self, now_ms: int) -> None:
        """Close the batches whose time is up; called once a step with the processing time."""
        self._now_ms = now_ms
        timeout, oldest = self._limits.timeout_ms, self._oldest_ms
        if timeout <= 0 or oldest is None or now_ms - oldest < timeout:
            return
        next_oldest: int | None = None
        for channel, held in enumerate(self._open):
            if not held.count:
                continue
            if now_ms - held.since_ms >= timeout:
                waited = now_ms - held.since_ms
                self.effective_timeout_ms += (waited - self.effective_timeout_ms) / 16
                self._close(channel)
            elif next_oldest is None or held.since_ms < next_oldest:
                next_oldest = held.since_ms
        self._oldest_ms = next_oldest

    def deadline_ms(self) -> int | None:
        """When `tick` has something to do, or None."""
        if self._oldest_ms is None or self._limits.timeout_ms <= 0:
            return None
        return self._oldest_ms + self._limits.timeout_ms

    def _append(self, channel: int, part: Batch) -> None:
        held = self._open[channel]
        count = len(part)
        if held.count and not _fits(held, part):
            self._close(channel)
        if not held.count:
            if count >= self._target_rows:
                self._send(channel, part)
                return
            held.since_ms = self._now_ms
            if self._oldest_ms is None:
                self._oldest_ms = self._now_ms
            if isinstance(part, RowBatch) and part.timestamps is not None:
                held.stamps = []
        if isinstance(part, ArrowBatch):
            held.arrow.append(part)
        else:
            held.values += part.values
            if held.stamps is not None:
                held.stamps += part.timestamps  # type: ignore[arg-type]
        held.count += count
        self._pending += count
        if held.count >= self._target_rows:
            self._close(channel)

    def _close(self, channel: int) -> None:
        held = self._open[channel]
        if not held.count:
            return
        batch: Batch = _concatenated(held.arrow) if held.arrow else RowBatch(held.values, held.stamps)
        self._pending -= held.count
        self._open[channel] = _Open()
        self._send(channel, batch)

    def _send(self, channel: int, batch: Batch) -> None:
        step = self._target_rows
        for start in range(0, len(batch), step):
            piece = batch if len(batch) <= step else batch.slice(start, min(start + step, len(batch)))
            body = encode_batch(piece)
            self.partition.add(channel, Buffer(body, len(piece)))
            self._learn(len(body), len(piece))

    def _learn(self, size: int, rows: int) -> None:
        """Aim at batches of at most `max_bytes`, from the bytes a row took lately."""
        limits = self._limits
        if size > limits.max_bytes:
            self._target_rows = max(1, min(self._target_rows, rows * limits.max_bytes // size))
        elif self._target_rows < limits.max_rows and size * 2 < limits.max_bytes:
            self._target_rows = min(limits.max_rows, self._target_rows * 2)


def _fits(held: _Open, part: Batch) -> bool:
    if isinstance(part, ArrowBatch):
        return bool(held.arrow) and held.arrow[-1].data.schema.equals(part.data.schema) and (
            (held.arrow[-1].timestamps is None) == (part.timestamps is None)
        )
    return not held.arrow and (held.stamps is None) == (part.timestamps is None)


def _concatenated(parts: list[ArrowBatch]) -> ArrowBatch:
    if len(parts) == 1:
        return parts[0]
    import numpy as np
    import pyarrow as pa

    data = pa.concat_batches([p.data for p in parts])
    stamps = None if parts[0].timestamps is None else np.concatenate([p.timestamps for p in parts])
    return ArrowBatch(data, stamps)

