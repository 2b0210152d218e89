"""Snapshots in files: they are read back, files are few, damage is named, and an abort leaves nothing."""

from __future__ import annotations

import errno
import itertools
import threading
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.state.errors import DamagedFileError
from rayflink.state.snapshots import FileSlice, OperatorSnapshot, loaded, stored
from rayflink.state.storage import snapshot_files
from rayflink.state.storage.local_storage import LocalStorage
from rayflink.state.storage.memory_storage import MemoryStorage
from rayflink.state.storage.snapshot_files import SnapshotFileReader, SnapshotFileWriter, SnapshotPlace
from rayflink.state.storage.storage import MissingFileError, Storage, StorageError

CHECKPOINT = SnapshotPlace.of_checkpoint(7, inline_bytes=0)


def writer_to(storage: Storage, place: SnapshotPlace = CHECKPOINT, uploads: int = 2) -> SnapshotFileWriter:
    names = itertools.count()
    return SnapshotFileWriter(storage, place, uploads, lambda: f"file-{next(names)}")


class Refuses(MemoryStorage):
    """A storage that stores every file but the one of a number."""

    def __init__(self, file: int) -> None:
        super().__init__()
        self._name = f"/file-{file}"

    def put_if_absent(self, path: str, data: bytes) -> bool:
        if path.endswith(self._name):
            raise StorageError(f"write {path}", self.url, "No space left on device")
        return super().put_if_absent(path, data)


@pytest.mark.slow
@given(st.lists(st.binary(max_size=30)), st.integers(0, 60), st.sampled_from([0, 3]), st.integers(10, 100))
def test_what_is_put_is_read(parts, inline, uploads, packed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot_files, "PACKED_BYTES", packed)
        storage = MemoryStorage()
        writer = writer_to(storage, SnapshotPlace.of_checkpoint(7, inline), uploads)
        put = writer.put if packed % 2 else lambda part: writer.put_pieces((part[:9], memoryview(part)[9:]))
        blobs = [put(part) for part in parts]
        writer.finish()
    reader = SnapshotFileReader(storage)
    assert [reader.read(blob) for blob in blobs] == parts
    assert sum(len(blob) for blob in blobs if isinstance(blob, bytes)) <= inline
    assert writer.bytes_written == sum(map(len, parts))
    assert {blob.path for blob in blobs if isinstance(blob, FileSlice)} == set(storage.list("chk-7"))
    assert all(len(storage.read(path)) <= max(packed, 30) for path in storage.list())


def test_small_parts_stay_and_larger_ones_share_a_file():
    storage = MemoryStorage()
    writer = writer_to(storage, SnapshotPlace.of_checkpoint(7, inline_bytes=10))
    blobs = [writer.put(bytes(size)) for size in (4, 100, 6, 1, 200)]
    writer.finish()
    assert [blob if isinstance(blob, bytes) else (blob.path, blob.offset, blob.length) for blob in blobs] == [
        bytes(4),
        ("chk-7/file-0", 0, 100),
        bytes(6),
        ("chk-7/file-0", 100, 1),
        ("chk-7/file-0", 101, 200),
    ]
    assert storage.list() == ["chk-7/file-0"]


def test_a_file_is_stored_when_it_is_full(monkeypatch):
    monkeypatch.setattr(snapshot_files, "PACKED_BYTES", 100)
    storage = MemoryStorage()
    writer = writer_to(storage, uploads=0)
    blobs = [writer.put(bytes(size)) for size in (60, 40, 1, 500, 5)]
    assert storage.list() == ["chk-7/file-0", "chk-7/file-1", "chk-7/file-2"]
    writer.finish()
    assert [blob.path[-1] for blob in blobs if isinstance(blob, FileSlice)] == ["0", "0", "1", "2", "3"]


@pytest.mark.parametrize("uploads", [0, 2])
def test_files_go_where_they_are_shared_or_not(monkeypatch, tmp_path: Path, uploads: int):
    monkeypatch.setattr(snapshot_files, "_PACKED_FILE_BYTES", 999)
    sst, current = tmp_path / "000012.sst", tmp_path / "CURRENT"
    sst.write_bytes(b"rows")
    current.write_bytes(b"MANIFEST")
    storage = LocalStorage(tmp_path / "base")
    writer = writer_to(storage, SnapshotPlace.of_checkpoint(7, inline_bytes=100), uploads)
    shared, inline = writer.put_file(sst, shared=True), writer.put_file(current, shared=False)
    current.write_bytes(bytes(1000))
    own = writer.put_file(current, shared=False)
    writer.finish()
    assert inline == b"MANIFEST" and isinstance(shared, FileSlice) and isinstance(own, FileSlice)
    assert (shared.path, own.path) == ("shared/file-0", "chk-7/file-1")
    reader = SnapshotFileReader(storage)
    assert (reader.read(shared), reader.read(own)) == (b"rows", bytes(1000))
    assert writer.bytes_written == 4 + 8 + 1000
    assert (writer.checkpoint_id, writer.is_savepoint) == (7, False)


def test_small_files_that_are_not_shared_are_in_one(tmp_path: Path):
    local = tmp_path / "CURRENT"
    local.write_bytes(b"MANIFEST")
    storage = MemoryStorage()
    writer = writer_to(storage)
    blobs = [writer.put_file(local, shared=False), writer.put_file(local, shared=False)]
    writer.finish()
    assert storage.list() == ["chk-7/file-0"]
    assert [SnapshotFileReader(storage).read(blob) for blob in blobs] == [b"MANIFEST"] * 2


def test_a_savepoint_shares_nothing(monkeypatch, tmp_path: Path):
    monkeypatch.setattr(snapshot_files, "_PACKED_FILE_BYTES", 3)
    sst = tmp_path / "000012.sst"
    sst.write_bytes(b"rows")
    storage = MemoryStorage()
    writer = writer_to(storage, SnapshotPlace.of_savepoint(3, inline_bytes=0))
    writer.put_file(sst, shared=True)
    writer.put(b"group")
    writer.finish()
    assert storage.list() == ["file-0", "file-1"] and (writer.checkpoint_id, writer.is_savepoint) == (3, True)


def test_a_whole_operators_snapshot_comes_back():
    given = OperatorSnapshot({1: b"one", 2: b"two" * 50}, {"l": ("split", (b"a", b"b" * 99))}, {1: b"raw"})
    storage = MemoryStorage()
    writer = writer_to(storage, SnapshotPlace.of_checkpoint(7, inline_bytes=8))
    written = stored(given, writer)
    writer.finish()
    back = loaded(written, SnapshotFileReader(storage))
    assert (dict(back.keyed), back.lists, dict(back.raw_keyed)) == (given.keyed, given.lists, given.raw_keyed)
    assert written.size_bytes == writer.bytes_written


def test_several_files_are_stored_at_the_same_time(tmp_path: Path):
    together = threading.Barrier(3)

    class Meets(MemoryStorage):
        def upload(self, path: str, local: Path) -> None:
            together.wait(timeout=30)
            super().upload(path, local)

    local = tmp_path / "local"
    local.write_bytes(b"1")
    writer = writer_to(storage := Meets(), uploads=3)
    for _ in range(6):
        writer.put_file(local, shared=True)
    writer.finish()
    assert len(storage.list("shared")) == 6
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("snapshot-upload")]


def test_no_more_than_the_allowed_number_is_under_way(tmp_path: Path):
    class Counts(MemoryStorage):
        under_way = most = 0
        lock = threading.Lock()

        def upload(self, path: str, local: Path) -> None:
            with self.lock:
                self.under_way += 1
                self.most = max(self.most, self.under_way)
            super().upload(path, local)
            with self.lock:
                self.under_way -= 1

    local = tmp_path / "local"
    local.write_bytes(b"1")
    writer = writer_to(storage := Counts(), uploads=2)
    for _ in range(50):
        writer.put_file(local, shared=True)
    writer.finish()
    assert 1 <= storage.most <= 2 and len(storage.list()) == 50


@pytest.mark.parametrize("uploads", [0, 2])
def test_a_storage_that_refuses_is_an_error_at_the_end_at_latest(monkeypatch, uploads: int):
    monkeypatch.setattr(snapshot_files, "PACKED_BYTES", 10)
    storage = Refuses(2)
    writer = writer_to(storage, uploads=uploads)
    with pytest.raises(StorageError, match="could not write chk-7/file-2: No space left"):
        for _ in range(3):
            writer.put(bytes(10))
        writer.finish()
    # With several uploads the one before may be under way still.
    assert set(storage.list()) | ({"chk-7/file-1"} if uploads else set()) == {"chk-7/file-0", "chk-7/file-1"}
    assert writer.abort() == () and storage.list() == []


@pytest.mark.parametrize("uploads", [0, 2])
def test_an_abort_deletes_what_was_stored_and_nothing_else(monkeypatch, tmp_path: Path, uploads: int):
    monkeypatch.setattr(snapshot_files, "PACKED_BYTES", 10)
    local = tmp_path / "local"
    local.write_bytes(b"1")
    storage = MemoryStorage()
    storage.put_if_absent("shared/of another", b"1")
    writer = writer_to(storage, uploads=uploads)
    for _ in range(4):
        writer.put(bytes(8))
        writer.put_file(local, shared=True)
    assert writer.abort() == () and storage.list() == ["shared/of another"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("snapshot-upload")]


def test_an_abort_names_what_it_cannot_delete(tmp_path: Path):
    class Keeps(MemoryStorage):
        def delete(self, path: str) -> None:
            raise StorageError(f"delete {path}", self.url, "Read-only file system")

    writer = writer_to(Keeps())
    writer.put(bytes(10))
    writer.finish()
    assert writer.abort() == ("chk-7/file-0",)


def test_a_name_that_is_taken_is_an_error():
    storage = MemoryStorage()
    storage.put_if_absent("chk-7/file-0", b"of another")
    writer = writer_to(storage, uploads=0)
    writer.put(b"mine")
    with pytest.raises(StorageError, match="a file of that name exists already"):
        writer.finish()


def test_a_local_file_that_is_missing_is_an_error(tmp_path: Path):
    with pytest.raises(StorageError, match=f"could not take the file {tmp_path}/nowhere: .*No such file"):
        writer_to(MemoryStorage()).put_file(tmp_path / "nowhere", shared=True)


def damaged_read(storage: LocalStorage, part: FileSlice, tmp_path: Path) -> str:
    """Return the error of reading a part, which is the same when copying it."""
    reader, local = SnapshotFileReader(storage), tmp_path / "copy"
    with pytest.raises(DamagedFileError) as read:
        reader.read(part)
    with pytest.raises(DamagedFileError) as copied:
        reader.copy(part, local)
    assert str(read.value) == str(copied.value) and not local.exists()
    return str(read.value)


def test_damage_names_the_file_the_bytes_and_both_checksums(tmp_path: Path):
    storage = LocalStorage(tmp_path / "base")
    writer = writer_to(storage)
    first, second = writer.put(b"a" * 100), writer.put(b"b" * 100)
    writer.finish()
    assert isinstance(first, FileSlice) and isinstance(second, FileSlice)
    file = tmp_path / "base" / second.path
    data = bytearray(file.read_bytes())
    data[150] ^= 1
    file.write_bytes(data)
    text = damaged_read(storage, second, tmp_path)
    for part in (str(file), "bytes 100 to 200", f"wanted checksum {second.checksum:08x}", "older checkpoint"):
        assert part in text
    assert SnapshotFileReader(storage).read(first) == b"a" * 100
    file.write_bytes(data[:120])
    assert "hold 20 bytes, wanted 100 bytes" in damaged_read(storage, second, tmp_path)


def test_a_file_that_is_missing_is_an_error_and_leaves_no_copy(tmp_path: Path):
    reader = SnapshotFileReader(MemoryStorage())
    part = FileSlice("chk-7/gone", 0, 10, 0)
    with pytest.raises(MissingFileError, match="chk-7/gone"):
        reader.read(part)
    with pytest.raises(MissingFileError, match="chk-7/gone"):
        reader.copy(part, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_part_is_copied_in_pieces(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(snapshot_files, "_READ_AT_ONCE", 7)
    storage = MemoryStorage()
    writer = writer_to(storage)
    writer.put(b"before")
    part, empty = writer.put(bytes(range(100))), writer.put(b"")
    writer.put(b"behind")
    writer.finish()
    reader = SnapshotFileReader(storage)
    for number, (blob, wanted) in enumerate(((part, bytes(range(100))), (empty, b""), (b"inline", b"inline"))):
        reader.copy(blob, tmp_path / str(number))
        assert (tmp_path / str(number)).read_bytes() == wanted


def test_a_copy_onto_a_file_is_an_error_and_leaves_it(tmp_path: Path):
    local = tmp_path / "there"
    local.write_bytes(b"mine")
    with pytest.raises(StorageError, match="could not copy a file to .*File exists"):
        SnapshotFileReader(MemoryStorage()).copy(b"other", local)
    assert local.read_bytes() == b"mine"


def test_a_copy_that_does_not_fit_leaves_no_file(monkeypatch, tmp_path: Path):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    reader = SnapshotFileReader(MemoryStorage())
    monkeypatch.setattr(reader, "_copy", full)
    with pytest.raises(StorageError, match="No space left"):
        reader.copy(b"data", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


class CountsReads(MemoryStorage):
    reads = 0

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        self.reads += 1
        return super().read(path, offset, length)


def test_parts_that_follow_one_another_are_read_ahead(monkeypatch):
    monkeypatch.setattr(snapshot_files, "_READ_AHEAD", 1_000)
    storage = CountsReads()
    writer = writer_to(storage)
    parts = [bytes([number]) * (10 + number % 3) for number in range(250)]
    blobs = [writer.put(part) for part in parts]
    large = writer.put(bytes(2_000))
    writer.finish()
    reader = SnapshotFileReader(storage)
    assert [reader.read(blob) for blob in blobs] == parts
    assert storage.reads < 10
    assert reader.read(large) == bytes(2_000)
    assert [reader.read(blob) for blob in blobs[::-7]] == parts[::-7]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 3))))
def test_parts_may_be_read_in_any_order(reads):
    storage = MemoryStorage()
    writers = {number: writer_to(storage, SnapshotPlace.of_checkpoint(number, 0), 0) for number in (1, 2, 3)}
    blobs = {
        number: [writer.put(b"%d:%d" % (number, part)) for part in range(21)] for number, writer in writers.items()
    }
    for writer in writers.values():
        writer.finish()
    reader = SnapshotFileReader(storage)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot_files, "_READ_AHEAD", 13)
        for part, number in reads:
            for following in blobs[number][part : part + 3]:
                place = blobs[number].index(following)
                assert reader.read(following) == b"%d:%d" % (number, place)


@given(st.lists(st.sampled_from([0, 1, 4_999, 5_000, 5_001, 12_345]), max_size=5), st.sampled_from([6_000, 1 << 20]))
def test_the_checksum_of_pieces_is_that_of_their_bytes(lengths: list[int], at_once: int) -> None:
    pieces = [bytes([number + 1]) * length for number, length in enumerate(lengths)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot_files, "_CHECKED_AT_ONCE", at_once)
        assert snapshot_files.checksum_of_pieces(list(map(memoryview, pieces))) == zlib.crc32(b"".join(pieces))
