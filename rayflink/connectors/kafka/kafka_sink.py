"""The sink of Kafka and its builder; names are PyFlink's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from rayflink.common.configuration import reading
from rayflink.common.connector_base.delivery_guarantee import DeliveryGuarantee
from rayflink.common.connector_base.sink import Committer, Sink, SinkWriter, WriterContext
from rayflink.common.errors import PlanError, shorten
from rayflink.common.options import registry as options
from rayflink.common.time import Duration

from .kafka_chunks import MEMORY_BYTES, ChunkId, ChunkWriter
from .kafka_client import ClientErrors, client_properties, place_of, producer_properties
from .kafka_committing import ChunkCommitter, ChunkingWriter, UnknownChunks
from .kafka_errors import KafkaPropertyError
from .kafka_ledger import new_run
from .kafka_producing import DirectWriter, Encoder, MessageQueue, TopicPartitions
from .kafka_record_serialization import KafkaRecordSerializationSchema

_DEFAULTS: Final = {"partitioner": "murmur2_random"}
_DEFAULT_TRANSACTIONAL: Final = {
    "transaction.timeout.ms": "8000", "retry.backoff.ms": "10", "retry.backoff.max.ms": "200",
    "reconnect.backoff.max.ms": "500", "topic.metadata.propagation.max.ms": "4000",
    "linger.ms": "100",
}  # fmt: skip
"""Properties of exactly-once producers; messages wait for full batches, as the commit sends what is left at once."""
_DELIVERY_MS: Final = "120000"
"""Time after which a message counts as lost, as that of Kafka's Java client."""
_ACKNOWLEDGEMENTS: Final = ("acks", "request.required.acks", "enable.idempotence")
_TIMEOUTS: Final = ("delivery.timeout.ms", "message.timeout.ms")
_MOST_PREFIX_BYTES = 1_000
_RETENTION_MS: Final = 7 * 86_400_000
_COMPRESSIONS: Final = {"none": None, "lz4": "lz4", "zstd": "zstd"}


@dataclass(frozen=True)
class SinkMode:
    """The way in which a sink delivers.

    Args:
        prefix: of transactional ids.
        compression: of chunks in checkpoints.
        memory_bytes: of chunks of a subtask.
        retention_ms: time for which the brokers keep the ledger.
    """

    guarantee: DeliveryGuarantee = DeliveryGuarantee.NONE
    prefix: str = ""
    compression: str | None = None
    memory_bytes: int = MEMORY_BYTES
    retention_ms: int = _RETENTION_MS
    unknown: UnknownChunks = UnknownChunks.FAIL

    @property
    def is_exactly_once(self) -> bool:
        """Return whether messages are written in transactions."""
        return self.guarantee is DeliveryGuarantee.EXACTLY_ONCE


class KafkaSink(Sink[Any]):
    """Writes records as messages to topics of Kafka; needs `pip install 'rayflink[kafka]'`. `builder()` makes one.

    - `DeliveryGuarantee.NONE`: messages are sent as they come. Some may be lost or repeated after a failure.
    - `AT_LEAST_ONCE`: a checkpoint is complete only when all messages before it are delivered. After a failure, those
      since the last checkpoint are written again.
    - `EXACTLY_ONCE`: messages are part of the checkpoint, and are committed when it is complete, in short transactions;
      consumers with `isolation.level=read_committed` see each once.

    Args:
        properties: of the client, under librdkafka's names.
    """

    name = "Sink: Kafka"

    def __init__(self, properties: Mapping[str, str], schema: KafkaRecordSerializationSchema, mode: SinkMode) -> None:
        self._properties, self._schema, self._mode = dict(properties), schema, mode

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        """Return a builder of a sink."""
        return KafkaSinkBuilder()

    @property
    def shows_with_checkpoints(self) -> bool:
        return self._mode.is_exactly_once

    @property
    def writes_alone_to(self) -> str:
        place = self._properties["bootstrap.servers"]
        return f"Kafka at {place} as {self._mode.prefix!r}" if self._mode.is_exactly_once else ""

    def __repr__(self) -> str:
        topic = "topics of its records" if self._schema.topic is None else f"topic {self._schema.topic!r}"
        return f"{type(self).__name__}({topic} at {place_of(self._properties)}, {self._mode.guarantee.value})"

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        mode, topic = self._mode, self._schema.topic
        most_bytes = int(self._properties.get("message.max.bytes", 1_000_000))
        own = self._properties, ctx.subtask, ctx.parallelism
        if not mode.is_exactly_once:
            errors = ClientErrors(self._properties)
            queue = MessageQueue(self._properties, errors)
            topics = TopicPartitions(*own, queue.producer, errors)
            if topic is not None:
                topics.partitions_of(topic)
            encoder = Encoder(self._schema, topics, most_bytes)
            return DirectWriter(ctx, queue, encoder, mode.guarantee is DeliveryGuarantee.AT_LEAST_ONCE)
        topics = TopicPartitions(*own)
        if topic is not None:
            topics.partitions_of(topic)
            topics.close()
        return ChunkingWriter(ctx, Encoder(self._schema, topics, most_bytes), self._chunks(ctx), topics.close)

    def _chunks(self, ctx: WriterContext) -> ChunkWriter:
        """Return where a new run of a subtask collects its messages."""
        mode = self._mode
        now_ms = ctx.now_ms()
        transactional_id = f"{mode.prefix}-{ctx.subtask}"
        first = ChunkId(transactional_id, new_run(now_ms), 0, self._schema.topic or "", now_ms, ctx.parallelism)
        folders = reading(ctx.config).get(options.TMP_DIRS) or (None,)
        folder = folders[ctx.subtask % len(folders)]
        return ChunkWriter(first, mode.compression, mode.memory_bytes, None if folder is None else str(folder))

    def create_committer(self) -> Committer | None:
        mode = self._mode
        if not mode.is_exactly_once:
            return None
        return ChunkCommitter(self._properties, mode.retention_ms, mode.unknown)


class KafkaSinkBuilder:
    """Builds a `KafkaSink` of servers and a record serializer, and more where it is wanted."""

    def __init__(self) -> None:
        self._properties: dict[str, object] = {}
        self._schema: KafkaRecordSerializationSchema | None = None
        self._mode = SinkMode()

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSinkBuilder:
        """Set the brokers that are asked first: host:port, with commas between."""
        self._properties["bootstrap.servers"] = bootstrap_servers
        return self

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> KafkaSinkBuilder:
        """Set the guarantee; `DeliveryGuarantee.NONE` by default, as in Flink."""
        if not isinstance(delivery_guarantee, DeliveryGuarantee):
            raise TypeError(f"set_delivery_guarantee takes a DeliveryGuarantee, found {delivery_guarantee!r}")
        self._mode = replace(self._mode, guarantee=delivery_guarantee)
        return self

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> KafkaSinkBuilder:
        """Set the prefix of transactional ids, which exactly-once needs: a name that no other sink of the cluster has.

        Keep it the same when the job is started again.
        """
        if not transactional_id_prefix or len(transactional_id_prefix.encode()) > _MOST_PREFIX_BYTES:
            problem = f"the transactional id prefix is {shorten(transactional_id_prefix)}"
            raise PlanError(problem, f"give a string of 1 to {_MOST_PREFIX_BYTES} bytes, such as the name of the job")
        self._mode = replace(self._mode, prefix=transactional_id_prefix)
        return self

    def set_record_serializer(self, record_serializer: KafkaRecordSerializationSchema) -> KafkaSinkBuilder:
        """Set the schema that turns records into messages."""
        if not isinstance(record_serializer, KafkaRecordSerializationSchema):
            remedy = "build one with KafkaRecordSerializationSchema.builder()"
            raise PlanError(f"the record serializer is {shorten(record_serializer)}", remedy)
        self._schema = record_serializer
        return self

    def set_property(self, key: str, value: str) -> KafkaSinkBuilder:
        """Set a property of the client, under its name in librdkafka or in Kafka's Java client."""
        self._properties[key] = value
        return self

    def set_chunk_compression(self, compression: str) -> KafkaSinkBuilder:
        """Set the compression of messages in checkpoints: "none", the default, "lz4" or "zstd".

        It has nothing to do with `compression.type`, that of messages on their way to Kafka.
        """
        if compression not in _COMPRESSIONS:
            problem = f"the compression of chunks is {compression!r}"
            raise PlanError(problem, f"choose one of {', '.join(_COMPRESSIONS)}")
        self._mode = replace(self._mode, compression=_COMPRESSIONS[compression])
        return self

    def set_memory_limit(self, limit_bytes: int) -> KafkaSinkBuilder:
        """Set the bytes of messages that a subtask holds in memory until their checkpoint is complete: 128 MB.

        Those beyond are in files in `io.tmp.dirs`.
        """
        if limit_bytes < 0:
            raise PlanError(f"the memory limit is {limit_bytes} bytes", "give 0 or more")
        self._mode = replace(self._mode, memory_bytes=limit_bytes)
        return self

    def set_ledger_retention(self, retention: Duration) -> KafkaSinkBuilder:
        """Set the time for which the brokers keep offsets of idle groups (`offsets.retention.minutes`): 7 days."""
        self._mode = replace(self._mode, retention_ms=retention.to_millis())
        return self

    def set_unknown_chunks(self, unknown_chunks: UnknownChunks) -> KafkaSinkBuilder:
        """Set the treatment of restored messages that may be in Kafka already: `UnknownChunks.FAIL` by default.

        A savepoint that is older than the ledger's retention may have such messages.
        """
        self._mode = replace(self._mode, unknown=unknown_chunks)
        return self

    def build(self) -> KafkaSink:
        """Return the sink.

        Raises:
            PlanError: servers, record serializer, or the prefix of an exactly-once sink are missing.
            KafkaPropertyError: the client has no such property, or refuses its value.
        """
        if not self._properties.get("bootstrap.servers"):
            raise PlanError("the sink has no Kafka to write to", "call set_bootstrap_servers('host:9092')")
        if self._schema is None:
            raise PlanError("the sink has no record serializer", "call set_record_serializer()")
        if self._mode.is_exactly_once and not self._mode.prefix:
            remedy = "call set_transactional_id_prefix() with a name that no other sink of the Kafka cluster has"
            raise PlanError("an exactly-once sink needs a prefix for its transactional ids", remedy)
        return KafkaSink(self._all_properties(), self._schema, self._mode)

    def _all_properties(self) -> dict[str, str]:
        client_settings = client_properties(self._properties)
        for name in ("transactional.id", "enable.gapless.guarantee"):
            if name in client_settings:
                problem = f"{name} is set by the sink"
                raise KafkaPropertyError(problem, "remove it; set_transactional_id_prefix() sets transactional ids")
        properties = dict(_DEFAULTS)
        if self._mode.is_exactly_once:
            properties |= _DEFAULT_TRANSACTIONAL
            client_settings = {name: value for name, value in client_settings.items() if name not in _TIMEOUTS}
            checked = {**properties, **client_settings, "transactional.id": "-"}
            return {name: v for name, v in producer_properties(checked).items() if name != "transactional.id"}
        if not any(name in client_settings for name in _ACKNOWLEDGEMENTS):
            properties["enable.idempotence"] = "true"
        if not any(name in client_settings for name in _TIMEOUTS):
            properties["delivery.timeout.ms"] = _DELIVERY_MS
        return producer_properties({**properties, **client_settings})


__all__ = ["KafkaSink", "KafkaSinkBuilder", "SinkMode"]
