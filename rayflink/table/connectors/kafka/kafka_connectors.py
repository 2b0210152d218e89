"""`kafka` and `upsert-kafka`: from the options and columns of a table to its source or sink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rayflink.connectors.kafka.kafka_client import consumer_properties
from rayflink.connectors.kafka.kafka_errors import KafkaPropertyError
from rayflink.connectors.kafka.kafka_settings import OWN

from ...errors import SqlError
from ...plan.changelog import Change
from ..contract import Connected, Connector, Option, OptionValues, TableSink, TableSource
from ..messages.format_options import ChosenFormat
from ..messages.malformed_options import check_malformed_options
from ..watermark_options import watermark_options
from .kafka_metadata import METADATA, check_metadata, readable_keys
from .kafka_options import (
    KAFKA_OPTIONS,
    PROPERTIES,
    UPSERT_OPTIONS,
    check_guarantee,
    check_topics,
    chosen_formats,
    client_properties,
    format_prefixes,
)
from .message_columns import MessageColumns, key_columns, message_columns, physical_names
from .start_and_end import EARLIEST, Offsets, end_offsets, start_offsets
from .table_sink import Delivery, KafkaTableSink, sink_properties
from .table_source import KafkaTableSource, Reading


class KafkaConnector(Connector):
    """Tables whose rows are messages of topics."""

    name = "kafka"
    options: Mapping[str, Option] = KAFKA_OPTIONS
    metadata_keys = frozenset(METADATA)

    def passed_prefixes(self, options: Mapping[str, str]) -> tuple[str, ...]:
        return (PROPERTIES, *format_prefixes(options))

    def parsed(self, table: str, options: Mapping[str, str]) -> tuple[OptionValues, dict[str, str]]:
        values, passed = super().parsed(table, options)
        check_topics(table, values)
        check_guarantee(table, values)
        check_malformed_options(table, values)
        watermark_options(table, values)
        end_offsets(table, values)
        chosen_formats(table, values, passed)
        try:
            properties = client_properties(passed, values)
            consumer_properties({key: value for key, value in properties.items() if key not in OWN}, OWN)
        except KafkaPropertyError as error:
            raise SqlError(f"a property of {table}: {error.problem}", error.remedy) from error
        self.check_own(table, values)
        values["formats"] = passed
        return values, passed

    def check_own(self, table: str, options: OptionValues) -> None:
        """Check the options that this connector alone has.

        Raises:
            SqlError: they do not go together.
        """
        start_offsets(table, options)
        if options["key.fields"] and options["sink.partitioner"] == "round-robin":
            problem = f"{table} has 'key.fields' and 'sink.partitioner' = 'round-robin'"
            raise SqlError(problem, "messages with keys take 'default', so that those of a key stay in order")

    def known_metadata(self, options: OptionValues) -> frozenset[str]:
        return readable_keys(chosen_formats("", options, options["formats"])[1].format)

    def check(self, table: Connected) -> None:
        self.columns_of(table)
        self.formats_of(table)
        check_metadata(table, reads=True)

    def columns_of(self, table: Connected) -> MessageColumns:
        """Return where the columns of a table are in a message.

        Raises:
            SqlError: the options of key and value do not go with the columns.
        """
        form = chosen_formats(table.table, table.options, table.formats)[1]
        if table.primary_key and form.format.changes is Change.INSERT:
            problem = f"{table.table} has a PRIMARY KEY, and the messages of its format {form.name!r} are rows"
            remedy = "leave the key out, take a format of changes, such as debezium-json, or 'upsert-kafka'"
            raise SqlError(problem, remedy)
        return message_columns(table, key_columns(table))

    def formats_of(self, table: Connected) -> tuple[ChosenFormat | None, ChosenFormat]:
        """Return the formats of keys and values, after they have checked the columns.

        Raises:
            SqlError: a format cannot represent a column.
        """
        columns, topics = self.columns_of(table), table.options["topic"]
        key, value = chosen_formats(table.table, table.options, table.formats)
        topic = topics[0] if topics else ""
        key = None if key is None else _with_topic(key, topic, "key")
        value = _with_topic(value, topic, "value")
        if key is not None:
            schema = columns.key_schema()
            key.format.decoder(schema, [column.name for column in schema], key.options)
        if not columns.value:
            problem = f"all columns of {table.table} are in the key, and none is left for the value"
            raise SqlError(problem, "write 'value.fields-include' = 'ALL', or add a column")
        value.format.decoder(columns.value_schema(), columns.value, value.options)
        return key, value

    def source(self, table: Connected) -> TableSource:
        check_metadata(table, reads=True)
        columns, options = self.columns_of(table), table.options
        key, value = self.formats_of(table)
        changes = value.format.changes
        discovery = options["scan.topic-partition-discovery.interval"]
        reading = Reading(
            self.start(table),
            end_offsets(table.table, options),
            None if discovery is None else discovery.to_millis(),
            options["scan.parallelism"],
            watermark_options(table.table, options),
            options["malformed-records"],
            options["dead-letter.topic"] or "",
        )
        source = KafkaTableSource(
            table.table,
            options["topic"],
            options.get("topic-pattern"),
            tuple(client_properties(table.formats, options).items()),
            columns,
            columns.names,
            key,
            value,
            reading,
            zone=table.zone,
        )
        return source if changes is Change.INSERT else replace(source, changes=changes)

    def start(self, table: Connected) -> Offsets:
        """Return the offsets at which the reading of a table starts."""
        return start_offsets(table.table, table.options)

    def sink(self, table: Connected) -> TableSink:
        check_metadata(table, reads=False)
        topics, columns = table.options["topic"], self.columns_of(table)
        if not topics:
            problem = f"{table.table} has a 'topic-pattern' and no topic to write to"
            raise SqlError(problem, "write into a table with the option 'topic'")
        if len(topics) > 1 and "topic" not in table.metadata.values():
            problem = f"{table.table} has {len(topics)} topics, and no column says which one a row goes to"
            raise SqlError(problem, "add a column STRING METADATA FROM 'topic', or write into a table with one topic")
        key, value = self.formats_of(table)
        value.format.encoder(columns.value_schema(), value.options)
        return KafkaTableSink(
            topics,
            sink_properties(client_properties(table.formats, table.options)),
            columns,
            key,
            value,
            self.delivery(table),
            is_append_only=value.format.changes is Change.INSERT,
            row_key=table.primary_key,
            zone=table.zone,
        )

    def delivery(self, table: Connected) -> Delivery:
        """Return how messages are delivered."""
        options = table.options
        return Delivery(
            options["sink.delivery-guarantee"],
            options["sink.transactional-id-prefix"],
            options.get("sink.partitioner", "default"),
            options["sink.parallelism"],
        )


def _with_topic(chosen: ChosenFormat, topic: str, part: str) -> ChosenFormat:
    """Return a format with the option whose default follows from the topic."""
    option = getattr(chosen.format, "topic_option", "")
    if not option or chosen.options.get(option) is not None or not topic:
        return chosen
    return replace(chosen, values=tuple({**chosen.options, option: f"{topic}-{part}"}.items()))


class UpsertKafkaConnector(KafkaConnector):
    """Tables of which each message replaces the row of its key, or deletes it where it has no value."""

    name = "upsert-kafka"
    options: Mapping[str, Option] = UPSERT_OPTIONS

    def check_own(self, table: str, options: OptionValues) -> None:
        rows, interval = _buffer(options)
        if (rows > 0) != (interval > 0):
            option = "sink.buffer-flush.max-rows" if rows else "sink.buffer-flush.interval"
            other = "sink.buffer-flush.interval" if rows else "sink.buffer-flush.max-rows"
            remedy = f"set {other!r} above 0, too, or leave both out"
            raise SqlError(f"{table} has {option!r} above 0 and {other!r} not", remedy)

    def columns_of(self, table: Connected) -> MessageColumns:
        form = chosen_formats(table.table, table.options, table.formats)[1]
        if form.format.changes is not Change.INSERT:
            problem = f"{table.table} has 'value.format' = {form.name!r}, whose messages are changes"
            remedy = "take a format whose messages are rows, such as json, or the connector 'kafka'"
            raise SqlError(problem, remedy)
        if not table.primary_key:
            problem = f"{table.table} has no PRIMARY KEY, and 'upsert-kafka' replaces rows by it"
            raise SqlError(problem, "declare PRIMARY KEY (...) NOT ENFORCED: its columns are the keys of messages")
        physical = physical_names(table)
        for name in table.primary_key:
            if name not in physical:
                problem = f"the PRIMARY KEY of {table.table} has the column {name!r}, which is not in its messages"
                raise SqlError(problem, "take columns that are neither computed nor metadata")
        return message_columns(table, [name for name in physical if name in table.primary_key])

    def start(self, table: Connected) -> Offsets:
        return Offsets(EARLIEST)

    def source(self, table: Connected) -> TableSource:
        source = super().source(table)
        assert isinstance(source, KafkaTableSource)
        return replace(
            source, changes=Change.UPDATE | Change.DELETE, produces_update_before=False, key=table.primary_key
        )

    def sink(self, table: Connected) -> TableSink:
        sink = super().sink(table)
        assert isinstance(sink, KafkaTableSink)
        return replace(sink, is_append_only=False, key=table.primary_key)

    def delivery(self, table: Connected) -> Delivery:
        buffer = _buffer(table.options)
        return replace(super().delivery(table), buffer=buffer if buffer[0] else None)


def _buffer(options: OptionValues) -> tuple[int, int]:
    """Return the rows and milliseconds of the buffer."""
    interval = options["sink.buffer-flush.interval"]
    return options["sink.buffer-flush.max-rows"], 0 if interval is None else interval.to_millis()


__all__ = ["KafkaConnector", "UpsertKafkaConnector"]
