"""The decisions about positions in a stream, and about entries that are gone, without a server."""

from __future__ import annotations

import pytest

from rayflink.common import Row, SimpleStringSchema
from rayflink.connectors.redis.redis_client import RedisServer
from rayflink.connectors.redis.redis_entries import EntrySchema, EntryWriter, FieldSchema, RawEntry
from rayflink.connectors.redis.redis_errors import RedisError, RedisOutage, RedisRefusal, failure_of
from rayflink.connectors.redis.redis_positions import (
    RedisStreamPosition,
    RedisStreamSplit,
    StreamInfo,
    id_before,
    id_of,
)

INFO = StreamInfo(length=3, last_id=(9, 0), added=5, first_id=(7, 0))


@pytest.mark.parametrize(
    ("position", "last_id", "read"),
    [
        (RedisStreamPosition.earliest(), (0, 0), 2),
        (RedisStreamPosition.latest(), (9, 0), 5),
        (RedisStreamPosition.from_id("8-1"), (8, 0), None),
        (RedisStreamPosition.from_timestamp(8), (7, 2**64 - 1), None),
    ],
)
def test_reading_starts_before_the_wanted_entry(position, last_id, read) -> None:
    split = position.start_in("s", INFO, RedisStreamPosition.latest())
    assert (split.last_id, split.entries_read, split.stopping_id) == (last_id, read, (9, 0))
    assert split.is_finished == (last_id == (9, 0))


def test_entries_that_were_trimmed_behind_the_position_are_missing() -> None:
    split = RedisStreamSplit("s", (5, 0), 2)
    assert INFO.missing(split) == 0, "two are gone, and two were read"
    assert StreamInfo(1, (9, 0), 5, (9, 0)).missing(split) == 2
    assert StreamInfo(0, (9, 0), 5).missing(split) == 3, "all are gone"
    assert StreamInfo(1, (9, 0), 5, (9, 0)).missing(RedisStreamSplit("s", (5, 0), None)) is None
    assert StreamInfo(1, (9, 0), 5, (9, 0)).missing(RedisStreamSplit("s", (5, 0), None, False)) == 0, "the program's id"
    assert StreamInfo(1, (9, 0), None, (9, 0)).missing(split) == 0, "an old server does not count"
    assert StreamInfo(1, (4, 0), 1, (4, 0)).is_behind(split)


def test_ids_are_pairs_in_order() -> None:
    assert [id_of("5"), id_of(b"5-3"), id_before((5, 3)), id_before((0, 0))] == [(5, 0), (5, 3), (5, 2), (0, 0)]
    with pytest.raises(RedisError, match="'last' is no id of an entry; write milliseconds-sequence"):
        RedisStreamPosition.from_id("last")


def test_a_field_or_all_fields_make_a_record() -> None:
    entry = RawEntry("s", (1, 2), [b"a", b"x", b"b", b"y", b"a", b"z"])
    assert EntrySchema().deserialize(entry).fields == {"a": b"z", "b": b"y"}
    batch, _ = FieldSchema("b", SimpleStringSchema()).deserialize_batch([entry, RawEntry("s", (1, 3), [b"b", b"w"])])
    assert batch.values == ["y", "w"]
    with pytest.raises(ValueError, match="the entry has no field 'c', found a, b, a"):
        FieldSchema("c", SimpleStringSchema()).deserialize(entry)


def test_rows_and_dicts_make_entries() -> None:
    writer = EntryWriter("", None)
    assert writer.pairs(Row(a=1, b="x")) == ["a", 1, "b", "x"] == writer.pairs({"a": 1, "b": "x"})
    for record, message in (((1, 2), "wanted a row with names or a dict"), ({"a": None}, "of type NoneType"),
                            ({}, "at least one field"), ({"a": True}, "of type bool")):  # fmt: skip
        with pytest.raises(RedisError, match=message):
            writer.pairs(record)


def test_answers_of_the_server_are_outages_or_refusals() -> None:
    kinds = {
        "LOADING Redis is loading": RedisOutage, "READONLY You can't write": RedisOutage, "OOM command": RedisOutage,
        "WRONGTYPE Operation": RedisRefusal, "NOAUTH needed": RedisRefusal, "MOVED 1 h:2": RedisRefusal,
        "ERR unknown": RedisError,
    }  # fmt: skip
    assert {answer: type(failure_of(Exception(answer), "reading", "h:1/0")) for answer in kinds} == kinds
    assert type(failure_of(ConnectionResetError("reset"), "reading", "h:1/0")) is RedisOutage


def test_urls_are_checked_and_shown_without_secrets() -> None:
    server = RedisServer("rediss://me:s3cret@db.example:7000/2?socket_timeout=5")
    assert repr(server) == "RedisServer(db.example:7000/2)"
    for url, message in (("http://h", "is malformed; write redis://"), ("redis://h?decode_responses=1", "remove it")):
        with pytest.raises(RedisError, match=message) as raised:
            RedisServer(url)
        assert "s3cret" not in str(raised.value)
