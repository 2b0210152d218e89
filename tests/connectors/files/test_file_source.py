"""The file source: formats, compression, folders that are watched, and what goes wrong."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import pickle
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common import Duration
from rayflink.common.connector_base.source import END, PENDING, Boundedness, ReaderContext
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import RowBatch, rows_of
from rayflink.connectors.files.file_enumeration import FileEnumeratorProvider, FileSplitAssignerProvider
from rayflink.connectors.files.file_source import FileSource, FileSourceBuilder, StreamFormat
from rayflink.connectors.formats.text_files import TextFileSource
from rayflink.operators.sources import ReaderSourceOperator
from rayflink.testing import OperatorHarness
from tests.connectors.reading import Coordinator, read, read_with_restores
from tests.operators.running import FixedClock


def _lines(*paths: Any, charset: str = "UTF-8") -> FileSourceBuilder:
    return FileSource.for_record_stream_format(StreamFormat.text_line_format(charset), *map(str, paths))


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"one", ["one"]),
        (b"one\n", ["one"]),
        (b"\n", [""]),
        (b"a\r\nb", ["a", "b"]),
        (b"\xef\xbb\xbfa\nb\n", ["a", "b"]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbf\n", [""]),
        (b"a\n\xef\xbb\xbfb", ["a", "\ufeffb"]),
        (b"a\x00b\n", ["a\x00b"]),
    ],
)
def test_lines_of_small_files(tmp_path: Path, content: bytes, lines: list[str]) -> None:
    (tmp_path / "f").write_bytes(content)
    assert read(_lines(tmp_path / "f").build()) == lines


def test_a_reader_reports_what_is_pending_and_the_enumerator_what_nobody_has(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("12345678\n" * 100)
    source, metrics = _lines(tmp_path).build(), MetricGroup()
    coordinator = Coordinator(source)
    coordinator.readers[0] = source.create_reader(ReaderContext(0, 1, FixedClock(), metrics))
    assert coordinator.enumerator.pending_bytes() == 1_800
    assert coordinator.poll(max_records=20) is not None and metrics.snapshot(0)["pendingBytes"] == 900
    assert coordinator.enumerator.pending_bytes() == 900
    while coordinator.enumerator.pending_bytes() or not metrics.snapshot(0)["numBytesIn"]:
        coordinator.poll(max_records=20)
    assert len(coordinator.poll(max_records=20)) == 20  # after the first twenty of the second file
    reported = metrics.snapshot(0)
    assert (reported["numBytesIn"], reported["pendingBytes"]) == (900, 900)
    assert reported["pendingRecords"] == 60


def test_a_line_longer_than_several_splits_is_read_once_by_one_reader(tmp_path: Path) -> None:
    huge = "x" * (3 << 20)
    (tmp_path / "f").write_text(f"a\n{huge}\nb\n")
    parts = Coordinator(_lines(tmp_path / "f").build(), 4).read_all()
    assert sorted(line for part in parts for line in part) == ["a", "b", huge]


PACKERS = {
    "gz": gzip.compress, "gzip": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "deflate": zlib.compress,
}  # fmt: skip


def _packed(ending: str, data: bytes) -> bytes:
    if ending in PACKERS:
        return PACKERS[ending](data)
    pyarrow = pytest.importorskip("pyarrow")
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as packed:
        packed.write(data)
    return bytes(sink.getvalue())


@pytest.mark.parametrize("ending", [*PACKERS, "zst", "zstd"])
def test_packed_files_are_one_split_each_and_are_resumed_where_they_were(tmp_path: Path, ending: str) -> None:
    lines = [f"line {number}" for number in range(300)]
    (tmp_path / f"f.{ending}").write_bytes(_packed(ending, "\n".join(lines).encode()))
    source = _lines(tmp_path).build()
    assert read_with_restores(source, 2, 70) == lines
    assert sorted(map(len, Coordinator(source, 2).read_all())) == [0, 300]


@pytest.mark.parametrize("ending", [*PACKERS, "zst"])
def test_a_packed_file_that_is_none_or_is_cut_is_an_error_with_path_and_remedy(tmp_path: Path, ending: str) -> None:
    whole = _packed(ending, "\n".join(map(str, range(20_000))).encode())
    for content in (b"no packed bytes at all", whole[: len(whole) // 2]):
        (tmp_path / f"f.{ending}").write_bytes(content)
        with pytest.raises(ValueError, match=rf"f\.{ending}' cannot be unpacked \(.*; pack it anew, or rename"):
            read(_lines(tmp_path).build())


def test_a_file_that_vanishes_or_shrinks_is_an_error_with_path_and_remedy(tmp_path: Path) -> None:
    for change, problem in (
        (lambda path: path.unlink(), "f' is gone, or not on this node; leave files in place"),
        (lambda path: os.truncate(path, 0), "f' ends at byte 0, it had 4 bytes when it was listed; leave files"),
    ):
        (tmp_path / "f").write_text("a\nb\n")
        coordinator = Coordinator(_lines(tmp_path / "f").build())
        change(tmp_path / "f")
        with pytest.raises((FileNotFoundError, ValueError), match=problem):
            coordinator.poll()


@pytest.mark.parametrize("charset", ["UTF-8", "UTF-16"])
def test_text_of_another_character_set_is_an_error_with_its_line(tmp_path: Path, charset: str) -> None:
    bad = "a\nb\n".encode(charset) + (b"\xff\n" if charset == "UTF-8" else b"\x00\xd8\x00")
    (tmp_path / "f").write_bytes(bad)
    with pytest.raises(ValueError, match=r"f'.*line 3.* is no utf-.* text .*; pass the file's encoding"):
        read(_lines(tmp_path / "f", charset=charset).build())


def _watching(folder: Path, parallelism: int = 1, state: Any = None, clock: Any = None) -> Coordinator:
    source = _lines(folder).monitor_continuously(Duration.of_seconds(10)).build()
    assert source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED
    return Coordinator(pickle.loads(pickle.dumps(source)), parallelism, state, clock or FixedClock(0))


def _taken(coordinator: Coordinator, subtask: int = 0, polls: int = 8) -> list[str]:
    answers = [coordinator.poll(subtask) for _ in range(polls)]
    assert END not in answers
    return [line for answer in answers if answer is not PENDING for line in rows_of(answer)]


def test_a_file_that_appears_is_read_once_and_one_that_grows_is_not_read_again(tmp_path: Path) -> None:
    clock = FixedClock(1000)
    (tmp_path / "a").write_text("a1\n")
    coordinator = _watching(tmp_path, clock=clock)
    assert _taken(coordinator) == ["a1"]
    assert coordinator.readers[0].next_poll_ms() is None, "it waits for a split, which the enumerator assigns"
    (tmp_path / "b").write_text("b1\n")
    (tmp_path / ".hidden").write_text("no\n")
    (tmp_path / "_hidden").write_text("no\n")
    (tmp_path / "empty").touch()
    with open(tmp_path / "a", "a") as file:
        file.write("a2\n")
    clock.now = 10_999
    assert _taken(coordinator) == []
    clock.now = 11_000
    assert _taken(coordinator) == ["b1"]
    (tmp_path / "empty").write_text("no longer\n")
    clock.now = 30_000
    assert _taken(coordinator) == ["no longer"]
    clock.now = 50_000
    assert _taken(coordinator) == []


def test_files_that_appear_are_assigned_to_all_readers_that_wait(tmp_path: Path) -> None:
    clock = FixedClock(0)
    coordinator = _watching(tmp_path, 3, clock=clock)
    assert [_taken(coordinator, subtask) for subtask in range(3)] == [[], [], []]
    for name in "abcd":
        (tmp_path / name).write_text(f"{name}\n")
    clock.now = 10_000
    first = rows_of(coordinator.poll(0))
    assert [len(reader.snapshot_state()) for reader in coordinator.readers] == [1, 1, 1]
    rest = [line for subtask in (2, 1, 0) for line in _taken(coordinator, subtask)]
    assert sorted([*first, *rest]) == ["a", "b", "c", "d"]


def test_paths_seen_are_in_the_enumerator_s_snapshot_and_positions_in_the_reader_s(tmp_path: Path) -> None:
    clock = FixedClock(0)
    (tmp_path / "a").write_text("a1\na2\na3\n")
    (tmp_path / "b").write_text("b1\n")
    coordinator = _watching(tmp_path, clock=clock)
    assert rows_of(coordinator.poll(0, 2)) == ["a1", "a2"]
    splits = pickle.loads(pickle.dumps(coordinator.readers[0].snapshot_state()))
    state = pickle.loads(pickle.dumps(coordinator.enumerator.snapshot_state()))
    assert {Path(path).name for path in state.seen} == {"a", "b"}
    coordinator.close()
    (tmp_path / "c").write_text("c1\n")
    restored = _watching(tmp_path, state=state, clock=clock)
    restored.readers[0].add_splits(splits)
    assert _taken(restored) == ["a3", "b1", "c1"]


def test_the_source_operator_keeps_the_position_in_a_file_across_a_restore(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("".join(f"{number}\n" for number in range(10)))
    source = _lines(tmp_path / "f").build()
    assigned: list[Any] = []

    coordinator = Coordinator(source)
    coordinator.assign_splits = lambda assignment: assigned.extend(assignment[0])  # type: ignore[method-assign]
    coordinator.enumerator.handle_split_request(0)
    make = lambda: ReaderSourceOperator(source)  # noqa: E731
    harness = OperatorHarness(make)
    assert harness.split_requests == 1
    harness.operators[0].add_splits(assigned)  # type: ignore[attr-defined]
    harness.poll(4)
    with harness.restore(make, harness.snapshot()) as restored:
        restored.operators[0].no_more_splits()  # type: ignore[attr-defined]
        while restored.poll(4):
            pass
        assert restored.split_requests == 0
        assert harness.output_values() + restored.output_values() == [str(number) for number in range(10)]


def test_a_watched_folder_must_be_there_and_a_pattern_may_match_later(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file, folder or match for '.*nowhere'"):
        _watching(tmp_path / "nowhere")
    clock = FixedClock(0)
    coordinator = _watching(tmp_path / "*.txt", clock=clock)
    assert _taken(coordinator) == []
    (tmp_path / "a.txt").write_text("a\n")
    clock.now = 10_000
    assert _taken(coordinator) == ["a"]


def test_a_set_of_files_is_the_default_and_can_be_chosen_again(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n")
    source = _lines(tmp_path).monitor_continuously(Duration.of_seconds(1)).process_static_file_set().build()
    assert source.boundedness is Boundedness.BOUNDED and read(source) == ["a"]


def test_enumerator_and_assigner_can_be_chosen_and_written(tmp_path: Path) -> None:
    for name in ("a.txt", "b.log", "c.txt"):
        (tmp_path / name).write_text(f"{name}\n")

    class OnlyTexts(FileEnumeratorProvider):
        def list_files(self, paths: Any, watching: bool) -> list[str]:
            return [path for path in super().list_files(paths, watching) if path.endswith(".txt")]

    class LastFirst(FileSplitAssignerProvider):
        def choose(self, splits: Any, subtask: int) -> int:
            return len(splits) - 1

    builder = _lines(tmp_path).set_file_enumerator(OnlyTexts()).set_split_assigner(LastFirst())
    assert read(builder.build()) == ["c.txt", "a.txt"]
    (tmp_path / "a.txt").write_text("a\n" * (2 << 20))
    whole = FileEnumeratorProvider.default_non_splittable_file_enumerator()
    parts = Coordinator(_lines(tmp_path / "a.txt").set_file_enumerator(whole).build(), 2).read_all(1 << 20)
    assert sorted(map(len, parts)) == [0, 2 << 20]
    split = FileEnumeratorProvider.default_splittable_file_enumerator()
    parts = Coordinator(_lines(tmp_path / "a.txt").set_file_enumerator(split).build(), 2).read_all(1 << 19)
    assert all(parts) and sum(map(len, parts)) == 2 << 20


def _pairs(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    yield from enumerate(iter(lambda: file.read(2), b""))


@given(st.binary(max_size=20), st.integers(1, 3), st.integers(1, 3))
def test_a_function_reads_a_file_and_goes_on_after_a_restore(
    tmp_path_factory: Any, content: bytes, after: int, max_records: int
) -> None:
    path = tmp_path_factory.mktemp("pairs") / "f"
    path.write_bytes(content)
    source = FileSource.for_record_stream_format(StreamFormat.of(_pairs), str(path)).build()
    want = [(at // 2, content[at : at + 2]) for at in range(0, len(content), 2)]
    assert read_with_restores(source, after, max_records) == want


def test_arguments_are_checked_in_the_line_that_gives_them(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="a StreamFormat is wanted, found str"):
        FileSource.for_record_stream_format("utf-8", str(tmp_path))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a BulkFormat is wanted, found TextLineFormat"):
        FileSource.for_bulk_file_format(StreamFormat.text_line_format(), str(tmp_path))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least one path"):
        _lines().build()
    with pytest.raises(ValueError, match="discovery interval must be at least 1 ms"):
        _lines(tmp_path).monitor_continuously(Duration.of_millis(0))
    with pytest.raises(ValueError, match="ftp://host/x': files cannot be read or written by ftp://; the schemes"):
        _lines("ftp://host/x").build()
    with pytest.raises(ValueError, match="wasbs://.*; write abfss://<container>@<account>"):
        _lines("wasbs://container@account.blob.core.windows.net/x").build()
    with pytest.raises(TypeError, match="StreamFormat.of wants a function of 1 argument"):
        StreamFormat.of(lambda: [])  # type: ignore[misc,arg-type]


def test_a_file_address_is_a_path(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a\n")
    assert read(_lines(f"file://{tmp_path}/f").build()) == read(TextFileSource(tmp_path / "f")) == ["a"]


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a\n")
    assert read(_lines(tmp_path / "f", tmp_path).build()) == ["a"]
    assert RowBatch(["a"]) == Coordinator(_lines(tmp_path).build()).poll()
