"""Writes while a checkpoint's files are made: readable at once, not in the files, and on disk later."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from rayflink.state.rocksdb.column_family import ColumnFamily
from rayflink.state.rocksdb.rocksdb_store import RocksDBMemory, RocksDBStore
from rayflink.state.rocksdb.write_overlay import WriteOverlay


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RocksDBStore]:
    memory = RocksDBMemory(4 << 20)
    store = RocksDBStore(tmp_path / "store", lambda: memory)
    yield store
    store.close()
    memory.close()


def row(number: int) -> bytes:
    return number.to_bytes(2, "big")


class Model:
    """A column family, and a dict that must have the same rows."""

    def __init__(self, column: ColumnFamily, seed: int) -> None:
        self.column, self.random = column, random.Random(seed)
        self.rows: dict[bytes, bytes] = {}

    def change(self) -> None:
        draw = self.random.randrange
        puts = {row(draw(300)): row(draw(1000)) for _ in range(draw(20))}
        deletes = [row(draw(300)) for _ in range(draw(5))]
        self.column.write(puts.items(), deletes)
        for gone in deletes:
            self.rows.pop(gone, None)
        self.rows |= puts
        if draw(3) == 0:
            start = draw(300)
            stop = start + draw(60)
            self.column.delete_range(row(start), row(stop))
            self.rows = {name: value for name, value in self.rows.items() if not row(start) <= name < row(stop)}

    def check(self) -> None:
        names = [row(number) for number in range(400)]
        assert self.column.read_all(names) == [self.rows.get(name) for name in names]
        one = row(self.random.randrange(300))
        assert self.column.read(one) == self.rows.get(one)
        assert list(self.column.scan(b"")) == sorted(self.rows.items())
        start = row(self.random.randrange(300))
        wanted = [pair for pair in sorted(self.rows.items()) if pair[0] >= start and pair[0][:1] == b"\1"]
        assert list(self.column.scan(b"\1", start)) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_column_has_the_same_rows_whether_writes_wait_or_not(store: RocksDBStore, seed: int) -> None:
    model = Model(store.column("state/s"), seed)
    for turn in range(6):
        for _ in range(model.random.randrange(4) if turn else 0):
            model.change()
        until: Future[Path] = Future()
        model.column.overlay_until(until)
        for _ in range(model.random.randrange(6)):
            model.change()
            model.check()
        before = next(scan_rows := model.column.scan(b""), None)
        until.set_result(Path())
        rows = sorted(model.rows.items())
        while not model.column.is_drained:
            model.check()
            model.column.drain_some()
            model.change()
            model.check()
        assert [*([] if before is None else [before]), *scan_rows] == rows, "a scan is of its first moment"
        model.check()


def test_a_deleted_range_hides_what_is_on_disk_and_not_what_is_written_after_it(store: RocksDBStore) -> None:
    column = store.column("state/s")
    column.write((row(number), b"before") for number in range(5))
    column.overlay_until(Future[Path]())
    column.write([(row(1), b"in front of it")])
    column.delete_range(row(1), row(4))
    column.write([(row(2), b"after it")], [row(4)])
    assert [column.read(row(number)) for number in range(5)] == [b"before", None, b"after it", None, None]


def test_of_many_held_rows_some_are_written_at_a_time(store: RocksDBStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rayflink.state.rocksdb.column_family.WRITE_ROWS", 10)
    column, until = store.column("state/s"), Future[Path]()
    column.write([(row(1), b"before")])
    column.overlay_until(until)
    column.write((row(number), b"held") for number in range(100))
    until.set_result(Path())
    writes = 0
    while not column.is_drained:
        column.write([(row(50), b"last"), (row(200 + writes), b"new")], [row(20)])
        assert column.read(row(50)) == b"last" and column.read(row(20)) is None
        writes += 1
    assert writes == 10
    found = dict(column.scan(b""))
    assert found == {row(n): b"held" for n in range(100) if n != 20} | {row(50): b"last"} | {
        row(200 + number): b"new" for number in range(writes)
    }


def test_who_writes_faster_than_the_disk_waits(store: RocksDBStore) -> None:
    waited: list[int] = []

    class Until(Future[Path]):
        def exception(self, timeout: float | None = None) -> None:
            waited.append(len(column._overlay or ()))
            if not self.done():
                self.set_result(Path())

    column = store.column("state/s")
    column.overlay_until(Until())
    for number in range(0, 3000, 100):
        column.write((row(number + at), bytes(500)) for at in range(100))
    assert len(waited) == 1 and 600 < waited[0] <= store.max_overlay_bytes // 500


def test_columns_share_what_may_wait(store: RocksDBStore) -> None:
    class Until(Future[Path]):
        def exception(self, timeout: float | None = None) -> None:
            if not self.done():
                self.set_result(Path())

    columns = [store.column(f"state/{number}") for number in range(16)]
    for column in columns:
        column.overlay_until(Until())
    most = 0
    for number in range(0, 1_000, 20):
        for column in columns:
            column.write((row(number + at), bytes(500)) for at in range(20))
            most = max(most, sum(0 if one._overlay is None else one._overlay.bytes for one in columns))
    assert 1 << 20 < most < 3 << 20, "as much as all memtables may take, which is 2 MiB, and a write of each"
    store.drain()
    assert not store.overlaid


def test_deleted_ranges_that_meet_become_one() -> None:
    overlay = WriteOverlay()
    for start, stop in ((5, 10), (20, 30), (10, 12), (28, 40), (1, 2), (0, 50), (60, 61)):
        overlay.delete_range(row(start), row(stop))
    assert overlay.pop_ranges() == [(row(0), row(50)), (row(60), row(61))] and overlay.pop_ranges() == []
