"""Avro files: read and written as records and columns, packed by every codec, shared by readers, restored anywhere."""

from __future__ import annotations

import datetime
import io
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow
import pytest

from rayflink.common import Row, Types, WatermarkStrategy
from rayflink.common.records.batches import ArrowBatch, RowBatch, rows_of
from rayflink.connectors.avro.avro_schema import AvroSchema
from rayflink.connectors.avro.container_blocks import CODECS
from rayflink.connectors.files.file_blocks import FileSplit, splits_of
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.file_system import FileSink, FileSource
from rayflink.datastream.formats.avro import (
    AvroBulkWriters,
    AvroFormat,
    AvroInputFormat,
    AvroRecordFormat,
    AvroRowDeserializationSchema,
    AvroRowSerializationSchema,
    GenericRecordAvroTypeInfo,
)
from rayflink.datastream.formats.avro import (
    AvroSchema as PublicAvroSchema,
)
from rayflink.datastream.formats.parquet import AvroParquetReaders, AvroParquetWriters

NO_TIME = WatermarkStrategy.no_watermarks()
BID = AvroSchema({"type": "record", "name": "Bid", "namespace": "n", "fields": [
    {"name": "id", "type": "long"}, {"name": "word", "type": ["null", "string"], "default": None},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "tags", "type": {"type": "map", "values": "int"}},
]})  # fmt: skip
AT = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000, datetime.timezone.utc)


def bid(number: int) -> dict[str, Any]:
    return {"id": number, "word": f"w{number}" if number % 3 else None, "price": Decimal(number).scaleb(-2), "at": AT,
            "tags": {"a": number}}  # fmt: skip


def written(path: Path, count: int, codec: str = "null", interval: int = 2000) -> Path:
    """A file that fastavro writes."""
    with path.open("wb") as file:
        packed = codec if codec in ("null", "deflate", "bzip2", "xz") else "null"
        records = (bid(number) for number in range(count))
        fastavro.writer(file, fastavro.parse_schema(BID.definition), records, packed, interval)
    return path


def read(form: Any, split: FileSplit, most: int = 1000) -> list[Any]:
    cursor, found = form.open_split(split), []
    while (batch := cursor.read(most)) is not None:
        found += batch.data.to_pylist() if isinstance(batch, ArrowBatch) else rows_of(batch)
    cursor.close()
    return found


def whole(path: Path) -> FileSplit:
    [split] = splits_of([str(path)], 1, divisible=False)
    return split


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS)
def test_what_is_written_is_read_again_and_by_others(codec: str, tmp_path: Path) -> None:
    path, records = tmp_path / "bids.avro", [bid(number) for number in range(4500)]
    with path.open("wb") as file:
        writer = AvroBulkWriters.for_generic_record(BID, codec).create(file)
        writer.add_batch(RowBatch(records[:-1]))
        writer.add_element(Row(**records[-1]))
        writer.finish()
    assert read(AvroRecordFormat(), whole(path)) == records
    columns = read(AvroFormat(), whole(path))
    assert [dict(row, tags=dict(row["tags"])) for row in columns] == records
    if codec not in ("snappy", "zstandard"):  # which fastavro reads with another package
        with path.open("rb") as file:
            assert list(fastavro.reader(file)) == records


def test_columns_are_written_as_they_are(tmp_path: Path) -> None:
    read_columns = AvroFormat().open_split(whole(written(tmp_path / "a.avro", 100))).read(1000)
    assert isinstance(read_columns, ArrowBatch)
    with (tmp_path / "b.avro").open("wb") as file:
        writer = AvroBulkWriters.for_generic_record(BID).create(file)
        writer.add_batch(read_columns)
        writer.finish()
    assert read(AvroRecordFormat(BID), whole(tmp_path / "b.avro")) == [bid(number) for number in range(100)]


@pytest.mark.slow
@pytest.mark.parametrize("form", [AvroRecordFormat(), AvroFormat(Types.ROW_NAMED(["id"], [Types.LONG()]))], ids=(0, 1))
def test_every_block_is_read_by_exactly_one_split(form: Any, tmp_path: Path) -> None:
    path = written(tmp_path / "bids.avro", 800, interval=300)
    size, rng = path.stat().st_size, random.Random(3)
    for _ in range(40):
        cuts = sorted({0, size, *(rng.randrange(size) for _ in range(rng.randrange(1, 9)))})
        found = [record["id"] for start, stop in zip(cuts, cuts[1:], strict=False)
                 for record in read(form, FileSplit(str(path), start, stop))]  # fmt: skip
        assert found == list(range(800)), cuts


def test_a_split_goes_on_where_its_position_says(tmp_path: Path) -> None:
    split, form = whole(written(tmp_path / "bids.avro", 200, interval=300)), AvroRecordFormat()
    for size in (1, 7, 1000):
        found: list[int] = []
        cursor = form.open_split(split)
        while (batch := cursor.read(size)) is not None:
            found += [record["id"] for record in rows_of(batch)]
            split_now = cursor.position()
            cursor.close()
            cursor = form.open_split(split_now)
        assert found == list(range(200))
        assert form.open_split(cursor.position()).read(5) is None


def test_readers_may_have_another_schema(tmp_path: Path) -> None:
    path = written(tmp_path / "bids.avro", 2)
    reader = AvroSchema({"type": "record", "name": "Bid", "namespace": "n", "fields": [
        {"name": "color", "type": "string", "default": "red"}, {"name": "number", "type": "double", "aliases": ["id"]},
    ]})  # fmt: skip
    wanted = [{"color": "red", "number": 0.0}, {"color": "red", "number": 1.0}]
    assert read(AvroRecordFormat(reader), whole(path)) == wanted


@pytest.mark.parametrize("damage", ["head", "cut", "marker", "codec", "no avro", "packed"])
def test_damaged_files_are_an_error_that_names_file_and_place(damage: str, tmp_path: Path) -> None:
    path = written(tmp_path / "bids.avro", 500, "deflate", 300)
    data = bytearray(path.read_bytes())
    changed = {
        "head": lambda: data[:20], "cut": lambda: data[:-30], "marker": lambda: data[:-1] + b"\0\0"[:1],
        "codec": lambda: data.replace(b"deflate", b"deflato"), "no avro": lambda: b"PAR1" + data[4:],
        "packed": lambda: data[: len(data) // 2] + bytes(8) + data[len(data) // 2 + 8 :],
    }[damage]()  # fmt: skip
    path.write_bytes(changed)
    with pytest.raises(ValueError, match="bids.avro.*; write (it|the file) anew"):
        read(AvroRecordFormat(), whole(path))


def local() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment({"execution.target": "local"})


def test_a_job_reads_and_writes_files_under_pyflinks_names(tmp_path: Path) -> None:
    written(tmp_path / "in.avro", 20)
    env, schema = local(), PublicAvroSchema.parse_string(str(BID))
    env.set_parallelism(1)
    stream = env.create_input(AvroInputFormat(str(tmp_path / "in.avro"), schema))
    sink = FileSink.for_bulk_format(str(tmp_path / "out"), AvroBulkWriters.for_generic_record(schema)).build()
    stream.map(lambda record: {**record, "word": "x"}, output_type=GenericRecordAvroTypeInfo(schema)).sink_to(sink)
    env.execute()
    source = FileSource.for_bulk_file_format(AvroRecordFormat(schema), str(tmp_path / "out")).build()
    found = list(local().from_source(source, NO_TIME, "files").execute_and_collect())
    assert sorted(found, key=lambda record: record["id"]) == [{**bid(number), "word": "x"} for number in range(20)]


def test_records_of_another_type_are_an_error(tmp_path: Path) -> None:
    env = local()
    stream = env.from_collection([1]).map(lambda number: {"id": "a"}, output_type=GenericRecordAvroTypeInfo(BID))
    with pytest.raises(Exception, match="map it to a dict with these fields"):
        list(stream.execute_and_collect())


def test_parquet_files_of_an_avro_schema(tmp_path: Path) -> None:
    records = [bid(number) for number in range(50)]
    with (tmp_path / "bids.parquet").open("wb") as file:
        writer = AvroParquetWriters.for_generic_record(BID).create(file)
        writer.add_batch(RowBatch(records))
        writer.finish()
    assert pyarrow.parquet.read_table(tmp_path / "bids.parquet").schema.field("price").type == pyarrow.decimal128(9, 2)
    source = FileSource.for_record_stream_format(
        AvroParquetReaders.for_generic_record(BID), str(tmp_path / "bids.parquet")).build()  # fmt: skip
    assert list(local().from_source(source, NO_TIME, "files").execute_and_collect()) == records


def test_rows_of_messages() -> None:
    writer, reader = AvroRowSerializationSchema(avro_schema_string=str(BID)), AvroRowDeserializationSchema(
        avro_schema_string=str(BID))  # fmt: skip
    message = writer.serialize(Row(*bid(4).values()))
    stream = io.BytesIO(message)
    assert fastavro.schemaless_reader(stream, fastavro.parse_schema(BID.definition)) == bid(4)
    assert reader.deserialize(message) == Row(**bid(4))
    assert reader.deserialize_batch([message, None]) == (RowBatch([Row(**bid(4))]), [0])
    assert reader.get_produced_type().convert_batch([Row(**bid(4))]) == [Row(**bid(4))]
    with pytest.raises(ValueError, match="a row with the fields id, word"):
        writer.serialize(Row(1, 2))
    with pytest.raises(TypeError, match="a class of Java.*avro_schema_string"):
        AvroRowSerializationSchema("org.example.Bid")
    with pytest.raises(TypeError, match="avro_schema_string is missing"):
        AvroRowDeserializationSchema()
