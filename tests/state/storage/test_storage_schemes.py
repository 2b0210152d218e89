"""Every checkpoint storage obeys the same laws; another storage is one line here."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Event

import pytest

from rayflink.state.storage.local_storage import LocalStorage
from rayflink.state.storage.memory_storage import MemoryStorage
from rayflink.state.storage.object_store_options import client_configuration
from rayflink.state.storage.storage import MissingFileError, Storage, StorageError, put_own
from rayflink.state.storage.storage_schemes import open_storage
from rayflink.testing import STORAGE_LAWS, check_storage
from tests.state.storage.s3_server import BUCKET, s3_server

LAWS = pytest.mark.parametrize("law", STORAGE_LAWS, ids=lambda law: law.__name__)


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    with s3_server() as options:
        yield options


@LAWS
def test_a_folder_keeps_the_law(law, tmp_path: Path):
    numbers = itertools.count()
    check_storage(lambda: LocalStorage(tmp_path / f"new {next(numbers)}"), [law])


@LAWS
def test_a_file_url_keeps_the_law(law, tmp_path: Path):
    check_storage(lambda: open_storage((tmp_path / "a b%").as_uri()), [law])


@LAWS
def test_memory_keeps_the_law(law):
    check_storage(MemoryStorage, [law])


@pytest.mark.slow
@LAWS
def test_s3_keeps_the_law(law, s3):
    check_storage(lambda: open_storage(f"s3://{BUCKET}/{law.__name__}/é a%20b", s3), [law])


@pytest.mark.slow
def test_a_whole_bucket_is_a_storage(s3):
    storage = open_storage(f"s3://{BUCKET}", s3)
    assert storage.put_if_absent("top/a", b"1") and "top/a" in storage.list() and storage.list("top") == ["top/a"]


class Overwrites(MemoryStorage):
    def put_if_absent(self, path: str, data: bytes) -> bool:
        self._files[path] = data
        return True


class ListsByText(MemoryStorage):
    def list(self, folder: str = "") -> list[str]:
        return sorted(path for path in self._files if path.startswith(folder))


class Lenient(MemoryStorage):
    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        return self._files.get(path, b"")[offset:]


class ShowsParts(MemoryStorage):
    """A file whose second half waits until somebody has read the first."""

    def __init__(self) -> None:
        super().__init__()
        self._was_read = Event()

    def put_if_absent(self, path: str, data: bytes) -> bool:
        if not super().put_if_absent(path, data[: len(data) // 2]):
            return False
        self._was_read.wait(timeout=5)
        self._files[path] = data
        return True

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        data = super().read(path, offset, length)
        self._was_read.set()
        return data


class LooksThenWrites(MemoryStorage):
    """A storage in which two writers that have looked wait for each other."""

    def __init__(self) -> None:
        super().__init__()
        self._looked = Barrier(2)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        absent = path not in self._files
        if absent:
            with suppress(BrokenBarrierError):
                self._looked.wait(timeout=5)
            self._files[path] = data
        return absent


@pytest.mark.parametrize(
    ("bad", "law"),
    [
        (Overwrites, "a_file_that_exists_stays_as_it_is"),
        (ListsByText, "a_folder_lists_what_is_below_it_and_nothing_beside"),
        (Lenient, "a_missing_file_is_said_to_be_missing"),
        (ShowsParts, "no_reader_sees_a_part_of_a_file"),
        (LooksThenWrites, "one_of_several_writers_wins"),
    ],
)
def test_a_storage_that_breaks_a_law_is_found(bad: Callable[[], Storage], law: str):
    with pytest.raises(AssertionError, match=f"^{law}: "):
        check_storage(bad, [each for each in STORAGE_LAWS if each.__name__ == law])


@pytest.mark.slow
def test_what_no_option_says_is_the_environments(s3, monkeypatch):
    names = {"AWS_ENDPOINT_URL": "s3.endpoint", "AWS_ACCESS_KEY_ID": "s3.access-key"}
    names |= {"AWS_SECRET_ACCESS_KEY": "s3.secret-key", "AWS_REGION": "s3.region"}
    for variable, option in names.items():
        monkeypatch.setenv(variable, s3[option])
    storage = open_storage(f"s3://{BUCKET}/environment")
    assert storage.put_if_absent("a", b"1") and open_storage(f"s3a://{BUCKET}/environment", s3).read("a") == b"1"


@pytest.mark.slow
def test_a_bucket_that_is_not_there_is_an_error(s3):
    storage = open_storage("s3://nowhere/x", s3)
    with pytest.raises(StorageError, match="storage s3://nowhere/x could not write a: ") as raised:
        storage.put_if_absent("a", b"1")
    assert not isinstance(raised.value, MissingFileError)


@pytest.mark.parametrize(
    ("options", "endpoint", "in_host"),
    [
        ({}, None, False),
        ({"s3.endpoint": "minio:9000"}, "https://minio:9000", False),
        ({"s3.endpoint": "http://minio", "s3.path.style.access": "false"}, "http://checkpoints.minio", True),
    ],
)
def test_the_options_say_where_the_bucket_is_named(options, endpoint, in_host):
    config, _ = client_configuration(f"s3://{BUCKET}/folder", options)
    assert (config.get("endpoint"), config["virtual_hosted_style_request"]) == (endpoint, in_host)


def test_bytes_of_ones_own_that_are_there_were_written():
    class LosesAnswers(MemoryStorage):
        """A storage that writes, and then says that it failed, or that somebody else was first."""

        lost: Exception | None = None

        def put_if_absent(self, path: str, data: bytes) -> bool:
            super().put_if_absent(path, data)
            if self.lost is not None:
                raise self.lost
            return False

    storage = LosesAnswers()
    assert put_own(storage, "repeated", b"mine") is True
    assert put_own(storage, "repeated", b"of another") is False and storage.read("repeated") == b"mine"
    storage.lost = StorageError("write a", "memory:", "timed out")
    assert put_own(storage, "lost", b"mine") is True
    with pytest.raises(StorageError, match="timed out"):
        put_own(storage, "lost", b"of another")


def test_a_write_of_which_nothing_is_known_is_an_error():
    class Down(MemoryStorage):
        def put_if_absent(self, path: str, data: bytes) -> bool:
            raise StorageError("write a", "memory:", "timed out")

    with pytest.raises(StorageError, match="timed out"):
        put_own(Down(), "a", b"mine")
    storage = MemoryStorage()
    assert put_own(storage, "a", b"1") is True
    assert put_own(storage, "a", b"2") is False
