"""Avro files and messages on Ray: readers share a file, and schemas of a registry are fetched in the slots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fastavro
import pytest

from rayflink.common import WatermarkStrategy
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.file_system import FileSink, FileSource
from rayflink.datastream.formats.avro import (
    AvroBulkWriters,
    AvroRecordFormat,
    AvroSchema,
    ConfluentRegistryAvroDeserializationSchema,
    ConfluentRegistryAvroSerializationSchema,
)
from tests.connectors.avro.registry_server import RegistryServer

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]

ON_RAY: dict[str, Any] = {"parallelism.default": 2}
SCHEMA = AvroSchema({"type": "record", "name": "R", "fields": [
    {"name": "n", "type": "long"}, {"name": "s", "type": ["null", "string"]}]})  # fmt: skip
NO_TIME = WatermarkStrategy.no_watermarks()


def test_a_file_is_read_by_several_readers_and_written_exactly_once(tmp_path: Path) -> None:
    records = [{"n": number, "s": "x" * 50 if number % 2 else None} for number in range(80_000)]
    with (tmp_path / "in.avro").open("wb") as file:
        fastavro.writer(file, SCHEMA.definition, records)
    env = StreamExecutionEnvironment({**ON_RAY, "execution.checkpointing.interval": "200 ms"})
    source = FileSource.for_bulk_file_format(AvroRecordFormat(SCHEMA), str(tmp_path / "in.avro")).build()
    sink = FileSink.for_bulk_format(str(tmp_path / "out"), AvroBulkWriters.for_generic_record(SCHEMA, "snappy")).build()
    env.from_source(source, NO_TIME, "in").sink_to(sink)
    env.execute()
    written = FileSource.for_bulk_file_format(AvroRecordFormat(SCHEMA), str(tmp_path / "out")).build()
    found = StreamExecutionEnvironment({"execution.target": "local"}).from_source(written, NO_TIME, "out")
    assert sorted(found.execute_and_collect(), key=lambda record: record["n"]) == records


def test_schemas_of_a_registry_are_fetched_where_they_are_needed() -> None:
    with RegistryServer() as registry:
        writer = ConfluentRegistryAvroSerializationSchema.for_generic("r-value", SCHEMA, registry.url)
        reader = ConfluentRegistryAvroDeserializationSchema.for_generic(SCHEMA, registry.url)
        env = StreamExecutionEnvironment(ON_RAY)
        messages = env.from_collection([{"n": number, "s": None} for number in range(10)]).map(writer.serialize)
        found = list(messages.rebalance().map(lambda message: reader.deserialize(message)["n"]).execute_and_collect())
    assert sorted(found) == list(range(10))
