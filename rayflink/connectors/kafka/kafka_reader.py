"""The reader of a Kafka source: one consumer, whose partitions are assigned by the enumerator."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby, takewhile
from typing import TYPE_CHECKING, cast

from rayflink.common.connector_base.malformed_records import MalformedRecords
from rayflink.common.connector_base.source import END, PENDING, Polled, ReaderContext, SourceReader
from rayflink.common.text_output.logs import get_logger

from .kafka_client import (
    MISSING,
    ClientErrors,
    KafkaBrokerUnavailable,
    KafkaClientError,
    as_exception,
    error_name,
    is_transient,
    library,
    new_consumer,
    place_of,
)
from .kafka_decoding import DecodedRun, RecordDecoder, joined_columns
from .kafka_metrics import ReaderMetrics
from .kafka_records import KafkaRecordDeserializationSchema, Message
from .kafka_settings import OUTAGE_TIMEOUT, KafkaSourceSettings
from .kafka_splits import KafkaPartitionSplit

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, TopicPartition

log = get_logger(__name__)

_CHUNK = 500
"""Messages that are taken from the client and decoded at once; more leave the processor's caches, which is slower."""
_MOST_CONSUMED = 4_000
"""Messages that one poll takes from the client, in chunks that become one batch for each partition."""
_LOOKS = 3
"""Looks of the client at the brokers, of which none finds a topic, after which the topic counts as deleted."""
_PAUSES_MS = (1, 1, 2, 2, 3)
"""Milliseconds until the next poll after the first, second and further ones that brought nothing."""
_QUIET_AFTER_MS = 40_000
"""An outage is over when no error came for so long: the client repeats those that last, each half minute."""


class ReadPartition:
    """A partition that is being read.

    Args:
        split: where reading begins.
    """

    def __init__(self, split: KafkaPartitionSplit) -> None:
        self.topic, self.partition, self.split_id = split.topic, split.partition, split.split_id
        self.stopping = split.stopping_offset
        self.position = split.offset
        """The offset behind all that was given out."""
        self.consumed = split.offset
        """The offset behind all that was taken from the client."""
        self.committed = -1
        self.newest = -1
        """The offset of the newest record that was given out."""
        self.is_through = False
        """Whether its stopping offset was reached; what waits to be given out may be left."""

    @property
    def split(self) -> KafkaPartitionSplit:
        """The split with the position up to which records were given out."""
        return KafkaPartitionSplit(self.topic, self.partition, self.position, self.stopping)

    def at_client(self, offset: int | None = None) -> TopicPartition:
        """Return the partition as the client library takes it."""
        partition: TopicPartition = library().TopicPartition(self.topic, self.partition)
        if offset is not None:
            partition.offset = offset
        return partition


class KafkaReader(SourceReader):
    """Reads partitions with a consumer that is assigned them by hand; it is no member of a group.

    Args:
        schema: decodes records.
        policy: for malformed records.
    """

    def __init__(
        self,
        ctx: ReaderContext,
        settings: KafkaSourceSettings,
        schema: KafkaRecordDeserializationSchema,
        policy: MalformedRecords,
    ) -> None:
        self._ctx, self._settings = ctx, settings
        self._client = settings.client_of(str(ctx.subtask))
        self._errors = ClientErrors(self._client)
        self._decoder = RecordDecoder(schema, policy, ctx.metrics)
        self._metrics = ReaderMetrics(ctx.metrics, self._lags, self._decoder.tombstones, self._decoder.bytes)
        self._partitions: dict[tuple[str, int], ReadPartition] = {}
        self._topics: set[str] = set()
        self._finished: dict[str, KafkaPartitionSplit] = {}
        """Splits that are read to their end, until a checkpoint that contains their ends is complete."""
        self._ready: deque[tuple[ReadPartition, DecodedRun]] = deque()
        self._names: tuple[str, ...] | None = ()
        self._current = ""
        self._paused: set[str] = set()
        self._announced = self._no_more = False
        self._empty_polls = 0
        self._outage_since_ms: int | None = None
        self._last_error_ms = 0
        message = library().Message
        self._topic_of, self._partition_of = message.topic, message.partition
        own = {"enable.partition.eof": "true", "on_commit": self._committed}
        self._consumer: Consumer = new_consumer({**self._client, **own}, self._errors)
        self._is_closed = False

    # splits

    def needs_split(self) -> bool:
        """Return True once: from then on the enumerator assigns splits whenever there are some."""
        is_first, self._announced = not self._announced, True
        return is_first

    def add_splits(self, splits: list[KafkaPartitionSplit]) -> None:
        added = []
        for split in splits:
            if split.is_finished:
                self._finished[split.split_id] = split
                continue
            partition = ReadPartition(split)
            self._partitions[split.topic, split.partition] = partition
            self._topics.add(split.topic)
            added.append(partition.at_client(split.offset))
            self._metrics.add_partition(
                split.topic,
                split.partition,
                lambda partition=partition: partition.newest,  # type: ignore[misc]
                lambda partition=partition: partition.committed,  # type: ignore[misc]
            )
        if added:
            self._names = None
            self._consumer.incremental_assign(added)

    def notify_no_more_splits(self) -> None:
        self._no_more = True

    def split_ids(self) -> Collection[str]:
        if self._names is None:
            self._names = tuple(partition.split_id for partition in self._partitions.values())
        return self._names

    def current_split(self) -> str:
        return self._current

    def pause_or_resume_splits(self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]) -> None:
        self._paused.update(splits_to_pause)
        self._paused.difference_update(splits_to_resume)
        live = [partition for partition in self._partitions.values() if not partition.is_through]
        to_pause = [partition.at_client() for partition in live if partition.split_id in splits_to_pause]
        to_resume = [partition.at_client() for partition in live if partition.split_id in splits_to_resume]
        if to_pause:
            self._consumer.pause(to_pause)
        if to_resume:
            self._consumer.resume(to_resume)

    # records

    def poll(self, max_records: int) -> Polled:
        while True:
            while self._ready:
                answer = self._next_ready()
                if answer is None:
                    break
                partition, run = answer
                partition.position = run.next_offset
                if partition.is_through and all(other is not partition for other, _ in self._ready):
                    self._finish(partition)
                if run.element is not None:
                    partition.newest = run.next_offset - 1
                    self._current = partition.split_id
                    self._empty_polls = 0
                    return run.element
            if not self._partitions:
                return END if self._no_more else PENDING
            if not self._consume(min(max_records, _MOST_CONSUMED)):
                self._empty_polls += 1
                return END if self._no_more and not self._partitions else PENDING

    def next_poll_ms(self) -> int | None:
        if not self._partitions:
            return None
        return self._ctx.now_ms() + _PAUSES_MS[min(self._empty_polls, len(_PAUSES_MS)) - 1]

    def _next_ready(self) -> tuple[ReadPartition, DecodedRun] | None:
        """Return the first run whose partition is not paused, with the columns that follow it."""
        if not self._paused:
            partition, run = self._ready.popleft()
            following = (later for _, later in takewhile(lambda entry: entry[0] is partition, self._ready))
            run, count = joined_columns(run, following, _MOST_CONSUMED)
            for _ in range(count):
                self._ready.popleft()
            return partition, run
        for index, (partition, _) in enumerate(self._ready):
            if partition.split_id not in self._paused:
                answer = self._ready[index]
                del self._ready[index]
                return answer
        return None

    def _consume(self, most: int) -> bool:
        """Take messages from the client, and return whether there were any."""
        taken = 0
        while taken < most:
            asked = min(most, _CHUNK)
            messages = cast("list[Message]", self._consumer.consume(asked, 0))
            if messages:
                self._take(messages)
            taken += len(messages)
            if len(messages) < asked:
                break
        if not taken:
            self._check_connection()
        return taken > 0

    def _take(self, messages: list[Message]) -> None:
        """Decode messages, and act on the events among them."""
        events: list[Message] = []
        stamps: list[int] | None = self._decoder.timestamps(messages)
        if stamps is not None and -1 in stamps:  # only these can be events
            events = [message for message in messages if message.error() is not None]
            messages, stamps = [message for message in messages if message.error() is None], None
        if messages and self._outage_since_ms is not None:
            self._end_outage()
        for partition, run in self._runs(messages):
            self._accept(partition, run, stamps if run is messages else None)
        for event in events:
            self._handle(event)

    def _runs(self, messages: list[Message]) -> Iterator[tuple[ReadPartition, list[Message]]]:
        """Yield the messages of each partition that is still being read, in order."""
        if not messages:
            return
        numbers = list(map(self._partition_of, messages))
        topics = list(map(self._topic_of, messages)) if len(self._topics) > 1 else None
        topic, number, count = messages[0].topic(), numbers[0], len(messages)
        groups: dict[tuple[str, int], list[Message]]
        if numbers.count(number) == count and (topics is None or topics.count(topic) == count):
            groups = {(topic, number): messages}
        else:
            groups, start = {}, 0
            for place, same in groupby(zip(topics or [topic] * count, numbers, strict=True)):
                stop = start + len(list(same))
                groups.setdefault(place, []).extend(messages[start:stop])
                start = stop
        for place, run in groups.items():
            partition = self._partitions.get(place)
            if partition is not None and not partition.is_through:
                yield partition, run

    def _accept(self, partition: ReadPartition, run: list[Message], stamps: list[int] | None) -> None:
        """Decode messages of one partition, up to its stopping offset."""
        if run[0].offset() < partition.consumed:  # fetched again, as after a pause
            run, stamps = run[_index(run, partition.consumed) :], None
        stopping = partition.stopping
        reaches_stop = False
        if run and stopping is not None and run[-1].offset() >= stopping - 1:
            reaches_stop = True
            run, stamps = run[: _index(run, stopping)], None
        if run:
            partition.consumed = run[-1].offset() + 1
            for decoded in self._decoder.decode(partition.topic, partition.partition, run, stamps):
                self._add(partition, decoded)
        if reaches_stop:
            self._end(partition)

    def _add(self, partition: ReadPartition, decoded: DecodedRun) -> None:
        """Let records wait to be given out, together with those of the same partition just before them."""
        if self._ready and self._ready[-1][0] is partition:
            joined = self._ready[-1][1].joined(decoded, _MOST_CONSUMED)
            if joined is not None:
                self._ready[-1] = partition, joined
                return
        self._ready.append((partition, decoded))

    def _end(self, partition: ReadPartition) -> None:
        """Read no more of a partition; its position becomes the stopping offset when all is given out."""
        assert partition.stopping is not None
        partition.is_through = True
        self._consumer.incremental_unassign([partition.at_client()])
        self._ready.append((partition, DecodedRun(None, partition.stopping)))

    def _finish(self, partition: ReadPartition) -> None:
        del self._partitions[partition.topic, partition.partition]
        self._finished[partition.split_id] = partition.split
        self._paused.discard(partition.split_id)
        self._names = None

    # events and errors

    def _handle(self, event: Message) -> None:
        """Act on what the client reports in place of a record."""
        error = event.error()
        assert error is not None
        name = error_name(error)
        partition = self._partitions.get((event.topic(), event.partition()))
        if name == "_PARTITION_EOF":
            self._end_outage()
            if partition is not None and not partition.is_through and partition.stopping is not None:
                if event.offset() >= partition.stopping:
                    self._end(partition)
        elif name == "_AUTO_OFFSET_RESET":
            if partition is not None and not partition.is_through:
                self._reset(partition, error)
        elif name in MISSING:
            self._errors.note(error)
        elif name in ("_MSG_TOO_LARGE", "MSG_SIZE_TOO_LARGE", "_BAD_MSG") and event.topic() is not None:
            problem = f"a record of {event.topic()}-{event.partition()} cannot be received: {error.str()}"
            raise KafkaClientError(problem, "raise receive.message.max.bytes and fetch.message.max.bytes")
        elif is_transient(error) or name == "_BAD_MSG":  # of an answer that is not about a partition
            self._errors.note(error)
        else:
            raise as_exception(error, self._client, f"reading {event.topic()}-{event.partition()}")

    def _reset(self, partition: ReadPartition, error: KafkaError) -> None:
        """Go on elsewhere in a partition whose offset does not exist, if the program allows that."""
        try:
            low, high = self._consumer.get_watermark_offsets(partition.at_client(), timeout=2.0)
        except library().KafkaException:
            low, high = -1, -1
        has = f"the partition has the offsets from {low} to before {high}" if low >= 0 else "the broker refuses it"
        problem = f"offset {partition.consumed} of {partition.split_id} does not exist: {has}"
        if self._settings.reset == "error":
            why = "expired by retention" if partition.consumed < low else "the topic was created again or truncated"
            remedy = "start without this state, or set auto.offset.reset to earliest or latest to go on there"
            raise KafkaClientError(f"{problem} ({why})", remedy)
        if error_name(error) and low < 0:
            raise as_exception(error, self._client, f"reading {partition.split_id}")
        target = low if self._settings.reset == "earliest" else high
        log.warning("%s; auto.offset.reset=%s: going on at offset %d", problem, self._settings.reset, target)
        self._metrics.offset_resets.inc()
        partition.consumed = target
        self._ready.append((partition, DecodedRun(None, target)))
        if partition.stopping is not None and target >= partition.stopping:
            self._end(partition)
        else:
            self._consumer.incremental_unassign([partition.at_client()])
            self._consumer.incremental_assign([partition.at_client(target)])

    def _check_connection(self) -> None:
        """Raise what does not pass by itself, and an outage that lasts too long."""
        self._errors.check()
        report, looks = next(iter(self._errors.missing.most_common(1)), ("", 0))
        if looks >= _LOOKS:
            problem = f"a topic at {place_of(self._client)} does not exist any more: {report}"
            raise KafkaClientError(problem, "create it; if it is a new one, start the job without this state")
        if not self._errors.last and self._outage_since_ms is None:
            return
        now_ms = self._ctx.now_ms()
        if self._errors.last:
            self._last_error_ms, self._last_error = now_ms, self._errors.last
            self._errors.clear()
            if self._outage_since_ms is None:
                self._outage_since_ms = now_ms
                self._metrics.outages.inc()
                log.warning("brokers at %s: %s; reading goes on", place_of(self._client), self._last_error)
        assert self._outage_since_ms is not None
        if now_ms - self._last_error_ms > _QUIET_AFTER_MS:
            self._outage_since_ms = None
        elif now_ms - self._outage_since_ms >= self._settings.outage_timeout_ms:
            waited = f"{self._settings.outage_timeout_ms / 1000:g} s ({OUTAGE_TIMEOUT})"
            problem = f"no records from {place_of(self._client)} for {waited} with errors such as: {self._last_error}"
            raise KafkaBrokerUnavailable(problem, "check that the brokers run and can be reached from every node")

    def _end_outage(self) -> None:
        if self._outage_since_ms is not None:
            log.info("brokers at %s answer again", place_of(self._client))
        self._outage_since_ms = None
        self._errors.clear()

    # checkpoints

    def snapshot_state(self) -> list[KafkaPartitionSplit]:
        return [*(partition.split for partition in self._partitions.values()), *self._finished.values()]

    def notify_checkpoint_complete(self, checkpoint_id: int, splits: Sequence[KafkaPartitionSplit]) -> None:
        finished = [split for split in splits if split.is_finished]
        if self._settings.commits and splits:
            offsets = [library().TopicPartition(split.topic, split.partition, split.offset) for split in splits]
            try:
                self._consumer.commit(offsets=offsets, asynchronous=True)
            except library().KafkaException as error:  # the queue of the client: the next checkpoint commits them
                self._committed(error.args[0], offsets)
        for split in finished:
            self._finished.pop(split.split_id, None)

    def _committed(self, error: KafkaError | None, partitions: Sequence[TopicPartition]) -> None:
        """Note the outcome of a commit; the client calls it within `consume` and `close`."""
        failed = error or next((each.error for each in partitions if each.error is not None), None)
        if failed is not None:
            self._metrics.commits_failed.inc()
            log.warning("offsets were not committed: %s; the next checkpoint commits them", failed.str())
            return
        self._metrics.commits_succeeded.inc()
        for each in partitions:
            partition = self._partitions.get((each.topic, each.partition))
            if partition is not None:
                partition.committed = each.offset

    def _lags(self) -> list[int]:
        """Return how many records are behind each partition's position, as far as the client knows its end."""
        if self._is_closed:
            return []
        lags = []
        for partition in list(self._partitions.values()):
            end = self._consumer.get_watermark_offsets(partition.at_client(), cached=True)[1]
            if end >= 0:
                lags.append(max(0, end - partition.position))
        return lags

    def close(self) -> None:
        self._is_closed = True
        self._consumer.close()


def _index(run: list[Message], offset: int) -> int:
    """Return the index of the first message at or behind an offset."""
    return bisect_left(run, offset, key=lambda message: message.offset())


__all__ = ["KafkaReader", "ReadPartition"]
