"""Messages as rows of a table: keys, values, metadata, changes and tombstones, by columns."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from rayflink.common.connector_base.malformed_records import MalformedRecords
from rayflink.connectors.kafka import kafka_decoding
from rayflink.connectors.kafka.kafka_records import KafkaRecords, ValueOnlySchema
from rayflink.table import DataTypes
from rayflink.table.connectors.kafka.message_columns import MessageColumns
from rayflink.table.connectors.kafka.table_source import KafkaTableSource
from rayflink.table.connectors.messages.format_options import choose_format
from rayflink.table.plan.logical import Attribute
from rayflink.table.types import DataType


@dataclass
class Sent:
    """A message as the client library gives it out, of partition 3 of the topic t."""

    number: int
    sent_value: bytes | None
    sent_key: bytes | None = None
    sent_headers: Sequence[tuple[str, bytes | None]] | None = None
    stamp: tuple[int, int] | None = None

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 100 + self.number

    def timestamp(self) -> tuple[int, int]:
        return self.stamp or (1, 1_000 * self.number)

    def key(self) -> bytes | None:
        return self.sent_key

    def value(self) -> bytes | None:
        return self.sent_value

    def headers(self) -> Sequence[tuple[str, bytes | None]] | None:
        return self.sent_headers

    def leader_epoch(self) -> int | None:
        return 7 if self.number else None

    def error(self) -> None:
        return None


def sent(values: Sequence[bytes | None], keys: Sequence[bytes | None] = ()) -> list[Sent]:
    pairs = zip(values, keys or [None] * len(values), strict=True)
    return [Sent(number, value, key) for number, (value, key) in enumerate(pairs)]


COLUMNS = {
    "id": DataTypes.INT(), "name": DataTypes.STRING(), "o": DataTypes.BIGINT(), "p": DataTypes.INT(),
    "at": DataTypes.TIMESTAMP(3), "kind": DataTypes.STRING(), "h": DataTypes.MAP(DataTypes.STRING(), DataTypes.BYTES()),
    "e": DataTypes.INT(), "topic": DataTypes.STRING(),
}  # fmt: skip
METADATA = (
    ("o", "offset"), ("p", "partition"), ("at", "timestamp"), ("kind", "timestamp-type"), ("h", "headers"),
    ("e", "leader-epoch"), ("topic", "topic"),
)  # fmt: skip


def table(
    names: Sequence[str],
    key: tuple[str, ...] = (),
    value: tuple[str, ...] = ("id", "name"),
    upserts: bool = False,
    columns: dict[str, DataType] | None = None,
    prefix: str = "",
    value_format: str = "json",
    zone: str = "UTC",
) -> KafkaTableSource:
    schema = tuple(Attribute(name, kind) for name, kind in (columns or COLUMNS).items())
    keys = choose_format("t", "json", {}) if key else None
    places = MessageColumns(schema, key, value, METADATA if columns is None else (), prefix)
    form = choose_format("t", value_format, {})
    source = KafkaTableSource("t", ("t",), None, (), places, tuple(names), keys, form, zone=zone)
    return replace(source, key=key) if upserts else source


def rows(source: KafkaTableSource, batch: list[Sent]) -> tuple[list[tuple[Any, ...]], Any]:
    decoder = pickle.loads(pickle.dumps(source.decoder()))
    if isinstance(decoder, ValueOnlySchema):
        decoded, indices = decoder.schema.deserialize_batch([message.value() for message in batch])
    else:
        decoded, indices = decoder.deserialize_batch(KafkaRecords(batch))
    return [tuple(row.values()) for row in decoded.data.to_pylist()], indices


def encoded(*values: object) -> list[bytes | None]:
    return [None if value is None else json.dumps(value).encode() for value in values]


def test_values_and_metadata_become_columns_in_the_order_wanted() -> None:
    batch = sent(encoded({"id": 1, "name": "a"}, {"id": 2}))
    batch[0].sent_headers = [("x", b"1"), ("x", b"2")]
    found, indices = rows(table(("o", "name", "h", "p", "at", "kind", "e", "topic")), batch)
    assert indices is None
    assert found == [
        (100, "a", [("x", b"2")], 3, datetime(1970, 1, 1), "CreateTime", None, "t"),
        (101, None, [], 3, datetime(1970, 1, 1, 0, 0, 1), "CreateTime", 7, "t"),
    ]


def test_a_timestamp_is_the_time_of_day_in_the_zone_and_negative_ones_are_null() -> None:
    batch = sent(encoded({"id": 1}, {"id": 2}))
    batch[1].stamp = (0, -1)
    assert rows(table(("at",), zone="Asia/Tokyo"), batch)[0] == [(datetime(1970, 1, 1, 9),), (None,)]
    instants = {"id": DataTypes.INT(), "at": DataTypes.TIMESTAMP_LTZ(3)}
    source = table(("at",), columns=instants, value=("id",))
    source = replace(source, columns=MessageColumns(source.columns.schema, (), ("id",), METADATA[2:3]))
    assert rows(source, batch)[0][0] == (datetime(1970, 1, 1, tzinfo=timezone.utc),)


def test_messages_without_a_value_have_no_row() -> None:
    batch = sent(encoded({"id": 1}, None, [{"id": 2}, {"id": 3}], None))
    assert rows(table(("id", "o")), batch) == ([(1, 100), (2, 102), (3, 102)], [0, 2, 2])
    assert rows(table(("id", "o")), sent([None, None])) == ([], [])


@pytest.mark.parametrize(
    ("names", "upserts", "skipped"), [(("id", "o"), False, 1), (("id",), False, 1), (("id",), True, 0)]
)
def test_messages_that_have_no_row_as_they_have_no_value_are_counted(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], upserts: bool, skipped: int
) -> None:
    monkeypatch.setattr(kafka_decoding, "library", lambda: SimpleNamespace(Message=Sent))
    source = table(names, key=("id",) if upserts else (), upserts=upserts)
    decoder = kafka_decoding.RecordDecoder(source.decoder(), MalformedRecords.fail(), None)
    batch = sent(encoded({"id": 1}, None), encoded({"id": 1}, {"id": 1}))
    assert sum(len(run.element) for run in decoder.decode("t", 3, batch)) == 2 - skipped
    assert decoder.tombstones.get_count() == skipped


def test_rows_without_columns_are_counted() -> None:
    decoded, _ = table(()).decoder().deserialize_batch(KafkaRecords(sent(encoded({"id": 1}, None, {"id": 3}))))
    assert len(decoded) == 2
    assert rows(table(("p",)), sent(encoded({"id": 1}, None)))[0] == [(3,)]


def test_key_columns_are_read_from_the_key_without_their_prefix() -> None:
    columns = {"k_id": DataTypes.INT(), "id": DataTypes.INT(), "name": DataTypes.STRING()}
    source = table(("name", "k_id", "id"), ("k_id",), ("id", "name"), columns=columns, prefix="k_")
    batch = sent(encoded({"id": 1, "name": "a"}, {"id": 2}, {"id": 3}), encoded({"id": 10}, None, {"id": 30}))
    assert rows(source, batch)[0] == [("a", 10, 1), (None, None, 2), (None, 30, 3)]
    assert rows(source, sent(encoded({"id": 1})))[0] == [(None, None, 1)]


def test_a_column_in_key_and_value_is_read_from_the_value() -> None:
    batch = sent(encoded({"id": 1, "name": "a"}), [b"this is no json"])
    assert rows(table(("id", "name"), ("id",)), batch)[0] == [(1, "a")]


def test_upserts_replace_rows_and_tombstones_delete_them() -> None:
    values = encoded(None, {"name": "a"}, {"name": "b"}, None)
    batch = sent(values, encoded({"id": 1}, {"id": 2}, {"id": 3}, {"id": 2}))
    expected = [(None, 1, 100, 3), ("a", 2, 101, 2), ("b", 3, 102, 2), (None, 2, 103, 3)]
    found, indices = rows(table(("name", "id", "o"), ("id",), ("name",), upserts=True), batch)
    assert found == expected and indices == [0, 1, 2, 3]
    whole = sent(encoded(None, {"id": 2, "name": "a"}), encoded({"id": 1}, {"id": 9}))
    assert rows(table(("id", "name"), ("id",), upserts=True), whole)[0] == [(1, None, 3), (2, "a", 2)]
    assert rows(table(("id", "name"), ("id",), upserts=True), sent([None], encoded({"id": 1})))[0] == [(1, None, 3)]


def test_an_upsert_without_a_key_is_malformed() -> None:
    source = table(("id", "name"), ("id",), upserts=True)
    with pytest.raises(ValueError, match="has no key, by which it replaces a row"):
        rows(source, sent(encoded({"id": 1, "name": "a"})))


def test_metadata_of_the_value_come_with_its_rows() -> None:
    columns = {"id": DataTypes.INT(), "ts": DataTypes.TIMESTAMP_LTZ(3), "o": DataTypes.BIGINT()}
    source = table(("ts", "o", "id"), columns=columns, value=("id",), value_format="debezium-json")
    metadata = ("ts", "value.source.timestamp"), ("o", "offset")
    source = replace(source, columns=MessageColumns(source.columns.schema, (), ("id",), metadata))
    change = {"before": {"id": 1}, "after": {"id": 2}, "op": "u", "source": {"ts_ms": 5000}}
    moment = datetime(1970, 1, 1, 0, 0, 5, tzinfo=timezone.utc)
    assert rows(source, sent(encoded(None, change))) == ([(moment, 101, 1, 1), (moment, 101, 2, 2)], [1, 1])


BID = DataTypes.ROW([("a", DataTypes.INT()), ("b", DataTypes.INT())])
EVENT = DataTypes.ROW([("id", DataTypes.INT()), ("bid", BID)])
FEWER = DataTypes.ROW([("bid", DataTypes.ROW([("b", DataTypes.INT())]))])


def test_fields_of_rows_that_no_query_reads_are_not_decoded() -> None:
    source = table(["event"], value=("event",), columns={"event": EVENT}).narrowed({"event": FEWER})
    assert source is not None and source.pushed() == ("project=[event.bid.b]", "start=[group-offsets]")
    batch = sent(encoded({"event": {"id": "no number", "bid": {"a": [], "b": 5}}}, {"event": None}, {}))
    assert rows(source, batch) == ([({"bid": {"b": 5}},), (None,), (None,)], None)
    assert source.narrowed({"event": EVENT}).pushed() == ("start=[group-offsets]",)


def test_rows_stay_whole_in_keys_and_in_formats_without_nested_projection() -> None:
    in_key = table(["event"], ("event",), ("event", "n"), columns={"event": EVENT, "n": DataTypes.INT()})
    assert in_key.narrowed({"event": FEWER}) is None
    avro = table(["event"], value=("event",), columns={"event": EVENT}, value_format="avro")
    assert avro.narrowed({"event": FEWER}) is None
