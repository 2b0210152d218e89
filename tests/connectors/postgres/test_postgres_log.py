"""What the reader of a replication slot makes of its frames, without a server."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pyarrow
import pytest

from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.connectors.cdc.snapshot_enumeration import LogSplit
from rayflink.connectors.postgres import postgres_log
from rayflink.connectors.postgres.pgoutput import Keepalive
from rayflink.connectors.postgres.postgres_cdc_preparation import CdcSettings
from rayflink.connectors.postgres.postgres_cdc_tables import CapturedColumn, CapturedTable, TableChoice
from rayflink.connectors.postgres.postgres_log import PostgresLog
from rayflink.connectors.postgres.replication_connection import ConnectionLost

OID = 16384
COLUMN = CapturedColumn("id", 23, -1, "int4", "integer", None, pyarrow.int32())
TABLE = CapturedTable(OID, "shop", "public", "t", (COLUMN,), ("id",), COLUMN, "d")
SETTINGS = CdcSettings("host=nowhere", TableChoice(), "s", "p")
RELATION = b"R" + struct.pack(">I", OID) + b"public\0t\0d\0\x01\x01id\0" + struct.pack(">Ii", 23, -1)


class ScriptedConnection:
    """A replication connection that receives the given frames, and is lost or quiet behind them."""

    def __init__(self, frames: Iterator[bytes], is_lost_at_end: bool) -> None:
        self._frames, self._is_lost = frames, is_lost_at_end
        self.confirmed = 0

    def next_frame(self) -> bytes | None:
        frame = next(self._frames, None)
        if frame is None and self._is_lost:
            raise ConnectionLost("connection lost")
        return frame

    def wait(self, _seconds: float) -> bool:
        return False

    def send_status_if_due(self) -> None:
        pass

    def answer(self, _keepalive: Keepalive) -> None:
        pass

    def close(self) -> None:
        pass


def message(data: bytes) -> bytes:
    return b"w" + bytes(24) + data


def begin(commit: int) -> bytes:
    return message(b"B" + struct.pack(">QQI", commit, 0, 7))


def commit(position: int) -> bytes:
    return message(b"C\0" + struct.pack(">QQQ", position, position + 8, 0))


def insert(number: int) -> bytes:
    value = str(number).encode()
    return message(b"I" + struct.pack(">I", OID) + b"N\0\x01t" + struct.pack(">I", len(value)) + value)


def keepalive(position: int) -> bytes:
    return b"k" + struct.pack(">QQ", position, 0) + b"\0"


def read_all(
    monkeypatch: pytest.MonkeyPatch, *connections: list[bytes], sizes: list[int] | None = None
) -> tuple[list[int], LogSplit[CapturedTable]]:
    """Read what connections receive, each lost at its end but the last; return the ids and the split behind them.

    Args:
        sizes: takes the number of changes of each item.
    """
    last = len(connections) - 1
    scripts = [ScriptedConnection(iter(frames), number < last) for number, frames in enumerate(connections)]
    unused = iter(scripts)
    monkeypatch.setattr(postgres_log, "ReplicationConnection", lambda *_: next(unused))
    patient = SimpleNamespace(sleep=lambda _seconds: None, monotonic=time.monotonic)
    monkeypatch.setattr(postgres_log, "time", patient)
    split = LogSplit({TABLE.full_name: TABLE}, 1000)
    reader = PostgresLog(SETTINGS, split, MetricGroup())
    ids: list[int] = []
    for _ in range(20):  # more often than there are items and connections
        item = reader.read(0)
        if item is not None:
            split = split.at(item.position, item.transaction, item.skip)
            found = [] if item.changes is None else item.changes.rows["id"].to_pylist()
            ids += found
            if sizes is not None:
                sizes.append(len(found))
    return ids, split


def test_a_transaction_read_again_after_a_keepalive_is_not_emitted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that reads a large transaction again reports positions before its commit meanwhile."""
    monkeypatch.setattr(postgres_log, "_MOST_CHANGES", 3)
    rows = [insert(number) for number in range(8)]
    start = [message(RELATION), begin(5000)]
    ids, split = read_all(monkeypatch, [*start, *rows[:7]], [keepalive(3000), *start, *rows, commit(5000)])
    assert ids == list(range(8))
    assert (split.position, split.transaction, split.skip) == (5008, 0, 0)


def test_a_small_transaction_before_a_large_one_does_not_repeat_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that commits before it, and has no changes of the tables, says nothing of what was emitted of it."""
    monkeypatch.setattr(postgres_log, "_MOST_CHANGES", 3)
    rows = [insert(number) for number in range(5)]
    large = [message(RELATION), begin(5000), *rows]
    ids, _ = read_all(monkeypatch, [*large[:-1]], [begin(4000), commit(4000), *large, commit(5000)])
    assert ids == list(range(5))


def test_a_keepalive_behind_the_last_transaction_moves_the_position(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_log, "_POSITIONS_MS", 0)
    ids, split = read_all(monkeypatch, [message(RELATION), begin(2000), insert(1), commit(2000), keepalive(3000)])
    assert ids == [1]
    assert split.position == 3000


def test_an_item_has_few_changes_where_they_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_log, "_MOST_BYTES", 2 * len(insert(1)))
    sizes: list[int] = []
    rows = [insert(number) for number in range(5)]
    ids, _ = read_all(monkeypatch, [message(RELATION), begin(2000), *rows, commit(2000)], sizes=sizes)
    assert ids == list(range(5))
    assert sizes == [2, 2, 1]
