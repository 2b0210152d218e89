"""Chunks: messages that wait for their checkpoint, in memory or in a local file, and in the checkpoint as bytes."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from pickle import PickleBuffer
from typing import IO, SupportsIndex

from .kafka_messages import KafkaMessages, MessageColumns, merged, packed, unpacked

CHUNK_BYTES = 8 << 20
"""Bytes of messages after which a chunk is complete."""
BLOCK_BYTES = 128 << 10
"""Bytes of messages that are packed together, while the processor's cache still has them."""
MEMORY_BYTES = 128 << 20
"""Most bytes of complete chunks that a subtask holds in memory."""
SEGMENT_BYTES = 128 << 20
"""Bytes of a local file after which the next is begun; a file goes when its chunks are committed."""


class Segment:
    """A local file of spilled chunks; it has no name, so nothing is left of it when the process ends."""

    def __init__(self, folder: str | None) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder, prefix="rayflink-kafka-")
        self.size = 0

    def append(self, data: bytes | memoryview) -> tuple[int, int]:
        """Write bytes at the end; return where they begin and how many they are."""
        place = self.size, len(data)
        self._file.write(data)
        self._file.flush()
        self.size += len(data)
        return place

    def read(self, place: tuple[int, int]) -> bytes:
        """Return the bytes at a place that `append` returned; any thread may call it."""
        return os.pread(self._file.fileno(), place[1], place[0])


@dataclass(frozen=True, eq=False)
class ChunkId:
    """The place of a chunk in the order of all.

    Args:
        transactional_id: of the writer: its prefix and subtask.
        run: of the attempt that wrote it.
        sequence: from 0 on in each run.
        ledger_topic: the topic whose partition 0 has the ledger of the run.
        written_ms: epoch milliseconds at which it was complete.
        parallelism: of the sink when it was written.
    """

    transactional_id: str
    run: str
    sequence: int
    ledger_topic: str
    written_ms: int
    parallelism: int


@dataclass(eq=False)
class Chunk:
    """Messages of one writer that are committed in one transaction.

    A pickled chunk contains the bytes of its messages as buffers, which `to_pieces` does not copy.

    Args:
        count: messages.
        size: bytes of the messages.
    """

    id: ChunkId
    count: int
    size: int
    _blocks: Sequence[bytes | memoryview] | None = field(default=None, repr=False)
    _spilled: tuple[Segment, Sequence[tuple[int, int]]] | None = field(default=None, repr=False)

    @property
    def is_in_memory(self) -> bool:
        """Return whether its messages are in this process's memory."""
        return self._spilled is None

    def blocks(self) -> Iterator[bytes | memoryview]:
        """Yield the bytes of its messages, each block as `packed` returned it."""
        blocks, spilled = self._blocks, self._spilled  # in this order, as another thread may spill it
        if blocks is not None:
            yield from blocks
        elif spilled is not None:
            segment, places = spilled
            yield from map(segment.read, places)

    def columns(self) -> Iterator[MessageColumns]:
        """Yield its messages, part by part, as columns of its own bytes."""
        for block in self.blocks():
            yield from unpacked(block)

    def messages(self) -> Iterator[KafkaMessages]:
        """Yield its messages, part by part, with bytes of their own."""
        for part in self.columns():
            yield part.messages()

    def spill(self, segment: Segment) -> None:
        """Move its messages from memory to a local file."""
        self._spilled = segment, [segment.append(block) for block in self.blocks()]
        self._blocks = None

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[object, ...]:
        blocks = self.blocks() if index(protocol) < 5 else map(PickleBuffer, self.blocks())
        return Chunk, (self.id, self.count, self.size, list(blocks))

    def __setstate__(self, state: Mapping[str, object]) -> None:
        """Take the state of a chunk as it was pickled before it had blocks: its bytes are one, in `_data`."""
        own = {name: state[name] for name in ("id", "count", "size")}
        self.__dict__.update(own, _blocks=(state["_data"],), _spilled=None)

    def __repr__(self) -> str:
        chunk = self.id
        return f"{self.count} messages of {chunk.transactional_id!r} (run {chunk.run}, chunk {chunk.sequence})"


class ChunkWriter:
    """Collects the messages of one run in chunks.

    Args:
        first: the id of the first chunk; its `ledger_topic` is "" where messages have topics of their own, and then
            becomes that of the first message.
        compression: "lz4", "zstd" or None.
        memory_bytes: of complete chunks, above which they are spilled.
        folder: of local files; None: that of the system.
    """

    def __init__(
        self, first: ChunkId, compression: str | None, memory_bytes: int = MEMORY_BYTES, folder: str | None = None
    ) -> None:
        self._next, self._compression = first, compression
        self._memory_bytes, self._folder = memory_bytes, folder
        self._parts: list[KafkaMessages] = []
        self._parts_bytes = 0
        self._blocks: list[bytes] = []
        self._count = self._size = 0
        self._complete: list[Chunk] = []
        self._in_memory: weakref.WeakSet[Chunk] = weakref.WeakSet()
        self._segment: Segment | None = None
        self.spilled_bytes = 0
        """Bytes written to local files so far."""

    def add(self, messages: KafkaMessages, sizes: Sequence[int], now_ms: int) -> None:
        """Add messages.

        Args:
            sizes: bytes of each.
            now_ms: epoch milliseconds.
        """
        start, left = 0, sum(sizes)
        while self._size + left >= CHUNK_BYTES:
            room, stop = CHUNK_BYTES - self._size, start
            while room > 0:
                room -= sizes[stop]
                stop += 1
            size = sum(sizes[start:stop])
            self._append(messages.slice(start, stop), size)
            self._end(now_ms)
            start, left = stop, left - size
        if start < len(sizes):
            self._append(messages if start == 0 else messages.slice(start, len(sizes)), left)

    def take(self, now_ms: int) -> list[Chunk]:
        """Return all messages since the last call as chunks."""
        if self._count:
            self._end(now_ms)
        complete, self._complete = self._complete, []
        return complete

    def _append(self, messages: KafkaMessages, size: int) -> None:
        if not self._next.ledger_topic:
            topics = messages.topics
            self._next = replace(self._next, ledger_topic=topics if isinstance(topics, str) else topics[0])
        self._parts.append(messages)
        self._parts_bytes += size
        self._count += len(messages)
        self._size += size
        if self._parts_bytes >= BLOCK_BYTES:
            self._pack()

    def _pack(self) -> None:
        self._blocks.append(packed(merged(self._parts), self._compression))
        self._parts.clear()
        self._parts_bytes = 0

    def _end(self, now_ms: int) -> None:
        if self._parts:
            self._pack()
        own = replace(self._next, written_ms=now_ms)
        self._next = replace(self._next, sequence=own.sequence + 1)
        chunk = Chunk(own, self._count, self._size, self._blocks)
        self._blocks, self._count, self._size = [], 0, 0
        self._complete.append(chunk)
        if chunk.size + sum(other.size for other in self._in_memory if other.is_in_memory) > self._memory_bytes:
            if self._segment is None or self._segment.size >= SEGMENT_BYTES:
                self._segment = Segment(self._folder)
            before = self._segment.size
            chunk.spill(self._segment)
            self.spilled_bytes += self._segment.size - before
        else:
            self._in_memory.add(chunk)


__all__ = ["BLOCK_BYTES", "CHUNK_BYTES", "MEMORY_BYTES", "Chunk", "ChunkId", "ChunkWriter", "Segment"]
