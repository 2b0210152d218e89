"""A table in Kafka as the source of a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.kafka.kafka_errors import KafkaClientError
from rayflink.connectors.kafka.kafka_offsets import KafkaOffsetResetStrategy, KafkaOffsetsInitializer
from rayflink.connectors.kafka.kafka_records import KafkaRecordDeserializationSchema
from rayflink.connectors.kafka.kafka_settings import DISCOVERY_INTERVAL
from rayflink.connectors.kafka.kafka_source import KafkaSource
from rayflink.connectors.kafka.kafka_splits import KafkaTopicPartition

from ...errors import SqlError
from ...plan.changelog import Change
from ...types import DataType
from ..contract import TableSource
from ..messages.format_options import ChosenFormat
from ..messages.malformed_options import DEAD_LETTER, FAIL, malformed_policy
from ..narrow_columns import narrower, paths_of
from ..watermark_options import WatermarkOptions
from .dead_letters import write_dead_letters
from .decode_rows import RowDecoder
from .kafka_metadata import VALUE_PREFIX
from .message_columns import MessageColumns, projection
from .start_and_end import EARLIEST, GROUP, LATEST, SPECIFIC, Offsets

if TYPE_CHECKING:
    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.datastream.streams.stream import DataStream


_RESETS = {
    "earliest": KafkaOffsetResetStrategy.EARLIEST, "beginning": KafkaOffsetResetStrategy.EARLIEST,
    "latest": KafkaOffsetResetStrategy.LATEST, "end": KafkaOffsetResetStrategy.LATEST,
}  # fmt: skip


@dataclass(frozen=True)
class Reading:
    """The settings by which messages are read.

    Args:
        start: where reading starts.
        end: where it ends; None: it does not.
        discovery_ms: pause between looks for new partitions, 0: never; None: as the source does by default.
        parallelism: subtasks that read; None: as the job has.
        watermarks: options of the watermarks.
        malformed: what is done with messages that cannot be decoded.
        dead_letters: the topic that takes them, "" for none.
    """

    start: Offsets = Offsets(GROUP)
    end: Offsets | None = None
    discovery_ms: int | None = None
    parallelism: int | None = None
    watermarks: WatermarkOptions = WatermarkOptions()
    malformed: str = FAIL
    dead_letters: str = ""


@dataclass(frozen=True)
class KafkaTableSource(TableSource):
    """Reads messages as rows.

    Args:
        table: full name.
        topics: those to read, or `pattern` that their names match.
        properties: of the client.
        columns: where the columns of the table are in a message.
        names: of the columns that are read, in order.
        key_format: of keys; None: they are not read.
        value_format: of values.
        reading: where reading starts and ends, and how it is done.
        changes: kinds of change of the rows.
        produces_update_before: False where messages replace the row of their key.
        key: the columns of that key.
        zone: the session's time zone.
        narrow: types of the columns of which some fields are read only.
    """

    table: str
    topics: tuple[str, ...]
    pattern: str | None
    properties: tuple[tuple[str, str], ...] = field(repr=False)
    columns: MessageColumns
    names: tuple[str, ...]
    key_format: ChosenFormat | None
    value_format: ChosenFormat
    reading: Reading = Reading()
    changes: Change = Change.INSERT
    produces_update_before: bool = True
    key: tuple[str, ...] = ()
    zone: str = "UTC"
    narrow: tuple[tuple[str, DataType], ...] = ()
    instead = (
        "its messages say what a row is now, not what it was: write its rows into a table by INSERT INTO without "
        "WHERE, or read a topic whose messages have both, as with 'format' = 'debezium-json'"
    )

    @property
    def is_bounded(self) -> bool:  # type: ignore[override]  # a property here, as it depends on an option
        """Return whether reading ends."""
        return self.reading.end is not None

    @property
    def aligns_watermarks(self) -> bool:  # type: ignore[override]  # it depends on an option
        """Return whether it is in an alignment group."""
        return self.reading.watermarks.group is not None

    @property
    def is_upsert(self) -> bool:
        """Return whether messages replace the row of their key."""
        return bool(self.key)

    def projected(self, names: Sequence[str]) -> TableSource | None:
        if not set(self.key) <= set(names):
            return None  # changes are of no use without the key
        return replace(self, names=tuple(names))

    def narrowed(self, types: Mapping[str, DataType]) -> TableSource | None:
        narrow = dict(narrower(self.columns.schema, self.narrow, types))
        if not self.value_format.format.has_nested_projection or not narrow.keys() <= set(self.columns.value):
            return None
        if not narrow.keys().isdisjoint(self.columns.key):  # the format of keys reads them, too
            return None
        return replace(self, narrow=tuple(narrow.items()))

    def pushed(self) -> tuple[str, ...]:
        reading, whole = self.reading, not self.narrow and self.names == self.columns.names
        project = [path for name in self.names for path in paths_of(name, dict(self.narrow))]
        shown = {"project": "" if whole else ", ".join(project), "start": str(reading.start)}
        if reading.end is not None:
            shown["end"] = str(reading.end)
        if reading.malformed != FAIL:
            shown["malformed"] = reading.malformed
        return tuple(f"{what}=[{value}]" for what, value in shown.items() if value)

    def stream(self, env: StreamExecutionEnvironment, strategy: WatermarkStrategy | None, name: str) -> DataStream:
        strategy = self.reading.watermarks.apply(strategy)
        stream = env.from_source(self.source(), strategy, name)
        if self.reading.parallelism is not None:
            stream.set_parallelism(self.reading.parallelism)
        if self.reading.malformed == DEAD_LETTER:
            write_dead_letters(stream, self.properties, self.reading.dead_letters, name)
        return stream

    def source(self) -> KafkaSource:
        """Return the source of the stream of rows.

        Raises:
            SqlError: the client refuses its properties.
        """
        reading, properties = self.reading, dict(self.properties)
        properties.setdefault("group.id", f"KafkaSource-{self.table}")
        if reading.discovery_ms is not None:
            properties[DISCOVERY_INTERVAL] = str(reading.discovery_ms)
        builder = KafkaSource.builder().set_properties(properties).set_deserializer(self.decoder())
        builder.set_starting_offsets(self._initializer(reading.start))
        if self.pattern is None:
            builder.set_topics(*self.topics)
        else:
            builder.set_topic_pattern(self.pattern)
        if reading.end is not None:
            builder.set_bounded(self._initializer(reading.end))
        try:
            return builder.set_malformed_records(malformed_policy(reading.malformed)).build()
        except KafkaClientError as error:
            raise SqlError(f"{self.table} cannot be read: {error.problem}", error.remedy) from error

    def _initializer(self, offsets: Offsets) -> KafkaOffsetsInitializer:
        if offsets.mode == EARLIEST:
            return KafkaOffsetsInitializer.earliest()
        if offsets.mode == LATEST:
            return KafkaOffsetsInitializer.latest()
        if offsets.timestamp_ms is not None:
            return KafkaOffsetsInitializer.timestamp(offsets.timestamp_ms)
        if offsets.mode == SPECIFIC:
            [topic] = self.topics
            numbers = {KafkaTopicPartition(topic, partition): offset for partition, offset in offsets.specific}
            return KafkaOffsetsInitializer.offsets(numbers)
        asked = dict(self.properties).get("auto.offset.reset", "none").lower()
        strategy = _RESETS.get(asked, KafkaOffsetResetStrategy.NONE)
        return KafkaOffsetsInitializer.committed_offsets(strategy)

    def decoder(self) -> KafkaRecordDeserializationSchema:
        """Return what turns messages into the columns that are read."""
        columns = self.columns.retyped(dict(self.narrow))
        wanted = projection(columns, self.names, deletes_by_key=self.is_upsert)
        keys = None
        if wanted.key:
            assert self.key_format is not None
            named = [columns.in_key(name) for name in wanted.key]
            keys = self.key_format.format.decoder(columns.key_schema(), named, self.key_format.options)
        value = self.value_format
        if wanted.value_metadata:
            schema = (*columns.value_schema(), *(columns.column(name) for name in self._value_metadata()))
            names = (*wanted.value, *wanted.value_metadata)
            metadata = dict(wanted.value_metadata)
            values = value.format.decoder_with_metadata(schema, names, value.options, metadata)
        else:
            names = wanted.value or columns.value[:1]  # a value has a row also where none of its columns is read
            values = value.format.decoder(columns.value_schema(), names, value.options)
        if wanted.value == wanted.names and wanted.names and not self.is_upsert:
            return KafkaRecordDeserializationSchema.value_only(values)
        read = tuple(columns.column(name) for name in self.names)
        return RowDecoder(wanted, read, keys, values, self.is_upsert, self.zone)

    def _value_metadata(self) -> list[str]:
        return [name for name, key in self.columns.metadata if key.startswith(VALUE_PREFIX)]


__all__ = ["KafkaTableSource", "Reading"]
