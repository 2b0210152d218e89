"""The sizes of states in snapshots, by name and key group."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rayflink.state.group_content import decode_group, encode_states
from rayflink.state.keys.key_groups import key_group
from rayflink.state.keys.key_hash import key_hash
from rayflink.state.memory import HashMapBackend
from rayflink.state.rocksdb.block_index import bytes_by_group
from rayflink.state.rocksdb.rocksdb_backend import RocksDBBackend, StateMemory
from rayflink.state.rocksdb.rocksdb_store import RocksDBOptions, RocksDBStore
from rayflink.state.rocksdb.sorted_files import SortedFile, SortedFiles, StoredColumn
from rayflink.state.snapshots import InlineSnapshots, KeyedParts, size_of
from rayflink.state.state_sizes import StateSize
from rayflink.testing.backend_laws.checkpoints import Checkpoints, checkpoint_of

GROUPS = 16
_values = st.recursive(
    st.none() | st.integers() | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner), max_leaves=6,
)  # fmt: skip
_rows = st.lists(st.tuples(st.integers(0, 9), st.none(), st.text(max_size=3), _values), max_size=4)
_tables = st.dictionaries(st.text(st.characters(), max_size=4), st.tuples(st.just("value"), _rows), max_size=3)
_timers = st.dictionaries(st.text(max_size=4), _rows, max_size=2)


@given(_tables, _timers)
def test_a_key_group_is_one_pickle_and_its_bytes_are_those_of_its_states(tables: Any, timers: Any) -> None:
    content = {"tables": tables, "timers": timers}
    data, states = encode_states(content, "a backend")
    assert decode_group(data, "uid") == content
    assert [state.name for state in states] == [*tables, *timers]
    empty, _ = encode_states({"tables": {}, "timers": {}}, "a backend")
    assert sum(state.size_bytes for state in states) == len(data) - len(empty)


def test_objects_that_states_share_and_values_of_many_frames_are_read_back() -> None:
    shared, long = ("a", "b"), os.urandom(200_000)
    rows = [(index, None, index, shared) for index in range(20_000)]
    content = {"tables": {"many": ("value", rows), "long": ("value", [(0, None, 0, long), (1, None, shared, long)])},
               "timers": {"t": [(0, None, shared, 5)]}}  # fmt: skip
    data, (many, large, timers) = encode_states(content, "a backend")
    again = decode_group(data, "uid")
    assert again == content and again["tables"]["long"][1][1][2] is again["tables"]["many"][1][0][3]
    assert large.size_bytes > 200_000 and many.size_bytes > 20_000 > timers.size_bytes
    assert (many.entries, large.entries, timers.entries) == (20_000, 2, 1)


def fill(backend: HashMapBackend | RocksDBBackend, keys: range) -> None:
    values, lists = backend.table(ValueStateDescriptor("total")), backend.table(ListStateDescriptor("log"))
    maps, timers = backend.map_table(MapStateDescriptor("visits")), backend.timers("user-timers/event")
    for key in keys:
        values.put(key, key)
        for number in range(3):
            lists.append(key, "word" * 10)
            maps.put(key, number, b"x" * 100)
        timers.register(key, key)


def by_name(parts: KeyedParts) -> dict[str, StateSize]:
    return {size.name: size for size in parts.sizes}


@pytest.mark.parametrize("name", ["hashmap", "rocksdb"])
def test_sizes_are_exact_where_key_groups_are_written(name: str, tmp_path: Path) -> None:
    rocksdb = RocksDBBackend(range(GROUPS), GROUPS, "uid", tmp_path / "db", StateMemory(8 << 20))
    backend = rocksdb if name == "rocksdb" else HashMapBackend(range(GROUPS), GROUPS)
    fill(backend, range(100))
    capture = backend.capture(1)
    parts = capture.write(InlineSnapshots())
    capture.release()
    sizes = by_name(parts)
    assert {name: size.entries for name, size in sizes.items()} == {
        "total": 100, "log": 300, "visits": 300, "user-timers/event": 100,
    }  # fmt: skip
    assert sizes["visits"].size_bytes > sizes["log"].size_bytes > sizes["total"].size_bytes
    for group, blob in parts.groups.items():
        inside = sum(part.size_bytes for size in parts.sizes for part in size.groups if part.first == group)
        assert 0 < size_of(blob) - inside < 40
    assert all(size.written_bytes == size.size_bytes and not size.is_estimate for size in parts.sizes)
    backend.close()


def test_a_database_tells_its_states_its_hot_key_group_and_what_is_new(tmp_path: Path) -> None:
    checkpoints = Checkpoints()
    backend = RocksDBBackend(range(GROUPS), GROUPS, "uid", tmp_path / "db", StateMemory(100_000))
    fill(backend, range(2_000))
    maps, hot = backend.map_table(MapStateDescriptor("visits")), key_group(key_hash(7), GROUPS)
    for number in range(5_000):
        maps.put(7, number, os.urandom(100))
    first = checkpoint_of(checkpoints, backend)
    assert first.databases
    sizes = by_name(first)
    assert sizes["visits"].written_bytes == pytest.approx(sizes["visits"].size_bytes, abs=GROUPS)
    largest = max(sizes["visits"].groups, key=lambda part: part.size_bytes)
    assert largest.first == hot and largest.size_bytes > sizes["visits"].size_bytes / 2
    assert sizes["visits"].entries == pytest.approx(2_000 * 3 + 5_000, rel=0.05) and sizes["visits"].is_estimate
    assert sizes["total"].entries == pytest.approx(2_000, rel=0.01) and sizes["log"].entries == -1
    whole = sum(size_of(blob) for database in first.databases for name, blob in database.files.items()
                if name.endswith(".sst"))  # fmt: skip
    columns = [size for size in first.sizes if size.is_estimate]
    assert sum(size.size_bytes for size in columns) == pytest.approx(whole, rel=0.01)
    backend.table(ValueStateDescriptor("total")).put(1, 2)
    second = checkpoint_of(checkpoints, backend)
    (before,), (after,) = first.databases, second.databases
    new = sum(size_of(blob) for name, blob in after.files.items()
              if name in after.shared and blob != before.files.get(name))  # fmt: skip
    assert 0 < sum(size.written_bytes for size in second.sizes if size.is_estimate) == new
    assert by_name(second)["visits"].size_bytes > 0
    backend.close()


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd", "snappy"])
def test_the_index_of_a_file_tells_the_bytes_of_each_key_group(compression: str, tmp_path: Path) -> None:
    memory = StateMemory(8 << 20)
    store = RocksDBStore(tmp_path / "db", memory.native, RocksDBOptions(compression=compression))
    rows = {group: 4_000 if group == 5 else 200 for group in range(8)}
    column = store.column("state/x")
    column.write((group.to_bytes(2, "big") + b"key%05d" % key, os.urandom(50))
                 for group, keys in rows.items() for key in range(keys))  # fmt: skip
    column.flush()
    (file,) = (tmp_path / "db" / "db").glob("*.sst")
    shares = bytes_by_group(file)
    assert shares is not None and shares.keys() == rows.keys()
    whole = sum(shares.values())
    for group, keys in rows.items():
        assert shares[group] / whole == pytest.approx(keys / sum(rows.values()), abs=0.02)
    store.close()


def test_a_file_of_another_format_has_no_known_index(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"no table of RocksDB")
    assert bytes_by_group(tmp_path / "file") is None


@pytest.mark.parametrize("length", [[5], [200, 200, 200, 5], [200] * 9 + [5]])
@pytest.mark.parametrize("codec", [0, 1, 4, 7])
def test_a_file_with_a_damaged_index_keeps_no_checkpoint_from_being_written(
    tmp_path: Path, codec: int, length: list[int]
) -> None:
    block = bytes([*length, *range(90, 120), codec])
    places = bytes([1, 0, 0, 0, len(block) - 1]).ljust(41, b"\0")
    magic = (0x88E241B785F4CFF7).to_bytes(8, "little")
    (tmp_path / "000012.sst").write_bytes(block + places + (5).to_bytes(4, "little") + magic)
    files = SortedFiles()
    files.linked(tmp_path, {"000012.sst": SortedFile("state/total", 90, 6, range(2, 4))})
    [size] = files.sizes(tmp_path, [StoredColumn("total", "value", "state/total")], (), range(GROUPS))
    assert [group[:3] for group in size.groups] == [(2, 3, 45), (3, 4, 45)]
