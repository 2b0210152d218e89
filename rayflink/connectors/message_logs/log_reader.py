"""The reader of a log: it decodes what a fetcher has read, and knows the position behind what it has given out."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from rayflink.common.connector_base.message_decoder import DecodedBatch, MessageDecoder
from rayflink.common.connector_base.source import END, PENDING, Polled, ReaderContext, SourceReader
from rayflink.common.connector_base.split_reader import share_of
from rayflink.common.records.batches import ArrowBatch, Batch, RowBatch, Tagged
from rayflink.user_types import SourceSplit

from .fetch_queue import FetchQueue, Run
from .log_splits import LogSplit

_PAUSES_MS = (1, 1, 2, 2, 5)
"""Milliseconds until the next poll after the first, second and further ones that brought nothing."""
Split = TypeVar("Split", bound=LogSplit)
Read = TypeVar("Read", bound=LogSplit, contravariant=True)


class Fetcher(Protocol[Read]):
    """Reads splits in a thread of its own, and puts runs of messages into a queue."""

    def add_split(self, split: Read) -> None:
        """Begin to read a split, whose queue is there."""
        ...

    def remove_split(self, split_id: str) -> None:
        """Read no more of a split."""
        ...

    def close(self) -> None:
        """End the thread soon, and release its connection; without waiting for either."""
        ...


@dataclass(frozen=True, slots=True)
class Piece:
    """Records that are given out together.

    Args:
        element: None: there are none, and the position advances all the same.
        messages: number of messages of the slice that are behind the reader once this is given out.
    """

    element: RowBatch | ArrowBatch | Tagged | None
    messages: int


class _OpenRun(Generic[Run]):
    """A run that is given out piece by piece."""

    def __init__(self, run: Run) -> None:
        self.run, self.start = run, 0
        self.pieces: deque[tuple[SourceSplit, RowBatch | ArrowBatch | Tagged | None]] = deque()

    @property
    def is_through(self) -> bool:
        """Return whether nothing of it is left."""
        return not self.pieces and self.start == len(self.run.messages)


class LogReader(SourceReader, Generic[Split, Run]):
    """Gives out the records of its splits, in turn.

    Args:
        queue: that the fetcher fills.
        fetcher: ends with the reader.
        decoder: decodes the messages of a run.
    """

    def __init__(
        self,
        ctx: ReaderContext,
        queue: FetchQueue[Run],
        fetcher: Fetcher[Split],
        decoder: MessageDecoder,
    ) -> None:
        self._ctx, self._queue, self._fetcher, self._decoder = ctx, queue, fetcher, decoder
        self._splits: dict[str, Split] = {}
        self._open: dict[str, _OpenRun[Run]] = {}
        self._names: tuple[str, ...] = ()
        self._paused: set[str] = set()
        self._current = ""
        self._is_announced = self._no_more = False
        self._empty_polls = 0

    # splits

    def needs_split(self) -> bool:
        """Return True once: from then on the enumerator assigns splits whenever there are some."""
        is_first, self._is_announced = not self._is_announced, True
        return is_first

    def add_splits(self, splits: list[Split]) -> None:
        for split in splits:
            if not split.is_finished:
                self._splits[split.split_id] = split
                self._queue.add(split.split_id)
                self._fetcher.add_split(split)
        self._names = tuple(self._splits)

    def notify_no_more_splits(self) -> None:
        self._no_more = True

    def split_ids(self) -> Collection[str]:
        return self._names

    def current_split(self) -> str:
        return self._current

    def pause_or_resume_splits(self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]) -> None:
        self._paused.update(splits_to_pause)
        self._paused.difference_update(splits_to_resume)

    # records

    def poll(self, max_records: int) -> Polled:
        while True:
            opened = self._next_open()
            if opened is None:
                self._empty_polls += 1
                return END if self._no_more and not self._splits else PENDING
            if not opened.pieces:
                self._decode(opened, max_records)
            split, element = opened.pieces.popleft()
            if opened.is_through:
                del self._open[opened.run.split_id]
            self._advance(split)
            if element is not None:
                self._empty_polls = 0
                self._current = split.split_id
                return element

    def next_poll_ms(self) -> int | None:
        if not self._splits:
            return None
        return self._ctx.now_ms() + _PAUSES_MS[min(self._empty_polls, len(_PAUSES_MS)) - 1]

    def _next_open(self) -> _OpenRun[Run] | None:
        """Return a run with records of a split that is not paused."""
        for split_id, opened in self._open.items():
            if split_id not in self._paused:
                return opened
        while self._splits:
            run = self._take()
            if run is None:
                return None
            if len(run.messages):
                opened = self._open[run.split_id] = _OpenRun(run)
                return opened
            self._advance(run.split_after(0))
        return None

    def _take(self) -> Run | None:
        """Return the next run of a split that is not paused; None: there is none."""
        return self._queue.take(self._paused)

    def _decode(self, opened: _OpenRun[Run], max_records: int) -> None:
        """Decode the next messages of a run."""
        run, start = opened.run, opened.start
        count = share_of(len(run.messages) - start, max_records)
        stop = opened.start = start + count
        malformed: set[int] = set()

        def place_of(index: int) -> str:
            malformed.add(index)
            return run.place_of(start + index)

        decoded = self._decoder.decode(run.messages[start:stop], place_of)
        batch = _stamped(decoded, run.timestamps(start, stop))
        for piece in pieces_of(replace(decoded, batch=batch), sorted(malformed), count):
            opened.pieces.append((run.split_after(start + piece.messages), piece.element))

    def _advance(self, split: Split) -> None:
        """Note that everything before a position was given out."""
        split_id = split.split_id
        self._splits[split_id] = split
        if split.is_finished:
            del self._splits[split_id]
            self._open.pop(split_id, None)
            self._names = tuple(self._splits)
            self._paused.discard(split_id)
            self._fetcher.remove_split(split_id)
            self._queue.remove(split_id)

    # checkpoints

    def snapshot_state(self) -> list[Split]:
        return list(self._splits.values())

    def close(self) -> None:
        self._queue.close()
        self._fetcher.close()


def _stamped(decoded: DecodedBatch, stamps: list[int] | None) -> Batch:
    """Return the records with the timestamps of their messages; None: these have none."""
    batch, indices = decoded.batch, decoded.indices
    if stamps is None:
        return batch
    if indices is not None:
        stamps = [stamps[index] for index in indices]
    if isinstance(batch, ArrowBatch):
        import numpy as np

        return ArrowBatch(batch.data, np.array(stamps, np.int64))
    return RowBatch(batch.values, stamps)


def pieces_of(decoded: DecodedBatch, malformed: Sequence[int], count: int) -> list[Piece]:
    """Return good and malformed records in the order of their messages.

    So each piece ends at a message before which all is given out, and a snapshot between two of them is exact.

    >>> from rayflink.common.records.batches import RowBatch, Tagged
    >>> decoded = DecodedBatch(RowBatch(["a", "c"]), [0, 2], Tagged("bad", RowBatch(["?"])))
    >>> [(piece.messages, type(piece.element).__name__) for piece in pieces_of(decoded, [1], 3)]
    [(1, 'RowBatch'), (2, 'Tagged'), (3, 'RowBatch')]

    Args:
        malformed: indices of the messages of `decoded.malformed`, in order.
        count: of all messages.
    """
    batch = decoded.batch
    if decoded.malformed is None:
        return [Piece(batch if len(batch) else None, count)]
    side, origins = decoded.malformed, range(len(batch)) if decoded.indices is None else decoded.indices
    pieces: list[Piece] = []
    record = 0
    for number, index in enumerate([*malformed, count]):
        stop = bisect_left(origins, index)
        if stop > record:
            pieces.append(Piece(batch.slice(record, stop), index))
            record = stop
        if index < count:
            pieces.append(Piece(Tagged(side.tag_id, side.batch.slice(number, number + 1)), index + 1))
    if not pieces or pieces[-1].messages < count:
        pieces.append(Piece(None, count))
    return pieces


__all__ = ["Fetcher", "LogReader", "Piece", "pieces_of"]
