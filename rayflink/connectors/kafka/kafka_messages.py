"""Messages for Kafka by columns, and their bytes in a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow

Headers = Sequence[tuple[str, bytes | None]]
"""The headers of one message: names and values, in order."""
NO_TIMESTAMP = -1
"""In place of a message's time: the broker or the client sets it."""
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


def _lengths(column: Sequence[bytes | None]) -> list[int]:
    try:
        return list(map(len, column))  # type: ignore[arg-type]
    except TypeError:
        return [0 if entry is None else len(entry) for entry in column]


def _header_bytes(headers: Headers | None) -> int:
    return sum(len(name.encode()) + len(value or b"") for name, value in headers or ())


def packed(parts: Sequence[KafkaMessages], compression: str | None) -> bytes:
    """Return messages as an Arrow stream with a record batch for each part.

    Args:
        compression: "lz4" or "zstd"; None: none.

    Raises:
        pyarrow.ArrowInvalid: a column holds something else than its type.
    """
    import pyarrow

    options = pyarrow.ipc.IpcWriteOptions(compression=compression)
    target = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(target, _schema(), options=options) as stream:
        for part in parts:
            stream.write_batch(_record_batch(part))
    return target.getvalue().to_pybytes()  # type: ignore[no-any-return]


def unpacked(data: bytes) -> list[KafkaMessages]:
    """Return the messages of `packed`.

    Raises:
        pyarrow.ArrowInvalid: the bytes are no such stream.
    """
    import pyarrow

    with pyarrow.ipc.open_stream(data) as stream:
        return [_messages(batch) for batch in stream]


def _schema() -> pyarrow.Schema:
    import pyarrow as pa

    header = pa.struct([("name", pa.string()), ("value", pa.binary())])
    return pa.schema(
        {
            "topic": pa.dictionary(pa.int32(), pa.string()), "key": pa.binary(), "value": pa.binary(),
            "headers": pa.list_(header), "timestamp": pa.int64(), "partition": pa.int32(),
        }
    )  # fmt: skip


def _record_batch(messages: KafkaMessages) -> pyarrow.RecordBatch:
    import pyarrow as pa

    schema, count = _schema(), len(messages)
    if isinstance(messages.topics, str):
        topics = pa.DictionaryArray.from_arrays(pa.nulls(count, pa.int32()).fill_null(0), pa.array([messages.topics]))
    else:
        topics = pa.array(messages.topics, pa.string()).dictionary_encode()
    headers = None
    if messages.headers is not None:
        structs = ([{"name": n, "value": v} for n, v in entry] if entry else None for entry in messages.headers)
        headers = list(structs)
    rest = messages.keys, messages.values, headers, messages.timestamps, messages.partitions
    columns = [topics]
    for column, field in zip(rest, list(schema)[1:], strict=True):
        columns.append(pa.nulls(count, field.type) if column is None else pa.array(column, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _messages(batch: pyarrow.RecordBatch) -> KafkaMessages:
    columns = {name: batch.column(name) for name in batch.schema.names}
    found = {name: None if column.null_count == len(column) else column.to_pylist() for name, column in columns.items()}
    names = columns["topic"].dictionary.to_pylist()
    headers = found["headers"]
    if headers is not None:
        headers = [None if h is None else [(entry["name"], entry["value"]) for entry in h] for h in headers]
    return KafkaMessages(
        names[0] if len(names) == 1 else found["topic"] or [],
        columns["value"].to_pylist(),
        found["key"],
        headers,
        found["timestamp"],
        found["partition"],
    )


__all__ = ["ANY_PARTITION", "NO_TIMESTAMP", "Headers", "KafkaMessages", "packed", "unpacked"]
