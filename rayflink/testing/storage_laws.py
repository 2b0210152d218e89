"""The one conformance suite of checkpoint storages: laws that hold on every storage alike."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier, Event

from rayflink.state.storage.storage import MissingFileError, Storage, StorageError, put_pieces

MakeStorage = Callable[[], Storage]
Law = Callable[[Storage], None]

ODD_NAMES = (
    "with space", "percent%20sign", "100%", "plus+and&", "question?#", "ümlaut", "日本", "quote'\"", "semi;colon:",
    "[brackets]*", ".hidden", "dots..dots", "-dash", "~tilde", "_metadata", "a" * 120,
)  # fmt: skip
_THREADS = 8
_ROUNDS = 5


def same(what: str, actual: object, wanted: object) -> None:
    """Fail where two values differ."""
    assert actual == wanted, f"{what}: found {actual!r:.300}, wanted {wanted!r:.300}"


def missing(what: str, call: Callable[[], object]) -> None:
    """Fail where a call does not find that a file is missing."""
    try:
        result = call()
    except MissingFileError:
        return
    raise AssertionError(f"{what}: found {result!r:.300}, wanted MissingFileError")


def what_is_written_is_read(storage: Storage) -> None:
    for path, data in {"a": b"1", "chk-1/_metadata": b"\x00\xff" * 1000, "deep/er/and/deeper": b"x"}.items():
        same(f"put_if_absent({path})", storage.put_if_absent(path, data), True)
        same(f"read({path})", storage.read(path), data)


def pieces_follow_each_other(storage: Storage) -> None:
    same("put_pieces", put_pieces(storage, "chk-1/a", (b"12", b"", memoryview(b"345"))), True)
    same("the file", storage.read("chk-1/a"), b"12345")


def a_file_may_be_empty(storage: Storage) -> None:
    same("put_if_absent", storage.put_if_absent("folder/empty", b""), True)
    same("read", storage.read("folder/empty"), b"")
    same("a part of it", storage.read("folder/empty", 0, 10), b"")
    same("list", storage.list(), ["folder/empty"])
    same("put_if_absent where it is", storage.put_if_absent("folder/empty", b"1"), False)


def a_file_that_exists_stays_as_it_is(storage: Storage) -> None:
    storage.put_if_absent("chk-1/_metadata", b"first")
    same("the second put_if_absent", storage.put_if_absent("chk-1/_metadata", b"second"), False)
    same("put_pieces", put_pieces(storage, "chk-1/_metadata", (b"in", b"pieces")), False)
    same("the file", storage.read("chk-1/_metadata"), b"first")
    same("the files", storage.list(), ["chk-1/_metadata"])


def a_part_of_a_file_is_read(storage: Storage) -> None:
    storage.put_if_absent("a", b"0123456789")
    for offset, length, wanted in ((0, 4, b"0123"), (4, 3, b"456"), (8, 10, b"89"), (3, None, b"3456789"), (2, 0, b"")):
        same(f"read at {offset}, {length} bytes", storage.read("a", offset, length), wanted)
    for offset in (10, 11, 1000):
        same(f"read at {offset}, behind the end", (storage.read("a", offset, 5), storage.read("a", offset)), (b"", b""))


def local_files_are_uploaded_and_downloaded(storage: Storage) -> None:
    with tempfile.TemporaryDirectory(prefix="rayflink-laws-") as folder:
        for size in (0, 5, 3_000_000):
            local, back = Path(folder, f"local-{size}"), Path(folder, f"back-{size}")
            local.write_bytes(bytes(range(256)) * (size // 256) + b"end"[: size % 256])
            storage.upload(f"shared/{size}", local)
            storage.download(f"shared/{size}", back)
            same(f"{size} bytes that went there and back", back.read_bytes() == local.read_bytes(), True)
            same("the local file is left", local.exists(), True)
        same("the files", storage.list(), ["shared/0", "shared/3000000", "shared/5"])


def a_missing_file_is_said_to_be_missing(storage: Storage) -> None:
    storage.put_if_absent("folder/there", b"1")
    with tempfile.TemporaryDirectory(prefix="rayflink-laws-") as folder:
        for path in ("nowhere", "folder/nowhere", "no/folder/at/all", "folder", "folder/there/below"):
            local = Path(folder, "local")
            missing(f"read({path})", partial(storage.read, path))
            missing(f"a part of {path}", partial(storage.read, path, 3, 4))
            missing(f"download({path})", partial(storage.download, path, local))
            same(f"the local file of {path}", local.exists(), False)


def deleting_is_final_and_may_be_repeated(storage: Storage) -> None:
    for path in ("chk-1/a", "chk-1/b", "top"):
        storage.put_if_absent(path, b"1")
    storage.delete("chk-1/a")
    storage.delete("chk-1/a")
    storage.delete("never/there")
    storage.delete("chk-1")
    storage.delete("chk-1/b/below")
    missing("read", partial(storage.read, "chk-1/a"))
    same("the others", storage.list(), ["chk-1/b", "top"])
    same("a name that is free again", storage.put_if_absent("chk-1/a", b"2"), True)
    same("the new file", storage.read("chk-1/a"), b"2")
    for path in storage.list():
        storage.delete(path)
    same("an empty storage", storage.list(), [])
    same("a file in it", storage.put_if_absent("chk-2/a", b"3"), True)


def a_folder_lists_what_is_below_it_and_nothing_beside(storage: Storage) -> None:
    paths = ["chk-1/_metadata", "chk-1/deep/er", "chk-10/_metadata", "chk-1x", "chk-2/a", "shared/chk-1/no"]
    for path in paths:
        storage.put_if_absent(path, b"1")
    same("list()", storage.list(), sorted(paths))
    same("list(chk-1)", storage.list("chk-1"), ["chk-1/_metadata", "chk-1/deep/er"])
    same("list(chk-1/deep)", storage.list("chk-1/deep"), ["chk-1/deep/er"])
    for nothing in ("chk", "chk-3", "chk-1x", "chk-1/_metadata", "chk-1/_metadata/x"):
        same(f"list({nothing})", storage.list(nothing), [])


def an_empty_storage_lists_nothing(storage: Storage) -> None:
    same("list()", (storage.list(), storage.list("chk-1")), ([], []))


def names_may_have_any_character(storage: Storage) -> None:
    paths = [*ODD_NAMES, *(f"in {name}/file {name}" for name in ODD_NAMES)]
    for number, path in enumerate(paths):
        same(f"put_if_absent({path!r})", storage.put_if_absent(f"all/{path}", b"%d" % number), True)
    same("list", storage.list("all"), sorted(f"all/{path}" for path in paths))
    for number, path in enumerate(paths):
        same(f"read({path!r})", storage.read(f"all/{path}"), b"%d" % number)
        same(f"list of the folder of {path!r}", f"all/{path}" in storage.list(f"all/{path}".rpartition("/")[0]), True)
        storage.delete(f"all/{path}")
    same("what is left", storage.list(), [])


def no_name_leads_outside(storage: Storage) -> None:
    calls: tuple[tuple[str, Callable[[str], object]], ...] = (
        ("put_if_absent", lambda path: storage.put_if_absent(path, b"1")),
        ("upload", lambda path: storage.upload(path, Path(__file__))),
        ("read", storage.read),
        ("download", lambda path: storage.download(path, Path("nowhere"))),
        ("delete", storage.delete),
    )
    for path in ("../outside", "a/../../outside", "/absolute", "", ".", "a//b", "a/", "a/./b", "nul\0"):
        for name, call in calls:
            try:
                call(path)
            except MissingFileError as error:
                raise AssertionError(f"{name}({path!r}): found MissingFileError, wanted StorageError") from error
            except StorageError:
                continue
            raise AssertionError(f"{name}({path!r}): found no error, wanted StorageError")


def one_of_several_writers_wins(storage: Storage) -> None:
    together = Barrier(_THREADS)
    with ThreadPoolExecutor(_THREADS) as threads:
        for number in range(_ROUNDS):
            path = f"chk-{number}/_metadata"

            def write(writer: int, path: str = path) -> bool:
                together.wait(timeout=30)
                return storage.put_if_absent(path, b"%d" % writer * 10_000)

            won = [writer for writer, wins in enumerate(threads.map(write, range(_THREADS))) if wins]
            same(f"the number of winners of {path}", len(won), 1)
            same("what is there", storage.read(path), b"%d" % won[0] * 10_000)
    same("the files", storage.list(), [f"chk-{number}/_metadata" for number in range(_ROUNDS)])


def writers_and_deleters_of_one_folder_do_not_meet(storage: Storage) -> None:
    def come_and_go(writer: int) -> None:
        for _ in range(_ROUNDS):
            same("put_if_absent", storage.put_if_absent(f"chk-1/part/{writer}", b"1"), True)
            storage.delete(f"chk-1/part/{writer}")

    with ThreadPoolExecutor(_THREADS) as threads:
        list(threads.map(come_and_go, range(_THREADS)))
    same("what is left", storage.list(), [])


def no_reader_sees_a_part_of_a_file(storage: Storage) -> None:
    whole = bytes(2_000_000)
    done = Event()

    def look() -> None:
        over = False
        while not over:  # the last look is one at all files: this thread may have been too late for any other
            over = done.is_set()
            for path in storage.list():
                same(f"the length of {path}, as it is listed", len(storage.read(path)), len(whole))
            try:
                same("the length of a file, as it is read", len(storage.read("chk-3/_metadata")), len(whole))
            except MissingFileError:
                same("a file that was written is missing", over, False)

    with ThreadPoolExecutor(2) as threads:
        futures = [threads.submit(look) for _ in range(2)]
        try:
            for number in range(_ROUNDS):
                storage.put_if_absent(f"chk-{number}/_metadata", whole)
        finally:
            done.set()
        for looking in futures:
            looking.result()


STORAGE_LAWS: tuple[Law, ...] = (
    what_is_written_is_read,
    pieces_follow_each_other,
    a_file_may_be_empty,
    a_file_that_exists_stays_as_it_is,
    a_part_of_a_file_is_read,
    local_files_are_uploaded_and_downloaded,
    a_missing_file_is_said_to_be_missing,
    deleting_is_final_and_may_be_repeated,
    a_folder_lists_what_is_below_it_and_nothing_beside,
    an_empty_storage_lists_nothing,
    names_may_have_any_character,
    no_name_leads_outside,
    one_of_several_writers_wins,
    writers_and_deleters_of_one_folder_do_not_meet,
    no_reader_sees_a_part_of_a_file,
)
"""All laws; the name of each says what it holds."""


def check_storage(make: MakeStorage, laws: Iterable[Law] = STORAGE_LAWS) -> None:
    """Check that a checkpoint storage obeys the laws.

    Args:
        make: makes a new, empty storage that shares nothing with others; asked once for each law.
        laws: some of `STORAGE_LAWS`.

    Raises:
        AssertionError: a law is broken; its name comes first.

    >>> from rayflink.state.storage.memory_storage import MemoryStorage
    >>> check_storage(MemoryStorage)
    """
    for law in laws:
        try:
            law(make())
        except Exception as error:
            raise AssertionError(f"{law.__name__}: {error or type(error).__name__}") from error


__all__ = ["ODD_NAMES", "STORAGE_LAWS", "check_storage"]
