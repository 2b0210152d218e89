"""A folder as checkpoint storage: errors of the file system, and the files it leaves behind."""

from __future__ import annotations

import ctypes
import errno
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rayflink.state.storage.local_storage import UNFINISHED, LocalStorage
from rayflink.state.storage.object_storage import ObjectStorage
from rayflink.state.storage.storage import MissingFileError, StorageError, StorageNotSupported, checked_path
from rayflink.state.storage.storage_schemes import from_root, open_storage


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let the kernel refuse to let a file grow, as a full disk does."""
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


def refuse(monkeypatch: pytest.MonkeyPatch, name: str, error: int) -> None:
    """Let a system call fail, as one on a file system that the machine has not."""

    def refused(*arguments: object, **_: object) -> None:
        raise OSError(error, os.strerror(error), str(arguments[0]))

    monkeypatch.setattr(os, name, refused)


def everything_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_file_that_does_not_fit_is_an_error_and_leaves_nothing(tmp_path: Path):
    storage = LocalStorage(tmp_path / "base")
    with files_of_at_most(100_000), pytest.raises(StorageError) as raised:
        storage.put_if_absent("chk-1/_metadata", bytes(1_000_000))
    assert "could not write chk-1/_metadata: File too large (EFBIG)" in str(raised.value)
    assert "look for a full disk" in str(raised.value) and str(tmp_path) in str(raised.value)
    assert everything_in(tmp_path) == [] and storage.list() == []
    assert storage.put_if_absent("chk-1/_metadata", b"1")


@pytest.mark.parametrize(
    ("call", "error"), [("fsync", errno.ENOSPC), ("fsync", errno.EIO), ("link", errno.EDQUOT), ("link", errno.EROFS)]
)
def test_whatever_the_system_refuses_is_an_error_and_leaves_nothing(monkeypatch, tmp_path: Path, call: str, error: int):
    storage, local = LocalStorage(tmp_path / "base"), tmp_path / "local"
    local.write_bytes(b"data")
    (tmp_path / "base" / "chk-1").mkdir(parents=True)
    (tmp_path / "base" / UNFINISHED).mkdir()
    refuse(monkeypatch, call, error)
    for write in (lambda: storage.put_if_absent("chk-1/a", b"1"), lambda: storage.upload("chk-1/a", local)):
        with pytest.raises(
            StorageError, match=rf"could not write chk-1/a: {os.strerror(error)} \({errno.errorcode[error]}\)"
        ):
            write()
        assert everything_in(tmp_path / "base") == []


def test_a_file_system_without_hard_links_is_named(monkeypatch, tmp_path: Path):
    refuse(monkeypatch, "link", errno.EPERM)
    with pytest.raises(StorageError, match="Operation not permitted; a file system with hard links is wanted"):
        LocalStorage(tmp_path).put_if_absent("a", b"1")


def test_a_link_that_was_made_and_reported_as_there_counts(monkeypatch, tmp_path: Path):
    link = os.link

    def repeated(source: Path, target: Path) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", repeated)
    storage = LocalStorage(tmp_path / "base")
    assert storage.put_if_absent("a", b"1") is True
    assert storage.put_if_absent("a", b"2") is False and storage.read("a") == b"1"


WITHOUT_RIGHTS = """
import sys
from rayflink.state.storage.local_storage import LocalStorage
from rayflink.state.storage.storage import StorageError

storage = LocalStorage(sys.argv[1])
for name, *given in (("put_if_absent", "chk-1/b", b"1"), ("delete", "chk-1/a"), ("list", "no")):
    try:
        getattr(storage, name)(*given)
    except StorageError as error:
        print(error.action, "|", error.cause.partition(" (")[0])
print(storage.read("chk-1/a"))
"""


def give_up_roots_rights() -> None:
    """Drop CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, by which root may write and read anywhere."""
    for capability in (1, 2):
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)


@pytest.mark.slow
def test_a_folder_that_may_not_be_written_is_an_error(tmp_path: Path):
    base = tmp_path / "base"
    LocalStorage(base).put_if_absent("chk-1/a", b"1")
    (base / "no").mkdir(mode=0)
    try:
        for folder in (base / "chk-1", base / UNFINISHED, base):
            folder.chmod(0o555)
        command = [sys.executable, "-c", WITHOUT_RIGHTS, str(base)]
        done = subprocess.run(command, preexec_fn=give_up_roots_rights, capture_output=True, text=True, timeout=60)
        told = [f"{action} | Permission denied" for action in ("write chk-1/b", "delete chk-1/a", "list no")]
        assert done.stdout.splitlines() == [*told, "b'1'"], done.stderr
    finally:
        for folder in (base, base / "chk-1", base / UNFINISHED, base / "no"):
            folder.chmod(0o755)


def test_a_read_only_file_system_is_an_error():
    storage = LocalStorage("/proc/rayflink")
    with pytest.raises(StorageError, match="could not write chk-1/a"):
        storage.put_if_absent("chk-1/a", b"1")
    assert storage.list() == []


def test_a_file_where_a_folder_should_be_is_an_error(tmp_path: Path):
    storage = LocalStorage(tmp_path)
    storage.put_if_absent("taken", b"1")
    with pytest.raises(StorageError, match=r"could not write taken/a: .*taken is a file, a folder is wanted"):
        storage.put_if_absent("taken/a", b"2")
    with pytest.raises(MissingFileError):
        storage.read("taken/a")
    with pytest.raises(StorageError, match="is a file, a folder is wanted"):
        LocalStorage(tmp_path / "taken").put_if_absent("a", b"2")
    assert storage.list() == ["taken"] and storage.read("taken") == b"1"


def test_an_upload_onto_a_file_is_an_error(tmp_path: Path):
    storage, local = LocalStorage(tmp_path / "base"), tmp_path / "local"
    local.write_bytes(b"2")
    storage.put_if_absent("a", b"1")
    with pytest.raises(StorageError, match="a file of that name exists already"):
        storage.upload("a", local)
    with pytest.raises(StorageError, match="could not write b: No such file"):
        storage.upload("b", tmp_path / "nowhere")
    assert storage.read("a") == b"1" and storage.list() == ["a"]


def test_empty_folders_go_with_their_last_file(tmp_path: Path):
    base = tmp_path / "base"
    storage = LocalStorage(base)
    for path in ("chk-1/deep/a", "chk-1/b", "c"):
        storage.put_if_absent(path, b"1")
    storage.delete("chk-1/deep/a")
    assert not (base / "chk-1" / "deep").exists() and (base / "chk-1").exists()
    storage.delete("chk-1/b")
    assert not (base / "chk-1").exists()
    storage.delete("c")
    assert not base.exists() and tmp_path.exists()


def test_what_a_killed_writer_left_is_never_seen_and_goes_later(tmp_path: Path):
    LocalStorage(tmp_path).put_if_absent("a", b"1")
    dead, alive = tmp_path / UNFINISHED / "dead", tmp_path / UNFINISHED / "alive"
    for path in (dead, alive):
        path.write_bytes(b"half of i")
    os.utime(dead, (time.time() - 7_200,) * 2)
    storage = LocalStorage(tmp_path)
    assert storage.list() == ["a"]
    assert storage.put_if_absent("b", b"2")
    assert (dead.exists(), alive.exists()) == (False, True)


def test_addresses(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert open_storage("relative/x").url == str(tmp_path / "relative" / "x")
    assert open_storage("file:///a%20b/c").url == "file:///a%20b/c"
    assert open_storage("file:///a%20b/c").list() == []
    open_storage("file://localhost" + tmp_path.as_uri().removeprefix("file://") + "/a%20b").put_if_absent("f", b"1")
    assert (tmp_path / "a b" / "f").read_bytes() == b"1"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("hdfs://namenode/x", r"found the scheme hdfs://, wanted a path or one of s3://, .*mount it as a folder"),
        ("file://data/checkpoints", r"found the host 'data', wanted none; write file:///data/checkpoints"),
        ("~/checkpoints/0f", r"which only a shell makes a folder of; write the folder out"),
        ("s3:/0f", r"found s3: and no more of a URL; write it as in s3://bucket/folder"),
        (" /data", r"found ' /data', which begins with a blank"),
        ("/data\0", r"found a null byte in it"),
    ],
)
def test_an_address_that_nothing_opens_is_an_error(url: str, told: str):
    for refuses in (from_root, open_storage):
        with pytest.raises(StorageNotSupported, match=told):
            refuses(url)


def test_without_its_package_an_object_store_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "obstore", None)
    with pytest.raises(
        StorageNotSupported, match=r"storage s3://bucket/x could not be opened: .*pip install 'rayflink\[s3\]'"
    ):
        open_storage("s3://bucket/x")


def test_an_object_store_that_does_not_answer_is_an_error(monkeypatch):
    monkeypatch.setattr("rayflink.state.storage.object_storage._RETRIES", {"max_retries": 0})
    options = {"s3.endpoint": "http://127.0.0.1:9", "s3.access-key": "x", "s3.secret-key": "y"}
    storage = ObjectStorage("s3://bucket/x/", options)
    assert storage.url == "s3://bucket/x"
    for call in (lambda: storage.list(), lambda: storage.put_if_absent("a", b"1"), lambda: storage.read("a")):
        with pytest.raises(
            StorageError, match=r"storage s3://bucket/x could not (list its files|write a|read a): "
        ) as raised:
            call()
        assert not isinstance(raised.value, MissingFileError) and "<?xml" not in str(raised.value)


@pytest.mark.parametrize(
    "error",
    [
        StorageError("write a", "/data", "no space"),
        MissingFileError("read a", "/data", "/data/a"),
        StorageNotSupported("be opened", "hdfs://x", "wanted s3://"),
    ],
)
def test_errors_survive_pickling(error: StorageError):
    twin = pickle.loads(pickle.dumps(error))
    assert type(twin) is type(error) and str(twin) == str(error)


def test_a_path_is_inside_its_storage():
    with pytest.raises(StorageError, match=r"could not read '\.\./x': it is not a path inside the storage"):
        checked_path("../x", "/data", "read")


def test_more_pieces_than_one_call_writes_are_all_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [b"%d," % number for number in range(3_000)]
    storage, writev, calls = LocalStorage(tmp_path), os.writev, []

    def write_some(file: int, buffers: list[bytes]) -> int:
        calls.append(len(buffers))
        return writev(file, buffers[:7]) if len(calls) % 2 else os.write(file, bytes(buffers[0])[:1])

    assert storage.put_pieces_if_absent("all", pieces)
    monkeypatch.setattr(os, "writev", write_some)
    assert storage.put_pieces_if_absent("some", [b"", *pieces[:100], b""])
    assert storage.read("all") == b"".join(pieces) and storage.read("some") == b"".join(pieces[:100])
    assert 20 < len(calls) < 60
