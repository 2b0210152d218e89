"""The reader of a queue: it gives out what was delivered, and acknowledges with complete checkpoints."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rayflink.common.connector_base.malformed_records import MalformedRecords
from rayflink.common.connector_base.message_decoder import MessageDecoder
from rayflink.common.connector_base.source import PENDING, Polled, ReaderContext
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.text_output.logs import get_logger
from rayflink.user_types import UserValue

from ..message_logs.fetch_queue import FetchQueue
from ..message_logs.log_reader import LogReader
from ..message_logs.outages import OutageWatch
from .broker_errors import BrokerRefusal
from .consumer_thread import BrokerConsumer, ConsumerThread
from .deliveries import DeliveryRun, QueueSplit
from .seen_ids import SeenIds
from .unacknowledged import UnacknowledgedDeliveries

log = get_logger(__name__)

PREFETCH = 10_000
"""Deliveries of one reader that are not acknowledged, at most."""
OUTAGE_TIMEOUT_MS = 60_000


@dataclass(frozen=True)
class QueueReading:
    """The settings of a source that all brokers share.

    Args:
        queue: its name; of a stream or a topic, what identifies it.
        place: queue and broker for logs and errors, without credentials.
        prefetch: deliveries of one reader that are not acknowledged, at most; 0: the broker sets no limit.
        prefetch_remedy: the call that raises it, such as "set_prefetch_count(n)".
        drops_seen: whether a message whose id was seen before is dropped.
        malformed: the policy for messages that cannot be decoded.
        outage_timeout_ms: time for which the broker may be away.
        id_name: of the id of a message, for errors.
        bytes_of: returns what a malformed message is shown as, where messages are no bytes.
    """

    queue: str
    place: str
    prefetch: int = PREFETCH
    prefetch_remedy: str = "raise the prefetch"
    drops_seen: bool = False
    malformed: MalformedRecords = MalformedRecords()
    outage_timeout_ms: int = OUTAGE_TIMEOUT_MS
    id_name: str = "message id"
    bytes_of: Callable[[UserValue], bytes] = bytes


class QueueReader(LogReader[QueueSplit, DeliveryRun]):
    """Gives out the messages of one queue.

    Args:
        reading: the settings.
        connect: opens a connection; called in the thread that consumes.
        decoder: decodes messages.
    """

    def __init__(
        self,
        ctx: ReaderContext,
        reading: QueueReading,
        connect: Callable[[], BrokerConsumer],
        decoder: MessageDecoder,
    ) -> None:
        metrics = ctx.metrics or MetricGroup()
        outages = OutageWatch(reading.place, reading.outage_timeout_ms, metrics.counter("numReconnects").inc)
        queue: FetchQueue[DeliveryRun] = FetchQueue()
        thread = ConsumerThread(connect, queue, reading.place, outages)
        super().__init__(ctx, queue, thread, decoder)
        self._reading, self._consumes = reading, thread
        self._unacknowledged = unacknowledged = UnacknowledgedDeliveries()
        self._seen = SeenIds() if reading.drops_seen else None
        self._stalls, self._dropped = metrics.counter("numPrefetchStalls"), metrics.counter("numMessagesDropped")
        self._is_stalled = self._has_warned = False
        self._taken_until_s = 0.0
        metrics.gauge("numUnacknowledged", lambda: len(unacknowledged))
        weakref.finalize(self, thread.abandon)  # a reader that is dropped leaves no connection behind

    def add_splits(self, splits: list[QueueSplit]) -> None:
        """Begin to consume with the first split; ids of restored ones are added."""
        if self._seen is not None:
            self._seen.restore((message_id for split in splits for message_id in split.ids), _now_ms())
        if not self._splits:
            super().add_splits([QueueSplit(self._reading.queue)])

    def poll(self, max_records: int) -> Polled:
        answer = super().poll(max_records)
        if answer is PENDING:
            self._notice_stall()
        else:
            self._is_stalled = False
        return answer

    def snapshot_state(self) -> list[QueueSplit]:
        if self._seen is None:
            return list(self._splits.values())
        return [
            QueueSplit(split.queue, split.delivery_count, self._seen.given_out(split.delivery_count))
            for split in self._splits.values()
        ]

    def notify_checkpoint_complete(self, checkpoint_id: int, splits: Sequence[QueueSplit]) -> None:
        for split in splits:
            self._confirm(split.delivery_count)

    def _take(self) -> DeliveryRun | None:
        """Return the next run, numbered, without the messages that were seen before."""
        received_until_s = self._consumes.received_until_s
        run = super()._take()
        if run is None:
            if not self._paused:
                self._taken_until_s = received_until_s
            return None
        self._taken_until_s = run.received_until_s
        before = self._unacknowledged.add(run.connection, run.deliveries.tags)
        indices = None if self._seen is None else self._seen.take(self._ids_of(run), before)
        run.number(before, indices)
        self._dropped.inc(len(run.deliveries.tags) - len(run.messages))
        return run

    def _ids_of(self, run: DeliveryRun) -> Sequence[str]:
        ids = run.deliveries.ids
        missing = 0 if ids is None else next((index for index, name in enumerate(ids) if not name), -1)
        if ids is None or missing >= 0:
            name = self._reading.id_name
            problem = f"{run.place_of(missing)} has no {name}, which messages are recognized by"
            raise BrokerRefusal(problem, f"have producers set a {name}, or read at least once, without it")
        return [str(message_id) for message_id in ids]

    def _advance(self, split: QueueSplit) -> None:
        super()._advance(split)
        if not self._ctx.checkpointing:
            self._confirm(split.delivery_count)

    def _confirm(self, number: int) -> None:
        """Acknowledge all deliveries up to a number."""
        acknowledgement = self._unacknowledged.confirm(number)
        if acknowledgement is not None:
            self._consumes.acknowledge(acknowledgement)
        if self._seen is not None:
            since_s = self._consumes.connected_since_s
            self._seen.acknowledge(number, _now_ms())
            self._seen.forget(int(self._taken_until_s * 1000), None if since_s is None else int(since_s * 1000))

    def _notice_stall(self) -> None:
        """Count, and log once, that the broker delivers nothing more before a checkpoint is complete."""
        reading = self._reading
        if not self._ctx.checkpointing or not 0 < reading.prefetch <= len(self._unacknowledged) or self._is_stalled:
            return
        self._is_stalled = True
        self._stalls.inc()
        if not self._has_warned:
            self._has_warned = True
            log.warning(
                "%s: %d deliveries wait for the next checkpoint to acknowledge them, which is the prefetch, and the "
                "broker sends no more until then; for more throughput %s, or shorten execution.checkpointing.interval",
                reading.place, len(self._unacknowledged), reading.prefetch_remedy,
            )  # fmt: skip


def _now_ms() -> int:
    return int(time.monotonic() * 1000)


__all__ = ["OUTAGE_TIMEOUT_MS", "PREFETCH", "QueueReader", "QueueReading"]
