"""`avro`: the schema that is derived from a table, and messages in both encodings."""

from __future__ import annotations

import datetime
import io
import json
import pickle
import re
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow
import pytest

from rayflink.common.connector_base.malformed_records import MalformedMessage, MalformedRecords
from rayflink.common.connector_base.message_decoder import MessageDecoder
from rayflink.common.records.batches import ArrowBatch
from rayflink.table import DataTypes, SqlError
from rayflink.table.connectors.avro_types import avro_schema_of
from rayflink.table.connectors.messages.known_formats import message_format
from rayflink.table.plan.logical import Attribute, Schema

T = DataTypes
ALL: Schema = tuple(
    Attribute(f"c{number}", kind) for number, kind in enumerate([
        T.BOOLEAN(), T.TINYINT(), T.SMALLINT(), T.INT(), T.BIGINT().not_null(), T.FLOAT(), T.DOUBLE(), T.STRING(),
        T.CHAR(3), T.BYTES(), T.DECIMAL(10, 3), T.DATE(), T.TIME(3), T.TIMESTAMP(3), T.TIMESTAMP(6),
        T.ARRAY(T.INT()), T.MAP(T.STRING(), T.BIGINT()),
        T.ROW([T.FIELD("x", T.INT()), T.FIELD("y", T.ROW([T.FIELD("z", T.STRING())]))]), T.MULTISET(T.STRING()),
    ])
)  # fmt: skip
AT = datetime.datetime(2026, 1, 2, 3, 4, 5, 678000)
VALUES: list[Any] = [
    True, -7, 300, -70000, 1 << 40, 0.5, 0.1, "é", "abc", b"\xff", Decimal("-12.345"), AT.date(), AT.time(), AT,
    AT.replace(microsecond=678901), [1, None], [("k", 5)], {"x": None, "y": {"z": "deep"}}, [("m", 2)],
]  # fmt: skip


def options_of(**given: Any) -> dict[str, Any]:
    options = {key: option.default for key, option in message_format("avro", "t").options.items()}
    return {**options, **given}


def batch_of(schema: Schema, *rows: list[Any]) -> ArrowBatch:
    fields = pyarrow.schema([(column.name, column.type.to_arrow()) for column in schema])
    arrays = [pyarrow.array(values, field.type) for values, field in zip(zip(*rows, strict=True), fields, strict=True)]
    return ArrowBatch(pyarrow.RecordBatch.from_arrays(arrays, schema=fields))


def test_the_schema_of_a_table_is_flinks() -> None:
    definition = json.loads(str(avro_schema_of(ALL)))
    types = {field["name"]: field["type"] for field in definition["fields"]}
    assert (definition["namespace"], definition["name"]) == ("org.apache.flink.avro.generated", "record")
    assert types["c4"] == "long" and types["c1"] == ["null", "int"]
    assert types["c10"] == ["null", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 3}]
    assert types["c13"][1]["logicalType"] == "timestamp-millis" and types["c14"][1]["logicalType"] == "timestamp-micros"
    assert types["c17"][1]["name"] == "record_c17"
    assert types["c17"][1]["fields"][1]["type"][1]["name"] == "record_c17_y"
    assert all(field["default"] is None for field in definition["fields"] if isinstance(field["type"], list))
    modern = (Attribute("a", T.TIMESTAMP(3)), Attribute("b", T.TIMESTAMP_LTZ(9)))
    kinds = [field["type"][1]["logicalType"] for field in json.loads(str(avro_schema_of(modern, False)))["fields"]]
    assert kinds == ["local-timestamp-millis", "timestamp-nanos"]


@pytest.mark.parametrize("encoding", ["binary", "json"])
def test_rows_are_written_and_read_again(encoding: str) -> None:
    batch = batch_of(ALL, VALUES, [None] * 4 + [0] + [None] * 14)
    form, options = message_format("avro", "t"), options_of(encoding=encoding)
    encoder = pickle.loads(pickle.dumps(form.encoder(ALL, options)))
    messages = encoder.serialize_batch(batch)
    names = [column.name for column in ALL]
    decoder = pickle.loads(pickle.dumps(form.decoder(ALL, names, options)))
    found, indices = decoder.deserialize_batch(messages)
    assert indices is None
    assert found == batch
    some, indices = form.decoder(ALL, ["c17", "c4"], options).deserialize_batch([None, messages[1], messages[0]])
    assert some.data.to_pylist() == [{"c17": None, "c4": 0}, {"c17": VALUES[17], "c4": 1 << 40}]
    assert indices == [1, 2]
    assert form.decoder(ALL, [], options).deserialize_batch(messages)[0].data.num_rows == 2


def test_messages_are_what_fastavro_writes() -> None:
    schema = (Attribute("id", T.BIGINT().not_null()), Attribute("word", T.STRING()))
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(avro_schema_of(schema).definition), {"id": 5, "word": "a"})
    encoder = message_format("avro", "t").encoder(schema, options_of())
    assert encoder.serialize_batch(batch_of(schema, [5, "a"])) == [stream.getvalue()]
    text = message_format("avro", "t").encoder(schema, options_of(encoding="json"))
    assert text.serialize_batch(batch_of(schema, [5, "a"])) == [b'{"id": 5, "word": {"string": "a"}}']


@pytest.mark.parametrize("encoding", ["binary", "json"])
def test_malformed_messages_are_found(encoding: str) -> None:
    schema = (Attribute("id", T.BIGINT()),)
    form, options = message_format("avro", "t"), options_of(encoding=encoding)
    good = form.encoder(schema, options).serialize_batch(batch_of(schema, [5]))[0]
    decoder = form.decoder(schema, ["id"], options)
    found = MessageDecoder(decoder, MalformedRecords.skip()).decode([good, b"\x02", good, b"{"], str)
    assert found.indices == [0, 2]
    with pytest.raises(MalformedMessage, match="message 1.*of its schema|message 1.*by its schema"):
        MessageDecoder(decoder).decode([good, b"\x02\x04\x04"], lambda index: f"message {index}")


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        (T.TIMESTAMP_LTZ(3), "timestamp_mapping.legacy"), (T.TIMESTAMP(9), "timestamp_mapping.legacy"),
        (T.MAP(T.INT(), T.INT()), "make the keys STRING"), (T.TIME(6), "TIME\\(3\\)"),
        (T.INTERVAL(T.SECOND(3)), "make it a STRING"),
    ],
)  # fmt: skip
def test_types_that_avro_does_not_have_are_refused(kind: Any, remedy: str) -> None:
    with pytest.raises(SqlError, match="'x', which is") as refusal:
        message_format("avro", "t").decoder((Attribute("x", kind),), ["x"], options_of())
    assert re.search(remedy, refusal.value.remedy)
