"""The bytes of logical replication, as PostgreSQL 15 sends them."""

from __future__ import annotations

import pytest

from rayflink.connectors.postgres.logged_rows import LoggedRows
from rayflink.connectors.postgres.pgoutput import (
    Begin,
    Commit,
    Keepalive,
    Other,
    ProtocolError,
    Relation,
    RelationColumn,
    Truncate,
    changed_relation,
    lsn_text,
    parse_keepalive,
    parse_message,
    position_of,
    status_frame,
)

HEAD = b"w" + bytes.fromhex("0000000001505788 0000000001505788 000303fb0677df69")
"""The frame of a message: its position, the end of the log, and the time."""


def message(data: bytes) -> object:
    return parse_message(HEAD + data)


def test_frames_from_a_server():
    begin = bytes.fromhex("42 00000000030f7748 000303fb06728a9a 000002d6")
    assert message(begin) == Begin(51345224, 1795486409976, 726)
    relation = (
        b"R\x00\x00@\x00public\x00t\x00d\x00\x03\x01id\x00\x00\x00\x00\x17\xff\xff\xff\xff\x00a\x00\x00\x00\x00\x19"
        b"\xff\xff\xff\xff\x00b\x00\x00\x00\x06\xa4\x00\n\x00\x06"
    )
    columns = (
        RelationColumn("id", True, 23, -1), RelationColumn("a", False, 25, -1),
        RelationColumn("b", False, 1700, (10 << 16 | 2) + 4),
    )  # fmt: skip
    assert message(relation) == Relation(16384, "public", "t", "d", columns)
    insert = b"I\x00\x00@\x00N\x00\x03t\x00\x00\x00\x011t\x00\x00\x00\x06hello1t\x00\x00\x00\x041.50"
    rows = LoggedRows([HEAD + insert], 3)
    found = [rows.column(place, rows.new).to_pylist() for place in range(3)]
    assert (changed_relation(HEAD + insert), found) == (16384, [[b"1"], [b"hello1"], [b"1.50"]])
    commit = bytes.fromhex("43 00 00000000030f7748 00000000030f7778 000303fb06728a9a")
    assert message(commit) == Commit(51345224, 51345272)


def test_other_messages():
    assert message(b"T\x00\x00\x00\x02\x00\x00\x00@\x00\x00\x00@\x01") == Truncate((16384, 16385))
    assert message(b"Y\x00\x00@\x00public\x00mood\x00") == Other("Y")
    assert message(b"O\x00\x00\x00\x00\x01\x50\x57\x88origin\x00") == Other("O")


@pytest.mark.parametrize(
    "data", [b"", b"Z", b"B\x00", b"C\x00", b"R\x00\x00@\x00public", b"T\x00\x00\x00\x02\x00"]
)  # fmt: skip
def test_what_is_no_message_is_an_error(data):
    with pytest.raises(ProtocolError):
        message(data)


def test_keepalives_and_statuses():
    assert parse_keepalive(bytes.fromhex("6b 0000000001505788 000303fb0672a539 00")) == Keepalive(22042504, False)
    frame = status_frame(22042504, 7, 946_684_800_002, True)
    numbers = b"".join(number.to_bytes(8, "big") for number in (22042504, 7, 7, 2000))
    assert frame == b"r" + numbers + b"\x01"
    assert position_of(lsn_text(2**40 + 17)) == 2**40 + 17
