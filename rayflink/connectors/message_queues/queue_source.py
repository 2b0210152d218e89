"""The base of the sources of brokers, and its enumerator."""

from __future__ import annotations

from abc import abstractmethod
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
        return QueueSplits(ctx, self._reading.queue)

    def restore_enumerator(self, ctx: EnumeratorContext, state: None) -> SplitEnumerator:
        return QueueSplits(ctx, self._reading.queue)

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
    """Gives each reader that asks the queue: the broker divides the messages.

    Args:
        ctx: the coordinator.
        queue: its name.
    """

    def __init__(self, ctx: EnumeratorContext, queue: str) -> None:
        self._ctx, self._queue = ctx, queue

    def handle_split_request(self, subtask: int) -> None:
        self._ctx.assign_splits({subtask: [QueueSplit(self._queue)]})

    def add_splits_back(self, splits: list[QueueSplit], subtask: int) -> None:
        """Do nothing: the reader asks again."""

    def snapshot_state(self) -> None:
        """Return nothing: the broker knows what it has to deliver."""


__all__ = ["QueueSource", "QueueSplits"]
