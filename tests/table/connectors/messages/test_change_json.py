"""The formats of change data capture in JSON: golden messages, metadata, malformed messages, and what is written."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.connector_base.malformed_records import MalformedMessage, MalformedRecords
from rayflink.common.connector_base.message_decoder import MessageDecoder
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import ArrowBatch
from rayflink.common.records.row_kinds import KINDS, kinds_of, with_kinds, without_kinds
from rayflink.table import DataTypes, SqlError
from rayflink.table.connectors.messages.known_formats import message_format
from rayflink.table.plan.changelog import Change
from rayflink.table.plan.logical import Attribute, Schema

PRODUCT = (
    Attribute("id", DataTypes.BIGINT().not_null()), Attribute("name", DataTypes.STRING()),
    Attribute("weight", DataTypes.DECIMAL(10, 2)),
)  # fmt: skip
FORMATS = ("debezium-json", "canal-json", "maxwell-json", "ogg-json")


def options_of(name: str, **given: Any) -> dict[str, Any]:
    defaults = {key: option.default for key, option in message_format(name, "t").options.items()}
    return {**defaults, **{key.replace("_", "-"): value for key, value in given.items()}}


def decoder_of(
    name: str, schema: Schema = PRODUCT, names: Sequence[str] | None = None, metadata: dict[str, str] | None = None,
    **options: Any,
) -> Any:  # fmt: skip
    names = [column.name for column in schema] if names is None else names
    form = message_format(name, "t")
    return form.decoder_with_metadata(schema, names, options_of(name, **options), metadata or {})


def rows_of(batch: ArrowBatch) -> list[tuple[Any, ...]]:
    kinds = kinds_of(batch.data)
    assert kinds is not None
    values = without_kinds(batch.data).to_pylist()
    return [(str(KINDS[kind]), *row.values()) for kind, row in zip(kinds.tolist(), values, strict=True)]


def decoded(name: str, *messages: Any, **settings: Any) -> tuple[list[tuple[Any, ...]], list[int]]:
    encoded = [message if isinstance(message, bytes | None) else json.dumps(message).encode() for message in messages]
    batch, indices = decoder_of(name, **settings).deserialize_batch(encoded)
    return rows_of(batch), list(indices)


def row(number: Any, name: str | None, weight: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "weight": weight}


TEA, GREEN_TEA = row(7, "tea", 1.5), row(7, "green tea", 1.5)
GOLDEN: dict[str, tuple[Any, Any, Any]] = {
    "debezium-json": (
        {"before": None, "after": TEA, "source": {"db": "shop"}, "op": "c", "ts_ms": 1, "transaction": None},
        {"before": TEA, "after": GREEN_TEA, "source": {"db": "shop"}, "op": "u", "ts_ms": 2, "transaction": None},
        {"before": GREEN_TEA, "after": None, "source": {"db": "shop"}, "op": "d", "ts_ms": 3, "transaction": None},
    ),
    "ogg-json": (
        {"table": "SHOP.T", "op_type": "I", "op_ts": "2026-01-02 03:04:05.000006", "before": None, "after": TEA},
        {"table": "SHOP.T", "op_type": "U", "before": TEA, "after": GREEN_TEA, "primary_keys": ["id"]},
        {"table": "SHOP.T", "op_type": "D", "before": GREEN_TEA, "after": None, "pos": "00000000000000000000143"},
    ),
    "maxwell-json": (
        {"database": "shop", "table": "t", "type": "insert", "ts": 1, "xid": 1, "commit": True, "data": TEA},
        {"database": "shop", "table": "t", "type": "update", "data": GREEN_TEA, "old": {"name": "tea"}},
        {"database": "shop", "table": "t", "type": "delete", "ts": 3, "data": GREEN_TEA},
    ),
    "canal-json": (
        {"data": [{"id": "7", "name": "tea", "weight": "1.5"}], "old": None, "type": "INSERT", "isDdl": False},
        {"data": [{"id": "7", "name": "green tea", "weight": "1.5"}], "old": [{"name": "tea"}], "type": "UPDATE"},
        {"data": [{"id": "7", "name": "green tea", "weight": "1.5"}], "old": None, "type": "DELETE", "sql": ""},
    ),
}  # fmt: skip
WEIGHT = Decimal("1.50")


@pytest.mark.parametrize("name", FORMATS)
def test_a_row_is_inserted_updated_and_deleted(name: str) -> None:
    rows, indices = decoded(name, *GOLDEN[name])
    assert rows == [
        ("+I", 7, "tea", WEIGHT), ("-U", 7, "tea", WEIGHT), ("+U", 7, "green tea", WEIGHT),
        ("-D", 7, "green tea", WEIGHT),
    ]  # fmt: skip
    assert indices == [0, 1, 1, 2]
    assert message_format(name, "t").changes is Change.ALL


@pytest.mark.parametrize("name", FORMATS)
def test_tombstones_have_no_rows_and_others_keep_their_indices(name: str) -> None:
    insert, update, delete = GOLDEN[name]
    rows, indices = decoded(name, None, insert, b"", update, None, delete, names=["name"])
    assert indices == [1, 3, 3, 5]
    assert rows == [("+I", "tea"), ("-U", "tea"), ("+U", "green tea"), ("-D", "green tea")]


@pytest.mark.parametrize("name", FORMATS)
def test_a_query_that_only_counts_reads_kinds_alone(name: str) -> None:
    rows, indices = decoded(name, *GOLDEN[name], names=[])
    assert rows == [("+I",), ("-U",), ("+U",), ("-D",)]
    assert indices == [0, 1, 1, 2]


@pytest.mark.parametrize("name", FORMATS)
def test_no_messages_have_no_rows(name: str) -> None:
    assert decoded(name) == ([], [])
    assert decoded(name, None, b"") == ([], [])


@pytest.mark.parametrize("name", FORMATS)
def test_messages_over_several_lines_are_read(name: str) -> None:
    rows, _ = decoded(name, json.dumps(GOLDEN[name][0], indent=2).encode())
    assert rows == [("+I", 7, "tea", WEIGHT)]


@pytest.mark.parametrize("name", FORMATS)
def test_decoders_survive_pickling(name: str) -> None:
    decoder = decoder_of(name)
    message = json.dumps(GOLDEN[name][0]).encode()
    decoder.deserialize_batch([message])
    batch, _ = pickle.loads(pickle.dumps(decoder)).deserialize_batch([message])
    assert rows_of(batch) == [("+I", 7, "tea", WEIGHT)]


MALFORMED: dict[str, list[tuple[Any, str]]] = {
    "debezium-json": [
        (b"{", "{"),
        ({"before": None, "after": TEA, "op": "x"}, "'op' is 'x', one of c, r, u, d is wanted"),
        ({"before": None, "after": TEA}, "'op' is missing"),
        ({"before": None, "after": TEA, "op": "u"}, "REPLICA IDENTITY FULL"),
        ({"before": None, "after": TEA, "op": "d"}, "'before' of a deletion is null"),
        ({"before": TEA, "after": None, "op": "c"}, "'after' is null"),
        ({"before": None, "after": row("seven", "tea", 1), "op": "c"}, "seven"),
    ],
    "ogg-json": [(b"[1]", "object"), ({"op_type": "T", "before": None, "after": None}, "'op_type' is 'T'")],
    "maxwell-json": [
        ({"type": "bootstrap-insert", "data": TEA}, "'type' is 'bootstrap-insert'"),
        ({"type": "update", "data": TEA}, "'old' of an update is null"),
        ({"type": "insert"}, "'data' is null"),
    ],
    "canal-json": [
        ({"type": "ALTER", "data": None}, "'type' is 'ALTER'"),
        ({"type": "UPDATE", "data": [TEA, TEA], "old": [{}]}, "has 2 rows, 'old' has 1"),
        ({"type": "UPDATE", "data": [TEA]}, "'old' has 0"),
        ({"type": "INSERT", "data": None}, "'data' is null"),
    ],
}
CASES = [(name, *case) for name in FORMATS for case in MALFORMED[name]]


@pytest.mark.parametrize(("name", "message", "reason"), CASES, ids=range(len(CASES)))
def test_malformed_messages_fail_or_are_found_or_are_left_out(name: str, message: Any, reason: str) -> None:
    bad = message if isinstance(message, bytes) else json.dumps(message).encode()
    good = json.dumps(GOLDEN[name][0]).encode()
    with pytest.raises(MalformedMessage, match="message 1") as failure:
        MessageDecoder(decoder_of(name)).decode([good, bad, good], lambda index: f"message {index}")
    assert reason in str(failure.value)
    found = MessageDecoder(decoder_of(name), MalformedRecords.skip()).decode([good, bad, good], str)
    assert list(found.indices or ()) == [0, 2]
    is_misfit = reason == "seven"  # a value that is not of its type becomes NULL, as in Flink
    batch, indices = decoder_of(name, ignore_parse_errors=True).deserialize_batch([good, bad, good])
    assert list(indices) == ([0, 1, 2] if is_misfit else [0, 2])
    assert rows_of(batch)[0] == rows_of(batch)[-1] == ("+I", 7, "tea", WEIGHT)


def test_messages_that_are_left_out_are_counted() -> None:
    metrics = MetricGroup()
    decoder = decoder_of("debezium-json", ignore_parse_errors=True).counting(metrics)
    decoder.deserialize_batch([b"{", b'{"op":"x"}', json.dumps(GOLDEN["debezium-json"][0]).encode()])
    assert metrics.counter("numRecordsInErrors").get_count() == 2


@pytest.mark.parametrize("name", ["canal-json", "maxwell-json"])
def test_an_old_field_that_was_null_is_not_one_that_is_missing(name: str) -> None:
    def envelope(old: dict[str, Any]) -> dict[str, Any]:
        new = row(1, "b", 2)
        if name == "canal-json":
            return {"type": "UPDATE", "data": [new], "old": [old]}
        return {"type": "update", "data": new, "old": old}

    rows, _ = decoded(name, envelope({"name": None}), envelope({"weight": 9}), envelope({"name": "a", "weight": None}))
    assert [values for values in rows if values[0] == "-U"] == [
        ("-U", 1, None, Decimal(2)), ("-U", 1, "b", Decimal(9)), ("-U", 1, "a", None),
    ]  # fmt: skip


def test_a_canal_message_has_many_rows() -> None:
    new, old = [row(1, "a", 1), row(2, "b", 2)], [{"name": "x"}, {"weight": 5}]
    rows, indices = decoded(
        "canal-json", {"type": "DELETE", "data": new}, {"type": "CREATE", "data": None, "isDdl": True},
        {"type": "UPDATE", "data": new, "old": old}, {"type": "INSERT", "data": []},
    )  # fmt: skip
    one, two = Decimal(1), Decimal(2)
    assert rows == [
        ("-D", 1, "a", one), ("-D", 2, "b", two), ("-U", 1, "x", one), ("+U", 1, "a", one),
        ("-U", 2, "b", Decimal(5)), ("+U", 2, "b", two),
    ]  # fmt: skip
    assert indices == [0, 0, 2, 2, 2, 2]


def test_canal_reads_the_databases_and_tables_that_are_included() -> None:
    def of(database: str, table: str, number: Any) -> dict[str, Any]:
        return {"type": "INSERT", "data": [row(number, None, 1)], "database": database, "table": table}

    settings = {"database.include": re.compile("shop_.*"), "table.include": re.compile("t|u")}
    messages = [of("shop_1", "t", 1), of("shop_2", "tt", 2), of("other", "t", "no number"), of("shop_2", "u", 4)]
    rows, indices = decoded("canal-json", *messages, **settings)
    assert ([values[1] for values in rows], indices) == ([1, 4], [0, 3])
    option = message_format("canal-json", "t").options["table.include"]
    with pytest.raises(ValueError, match="a regular expression"):
        option.parse("(")


KINDS_OF_METADATA = {
    "STRING": DataTypes.STRING(), "TIMESTAMP_LTZ(3)": DataTypes.TIMESTAMP_LTZ(3),
    "TIMESTAMP_LTZ(6)": DataTypes.TIMESTAMP_LTZ(6), "ARRAY<STRING>": DataTypes.ARRAY(DataTypes.STRING()),
    "MAP<STRING, STRING>": DataTypes.MAP(DataTypes.STRING(), DataTypes.STRING()),
    "MAP<STRING, INT>": DataTypes.MAP(DataTypes.STRING(), DataTypes.INT()),
}  # fmt: skip


def with_metadata(name: str, message: Any, **settings: Any) -> dict[str, Any]:
    """Decode a message with all metadata that the format has."""
    kinds = message_format(name, "t").metadata
    metadata = {f"m_{key}": key for key in kinds}
    columns = tuple(Attribute(f"m_{key}", KINDS_OF_METADATA[kind]) for key, kind in kinds.items())
    decoder = decoder_of(name, (*PRODUCT, *columns), [*metadata, "id"], metadata, **settings)
    batch, _ = decoder.deserialize_batch([json.dumps(message).encode()])
    [values] = without_kinds(batch.data).to_pylist()
    return {key.removeprefix("m_"): str(value) for key, value in values.items()}


def test_metadata_of_debezium() -> None:
    source = {"version": "3.0", "ts_ms": 1700000000123, "db": "shop", "schema": "public", "table": "t", "lsn": 12}
    payload = {"before": None, "after": TEA, "source": source, "op": "r", "ts_ms": 1700000000999}
    wanted = {
        "schema": '{"type":"struct","optional":false}', "ingestion-timestamp": "2023-11-14 22:13:20.999000+00:00",
        "source.timestamp": "2023-11-14 22:13:20.123000+00:00", "source.database": "shop", "source.schema": "public",
        "source.table": "t", "id": "7",
    }  # fmt: skip
    envelope = {"schema": {"type": "struct", "optional": False}, "payload": payload}
    found = with_metadata("debezium-json", envelope, schema_include=True)
    properties = found.pop("source.properties")
    assert found == wanted
    assert "('version', '3.0')" in properties and "('lsn', '12')" in properties
    assert with_metadata("debezium-json", payload)["schema"] == "None"


def test_metadata_of_the_source_without_its_properties_stay_columns() -> None:
    schema = (*PRODUCT, Attribute("db", DataTypes.STRING()), Attribute("at", DataTypes.TIMESTAMP_LTZ(3)))
    metadata = {"db": "source.database", "at": "source.timestamp"}
    source = {"db": "shop", "ts_ms": 5}
    messages = [{**message, "source": source} for message in GOLDEN["debezium-json"]]
    rows, _ = decoded("debezium-json", *messages, schema=schema, names=["at", "id", "db"], metadata=metadata)
    assert [(kind, at.microsecond, number, db) for kind, at, number, db in rows] == [
        (kind, 5000, 7, "shop") for kind in ("+I", "-U", "+U", "-D")
    ]


def test_metadata_of_canal_maxwell_and_ogg() -> None:
    canal = {
        "data": [TEA], "type": "INSERT", "database": "shop", "table": "t", "ts": 1700000000123, "es": 1700000000000,
        "sqlType": {"id": -5, "name": 12}, "pkNames": ["id"],
    }  # fmt: skip
    assert with_metadata("canal-json", canal) == {
        "database": "shop", "table": "t", "sql-type": "[('id', -5), ('name', 12)]", "pk-names": "['id']", "id": "7",
        "ingestion-timestamp": "2023-11-14 22:13:20.123000+00:00", "event-timestamp": "2023-11-14 22:13:20+00:00",
    }  # fmt: skip
    maxwell = {
        "data": TEA, "type": "insert", "database": "shop", "table": "t", "ts": 1700000000,
        "primary_key_columns": ["id"],
    }  # fmt: skip
    assert with_metadata("maxwell-json", maxwell) == {
        "database": "shop", "table": "t", "primary-key-columns": "['id']", "id": "7",
        "ingestion-timestamp": "2023-11-14 22:13:20+00:00",
    }  # fmt: skip
    ogg = {
        "after": TEA, "op_type": "I", "table": "SHOP.T", "primary_keys": ["id"],
        "op_ts": "2026-01-02 03:04:05.000006", "current_ts": "2026-01-02T03:04:06.000007",
    }  # fmt: skip
    assert with_metadata("ogg-json", ogg) == {
        "table": "SHOP.T", "primary-keys": "['id']", "id": "7",
        "ingestion-timestamp": "2026-01-02 03:04:06.000007+00:00",
        "event-timestamp": "2026-01-02 03:04:05.000006+00:00",
    }  # fmt: skip


def test_unknown_metadata_is_an_error() -> None:
    with pytest.raises(SqlError, match="'source.tabel', which 'debezium-json' does not have"):
        decoder_of("debezium-json", metadata={"name": "source.tabel"})
    with pytest.raises(SqlError, match="'json' does not have"):
        decoder_of("json", metadata={"name": "ts"})


WRITTEN = {
    "debezium-json": ('{"before":null,"after":ROW,"op":"c"}', '{"before":ROW,"after":null,"op":"d"}'),
    "canal-json": ('{"data":[ROW],"type":"INSERT"}', '{"data":[ROW],"type":"DELETE"}'),
    "maxwell-json": ('{"data":ROW,"type":"insert"}', '{"data":ROW,"type":"delete"}'),
    "ogg-json": ('{"before":null,"after":ROW,"op_type":"I"}', '{"before":ROW,"after":null,"op_type":"D"}'),
}
PRODUCT_COLUMNS = pyarrow.schema([(column.name, column.type.to_arrow()) for column in PRODUCT])


@pytest.mark.parametrize("name", FORMATS)
def test_rows_are_written_as_insertions_and_deletions(name: str) -> None:
    data = pyarrow.RecordBatch.from_pylist([row(n, f"tea {n}", None) for n in range(4)], PRODUCT_COLUMNS)
    encoder = message_format(name, "t").encoder(PRODUCT, options_of(name))
    kinds = pyarrow.array([0, 1, 2, 3], pyarrow.int8())
    insertion, deletion = WRITTEN[name]
    rows = [f'{{"id":{n},"name":"tea {n}","weight":null}}' for n in range(4)]
    wanted = [[insertion, deletion, insertion, deletion][n].replace("ROW", rows[n]).encode() for n in range(4)]
    assert encoder.serialize_batch(ArrowBatch(with_kinds(data, kinds))) == wanted
    assert encoder.serialize_batch(ArrowBatch(data))[1] == insertion.replace("ROW", rows[1]).encode()


def test_null_fields_may_be_left_out_of_what_is_written() -> None:
    options = options_of("debezium-json", **{"encode.ignore-null-fields": True})
    encoder = message_format("debezium-json", "t").encoder(PRODUCT, options)
    rows = pyarrow.RecordBatch.from_pylist([row(1, None, None)] * 2, PRODUCT_COLUMNS)
    data = with_kinds(rows, pyarrow.array([0, 3], pyarrow.int8()))
    assert encoder.serialize_batch(ArrowBatch(data)) == [
        b'{"after":{"id":1},"op":"c"}', b'{"before":{"id":1},"op":"d"}',
    ]  # fmt: skip


def test_a_table_with_the_schema_of_debezium_cannot_be_written() -> None:
    with pytest.raises(SqlError, match="schema-include"):
        message_format("debezium-json", "t").encoder(PRODUCT, options_of("debezium-json", schema_include=True))


_ROWS = st.builds(row, st.integers(0, 9), st.none() | st.text(max_size=4), st.none() | st.integers(0, 99))


def envelope_of(name: str, operation: str, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    changed = {key: value for key, value in before.items() if value != after[key]}
    both = {"before": None if operation == "i" else before, "after": None if operation == "d" else after}
    data = before if operation == "d" else after
    long = {"i": "insert", "u": "update", "d": "delete"}[operation]
    return {
        "debezium-json": {**both, "op": {"i": "c", "u": "u", "d": "d"}[operation]},
        "ogg-json": {**both, "op_type": operation.upper()},
        "maxwell-json": {"type": long, "data": data, "old": changed},
        "canal-json": {"type": long.upper(), "data": [data], "old": [changed]},
    }[name]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("iud"), _ROWS, _ROWS), max_size=8), st.sampled_from(FORMATS))
def test_batches_are_decoded_as_single_messages_are(changes: list[tuple[str, Any, Any]], name: str) -> None:
    """Nulls, unchanged fields and unusual strings among messages of all sorts."""
    messages, wanted = [], []
    for operation, before, after in changes:
        envelope = envelope_of(name, operation, before, after)
        messages.append(json.dumps(envelope, ensure_ascii=False).encode())
        rows = {"i": [("+I", after)], "u": [("-U", before), ("+U", after)], "d": [("-D", before)]}[operation]
        wanted += [(kind, *values.values()) for kind, values in rows]
    decoder = decoder_of(name)
    assert rows_of(decoder.deserialize_batch(messages)[0]) == wanted
    alone = [rows_of(decoder.deserialize_batch([message])[0]) for message in messages]
    assert [values for rows in alone for values in rows] == wanted
