"""`protobuf`: fields as columns, defaults and NULL, and what cannot be."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow
import pytest

from rayflink.common.connector_base.malformed_records import MalformedMessage, MalformedRecords
from rayflink.common.connector_base.message_decoder import MessageDecoder
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import ArrowBatch
from rayflink.table import DataTypes, SqlError
from rayflink.table.connectors.messages.known_formats import message_format
from rayflink.table.plan.logical import Attribute, Schema
from tests.table.connectors.messages.order_messages import Order, Place

T = DataTypes
PLACE = T.ROW([T.FIELD("city", T.STRING()), T.FIELD("zip", T.INT())])
KINDS = {
    "id": T.BIGINT().not_null(), "note": T.STRING(), "price": T.DOUBLE(), "raw": T.BYTES(), "color": T.STRING(),
    "paid": T.BOOLEAN(), "tags": T.ARRAY(T.STRING()), "place": PLACE, "stops": T.ARRAY(PLACE),
    "counts": T.MAP(T.STRING(), T.BIGINT()), "small": T.BIGINT(), "share": T.FLOAT(),
}  # fmt: skip
SCHEMA: Schema = tuple(Attribute(name, kind) for name, kind in KINDS.items())
CLASS = "tests.table.connectors.messages.order_messages.Order"
FULL = Order(
    id=5, note="tea", price=0.5, raw=b"\xff", color=2, paid=True, tags=["a", "b"], place=Place(city="Bonn", zip=1),
    stops=[Place(zip=2), Place(city="")], counts={"x": 7}, small=2**32 - 1, share=0.25,
)  # fmt: skip
ROW: dict[str, Any] = {
    "id": 5, "note": "tea", "price": 0.5, "raw": b"\xff", "color": "GREEN", "paid": True, "tags": ["a", "b"],
    "place": {"city": "Bonn", "zip": 1}, "stops": [{"city": None, "zip": 2}, {"city": "", "zip": 0}],
    "counts": [("x", 7)], "small": 2**32 - 1, "share": 0.25,
}  # fmt: skip
EMPTY: dict[str, Any] = {
    "id": 0, "note": None, "price": None, "raw": b"", "color": "UNKNOWN", "paid": False, "tags": [], "place": None,
    "stops": [], "counts": [], "small": 0, "share": 0.0,
}  # fmt: skip


def options_of(**given: Any) -> dict[str, Any]:
    options = {key: option.default for key, option in message_format("protobuf", "t").options.items()}
    return {**options, "message-class-name": CLASS, **{key.replace("_", "-"): value for key, value in given.items()}}


def decoder_of(names: list[str] | None = None, **given: Any) -> Any:
    form = message_format("protobuf", "t")
    decoder = form.decoder(SCHEMA, list(KINDS) if names is None else names, options_of(**given))
    return pickle.loads(pickle.dumps(decoder))


def test_messages_become_columns() -> None:
    messages = [FULL.SerializeToString(), Order().SerializeToString()]
    found, indices = decoder_of().deserialize_batch(messages)
    assert found.data.to_pylist() == [ROW, EMPTY]
    assert indices is None
    some, indices = decoder_of(["color", "id"]).deserialize_batch([None, messages[0]])
    assert (some.data.to_pylist(), indices) == ([{"color": "GREEN", "id": 5}], [1])
    assert decoder_of([]).deserialize_batch(messages)[0].data.num_rows == 2


def test_fields_that_are_not_set_have_their_defaults_on_demand() -> None:
    found, _ = decoder_of(["note", "price", "place"], read_default_values=True).deserialize_batch([b""])
    assert found.data.to_pylist() == [{"note": "", "price": 0.0, "place": None}]


def test_columns_become_messages() -> None:
    fields = pyarrow.schema([(name, kind.to_arrow()) for name, kind in KINDS.items()])
    nothing = dict.fromkeys(KINDS) | {"id": 0, "tags": ["a", None], "counts": [("n", None)], "stops": [None]}
    data = pyarrow.RecordBatch.from_pylist([ROW, nothing], fields)
    form = message_format("protobuf", "t")
    encoder = pickle.loads(pickle.dumps(form.encoder(SCHEMA, options_of(write_null_string_literal="nil"))))
    first, second = map(Order.FromString, encoder.serialize_batch(ArrowBatch(data)))
    assert first == FULL
    assert second == Order(tags=["a", "nil"], counts={"n": 0}, stops=[Place()])
    assert not second.HasField("note") and not second.HasField("place")


def test_malformed_messages_are_found_or_left_out_and_counted() -> None:
    good, metrics = FULL.SerializeToString(), MetricGroup()
    with pytest.raises(MalformedMessage, match="message 1.*the message is no tests.*Order"):
        MessageDecoder(decoder_of()).decode([good, good[:-2]], lambda index: f"message {index}")
    assert MessageDecoder(decoder_of(), MalformedRecords.skip()).decode([good[:-2], good], str).indices == [1]
    skipping = decoder_of(ignore_parse_errors=True).counting(metrics)
    assert skipping.deserialize_batch([good, good[:-2], good])[1] == [0, 2]
    assert metrics.counter("numRecordsInErrors").get_count() == 1


@pytest.mark.parametrize(
    ("name", "kind", "problem"),
    [
        ("nota", T.STRING(), "has no field 'nota'.*note"), ("id", T.INT(), "'rayflink_tests.Order.id' is int64"),
        ("raw", T.STRING(), "is bytes"), ("tags", T.STRING(), "is repeated"), ("counts", T.STRING(), "is a map"),
        ("place", T.ROW([T.FIELD("town", T.STRING())]), "Place has no field 'town'"), ("paid", T.INT(), "is bool"),
    ],
)  # fmt: skip
def test_columns_that_do_not_fit_are_refused(name: str, kind: Any, problem: str) -> None:
    with pytest.raises(SqlError, match=problem):
        message_format("protobuf", "t").decoder((Attribute(name, kind),), [name], options_of())


@pytest.mark.parametrize("path", ["no_such_module.Order", f"{CLASS}s", "json.JSONDecoder", "Order"])
def test_classes_that_are_none_are_refused(path: str) -> None:
    with pytest.raises(SqlError, match="no class|is no class of Protobuf"):
        message_format("protobuf", "t").decoder(SCHEMA, ["id"], options_of(message_class_name=path))


def test_names_that_an_enum_does_not_have_are_an_error() -> None:
    schema = (Attribute("color", T.STRING()),)
    encoder = message_format("protobuf", "t").encoder(schema, options_of())
    with pytest.raises(ValueError, match="'BLUE' is no name of rayflink_tests.Color, which has UNKNOWN, RED, GREEN"):
        encoder.serialize_batch(ArrowBatch(pyarrow.record_batch({"color": ["BLUE"]})))
