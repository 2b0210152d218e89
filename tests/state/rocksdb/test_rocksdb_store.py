"""Errors of the disk are named for every operation; errors of a value are not blamed on the disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rayflink.state.errors import SerializationError
from rayflink.state.rocksdb.column_family import ColumnFamily, DatabaseError
from rayflink.state.rocksdb.rocksdb_store import RocksDBMemory, RocksDBStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RocksDBStore]:
    memory = RocksDBMemory(4 << 20)
    store = RocksDBStore(tmp_path / "store", lambda: memory)
    yield store
    store.close()
    memory.close()


class Broken:
    """Rows on a disk that fails."""

    def _fail(self, *given: Any, **named: Any) -> Any:
        raise Exception("IO error: the disk is gone")

    get = items = delete_range = flush = __getitem__ = _fail


@pytest.mark.parametrize(
    "use",
    [
        lambda column: column.read(b"a"),
        lambda column: column.read_all([b"a"]),
        lambda column: list(column.scan(b"")),
        lambda column: column.delete_range(b"a", b"b"),
        lambda column: column.flush(),
    ],
)
def test_every_refusal_names_the_folder_and_the_cause(store: RocksDBStore, use: Any) -> None:
    column = store.column("state/s")
    column.write([(b"a", b"1")])
    rows, column._rows = column._rows, Broken()
    with pytest.raises(DatabaseError, match=f"in {store.folder}: IO error: the disk is gone; look for a full"):
        use(column)
    column._rows = rows


def test_what_is_wrong_with_a_value_is_passed_on(store: RocksDBStore) -> None:
    def puts() -> Iterator[tuple[bytes, bytes]]:
        yield b"a", b"1"
        raise SerializationError("the RocksDB backend", "a value of state 's'", "keep plain data")

    with pytest.raises(SerializationError, match="a value of state 's'"):
        store.column("state/s").write(puts())


def test_states_may_have_any_name(store: RocksDBStore) -> None:
    names = ["default", "a/b", "\0", "\\x00", "\ud800", "../../x", "é" * 300]
    columns: list[ColumnFamily] = [store.column(f"state/{name}") for name in names]
    for number, column in enumerate(columns):
        column.write([(b"row", bytes((number,)))])
    assert [column.read(b"row") for column in columns] == [bytes((number,)) for number in range(len(names))]
