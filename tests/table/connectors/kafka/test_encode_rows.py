"""Rows of a table as messages: keys, values, metadata, partitions, upserts and tombstones, by columns."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest

from rayflink.common.records.batches import ArrowBatch
from rayflink.common.records.row_kinds import with_kinds
from rayflink.connectors.kafka.kafka_messages import ANY_PARTITION, NO_TIMESTAMP, KafkaMessages
from rayflink.table import DataTypes, SqlError
from rayflink.table.connectors.kafka.encode_rows import RowMessages, load_partitioner
from rayflink.table.connectors.kafka.message_columns import MessageColumns
from rayflink.table.connectors.kafka.upsert_buffer import UpsertBuffer
from rayflink.table.connectors.kafka.upsert_rows import as_upserts
from rayflink.table.connectors.messages.format_options import choose_format
from rayflink.table.plan.logical import Attribute
from rayflink.testing import OperatorHarness

COLUMNS = {
    "k_id": DataTypes.INT(), "name": DataTypes.STRING(), "at": DataTypes.TIMESTAMP_LTZ(3),
    "h": DataTypes.MAP(DataTypes.STRING(), DataTypes.BYTES()), "to": DataTypes.STRING(),
}  # fmt: skip
METADATA = {"at": "timestamp", "h": "headers", "to": "topic"}
INSERT, BEFORE, AFTER, DELETE = range(4)


class Context:
    subtask, parallelism = 1, 2

    def partitions_of(self, topic: str) -> Sequence[int]:
        return range(3)


def by_length(row: Any, key: bytes | None, value: bytes | None, topic: str, partitions: Sequence[int]) -> int | None:
    return len(row[1]) if row[1] else None


class ByNothing:
    def open(self, subtask: int, parallelism: int) -> None:
        self.place = subtask

    def partition(self, *row: object) -> int:
        return self.place


def messages(
    rows: dict[str, list[Any]],
    kinds: list[int] | None = None,
    topics: tuple[str, ...] = ("t",),
    partitioner: str = "default",
    upserts: tuple[str, ...] = (),
    zone: str = "UTC",
) -> KafkaMessages:
    schema = tuple(Attribute(name, COLUMNS[name]) for name in rows)
    metadata = tuple((name, key) for name, key in METADATA.items() if name in rows)
    places = MessageColumns(schema, ("k_id",), ("name",), metadata, "k_")
    form = choose_format("t", "json", {})
    key, value = (form.format.encoder(part, form.options) for part in (places.key_schema(), places.value_schema()))
    data = pa.RecordBatch.from_arrays([pa.array(rows[a.name], a.type.to_arrow()) for a in schema], list(rows))
    encoder = RowMessages(places, topics, (key, value), partitioner, upserts, zone)
    batch = ArrowBatch(data if kinds is None else with_kinds(data, kinds))
    return pickle.loads(pickle.dumps(encoder)).encode_batch(batch, Context())


def test_keys_and_values_are_encoded_without_the_prefix() -> None:
    found = messages({"k_id": [1, 2], "name": ["a", None]})
    assert found.topics == "t" and found.partitions is found.timestamps is found.headers is None
    assert [json.loads(key) for key in found.keys or ()] == [{"id": 1}, {"id": 2}]
    assert [json.loads(value or b"") for value in found.values] == [{"name": "a"}, {"name": None}]


def test_metadata_columns_set_the_timestamp_headers_and_topic() -> None:
    moments = [datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc), None]
    rows = {"k_id": [1, 2], "name": ["a", "b"], "at": moments, "h": [[("x", b"1")], None], "to": ["v", "t"]}
    found = messages(rows, topics=("t", "v"))
    assert found.timestamps == [1000, NO_TIMESTAMP] and found.topics == ["v", "t"]
    assert found.headers == [[("x", b"1")], None]
    with pytest.raises(ValueError, match="the topic of a row is 'w', one of the table's, t, v, is wanted"):
        messages({"k_id": [1], "name": ["a"], "to": ["w"]}, topics=("t", "v"))


def test_partitioners_choose_partitions() -> None:
    rows = {"k_id": [1, 2, 3, 4], "name": ["a", "bb", None, "a"]}
    here = f"{__name__}.by_length"
    assert messages(rows, partitioner="fixed").partitions == [1, 1, 1, 1]
    assert messages(rows, partitioner="round-robin").partitions == [1, 2, 0, 1]
    assert messages(rows, partitioner=here).partitions == [1, 2, ANY_PARTITION, 1]
    assert messages(rows, partitioner=f"{__name__}:ByNothing").partitions == [1, 1, 1, 1]
    with pytest.raises(ValueError, match="returned 5; wanted one of the 3 partitions of topic 't'"):
        messages({"k_id": [1], "name": ["aaaaa"]}, partitioner=here)


@pytest.mark.parametrize("path", ["no.such_module", "json.no_such_name", "json.__name__"])
def test_partitioners_that_cannot_be_loaded_are_errors(path: str) -> None:
    with pytest.raises(SqlError, match="'sink.partitioner' is"):
        load_partitioner(path, 0, 1)


def test_deletions_are_tombstones_and_rows_before_updates_are_left_out() -> None:
    rows = {"k_id": [1, 1, 1, 2], "name": ["a", "a", "b", "c"]}
    found = messages(rows, [INSERT, BEFORE, AFTER, DELETE], upserts=("k_id",))
    assert [json.loads(key)["id"] for key in found.keys or ()] == [1, 1, 2]
    assert [value and json.loads(value)["name"] for value in found.values] == ["a", "b", None]
    only = messages({"k_id": [1], "name": ["a"]}, [DELETE], upserts=("k_id",))
    assert only.values == [None]


def test_an_update_whose_row_after_has_another_key_or_is_missing_deletes() -> None:
    rows = pa.record_batch({"k": [1, 2, 3, 4, None, None], "n": [1, 2, 3, 4, 5, 6]})
    changes = with_kinds(rows, [BEFORE, AFTER, BEFORE, INSERT, BEFORE, AFTER])
    assert as_upserts(changes, ["k"]).column("$row_kind").to_pylist() == [DELETE, AFTER, DELETE, INSERT, DELETE, AFTER]
    last = with_kinds(rows.slice(0, 1), [BEFORE])
    assert as_upserts(last, ["k"]).column("$row_kind").to_pylist() == [DELETE]


def change(key: int, name: str, kind: int) -> ArrowBatch:
    return ArrowBatch(with_kinds(pa.record_batch({"k": [key], "n": [name]}), [kind]))


def emitted(harness: OperatorHarness) -> list[tuple[int, str, str]]:
    found = [(row.k, row.n, row.get_row_kind().name) for row in harness.output_values()]
    harness.take()
    return found


def test_the_buffer_emits_the_last_change_of_each_key_when_it_is_full() -> None:
    with OperatorHarness(lambda: UpsertBuffer(["k"], 3, 100)) as harness:
        harness.process_batch(change(1, "a", INSERT))
        harness.process_batch(change(2, "b", INSERT))
        assert emitted(harness) == []
        harness.process_batch(change(1, "a", DELETE))
        assert emitted(harness) == [(2, "b", "INSERT"), (1, "a", "DELETE")]


def test_the_buffer_emits_what_it_has_when_it_is_due_at_a_checkpoint_and_at_the_end() -> None:
    with OperatorHarness(lambda: UpsertBuffer(["k"], 100, 50)) as harness:
        harness.process_batch(ArrowBatch(pa.record_batch({"k": [1, 1], "n": ["a", "b"]})))
        harness.set_processing_time(60)
        assert emitted(harness) == [(1, "b", "INSERT")]
        harness.process_batch(change(1, "c", BEFORE))
        assert emitted(harness) == []
        harness.snapshot()
        assert emitted(harness) == [(1, "c", "DELETE")]
        harness.process_batch(change(1, "d", AFTER))
        harness.end_input()
        assert emitted(harness) == [(1, "d", "UPDATE_AFTER")]
