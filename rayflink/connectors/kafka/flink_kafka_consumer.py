"""The Kafka consumer of Flink 1.x: another way to write a `KafkaSource`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rayflink.common.connector_base.malformed_records import MalformedRecords
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.errors import PlanError
from rayflink.common.serialization import DeserializationSchema

from .kafka_offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer
from .kafka_records import KafkaRecordDeserializationSchema
from .kafka_settings import DISCOVERY_INTERVAL, TopicSelection, settings_of
from .kafka_source import KafkaSource

_DISCOVERY = "flink.partition-discovery.interval-millis"
_RESETS = {
    "earliest": KafkaOffsetResetStrategy.EARLIEST,
    "latest": KafkaOffsetResetStrategy.LATEST,
    "error": KafkaOffsetResetStrategy.NONE,
}


class FlinkKafkaConsumerBase(KafkaSource):
    """The settings that can be changed after a `FlinkKafkaConsumer` has been made; each method returns the consumer."""

    _reset = KafkaOffsetResetStrategy.LATEST

    def set_commit_offsets_on_checkpoints(self, commit_on_checkpoints: bool) -> FlinkKafkaConsumerBase:
        """Choose whether offsets are committed when checkpoints complete: by default they are, if there is a group."""
        commits = commit_on_checkpoints and self._settings.has_group
        self._settings = replace(self._settings, commits=commits)
        return self

    def set_start_from_earliest(self) -> FlinkKafkaConsumerBase:
        """Start at the first records that brokers still have."""
        return self._start(KafkaOffsetsInitializer.earliest())

    def set_start_from_latest(self) -> FlinkKafkaConsumerBase:
        """Start behind the last records."""
        return self._start(KafkaOffsetsInitializer.latest())

    def set_start_from_timestamp(self, startup_offsets_timestamp: int) -> FlinkKafkaConsumerBase:
        """Start at the first records at or after a time, in epoch milliseconds.

        Raises:
            ValueError: it is negative.
        """
        return self._start(KafkaOffsetsInitializer.timestamp(startup_offsets_timestamp))

    def set_start_from_group_offsets(self) -> FlinkKafkaConsumerBase:
        """Start at the offsets that the group has committed; this is the default.

        Partitions without one start where `auto.offset.reset` says, which is "latest" by default.
        """
        return self._start(KafkaOffsetsInitializer.committed_offsets(self._reset))

    def disable_filter_restored_partitions_with_subscribed_topics(self) -> FlinkKafkaConsumerBase:
        """Do nothing: partitions of a checkpoint are read on, also of topics that are not named any more."""
        return self

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the records; None: the schema declares none."""
        return self.produced_type

    def _start(self, starting: KafkaOffsetsInitializer) -> FlinkKafkaConsumerBase:
        self._settings = replace(self._settings, starting=starting)
        return self


class FlinkKafkaConsumer(FlinkKafkaConsumerBase):
    """Reads the values of Kafka's topics; programs of Flink 1.x give it to `add_source`.

    It is a `KafkaSource`, which new programs use. It starts at the offsets of the group unless a method says otherwise,
    and looks for new partitions only if the property `flink.partition-discovery.interval-millis` is set.

    >>> from rayflink.common import SimpleStringSchema
    >>> FlinkKafkaConsumer("orders", SimpleStringSchema(), {"bootstrap.servers": "host:9092", "group.id": "shop"})
    FlinkKafkaConsumer(topics orders, {...'bootstrap.servers': 'host:9092'...})

    Args:
        topics: one topic, or several.
        deserialization_schema: of values; records without a value are left out, and counted.
        properties: of Kafka's client.

    Raises:
        KafkaPropertyError: a property is unknown, or has a value that it cannot take.
        PlanError: there is no topic.
    """

    def __init__(
        self,
        topics: str | Sequence[str],
        deserialization_schema: DeserializationSchema,
        properties: Mapping[str, object],
    ) -> None:
        named = (topics,) if isinstance(topics, str) else tuple(topics)
        if not named:
            raise PlanError("the Kafka consumer has no topics", "name one, or several in a list")
        own = {name: value for name, value in properties.items() if name != _DISCOVERY}
        own.setdefault(DISCOVERY_INTERVAL, properties.get(_DISCOVERY, -1))
        settings = settings_of(own, TopicSelection(topics=named), KafkaOffsetsInitializer.earliest(), None, False)
        schema = KafkaRecordDeserializationSchema.value_only(deserialization_schema)
        super().__init__(settings, schema, MalformedRecords.fail())
        self._reset = _RESETS[settings.reset] if "auto.offset.reset" in properties else KafkaOffsetResetStrategy.LATEST
        self.set_start_from_group_offsets()


__all__ = ["FlinkKafkaConsumer", "FlinkKafkaConsumerBase"]
