"""`avro-confluent` and `debezium-avro-confluent`, against a registry on loopback."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow
import pytest

from rayflink.common.records.batches import ArrowBatch
from rayflink.common.records.row_kinds import KINDS, kinds_of, with_kinds, without_kinds
from rayflink.connectors.avro.avro_schema import AvroSchema
from rayflink.connectors.avro.datum_records import DatumRecords
from rayflink.connectors.avro.registry_messages import header_of
from rayflink.table import DataTypes, SqlError
from rayflink.table.connectors.messages.known_formats import message_format
from rayflink.table.plan.changelog import Change
from rayflink.table.plan.logical import Attribute, Schema
from tests.connectors.avro.registry_server import RegistryServer

SCHEMA: Schema = (
    Attribute("id", DataTypes.BIGINT().not_null()), Attribute("name", DataTypes.STRING()),
    Attribute("at", DataTypes.TIMESTAMP(3)),
)  # fmt: skip
COLUMNS = pyarrow.schema([(column.name, column.type.to_arrow()) for column in SCHEMA])
NAMES = COLUMNS.names


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with RegistryServer() as server:
        yield server


def options_of(name: str, address: str, **given: Any) -> dict[str, Any]:
    form = message_format(name, "t")
    options = {key: option.default for key, option in form.options.items()}
    return {**options, "url": form.options["url"].parse(address), **given}


def batch_of(*rows: dict[str, Any]) -> ArrowBatch:
    return ArrowBatch(pyarrow.RecordBatch.from_pylist(list(rows), COLUMNS))


def test_rows_go_to_messages_and_back(registry: RegistryServer) -> None:
    form = message_format("avro-confluent", "t")
    options = options_of("avro-confluent", registry.url, subject="t-value")
    encoder = pickle.loads(pickle.dumps(form.encoder(SCHEMA, options)))
    rows = [{"id": 1, "name": None, "at": None}, {"id": 2, "name": "é", "at": 5}]
    messages = encoder.serialize_batch(batch_of(*rows))
    assert [message[:5] for message in messages] == [header_of(1)] * 2
    assert list(registry.subjects) == ["t-value"]
    decoder = pickle.loads(pickle.dumps(form.decoder(SCHEMA, ["name", "id"], options)))
    found, indices = decoder.deserialize_batch([messages[1], None, messages[0]])
    assert found.data.to_pylist() == [{"name": "é", "id": 2}, {"name": None, "id": 1}]
    assert indices == [0, 2]
    assert form.topic_option == "subject"


def test_messages_of_older_and_newer_schemas_are_read_together(registry: RegistryServer) -> None:
    old = {"type": "record", "name": "A", "fields": [{"name": "id", "type": "int"}]}
    new = {"type": "record", "name": "B", "fields": [
        {"name": "extra", "type": {"type": "map", "values": "int"}}, {"name": "name", "type": "string"},
        {"name": "id", "type": "long"}, {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ]}  # fmt: skip
    messages = []
    for subject, schema, value in (("o", old, {"id": 1}), ("n", new, {"extra": {}, "name": "b", "id": 2, "at": 7001})):
        number = registry.register(subject, {"schema": json.dumps(schema)})
        messages += DatumRecords(AvroSchema(schema)).encoded([value], header_of(number))
    decoder = message_format("avro-confluent", "t").decoder(
        SCHEMA, NAMES, options_of("avro-confluent", registry.url))  # fmt: skip
    found, _ = decoder.deserialize_batch([messages[1], messages[0], messages[1]])
    assert found.data.column("id").to_pylist() == [2, 1, 2]
    assert found.data.column("name").to_pylist() == ["b", None, "b"]
    assert found.data.column("at").cast(pyarrow.int64()).to_pylist() == [7, None, 7]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"url": None}, "has no URL of a schema registry"), ({}, "has no subject"),
        ({"schema": "{"}, "the schema is no JSON"), ({"schema": '"int"'}, "a record is wanted"),
        ({"ssl.truststore.location": "trust.jks"}, "key store of Java's"),
        ({"subject": "s", "schema": '{"type":"record","name":"R","fields":[{"name":"x","type":"int"}]}'},
         "the schema has a field 'x', which the table does not have"),
    ],
)  # fmt: skip
def test_options_that_do_not_suffice_are_refused(given: dict[str, Any], problem: str) -> None:
    form = message_format("avro-confluent", "t")
    options = options_of("avro-confluent", "http://registry:8081", **given)
    with pytest.raises(SqlError, match=problem):
        form.check(options)
        form.encoder(SCHEMA, options)


def test_credentials_in_the_url_are_refused_without_being_shown() -> None:
    with pytest.raises(ValueError, match="basic-auth.user-info") as refusal:
        message_format("avro-confluent", "t").options["url"].parse("http://ada:secret@registry")
    assert "secret" not in str(refusal.value)


VALUE = {"type": "record", "name": "Value", "namespace": "shop.t", "fields": [
    {"name": "id", "type": "long"}, {"name": "name", "type": ["null", "string"], "default": None},
    {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None},
]}  # fmt: skip
SOURCE = {"type": "record", "name": "Source", "namespace": "io.debezium.connector", "fields": [
    {"name": "db", "type": "string"}, {"name": "ts_ms", "type": "long"}]}  # fmt: skip
ENVELOPE = {"type": "record", "name": "Envelope", "namespace": "shop.t", "fields": [
    {"name": "before", "type": ["null", VALUE], "default": None},
    {"name": "after", "type": ["null", "Value"], "default": None}, {"name": "source", "type": SOURCE},
    {"name": "op", "type": "string"}, {"name": "ts_ms", "type": ["null", "long"], "default": None},
]}  # fmt: skip


def row(number: int, name: str | None) -> dict[str, Any]:
    return {"id": number, "name": name, "at": None}


def envelopes(registry: RegistryServer, *changes: tuple[str, Any, Any]) -> list[bytes]:
    number = registry.register("t-value", {"schema": json.dumps(ENVELOPE)})
    source = {"db": "shop", "ts_ms": 1}
    values = [{"before": before, "after": after, "source": source, "op": op, "ts_ms": 2}
              for op, before, after in changes]  # fmt: skip
    return DatumRecords(AvroSchema(ENVELOPE)).encoded(values, header_of(number))


def rows_of(batch: ArrowBatch) -> list[tuple[Any, ...]]:
    kinds = kinds_of(batch.data)
    assert kinds is not None
    values = without_kinds(batch.data).to_pylist()
    return [(str(KINDS[kind]), *row.values()) for kind, row in zip(kinds.tolist(), values, strict=True)]


def test_envelopes_of_debezium_become_rows_with_kinds(registry: RegistryServer) -> None:
    tea, cup = row(1, "tea"), row(1, "cup")
    messages = envelopes(registry, ("c", None, tea), ("u", tea, cup), ("d", cup, None), ("r", None, row(2, None)))
    form = message_format("debezium-avro-confluent", "t")
    options = options_of("debezium-avro-confluent", registry.url)
    decoder = pickle.loads(pickle.dumps(form.decoder(SCHEMA, NAMES, options)))
    found, indices = decoder.deserialize_batch([messages[0], None, messages[1], b"", *messages[2:]])
    assert rows_of(found) == [
        ("+I", 1, "tea", None), ("-U", 1, "tea", None), ("+U", 1, "cup", None), ("-D", 1, "cup", None),
        ("+I", 2, None, None),
    ]  # fmt: skip
    assert indices == [0, 2, 2, 4, 5]
    counted, _ = form.decoder(SCHEMA, [], options).deserialize_batch(messages)
    assert rows_of(counted) == [("+I",), ("-U",), ("+U",), ("-D",), ("+I",)]
    assert form.changes is Change.ALL
    assert decoder.deserialize_batch([None])[0].data.num_rows == 0


def test_envelopes_without_what_they_need_are_malformed(registry: RegistryServer) -> None:
    messages = envelopes(registry, ("c", None, row(1, "a")), ("u", None, row(1, "b")), ("x", None, None))
    form = message_format("debezium-avro-confluent", "t")
    decoder = form.decoder(SCHEMA, NAMES, options_of("debezium-avro-confluent", registry.url))
    with pytest.raises(ValueError, match="REPLICA IDENTITY FULL"):
        decoder.deserialize_batch(messages[:2])
    with pytest.raises(ValueError, match="'op' is 'x'"):
        decoder.deserialize_batch(messages)
    options = options_of("debezium-avro-confluent", registry.url, **{"ignore-parse-errors": True})
    found, indices = form.decoder(SCHEMA, ["id"], options).deserialize_batch(messages)
    assert (rows_of(found), indices) == ([("+I", 1)], [0])


def test_rows_with_kinds_are_written_as_envelopes(registry: RegistryServer) -> None:
    form = message_format("debezium-avro-confluent", "t")
    options = options_of("debezium-avro-confluent", registry.url, subject="t-value")
    rows = batch_of(*(row(number, f"n{number}") for number in range(4)))
    changed = ArrowBatch(with_kinds(rows.data, pyarrow.array([0, 1, 2, 3], pyarrow.int8())))
    encoder = pickle.loads(pickle.dumps(form.encoder(SCHEMA, options)))
    messages = encoder.serialize_batch(changed)
    found, _ = form.decoder(SCHEMA, NAMES, options).deserialize_batch(messages)
    assert rows_of(found) == [
        ("+I", 0, "n0", None), ("-D", 1, "n1", None), ("+I", 2, "n2", None), ("-D", 3, "n3", None),
    ]  # fmt: skip
    schema = json.loads(registry.schemas[0]["schema"])
    assert [field["name"] for field in schema["fields"]] == ["before", "after", "op"]
    assert [field["type"][1]["name"] for field in schema["fields"][:2]] == ["record_before", "record_after"]
