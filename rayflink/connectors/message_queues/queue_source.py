"""The base of the sources of brokers, and its enumerator."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable
from functools import partial

from rayflink.common.connector_base.message_decoder import MessageDecoder
from rayflink.common.connector_base.source import (
    Boundedness,
    EnumeratorContext,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.errors import PlanError
from rayflink.common.functions.type_variables import Output
from rayflink.common.serialization import DeserializationSchema

from ..message_logs.outages import OutageWatch
from .broker_errors import BrokerOutage
from .consumer_thread import BrokerConsumer
from .deliveries import QueueSplit
from .queue_reader import QueueReader, QueueReading


class QueueSource(Source[Output]):
    """A source of one queue, which each subtask consumes by a connection of its own.

    Args:
        reading: the settings that all brokers share.
        schema: decodes messages.
    """

    def __init__(self, reading: QueueReading, schema: DeserializationSchema) -> None:
        self._reading, self._schema = reading, schema

    @abstractmethod
    def connect(self, subtask: int) -> BrokerConsumer:
        """Return an open connection that consumes the queue; called in the thread of a reader, also after an outage.

        Raises:
            BrokerOutage: the broker is away; it is called again.
            BrokerRefusal: the broker refuses.
        """

    def prepare(self) -> None:
        """Make the queue ready, such as by declaring it; called once, before a job that starts afresh consumes.

        It may block: it runs beside the coordinator. By itself, it does nothing.

        Raises:
            BrokerOutage: the broker is away; it is called again.
            BrokerRefusal: the broker refuses.
        """

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def max_parallelism(self) -> int | None:
        """Return 1 where seen messages are dropped: a message may be delivered to another reader the second time."""
        return 1 if self._reading.drops_seen else None

    @property
    def produced_type(self) -> TypeInformation | None:
        return self._schema.get_produced_type()

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return QueueSplits(ctx, self._reading, self.prepare)

    def restore_enumerator(self, ctx: EnumeratorContext, state: bool) -> SplitEnumerator:
        return QueueSplits(ctx, self._reading, self.prepare, is_ready=state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        reading, widest = self._reading, self.max_parallelism
        if widest is not None and ctx.parallelism > widest:
            problem = f"the source of {reading.place} has parallelism {ctx.parallelism}, and can have {widest}"
            raise PlanError(problem, f"leave out set_parallelism({ctx.parallelism}) on it")
        decoder = MessageDecoder(self._schema, reading.malformed, ctx.metrics, reading.bytes_of)
        return QueueReader(ctx, reading, partial(self.connect, ctx.subtask), decoder)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._reading.place})"


class QueueSplits(SplitEnumerator):
    """Gives the queue to each reader that asks, as soon as it is ready: the broker divides the messages.

    Args:
        ctx: the coordinator.
        reading: the settings.
        prepare: makes the queue ready.
        is_ready: whether that is done.
    """

    def __init__(
        self, ctx: EnumeratorContext, reading: QueueReading, prepare: Callable[[], None], is_ready: bool = False
    ) -> None:
        self._ctx, self._reading, self._prepare, self._is_ready = ctx, reading, prepare, is_ready
        self._waiting: set[int] = set()
        self._is_closed = threading.Event()

    def start(self) -> None:
        if not self._is_ready:
            self._ctx.call_async(self._try, self._prepared)

    def _try(self) -> None:
        outage = OutageWatch(self._reading.place, self._reading.outage_timeout_ms)
        while not self._is_closed.is_set():
            try:
                self._prepare()
                return
            except BrokerOutage as error:
                self._is_closed.wait(outage.pause_s(error))

    def _prepared(self, _: None, error: Exception | None) -> None:
        if error is not None:
            raise error
        self._is_ready = True
        for subtask in sorted(self._waiting):
            self.handle_split_request(subtask)

    def handle_split_request(self, subtask: int) -> None:
        if self._is_ready:
            self._ctx.assign_splits({subtask: [QueueSplit(self._reading.queue)]})
        else:
            self._waiting.add(subtask)

    def add_splits_back(self, splits: list[QueueSplit], subtask: int) -> None:
        """Do nothing: the reader asks again."""

    def snapshot_state(self) -> bool:
        return self._is_ready

    def close(self) -> None:
        self._is_closed.set()


__all__ = ["QueueSource", "QueueSplits"]
