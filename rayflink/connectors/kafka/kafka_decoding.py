"""Turns messages of the client library into a reader's answers: batches with timestamps, the offset behind each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from rayflink.common.connector_base.malformed_records import MalformedRecords
from rayflink.common.connector_base.message_decoder import DecodedBatch, MessageDecoder
from rayflink.common.metrics.metric_group import Counter, MetricGroup
from rayflink.common.records.batches import MIN_TIMESTAMP, ArrowBatch, Batch, RowBatch, Tagged

from .kafka_client import library
from .kafka_records import KafkaRecordDeserializationSchema, Message, MessageSchema, ValueOnlySchema

_MILLISECONDS = itemgetter(1)
_SHORT = 256
"""Bytes of values that are copied into one to learn their sum, which is quicker than to ask each for its length."""
_MOST_JOINED_BYTES = 16 << 20
"""Bytes of columns that are joined at most."""


@dataclass(frozen=True, slots=True)
class DecodedRun:
    """Records of one partition that are given out together.

    Args:
        element: None: there are none, and the position advances all the same.
        next_offset: behind the messages that they were made of.
    """

    element: RowBatch | ArrowBatch | Tagged | None
    next_offset: int

    def joined(self, later: DecodedRun, most: int) -> DecodedRun | None:
        """Return this run and the next one of its partition as one; None: they are no rows, or more than `most`."""
        first, second = self.element, later.element
        if not isinstance(first, RowBatch) or not isinstance(second, RowBatch) or len(first) + len(second) > most:
            return None
        stamps = [*(first.timestamps or ()), *(second.timestamps or ())]
        return DecodedRun(RowBatch([*first.values, *second.values], stamps), later.next_offset)


def joined_columns(first: DecodedRun, later: Iterable[DecodedRun], most: int) -> tuple[DecodedRun, int]:
    """Return a run with as many of those that follow it in its partition as become one batch, and how many these are.

    Args:
        most: rows of the batch.
    """
    batch = first.element
    if not isinstance(batch, ArrowBatch):
        return first, 0
    rows, size = len(batch), batch.data.nbytes
    batches, next_offset = [batch], first.next_offset
    for run in later:
        following = run.element
        if not isinstance(following, ArrowBatch) or following.data.schema != batch.data.schema:
            break
        rows, size = rows + len(following), size + following.data.nbytes
        if rows > most or size > _MOST_JOINED_BYTES:
            break
        batches.append(following)
        next_offset = run.next_offset
    if len(batches) == 1:
        return first, 0
    import numpy as np
    import pyarrow

    stamps = np.concatenate([part.timestamps for part in batches])
    data = pyarrow.concat_batches([part.data for part in batches])
    return DecodedRun(ArrowBatch(data, stamps), next_offset), len(batches) - 1


class RecordDecoder:
    """Decodes runs of messages of one partition each.

    Args:
        policy: for malformed records.
        metrics: of the source.
    """

    def __init__(
        self, schema: KafkaRecordDeserializationSchema, policy: MalformedRecords, metrics: MetricGroup | None
    ) -> None:
        self._reads_values, self._skips_tombstones = isinstance(schema, ValueOnlySchema), schema.skips_tombstones
        message = library().Message
        self._value, self._timestamp = message.value, message.timestamp
        inner = schema.schema if isinstance(schema, ValueOnlySchema) else MessageSchema(schema)
        self._decoder = MessageDecoder(inner, policy, metrics, bytes if self._reads_values else _value_of)
        self.tombstones = Counter()
        """Number of records without a value that were left out."""
        self.bytes = Counter()
        """Number of bytes of all values."""

    def timestamps(self, messages: Sequence[Message]) -> list[int]:
        """Return the epoch milliseconds of messages; -1: a message has none, or is an error."""
        return list(map(_MILLISECONDS, map(self._timestamp, messages)))

    def decode(
        self, topic: str, partition: int, messages: Sequence[Message], stamps: list[int] | None = None
    ) -> list[DecodedRun]:
        """Return the records of messages, in parts where malformed ones go to a side output between them.

        Args:
            stamps: what `timestamps` returned for the messages; None: it is not known yet.

        Raises:
            MalformedMessage: one cannot be decoded, and the policy is to fail.
        """
        next_offset = messages[-1].offset() + 1
        values = list(map(self._value, messages))
        if None in values:
            present = [index for index, value in enumerate(values) if value is not None]
            self.bytes.inc(sum(len(values[index]) for index in present))
            if self._skips_tombstones:
                self.tombstones.inc(len(values) - len(present))
            if self._reads_values:
                if not present:
                    return [DecodedRun(None, next_offset)]
                messages, values = [messages[index] for index in present], [values[index] for index in present]
                stamps = None
        else:
            self.bytes.inc(len(b"".join(values)) if len(values[0]) < _SHORT else sum(map(len, values)))
        malformed: set[int] = set()

        def place_of(index: int) -> str:
            malformed.add(index)
            return f"topic {topic}, partition {partition}, offset {messages[index].offset()}"

        decoded = self._decoder.decode(values if self._reads_values else messages, place_of)
        stamps = self.timestamps(messages) if stamps is None else stamps
        if -1 in stamps:
            stamps = [MIN_TIMESTAMP if stamp == -1 else stamp for stamp in stamps]
        batch = _stamped(decoded, stamps)
        if decoded.malformed is None:
            return [DecodedRun(batch if len(batch) else None, next_offset)]
        return _divided(replace(decoded, batch=batch), sorted(malformed), messages)


def _value_of(message: Message) -> bytes:
    return message.value() or b""


def _stamped(decoded: DecodedBatch, stamps: list[int]) -> Batch:
    """Return the records with the timestamps of their messages."""
    batch, indices = decoded.batch, decoded.indices
    if indices is not None:
        stamps = [stamps[index] for index in indices]
    if isinstance(batch, ArrowBatch):
        import numpy as np

        return ArrowBatch(batch.data, np.array(stamps, np.int64))
    return RowBatch(batch.values, stamps)


def _divided(decoded: DecodedBatch, malformed: list[int], messages: Sequence[Message]) -> list[DecodedRun]:
    """Return good and malformed records in the order of their offsets.

    So each part ends at an offset before which all is given out, and a snapshot between two of them is exact.
    """
    assert decoded.malformed is not None
    bad = decoded.malformed
    origins = range(len(decoded.batch)) if decoded.indices is None else decoded.indices
    runs: list[DecodedRun] = []
    record = 0

    def add_good(until: int) -> None:
        """Add the records of messages before index `until`."""
        nonlocal record
        stop = bisect_left(origins, until)
        if stop > record:
            end = messages[until - 1].offset() + 1
            runs.append(DecodedRun(decoded.batch.slice(record, stop), end))
        record = stop

    start = 0
    while start < len(malformed):
        stop = start + 1
        while stop < len(malformed) and malformed[stop] == malformed[stop - 1] + 1:
            stop += 1
        add_good(malformed[start])
        side = Tagged(bad.tag_id, bad.batch.slice(start, stop))
        runs.append(DecodedRun(side, messages[malformed[stop - 1]].offset() + 1))
        start = stop
    add_good(len(messages))
    runs[-1] = replace(runs[-1], next_offset=messages[-1].offset() + 1)
    return runs


__all__ = ["DecodedRun", "RecordDecoder", "joined_columns"]
