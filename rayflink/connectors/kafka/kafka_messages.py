"""Messages for Kafka by columns, and their bytes in a checkpoint."""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import chain, groupby
from typing import NamedTuple, TypeVar

import numpy as np

_T = TypeVar("_T")
Headers = Sequence[tuple[str, bytes | None]]
"""The headers of one message: names and values, in order."""
NO_TIMESTAMP = -1
"""In place of a message's time: the broker or the client sets it."""
_FORMAT = 1
ANY_PARTITION = -1
"""In place of a message's partition: the client's partitioner chooses it."""


@dataclass(frozen=True)
class KafkaMessages:
    """Messages for topics of Kafka, by columns of n entries.

    Args:
        topics: one topic for all, or that of each message.
        values: the bytes of each message; None is a tombstone, which deletes its key from a compacted topic.
        keys: None: no message has a key.
        headers: None: no message has headers.
        timestamps: epoch milliseconds, or `NO_TIMESTAMP`; None: no message has one of its own.
        partitions: from 0 on, or `ANY_PARTITION`; None: the client's partitioner chooses for all.
    """

    topics: str | Sequence[str]
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None = None
    headers: Sequence[Headers | None] | None = None
    timestamps: Sequence[int] | None = None
    partitions: Sequence[int] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, stop: int) -> KafkaMessages:
        """Return messages [start, stop)."""
        return KafkaMessages(
            self.topics if isinstance(self.topics, str) else self.topics[start:stop],
            self.values[start:stop],
            None if self.keys is None else self.keys[start:stop],
            None if self.headers is None else self.headers[start:stop],
            None if self.timestamps is None else self.timestamps[start:stop],
            None if self.partitions is None else self.partitions[start:stop],
        )

    def by_topic(self) -> Iterator[tuple[str, KafkaMessages]]:
        """Yield runs of messages to the same topic, in order."""
        if isinstance(self.topics, str):
            yield self.topics, self
            return
        start = 0
        for topic, run in groupby(self.topics):
            stop = start + sum(1 for _ in run)
            yield topic, self.slice(start, stop)
            start = stop

    def sizes(self) -> list[int]:
        """Return the bytes of each message: key, value and headers."""
        sizes = _lengths(self.values)
        if self.keys is not None:
            sizes = [size + key for size, key in zip(sizes, _lengths(self.keys), strict=True)]
        if self.headers is not None:
            sizes = [size + _header_bytes(headers) for size, headers in zip(sizes, self.headers, strict=True)]
        return sizes


class Column(NamedTuple):
    """Entries that are behind each other in a buffer.

    Args:
        start: the place of the first one.
        lengths: int32[n], the bytes of each; -1: there is none.
    """

    start: int
    lengths: np.ndarray


@dataclass(frozen=True)
class MessageColumns:
    """Messages like `KafkaMessages`, with values and keys in one buffer."""

    topics: str | Sequence[str]
    body: bytes | memoryview
    values: Column
    keys: Column | None = None
    headers: Sequence[Headers | None] | None = None
    timestamps: Sequence[int] | None = None
    partitions: Sequence[int] | None = None

    def __len__(self) -> int:
        return len(self.values.lengths)

    @classmethod
    def of(cls, messages: KafkaMessages) -> MessageColumns:
        """Return the same messages with their bytes copied into one buffer."""
        entries: list[bytes] = []
        values = np.frombuffer(_add_column(entries, messages.values), np.int32)
        keys, after = None, int(values.sum(where=values > 0))
        if messages.keys is not None:
            keys = Column(after, np.frombuffer(_add_column(entries, messages.keys), np.int32))
        return cls(
            messages.topics, b"".join(entries), Column(0, values), keys, messages.headers, messages.timestamps,
            messages.partitions,
        )  # fmt: skip

    def messages(self) -> KafkaMessages:
        """Return the same messages with bytes of their own."""
        keys = None if self.keys is None else self._entries(self.keys)
        values = self._entries(self.values)
        return KafkaMessages(self.topics, values, keys, self.headers, self.timestamps, self.partitions)

    def _entries(self, column: Column) -> list[bytes | None]:
        """Return the entries of a column; `read` takes a third of the time of slices."""
        sizes = column.lengths.tolist()
        stop = column.start + sum(size for size in sizes if size > 0)
        read = BytesIO(memoryview(self.body)[column.start : stop]).read
        if min(sizes, default=0) >= 0:
            return list(map(read, sizes))
        return [None if size < 0 else read(size) for size in sizes]


def _lengths(column: Sequence[bytes | None]) -> list[int]:
    try:
        return list(map(len, column))  # type: ignore[arg-type]
    except TypeError:
        return [0 if entry is None else len(entry) for entry in column]


def _header_bytes(headers: Headers | None) -> int:
    return sum(len(name.encode()) + len(value or b"") for name, value in headers or ())


def merged(parts: Sequence[KafkaMessages]) -> list[KafkaMessages]:
    """Return messages with those parts joined that follow each other and have the same columns."""
    return [_joined(run) for run in (list(run) for _, run in groupby(parts, _form))]


def _form(messages: KafkaMessages) -> tuple[object, ...]:
    topics = messages.topics if isinstance(messages.topics, str) else None
    columns = messages.keys, messages.headers, messages.timestamps, messages.partitions
    return topics, *(column is None for column in columns)


def _joined(parts: Sequence[KafkaMessages]) -> KafkaMessages:
    first = parts[0]
    if len(parts) == 1:
        return first
    return KafkaMessages(
        first.topics if isinstance(first.topics, str) else list(chain.from_iterable(part.topics for part in parts)),
        list(chain.from_iterable(part.values for part in parts)),
        _column_of(part.keys for part in parts),
        _column_of(part.headers for part in parts),
        _column_of(part.timestamps for part in parts),
        _column_of(part.partitions for part in parts),
    )


def _column_of(columns: Iterable[Sequence[_T] | None]) -> list[_T] | None:
    """Return columns behind each other; None where there are none, which is so of all or of none of them."""
    present = [column for column in columns if column is not None]
    return list(chain.from_iterable(present)) if present else None


def packed(parts: Sequence[KafkaMessages], compression: str | None) -> bytes:
    """Return messages as bytes: a pickled head with everything but keys and values, and these behind each other.

    Args:
        compression: of keys and values, "lz4" or "zstd"; None: none.
    """
    entries: list[bytes] = [b""]  # which one join copies: a chunk is larger than the processor's caches
    heads = []
    for part in parts:
        values = _add_column(entries, part.values)
        keys = None if part.keys is None else _add_column(entries, part.keys)
        heads.append((part.topics, values, keys, part.headers, part.timestamps, part.partitions))
    head = _FORMAT, compression, heads
    if compression is None:
        encoded = pickle.dumps((*head, None), protocol=5)
        entries[0] = len(encoded).to_bytes(8, "big") + encoded
        return b"".join(entries)
    import pyarrow

    body = b"".join(entries)
    encoded = pickle.dumps((*head, len(body)), protocol=5)
    small = pyarrow.compress(body, codec=compression, asbytes=True)
    return b"".join((len(encoded).to_bytes(8, "big"), encoded, small))


def unpacked(data: bytes | memoryview) -> Iterator[MessageColumns]:
    """Yield the messages of `packed`, part by part, in the same buffer if they are not compressed.

    Raises:
        ValueError: the bytes are of another format.
    """
    start = 8 + int.from_bytes(data[:8], "big")
    version, compression, heads, size = pickle.loads(data[8:start])
    if version != _FORMAT:
        raise ValueError(
            f"found messages of format {version}, wanted {_FORMAT}; restore with the version that wrote it"
        )
    if compression is not None:
        import pyarrow

        data = pyarrow.decompress(data[start:], size, codec=compression, asbytes=True)
        start = 0
    for topics, value_lengths, key_lengths, headers, timestamps, partitions in heads:
        values, start = _column(start, value_lengths)
        keys = None
        if key_lengths is not None:
            keys, start = _column(start, key_lengths)
        yield MessageColumns(topics, data, values, keys, headers, timestamps, partitions)


def _add_column(entries: list[bytes], column: Sequence[bytes | None]) -> bytes:
    """Add the entries of a column that are there to others, and return the lengths of all; -1: there is none."""
    try:
        lengths = list(map(len, column))  # type: ignore[arg-type]
        entries += column  # type: ignore[arg-type]
    except TypeError:
        lengths = [-1 if entry is None else len(entry) for entry in column]
        entries += [entry for entry in column if entry is not None]
    return array("i", lengths).tobytes()


def _column(start: int, lengths: bytes) -> tuple[Column, int]:
    """Return a column that starts at a place of a buffer, and the place after it."""
    column = Column(start, np.frombuffer(lengths, np.int32))
    return column, start + int(column.lengths.sum(where=column.lengths > 0))


__all__ = [
    "ANY_PARTITION",
    "NO_TIMESTAMP",
    "Column",
    "Headers",
    "KafkaMessages",
    "MessageColumns",
    "merged",
    "packed",
    "unpacked",
]
