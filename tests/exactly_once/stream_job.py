"""Programs from one outside system to another, to be killed. It is run as a script.

With `--numbers` the source is a topic: its partition l has the messages "l,0", "l,1", ... as `job.py` has records, and
the program writes the lines of `job.py`, which end with the numbers. Without, the source is the table `t (id, a, n)` of
PostgreSQL by change data capture, and the program writes for each change the line `key,number,record`: how many changes
of the key there were so far, which keyed state has, and the record as JSON. It does not end.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress

import pyarrow

from rayflink.common import Duration, Row, SerializationSchema, SimpleStringSchema, WatermarkStrategy
from rayflink.datastream import DataStream, KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from rayflink.datastream.connectors.base import DeliveryGuarantee
from rayflink.datastream.connectors.iceberg import CatalogLoader, IcebergSink, TableLoader
from rayflink.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaTopicPartition,
)
from rayflink.datastream.connectors.postgres import PostgresSink
from rayflink.datastream.connectors.postgres_cdc import JsonDebeziumDeserializationSchema, PostgresCdcSource
from rayflink.datastream.state import ValueStateDescriptor
from rayflink.datastream.window import TumblingEventTimeWindows
from tests.exactly_once.job import AskedToFail, InWindow, Running, run

LINES = pyarrow.schema([("line", pyarrow.string())])


class KeyOfLine(SerializationSchema):
    """The key of a line of either program."""

    def serialize(self, element: str) -> bytes:
        kind, key, _ = element.split(",", 2)
        return (key if kind in "rw" else kind).encode()


class Numbered(KeyedProcessFunction):
    """Numbers the changes of each key; fails once each time there is a file `crash`."""

    def __init__(self, crash: str) -> None:
        self._crash = crash

    def open(self, runtime_context: RuntimeContext) -> None:
        self._count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterable[str]:
        if os.path.exists(self._crash):
            with suppress(FileNotFoundError):
                os.unlink(self._crash)
                raise AskedToFail(f"at {value}")
        number = (self._count.value() or 0) + 1
        self._count.update(number)
        yield f"{ctx.get_current_key()},{number},{value}"


def lines_of_numbers(env: StreamExecutionEnvironment, asked: argparse.Namespace) -> DataStream:
    """Count and sum the numbers of a topic by key and in windows."""
    ends = {KafkaTopicPartition(asked.numbers, lane): asked.records for lane in range(asked.lanes)}
    source = KafkaSource.builder().set_bootstrap_servers(asked.kafka).set_topics(asked.numbers)
    source = source.set_starting_offsets(KafkaOffsetsInitializer.earliest()).set_group_id(asked.numbers)
    source = source.set_bounded(KafkaOffsetsInitializer.offsets(ends))
    source = source.set_value_only_deserializer(SimpleStringSchema())
    times = WatermarkStrategy.for_monotonous_timestamps()
    times = times.with_timestamp_assigner(lambda line, _: int(line.split(",")[1]))
    keys = asked.keys
    numbers = env.from_source(source.build(), times, "numbers").uid("numbers")
    pairs = numbers.map(lambda line: tuple(map(int, line.split(","))))
    keyed = pairs.key_by(lambda pair: pair[0] * keys + pair[1] % keys)
    running = keyed.process(Running(asked.crash)).uid("running")
    windows = keyed.window(TumblingEventTimeWindows.of(asked.window)).process(InWindow()).uid("windows")
    return running.union(windows)


def lines_of_changes(env: StreamExecutionEnvironment, asked: argparse.Namespace) -> DataStream:
    """Number the changes of a table by key."""
    builder = PostgresCdcSource.builder().hostname(asked.captured).database("postgres").username("postgres")
    builder = builder.table_list("public.t").slot_name(asked.slot).split_size(100)
    builder = builder.deserializer(JsonDebeziumDeserializationSchema()).heartbeat_interval(Duration.of_millis(200))
    changes = env.from_source(builder.build(), WatermarkStrategy.no_watermarks(), "changes").uid("changes")
    keyed = changes.key_by(_id_of)
    return keyed.process(Numbered(asked.crash)).uid("numbered")


def _id_of(change: str) -> int:
    record = json.loads(change)
    return int((record["after"] or record["before"])["id"])


def write(lines: DataStream, asked: argparse.Namespace) -> None:
    """Write lines exactly once: into a topic, a table of PostgreSQL or one of Iceberg."""
    if asked.postgres:
        lines.sink_to(PostgresSink(asked.postgres, asked.lines, ["line"], lambda line: (line,))).uid("lines")
    elif asked.iceberg:
        options = {"uri": f"sqlite:///{asked.iceberg}/catalog.db", "warehouse": f"file://{asked.iceberg}/tables"}
        loader = TableLoader.from_catalog(CatalogLoader.sql("lake", options), f"db.{asked.lines}")
        rows = lines.map(lambda line: Row(line=line))
        IcebergSink.for_row_data(rows).table_loader(loader).create_table(LINES).uid_suffix("lines").append()
    else:
        schema = KafkaRecordSerializationSchema.builder().set_topic(asked.lines)
        schema = schema.set_key_serialization_schema(KeyOfLine()).set_value_serialization_schema(SimpleStringSchema())
        sink = KafkaSink.builder().set_bootstrap_servers(asked.kafka).set_record_serializer(schema.build())
        sink = sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE).set_transactional_id_prefix(asked.lines)
        lines.sink_to(sink.build()).uid("lines")


def arguments(given: list[str]) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka", required=True, help="host:port of brokers, with commas between")
    parser.add_argument("--numbers", help="topic of the numbers")
    parser.add_argument("--captured", help="socket folder of a PostgreSQL server whose table `t` is captured")
    parser.add_argument("--slot", default="killed", help="replication slot")
    parser.add_argument("--lines", default="lines", help="topic, or table, of the lines")
    parser.add_argument("--postgres", help="connection string: the lines go into a table there, not into a topic")
    parser.add_argument("--iceberg", help="folder of a catalog: the lines go into a table there, not into a topic")
    parser.add_argument("--crash", default="", help="file that makes a function raise; it is removed first")
    parser.add_argument("--stop", default="", help="file that stops the job with a savepoint, whose address it prints")
    parser.add_argument("--savepoints", help="folder of savepoints")
    for name, number in {"lanes": 3, "keys": 10, "records": 1000, "window": 100}.items():
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE", help="of the configuration")
    return parser.parse_args(given)


def main(given: list[str]) -> None:
    """Run one of the programs."""
    asked = arguments(given)
    env = StreamExecutionEnvironment(dict(option.split("=", 1) for option in asked.option))
    write(lines_of_numbers(env, asked) if asked.numbers else lines_of_changes(env, asked), asked)
    if asked.stop:
        run(env, "streams", asked)
    else:
        env.execute("streams")


if __name__ == "__main__":
    main(sys.argv[1:])
