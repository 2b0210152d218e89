"""Manifests: encoding and decoding, detection of every damage, and old files that stay readable."""

from __future__ import annotations

import pickle
import struct
import time
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.state.errors import DamagedFileError, VersionMismatch
from rayflink.state.snapshots import FileSlice, StoredSnapshot
from rayflink.state.storage.manifest import OperatorManifest, metadata_path
from rayflink.state.storage.manifest_format import FORMAT, MAGIC, decode_manifest, encode_manifest
from rayflink.state.storage.memory_storage import MemoryStorage
from rayflink.state.storage.storage import MissingFileError, StorageError
from rayflink.state.storage.storage_schemes import open_storage
from rayflink.state.storage.stored_checkpoints import NoCheckpointError, latest_manifests, read_manifest
from tests.source_files import ROOT
from tests.state.storage.manifests import manifests, whole_manifest

GOLDEN = ROOT / "tests" / "golden" / "checkpoint_metadata_1.bin"


def sealed(data: bytes) -> bytes:
    """Return the bytes with their current checksum."""
    return data[:-4] + struct.pack(">I", zlib.crc32(data[:-4]))


@pytest.mark.slow
@given(manifests)
def test_what_is_encoded_comes_back(manifest):
    assert decode_manifest(encode_manifest(manifest), "x") == manifest


def test_the_order_of_what_has_an_order_comes_back():
    snapshot = StoredSnapshot({9: b"9", 1: b"1"}, {"b": ("split", (b"2", b"1")), "a": ("union", ())})
    operator = OperatorManifest("a", "", "", 1, 1, (snapshot,))
    back = decode_manifest(encode_manifest(replace(whole_manifest(), operators=(operator,))), "x")
    (subtask,) = back.operators[0].subtasks
    assert list(subtask.keyed) == [9, 1] and list(subtask.lists) == ["b", "a"]


def test_a_file_of_this_format_stays_readable():
    """Read a file that was written once; a change of the layout needs another format number."""
    assert decode_manifest(GOLDEN.read_bytes(), "golden") == whole_manifest()
    assert encode_manifest(whole_manifest()) == GOLDEN.read_bytes()


def test_the_bytes_are_no_pickle_and_show_what_they_are():
    data = encode_manifest(whole_manifest())
    assert data.startswith(MAGIC) and b'"uid":"count"' in data and b"three" in data


def test_every_byte_that_is_changed_is_found():
    data = encode_manifest(whole_manifest())
    for at in range(len(data)):
        for flipped in (0x01, 0x80):
            damaged = bytearray(data)
            damaged[at] ^= flipped
            with pytest.raises((DamagedFileError, VersionMismatch), match="chk-7/_metadata") as raised:
                decode_manifest(bytes(damaged), "/data/chk-7/_metadata")
            assert isinstance(raised.value, VersionMismatch) is (len(MAGIC) <= at < len(MAGIC) + 4)


@given(st.data())
def test_a_file_that_is_cut_off_or_grew_is_found(data):
    whole = encode_manifest(whole_manifest())
    size = data.draw(st.integers(0, len(whole) - 1))
    for damaged in (whole[:size], whole + whole[:1]):
        with pytest.raises(DamagedFileError, match="/data/_metadata is damaged"):
            decode_manifest(damaged, "/data/_metadata")


@given(st.binary(max_size=80))
def test_any_other_file_is_found(data):
    with pytest.raises((DamagedFileError, VersionMismatch)):
        decode_manifest(data, "x")


def test_damage_names_the_file_the_place_both_checksums_and_the_remedy():
    data = bytearray(encode_manifest(whole_manifest()))
    wanted = zlib.crc32(data[:-4])
    data[100] ^= 1
    with pytest.raises(DamagedFileError) as raised:
        decode_manifest(bytes(data), "s3://bucket/chk-7/_metadata")
    text = str(raised.value)
    for part in ("s3://bucket/chk-7/_metadata", f"bytes 0 to {len(data) - 4}", f"{wanted:08x}", "older checkpoint"):
        assert part in text
    assert str(pickle.loads(pickle.dumps(raised.value))) == text


def test_another_version_names_the_file_and_the_remedy():
    data = bytearray(encode_manifest(whole_manifest()))
    data[len(MAGIC) : len(MAGIC) + 4] = struct.pack(">I", FORMAT + 1)
    with pytest.raises(VersionMismatch) as raised:
        decode_manifest(sealed(bytes(data)), "/data/chk-7/_metadata")
    assert "/data/chk-7/_metadata" in str(raised.value) and "written as checkpoint metadata format 2" in str(
        raised.value
    )
    assert "run the version that wrote it" in str(raised.value)


def test_a_right_checksum_over_another_layout_is_found():
    data = encode_manifest(whole_manifest()).replace(b'"operators":', b'"operatorz":')
    with pytest.raises(DamagedFileError, match="another layout .KeyError"):
        decode_manifest(sealed(data), "x")


def test_files_are_those_of_all_parts_and_shared_ones_are_told_apart():
    manifest = whole_manifest()
    assert manifest.files() == {"shared/4f1c", "chk-7/ab12"} and manifest.shared_files() == {"shared/4f1c"}
    coordinator = replace(manifest.operators[1], coordinator=FileSlice("chk-7/cd", 0, 1, 0))
    assert replace(manifest, operators=(coordinator,)).files() == {"chk-7/cd"}


@pytest.mark.slow
def test_a_manifest_of_many_key_groups_takes_a_moment():
    snapshot = StoredSnapshot({group: bytes(100) for group in range(128)})
    operator = OperatorManifest("a" * 32, "", "count", 1_000, 32_768, (snapshot,) * 1_000)
    manifest = replace(whole_manifest(), operators=(operator,))
    started = time.process_time()
    assert decode_manifest(encode_manifest(manifest), "x") == manifest
    assert time.process_time() - started < 3


def write(base: Path, path: str, manifest) -> Path:
    open_storage(str(base)).put_if_absent(path, encode_manifest(manifest))
    return base / path


def test_a_checkpoint_is_found_by_its_folder_or_file_and_its_files_begin_above(tmp_path: Path):
    manifest = whole_manifest()
    file = write(tmp_path, metadata_path(7), manifest)
    (tmp_path / "chk-7" / "ab12").write_bytes(b"state")
    for url in (str(file), str(file.parent), f"{file.parent}/", file.parent.as_uri(), str(tmp_path)):
        base = tmp_path.as_uri() if url.startswith("file:") else str(tmp_path)
        assert read_manifest(url) == (base, manifest), url


def test_a_savepoint_may_be_moved(tmp_path: Path, monkeypatch):
    savepoint = replace(whole_manifest(), kind="savepoint", own_base=True)
    write(tmp_path / "savepoint-1", "_metadata", savepoint)
    moved = (tmp_path / "savepoint-1").rename(tmp_path / "elsewhere")
    assert read_manifest(str(moved)) == (str(moved), savepoint)
    monkeypatch.chdir(moved)
    assert read_manifest("_metadata") == read_manifest(".") == (str(moved), savepoint)


def test_an_address_with_nothing_several_or_something_unfinished_is_an_error(tmp_path: Path):
    with pytest.raises(NoCheckpointError, match=rf"at {tmp_path}/nowhere: found nothing; check the address"):
        read_manifest(str(tmp_path / "nowhere"))
    (tmp_path / "chk-5").mkdir()
    (tmp_path / "chk-5" / "ab12").write_bytes(b"state")
    for url in (tmp_path, tmp_path / "chk-5", tmp_path / "chk-5" / "_metadata"):
        with pytest.raises(NoCheckpointError, match=r"found 1 files, the first .*ab12, but no _metadata; .* older one"):
            read_manifest(str(url))
    for number in range(1, 8):
        write(tmp_path, metadata_path(number), whole_manifest())
    with pytest.raises(
        NoCheckpointError, match=r"found 7 in folders of it: chk-1, chk-2, .*chk-5, \.\.\.; give the"
    ) as raised:
        read_manifest(str(tmp_path))
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_the_checkpoints_of_a_job_come_newest_first_and_damaged_ones_are_told_of():
    storage = MemoryStorage()
    for number in (2, 10, 9, 11):
        manifest = replace(whole_manifest(), checkpoint_id=number)
        data = encode_manifest(manifest) if number != 10 else encode_manifest(manifest)[:-1]
        storage.put_if_absent(metadata_path(number), data)
    storage.put_if_absent("chk-12/ab12", b"unfinished")
    storage.put_if_absent("other/chk-13/_metadata", b"of another base")
    found = latest_manifests(storage)
    assert [manifest.checkpoint_id for manifest in found.manifests] == [11, 9, 2]
    assert [error.file for error in found.damaged] == ["memory:/chk-10/_metadata"]
    assert latest_manifests(MemoryStorage()) == ((), ())


def test_a_checkpoint_that_goes_while_all_are_read_is_told_of():
    class Subsumes(MemoryStorage):
        def read(self, path, offset=0, length=None):
            self.delete(metadata_path(1))
            return super().read(path, offset, length)

    storage = Subsumes()
    for number in (1, 2):
        storage.put_if_absent(metadata_path(number), encode_manifest(replace(whole_manifest(), checkpoint_id=number)))
    found = latest_manifests(storage)
    assert [manifest.checkpoint_id for manifest in found.manifests] == [2]
    assert [type(error) for error in found.damaged] == [MissingFileError]


def test_a_storage_that_fails_is_no_storage_without_checkpoints():
    class Down(MemoryStorage):
        def read(self, path, offset=0, length=None):
            raise StorageError(f"read {path}", self.url, "connection refused")

    storage = Down()
    storage.put_if_absent(metadata_path(1), encode_manifest(whole_manifest()))
    with pytest.raises(StorageError, match="connection refused"):
        latest_manifests(storage)
