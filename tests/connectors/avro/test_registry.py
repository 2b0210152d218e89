"""The client of a schema registry, and messages with ids of schemas, against a registry on loopback."""

from __future__ import annotations

import json
import pickle
import socket
import time
from typing import Any

import pyarrow
import pytest

from rayflink.common.connector_base.malformed_records import DecoderUnavailable, MalformedMessage, MalformedRecords
from rayflink.common.connector_base.message_decoder import MessageDecoder
from rayflink.common.records.batches import RowBatch
from rayflink.connectors.avro.avro_schema import AvroSchema, BadAvroSchema
from rayflink.connectors.avro.registry_client import (
    IncompatibleSchema,
    RegistryError,
    RegistryOptions,
    RegistryUnavailable,
    SchemaRegistry,
    UnknownSchema,
)
from rayflink.connectors.avro.registry_messages import (
    ConfluentRegistryAvroDeserializationSchema,
    ConfluentRegistryAvroSerializationSchema,
    RegistryColumns,
)
from tests.connectors.avro.registry_server import RegistryServer, without_secret


def record(*fields: tuple[str, Any], **defaults: Any) -> AvroSchema:
    described = [{"name": name, "type": kind} for name, kind in fields]
    described += [{"name": name, "type": ["null", "string"], "default": value} for name, value in defaults.items()]
    return AvroSchema({"type": "record", "name": "Order", "namespace": "shop", "fields": described})


ORDER = record(("id", "long"), ("item", "string"))
WIDER = record(("id", "long"), ("item", "string"), note=None)


def client(*urls: str, **options: Any) -> SchemaRegistry:
    return SchemaRegistry(RegistryOptions(urls, retries=options.pop("retries", 2), **options), sleep=lambda _: None)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_schemas_are_registered_and_fetched_once(registry: RegistryServer) -> None:
    found = client(registry.url)
    number = found.id_to_write("orders-value", ORDER)
    assert (found.id_to_write("orders-value", ORDER), number) == (1, 1)
    assert found.schema_of(1) == found.schema_of(1) == ORDER
    assert registry.requests == ["POST /subjects/orders-value/versions", "GET /schemas/ids/1"]
    assert found.latest("orders-value") == (1, ORDER)
    assert pickle.loads(pickle.dumps(found)).schema_of(1) == ORDER


def test_names_of_subjects_are_quoted(registry: RegistryServer) -> None:
    assert client(registry.url).id_to_write("a/b value", ORDER) == 1
    assert registry.subjects == {"a/b value": [1]}


def test_an_incompatible_schema_is_refused_with_a_remedy(registry: RegistryServer) -> None:
    found = client(registry.url)
    found.id_to_write("s", ORDER)
    assert found.id_to_write("s", WIDER) == 2
    with pytest.raises(IncompatibleSchema, match="refuses the schema of 's'.*incompatible.*give new fields a default"):
        found.id_to_write("s", record(("id", "long"), ("item", "string"), ("price", "double")))


def test_schemas_that_must_be_registered_already(registry: RegistryServer) -> None:
    found = client(registry.url, registers=False)
    with pytest.raises(UnknownSchema, match="the schema of 's' is not registered.*Subject 's' not found"):
        found.id_to_write("s", ORDER)
    registry.register("s", {"schema": str(ORDER)})
    assert found.id_to_write("s", ORDER) == 1
    registry.mode = "READONLY"
    with pytest.raises(RegistryError, match="read-only mode"):
        client(registry.url).id_to_write("s", WIDER)


def test_unknown_ids_and_subjects_are_an_error_that_is_remembered(registry: RegistryServer) -> None:
    found = client(registry.url)
    for _ in range(5):
        with pytest.raises(UnknownSchema, match="has no schema with id 7.*check that the URL"):
            found.schema_of(7)
    assert registry.requests == ["GET /schemas/ids/7"]
    with pytest.raises(UnknownSchema, match="has no subject 'nope'"):
        found.latest("nope")


def test_a_registry_that_fails_for_a_while_is_asked_again(registry: RegistryServer) -> None:
    pauses: list[float] = []
    registry.register("s", {"schema": str(ORDER)})
    registry.failures = [503, 500, 429]
    found = SchemaRegistry(RegistryOptions((registry.url,), retries=3), pauses.append)
    assert found.schema_of(1) == ORDER
    assert pauses == [0.1, 0.2, 0.4]


def test_a_registry_that_is_down_is_an_error_after_the_retries() -> None:
    found = client(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(RegistryUnavailable, match="does not answer in 3 tries.*start it, or correct its URL"):
        found.schema_of(1)


def test_a_registry_that_never_answers_is_given_up(registry: RegistryServer) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(RegistryUnavailable, match="timed out"):
            client(url, read_timeout_s=0.05, retries=1).schema_of(1)
        assert time.monotonic() - began < 5
        registry.register("s", {"schema": str(ORDER)})
        assert client(url, registry.url, read_timeout_s=0.05).schema_of(1) == ORDER  # the second URL answers


def test_credentials_are_sent_and_never_shown(registry: RegistryServer) -> None:
    registry.register("s", {"schema": str(ORDER)})
    registry.user_info = "ada:pa$$word"
    assert client(registry.url, user_info="ada:pa$$word").schema_of(1) == ORDER
    assert client(registry.url.replace("http://", "http://ada:pa$$word@")).schema_of(1) == ORDER
    wrong = client(registry.url.replace("http://", "http://ada:wrongword@"))
    with pytest.raises(RegistryUnavailable, match="answers HTTP 401.*check the user") as refusal:
        wrong.schema_of(1)
    assert without_secret(str(refusal.value) + repr(wrong.options) + repr(refusal.value), "wrongword", "ada")
    registry.user_info, registry.token = None, "t0ken"
    assert client(registry.url, bearer_token="t0ken").schema_of(1) == ORDER
    assert without_secret(repr(RegistryOptions((registry.url,), bearer_token="t0ken")), "t0ken")
    down = client(f"http://ada:secretword@127.0.0.1:{free_port()}", retries=0)
    with pytest.raises(RegistryUnavailable) as outage:
        down.schema_of(1)
    assert without_secret(str(outage.value), "secretword", "ada")


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (((),), "there is no URL"), ((("registry:8081",),), "'registry:8081' is no URL"),
        ((("https://r",), "", "", "store.jks"), "'store.jks' is a key store of Java's"),
    ],
)  # fmt: skip
def test_options_that_cannot_be_are_refused(options: Any, found: str) -> None:
    with pytest.raises(RegistryError, match=found):
        RegistryOptions(*options)


def test_an_answer_that_is_no_json_names_the_url(registry: RegistryServer) -> None:
    registry.handle = lambda *_: (200, "<html>")  # type: ignore[assignment, method-assign]
    with pytest.raises(RegistryUnavailable, match="check that the URL is that of a schema registry"):
        client(registry.url).schema_of(1)


def test_schemas_of_another_type_are_refused(registry: RegistryServer) -> None:
    registry.register("s", {"schema": "syntax", "schemaType": "PROTOBUF"})
    with pytest.raises(UnknownSchema, match="schema 1 .* is of type PROTOBUF, one of Avro is wanted"):
        client(registry.url).schema_of(1)


def test_a_schema_that_refers_to_others_is_put_together(registry: RegistryServer) -> None:
    money = {"type": "record", "name": "Money", "namespace": "shop", "fields": [{"name": "amount", "type": "long"}]}
    registry.register("money", {"schema": json.dumps(money)})
    order = {"type": "record", "name": "Order", "namespace": "shop", "fields": [
        {"name": "price", "type": "Money"}, {"name": "tax", "type": ["null", "shop.Money"]}]}  # fmt: skip
    references = [{"name": "shop.Money", "subject": "money", "version": 1}]
    registry.register("order", {"schema": json.dumps(order), "references": references})
    found = client(registry.url).schema_of(2)
    assert [str(field.node) for field in found.root.fields] == ["shop.Money", "[null, shop.Money]"]


def schemas(registry: RegistryServer, reader: AvroSchema | None = None) -> tuple[Any, Any]:
    """A pair that writes and reads, as it is after pickling."""
    options = RegistryOptions((registry.url,), retries=0)
    pair = (
        ConfluentRegistryAvroSerializationSchema.for_generic("orders-value", ORDER, registry.url, options),
        ConfluentRegistryAvroDeserializationSchema.for_generic(reader, registry.url, options),
    )
    found: tuple[Any, Any] = pickle.loads(pickle.dumps(pair))
    return found


ROWS = [{"id": 1, "item": "tea"}, {"id": 2, "item": "cup"}]


def test_records_are_written_with_the_id_of_their_schema(registry: RegistryServer) -> None:
    writer, reader = schemas(registry)
    messages = writer.serialize_batch(RowBatch(ROWS))
    assert messages[0] == b"\0\0\0\0\x01\x02\x06tea" == writer.serialize(ROWS[0])
    assert reader.deserialize_batch(messages) == (RowBatch(ROWS), None)
    assert reader.deserialize_batch([None, messages[1]]) == (RowBatch(ROWS[1:]), [1])
    assert reader.deserialize(messages[0]) == ROWS[0]


def test_records_are_read_as_the_readers_schema_says(registry: RegistryServer) -> None:
    writer, reader = schemas(registry, WIDER)
    wider = ConfluentRegistryAvroSerializationSchema("orders-value", WIDER, client(registry.url))
    messages = [writer.serialize(ROWS[0]), wider.serialize({**ROWS[1], "note": "new"}), writer.serialize(ROWS[1])]
    found, _ = reader.deserialize_batch(messages)
    assert found.values == [{**ROWS[0], "note": None}, {**ROWS[1], "note": "new"}, {**ROWS[1], "note": None}]
    wanted = pyarrow.schema([("note", pyarrow.string()), ("id", pyarrow.int64())])
    columns = RegistryColumns(client(registry.url), wanted)
    assert columns.of_messages(messages).to_pydict() == {"note": [None, "new", None], "id": [1, 2, 2]}


def test_malformed_messages_are_found_by_the_policy(registry: RegistryServer) -> None:
    writer, reader = schemas(registry)
    good = writer.serialize(ROWS[0])
    bad = [b"", b"\x01\0\0\0\x01", b"\0\0\0\0\x63" + good[5:], good[:-1], good + b"!", b'{"id": 1}']
    messages = [good, *bad, good]
    found = MessageDecoder(reader, MalformedRecords.skip()).decode(messages, str)
    assert list(found.indices or ()) == [0, len(messages) - 1]
    with pytest.raises(MalformedMessage, match="written with a schema registry"):
        MessageDecoder(reader).decode([good, bad[-1]], str)
    assert registry.requests.count("GET /schemas/ids/99") == 1


def test_an_outage_of_the_registry_skips_no_messages(registry: RegistryServer) -> None:
    """The messages are not malformed: the job fails, and reads them again."""
    writer, reader = schemas(registry)
    message = writer.serialize(ROWS[0])
    registry.failures = [503]
    decoder = MessageDecoder(reader, MalformedRecords.skip())
    with pytest.raises(DecoderUnavailable, match="does not answer"):
        decoder.decode([message], str)
    assert decoder.decode([message], str).batch == RowBatch(ROWS[:1])


def test_columns_that_the_writers_do_not_have_are_an_error(registry: RegistryServer) -> None:
    message = schemas(registry)[0].serialize(ROWS[0])
    columns = RegistryColumns(client(registry.url), pyarrow.schema([("item", pyarrow.int64())]))
    with pytest.raises(BadAvroSchema, match="field 'item' is string in the schema of the writer, int64 is wanted"):
        columns.of_messages([message])


def test_a_record_that_does_not_fit_is_an_error(registry: RegistryServer) -> None:
    with pytest.raises(ValueError, match="a record does not fit the Avro schema.*map it to a dict"):
        schemas(registry)[0].serialize({"id": "one", "item": "tea"})
