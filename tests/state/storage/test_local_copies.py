"""Copies of stored files on a node: used while intact, deleted when not needed."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from rayflink.state.snapshots import FileSlice
from rayflink.state.storage.local_copies import LocalCopies
from rayflink.state.storage.memory_storage import MemoryStorage
from rayflink.state.storage.snapshot_files import SnapshotFileReader, SnapshotFileWriter, SnapshotPlace

BYTES = b"rows" * 1000


@pytest.fixture
def copies(tmp_path: Path) -> LocalCopies:
    return LocalCopies(tmp_path / "copies")


def kept(copies: LocalCopies, tmp_path: Path, name: str, checkpoint_id: int = 1) -> FileSlice:
    local = tmp_path / name
    local.write_bytes(BYTES)
    copies.keep(checkpoint_id, f"shared/{name}", local)
    return FileSlice(f"shared/{name}", 0, len(BYTES), zlib.crc32(BYTES))


def test_what_is_there_as_it_was_written_is_not_fetched(copies: LocalCopies, tmp_path: Path) -> None:
    storage = MemoryStorage()
    local = tmp_path / "000001.sst"
    local.write_bytes(BYTES)
    writer = SnapshotFileWriter(storage, SnapshotPlace.of_checkpoint(1, 0), 0, copies=copies)
    blob = writer.put_file(local, shared=True)
    writer.finish()
    assert isinstance(blob, FileSlice)
    storage.delete(blob.path)  # so that it could only come from the copy
    SnapshotFileReader(storage, copies).copy(blob, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == BYTES and copies.used == 1


@pytest.mark.parametrize(
    "damage", [lambda p: p.unlink(), lambda p: p.write_bytes(b"x"), lambda p: p.write_bytes(BYTES[::-1])]
)
def test_what_is_gone_or_changed_is_read_from_the_storage(copies: LocalCopies, tmp_path: Path, damage) -> None:
    blob = kept(copies, tmp_path, "a")
    (copy,) = (tmp_path / "copies").iterdir()
    (tmp_path / "a").unlink()
    damage(copy)
    storage = MemoryStorage()
    storage.put_if_absent(blob.path, BYTES)
    SnapshotFileReader(storage, copies).copy(blob, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == BYTES and copies.used == 0


def test_a_copy_of_a_checkpoint_that_is_being_written_stays(copies: LocalCopies, tmp_path: Path) -> None:
    parts = [kept(copies, tmp_path, str(number), number) for number in range(1, 4)]
    copies.refers(1, [parts[0].path])
    copies.complete(1)
    assert all(copies.take(part, tmp_path / f"{part.path[-1]}-again") for part in parts)
    copies.refers(2, [parts[1].path])
    copies.aborted(3)
    copies.complete(2)
    assert [place.name for place in (tmp_path / "copies").iterdir()] == ["shared-2"]


def test_a_copy_goes_when_no_complete_or_pending_checkpoint_needs_it(copies: LocalCopies, tmp_path: Path) -> None:
    parts = {name: kept(copies, tmp_path, name) for name in "abc"}
    copies.refers(1, [parts["a"].path])
    copies.refers(2, [parts["b"].path])
    copies.refers(3, [parts["b"].path, parts["c"].path])
    copies.complete(2)
    assert [copies.take(parts[name], tmp_path / f"{name}2") for name in "abc"] == [False, True, True]
    copies.aborted(3)
    copies.complete(2)
    assert [copies.take(parts[name], tmp_path / f"{name}3") for name in "bc"] == [True, False]
    copies.clear()
    assert not (tmp_path / "copies").exists()
