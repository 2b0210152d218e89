"""Text and CSV files as sources, part files as sinks."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.records.batches import ArrowBatch, RowBatch
from rayflink.common.typeinfo import Types
from rayflink.common.types import Row
from rayflink.connectors.files import file_blocks
from rayflink.connectors.files.buckets import BucketAssigner
from rayflink.connectors.files.file_blocks import FileSplit, LineBlocks, find_files, splits_of
from rayflink.connectors.files.file_sink import FileSink
from rayflink.connectors.formats.csv_files import CsvFileSource
from rayflink.connectors.formats.csv_writing import csv_file_sink, text_file_sink
from rayflink.connectors.formats.json_files import json_lines_encoder
from rayflink.connectors.formats.text_files import TextFileSource
from rayflink.operators.base import UserCodeError
from rayflink.operators.sinks import SinkOperator
from rayflink.state.snapshots import InlineSnapshots, loaded, stored
from tests.connectors.reading import Coordinator, read, read_with_restores
from tests.operators.running import context, opened


def _lines_of(path: Path, bounds: list[int], block_bytes: int) -> bytes:
    out = b""
    for start, stop in zip(bounds, bounds[1:], strict=False):
        blocks = LineBlocks(FileSplit(str(path), start, stop), block_bytes)
        while block := blocks.next():
            out += block
        blocks.close()
    return out


@given(
    st.lists(st.sampled_from([b"", b"a", b"bc", b"\r", b"def"]), max_size=8).map(b"\n".join),
    st.lists(st.integers(0, 30), max_size=4),
    st.integers(1, 9),
)
def test_every_line_is_in_exactly_one_split_wherever_the_cuts_are(
    tmp_path_factory: Any, content: bytes, cuts: list[int], block_bytes: int
) -> None:
    path = tmp_path_factory.mktemp("lines") / "f"
    path.write_bytes(content)
    size = len(content)
    bounds = sorted({0, size, *(cut for cut in cuts if cut < size)})
    assert _lines_of(path, bounds, block_bytes) == content


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_blocks, "BLOCK_BYTES", 16)
    monkeypatch.setattr(file_blocks, "SPLIT_BYTES", 64)
    monkeypatch.setattr(LineBlocks.__init__, "__defaults__", (16,))


@pytest.mark.usefixtures("small_blocks")
def test_one_file_is_read_by_several_readers_at_once_and_each_line_once(tmp_path: Path) -> None:
    lines = [f"line {number} {'x' * (number % 13)}" for number in range(200)]
    (tmp_path / "f.txt").write_text("\n".join(lines))
    parts = Coordinator(TextFileSource(tmp_path / "f.txt"), 3).read_all(7)
    assert sorted(line for part in parts for line in part) == sorted(lines)
    assert all(len(part) > 20 for part in parts)
    assert read(TextFileSource(tmp_path / "f.txt")) == lines


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16", "shift_jis"])
@pytest.mark.parametrize("after", [1, 2])
def test_lines_of_any_encoding_survive_restores(tmp_path: Path, encoding: str, after: int) -> None:
    word = "漢字" if encoding in ("shift_jis", "utf-8") else "é"
    lines = [f"{word * (number % 5)} {number}" for number in range(40)] + ["", "end"]
    (tmp_path / "f").write_bytes("\r\n".join(lines).encode(encoding))
    source = pickle.loads(pickle.dumps(TextFileSource(tmp_path / "f", encoding=encoding)))
    assert read_with_restores(source, after, 3) == lines


def test_only_line_feeds_end_lines(tmp_path: Path) -> None:
    text = "a\x0bb\x0cc\x85d\u2028e\rf\n\ng\r\n"
    (tmp_path / "f").write_bytes(text.encode())
    assert read(TextFileSource(tmp_path / "f")) == ["a\x0bb\x0cc\x85d\u2028e\rf", "", "g"]
    (tmp_path / "wide").write_bytes(text.encode("utf-16"))
    assert read(TextFileSource(tmp_path / "wide", encoding="utf-16")) == ["a\x0bb\x0cc\x85d\u2028e\rf", "", "g"]


@pytest.mark.usefixtures("small_blocks")
def test_packed_files_are_unpacked_and_can_be_resumed(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(50)]
    (tmp_path / "a.gz").write_bytes(gzip.compress("\n".join(lines[:25]).encode()))
    (tmp_path / "b.bz2").write_bytes(bz2.compress("\n".join(lines[25:]).encode()))
    assert read_with_restores(TextFileSource(tmp_path), 2, 4) == lines


def test_folders_and_patterns_name_their_files_without_hidden_ones(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", ".hidden", "_tmp", "sub/c.txt", "sub/.part"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert [Path(path).name for path in find_files([str(tmp_path)])] == ["a.txt", "b.txt", "c.txt"]
    assert [Path(path).name for path in find_files([str(tmp_path / "*.txt")])] == ["a.txt", "b.txt"]
    with pytest.raises(FileNotFoundError, match="no file, folder or match for '/nowhere'"):
        find_files(["/nowhere"])


def test_splits_are_at_most_16_mb_and_smaller_for_more_readers(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with open(path, "wb") as file:
        file.truncate(40 << 20)
    (tmp_path / "empty").touch()
    assert [split.start >> 20 for split in splits_of([str(path)], 1)] == [0, 16, 32]
    assert len(splits_of([str(path)], 8)) == 8
    assert len(splits_of([str(path)], 1000)) == 40
    assert splits_of([str(tmp_path / "empty")], 1) == []


REWRITES = {
    TextFileSource: ("".join(f"line {n}\n" for n in range(100)), "".join(f"LINE-longer {n}\n" for n in range(100))),
    CsvFileSource: ("n\n" + "".join(f"{n}\n" for n in range(100)), "n\n" + "".join(f"{n}{n}\n" for n in range(100))),
}


def _touched(path: Path, seconds: int) -> None:
    """Give the file another time, however coarse the clock of its file system is."""
    os.utime(path, (seconds, seconds))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("kind", REWRITES)
@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_file_written_anew_in_place_while_it_is_read_is_an_error(tmp_path: Path, kind: Any, parallelism: int) -> None:
    before, after = REWRITES[kind]
    path = tmp_path / "f"
    path.write_text(before)
    _touched(path, 1000)
    coordinator = Coordinator(kind(path), parallelism)
    assert len(coordinator.poll(0, 2)) == 2
    path.write_text(after)
    with pytest.raises(ValueError, match="f' (was written anew|has other bytes at).*; leave files as they are"):
        coordinator.read_all()
    coordinator.close()


def test_a_small_file_rewritten_while_it_is_read_is_an_error_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("a\n" * (1 << 18))
    _touched(path, 1000)
    blocks = LineBlocks(splits_of([str(path)], 1)[0], 1 << 18)
    assert blocks.next() == b"a\n" * (1 << 17)
    path.write_text("xyz\n" * (1 << 18))
    blocks.next()
    found = "was written anew while it was read: bytes 0 to 524288 are not those that were read"
    with pytest.raises(ValueError, match=f"f' {found}; leave files as they are"):
        blocks.next()
    blocks.close()


@pytest.mark.usefixtures("small_blocks")
def test_a_file_that_only_grows_or_is_touched_is_read_as_it_was_listed(tmp_path: Path) -> None:
    lines = [f"line {n}" for n in range(100)]
    path = tmp_path / "f"
    path.write_text("\n".join(lines) + "\n")
    _touched(path, 1000)
    coordinator = Coordinator(TextFileSource(path), 3)
    found = list(coordinator.poll(0, 2).values)
    with path.open("a") as file:
        file.write("more\n" * 1000)
    _touched(path, 2000)
    found += [line for part in coordinator.read_all() for line in part]
    assert sorted(found) == sorted(lines)


def test_a_job_does_not_go_on_in_a_file_that_was_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("a\nb\nc\n")
    source = TextFileSource(path)
    first = Coordinator(source)
    assert first.poll(0, 2).values == ["a", "b"]
    splits, state = first.readers[0].snapshot_state(), first.enumerator.snapshot_state()
    first.close()
    path.write_text("aa\nbb\ncc\n")
    second = Coordinator(source, state=state)
    second.readers[0].add_splits(splits)
    with pytest.raises(ValueError, match="f' has other bytes at 0 than when it was listed or last read; leave files"):
        second.poll()
    second.close()


def test_text_in_another_encoding_is_an_error_with_place_and_remedy(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"ab\xff\n")
    with pytest.raises(ValueError, match="byte 2 of .*, in line 1, is no utf-8 text .* pass the file's encoding="):
        read(TextFileSource(tmp_path / "f"))
    with pytest.raises(LookupError):
        TextFileSource(tmp_path / "f", encoding="no-such")


CSV = 'id,name,score\n1,a,1.5\n2,"b,b",NA\n3,,2\n'


def test_csv_records_have_the_header_s_names_and_inferred_types(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text(CSV)
    rows = [Row(id=1, name="a", score=1.5), Row(id=2, name="b,b", score=None), Row(id=3, name=None, score=2.0)]
    source = CsvFileSource(tmp_path / "f.csv")
    assert read(source) == read(CsvFileSource(tmp_path / "f.csv", rows=True)) == rows
    assert isinstance(Coordinator(source).poll(), ArrowBatch)
    assert isinstance(Coordinator(CsvFileSource(tmp_path / "f.csv", rows=True)).poll(), RowBatch)
    assert read(CsvFileSource(tmp_path / "f.csv", columns=["score", "id"]))[0] == Row(score=1.5, id=1)


@pytest.mark.usefixtures("small_blocks")
def test_csv_parts_read_in_parallel_or_resumed_give_each_record_once(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("n,text\n" + "".join(f"{n},t{n}\n" for n in range(150)))
    want = [Row(n=n, text=f"t{n}") for n in range(150)]
    parts = Coordinator(CsvFileSource(tmp_path / "f.csv"), 2).read_all(5)
    assert sorted((row for part in parts for row in part), key=lambda row: row.n) == want
    assert all(parts)
    assert read_with_restores(CsvFileSource(tmp_path / "f.csv"), 2, 4) == want


@pytest.mark.usefixtures("small_blocks")
def test_csv_values_that_do_not_fit_are_an_error_with_the_remedy(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    (tmp_path / "f.csv").write_text("n\n" + "1\n" * 40 + "x\n")
    schema = pyarrow.schema([("n", pyarrow.int64())])
    with pytest.raises(ValueError, match="f.csv', line 42: .*invalid value 'x'; .*pass schema="):
        read(CsvFileSource(tmp_path / "f.csv", schema=schema))
    (tmp_path / "other.csv").write_text("m\n1\n")
    with pytest.raises(ValueError, match="has columns m; wanted are n"):
        read(CsvFileSource(tmp_path / "other.csv", schema=schema))


POEM = "id,text\n" + "".join(f'{n},"one ""{n}"", {n}\n{n},like a row\n"\n' for n in range(60))


@pytest.mark.usefixtures("small_blocks")
def test_line_ends_in_quoted_csv_values_are_read_whole_where_they_are_announced(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text(POEM)
    want = [Row(id=n, text=f'one "{n}", {n}\n{n},like a row\n') for n in range(60)]
    source = CsvFileSource(tmp_path / "f.csv", newlines_in_values=True)
    assert [row for part in Coordinator(source, 2).read_all(5) for row in part] == want
    assert read_with_restores(CsvFileSource(tmp_path / "f.csv", newlines_in_values=True), 2, 4) == want


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("content", [POEM, 'a,b\n5" pipe,"one more line\nand two"\n'])
def test_line_ends_in_quoted_csv_values_are_refused_where_they_are_not(tmp_path: Path, content: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    (tmp_path / "f.csv").write_text(content)
    names = content.splitlines()[0].split(",")
    schema = pyarrow.schema([(name, pyarrow.string()) for name in names])
    with pytest.raises(ValueError, match="a quoted value does not end where its part ends; .*newlines_in_values=True"):
        Coordinator(CsvFileSource(tmp_path / "f.csv", schema=schema), 3).read_all(5)


def test_a_quote_inside_an_unquoted_csv_value_is_only_a_character(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text('a,b\n5" pipe,"x, ""y"""\n')
    assert read(CsvFileSource(tmp_path / "f.csv")) == [Row(a='5" pipe', b='x, "y"')]


@pytest.mark.parametrize("kind", [TextFileSource, CsvFileSource])
def test_a_pipe_is_refused_as_a_file_before_anything_reads_it(tmp_path: Path, kind: Any) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe' is a pipe, socket or device.*add_source"):
        kind(tmp_path / "pipe")
    with pytest.raises(ValueError, match="a regular file is wanted"):
        find_files([str(tmp_path)])


def _write(sink: FileSink, *batches: RowBatch | ArrowBatch, **facts: Any) -> None:
    operator = opened(SinkOperator(sink), **facts)
    for batch in batches:
        assert list(operator.process(batch, 0)) == []
    list(operator.finish())
    operator.close()


def _content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


@pytest.mark.spec("C26", "rolling-files")
def test_each_subtask_writes_part_files_that_roll_by_size(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    _write(text_file_sink(out, roll_bytes=6), RowBatch(["abc", "de"]), RowBatch(["f"]), subtask=1)
    _write(text_file_sink(out), RowBatch([1, None]), subtask=0)
    assert _content(out) == {"part-0-0.txt": "1\nNone\n", "part-1-0.txt": "abc\nde\n", "part-1-1.txt": "f\n"}


def test_csv_part_files_hold_header_and_quoted_values(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    _write(csv_file_sink(tmp_path), RowBatch([Row(a=1, b='x"y'), Row(a=None, b="p,q")]), subtask=0)
    _write(csv_file_sink(tmp_path, header=["h", "i"]), RowBatch([(1, 2.5)]), subtask=1)
    _write(csv_file_sink(tmp_path, delimiter=";"), ArrowBatch(pyarrow.RecordBatch.from_pydict({"z": [1]})), subtask=2)
    _write(csv_file_sink(tmp_path), RowBatch([{"a": 1, "b": 2}]), RowBatch([{"b": 3, "a": 4}]), subtask=3)
    assert _content(tmp_path) == {
        "part-0-0.csv": 'a,b\n1,"x""y"\n,"p,q"\n',
        "part-1-0.csv": "h,i\n1,2.5\n",
        "part-2-0.csv": "z\n1\n",
        "part-3-0.csv": "a,b\n1,2\n4,3\n",
    }


@pytest.mark.parametrize("sink", [csv_file_sink, "json"])
def test_numbers_of_32_bits_are_written_with_the_digits_they_have(tmp_path: Path, sink: Any) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    of = Types.ROW_NAMED(["f", "d"], [Types.FLOAT(), Types.DOUBLE()])
    if sink == "json":
        made: Any = FileSink.for_row_format(str(tmp_path), json_lines_encoder())
        made = made.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
        wanted = '{"f":1.1,"d":1.1}\n'
    else:
        made, wanted = sink(tmp_path), "f,d\n1.1,1.1\n"
    rows = RowBatch([of.convert(Row(f=1.1, d=1.1))])
    assert rows.values[0].f != 1.1
    _write(made.for_type(of), rows)
    schema = pyarrow.schema([("f", pyarrow.float32()), ("d", pyarrow.float64())])
    columns = ArrowBatch(pyarrow.RecordBatch.from_pydict({"f": [1.1], "d": [1.1]}, schema))
    _write(made.for_type(of), columns, subtask=1)
    assert [path.read_text() for path in tmp_path.iterdir()] == [wanted, wanted]


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 9), st.text(st.sampled_from('a\r\n",é'))), min_size=1))
def test_csv_files_give_back_every_text_whatever_line_ends_it_holds(
    tmp_path_factory: Any, records: list[tuple[int, str]]
) -> None:
    folder = tmp_path_factory.mktemp("csv")
    _write(csv_file_sink(folder, header=["n", "t"]), RowBatch(records))
    content = (folder / "part-0-0.csv").read_bytes().decode()
    assert list(csv.reader(io.StringIO(content, newline="")))[1:] == [[str(n), text] for n, text in records]
    assert content.startswith("n,t\n") and content.endswith("\n") and not content.endswith("\r\n")


@pytest.mark.parametrize("late", [{"a": 3, "c": 4}, Row(a=3, b=4, c=5)])
def test_a_field_that_csv_files_have_no_column_for_is_an_error_and_not_left_out(tmp_path: Path, late: Any) -> None:
    operator = opened(SinkOperator(csv_file_sink(tmp_path)))
    operator.process(RowBatch([{"a": 1, "b": 2}, {"a": 1}]), 0)
    told = r"on record .*=?4.*: ValueError: field 'c' has no column, the file's are a, b; give the first record all"
    with pytest.raises(UserCodeError, match=told):
        operator.process(RowBatch([late]), 0)
    operator.close()


def test_a_cancelled_job_leaves_no_file_and_a_new_attempt_removes_a_dead_ones(tmp_path: Path) -> None:
    operator = opened(SinkOperator(text_file_sink(tmp_path, roll_bytes=2)))
    list(operator.process(RowBatch(["whole"]), 0))
    list(operator.process(RowBatch(["a"]), 0))
    assert all(path.name.startswith(".") for path in tmp_path.iterdir()) and len(_content(tmp_path)) == 2
    operator.close()
    assert _content(tmp_path) == {}
    (tmp_path / ".part-0-0.txt.inprogress.0.0").write_text("half")
    (tmp_path / ".part-1-0.txt.inprogress.0.0").write_text("another's")
    _write(text_file_sink(tmp_path), RowBatch(["b"]), attempt=1)
    assert _content(tmp_path) == {".part-1-0.txt.inprogress.0.0": "another's", "part-0-0.txt": "b\n"}


def test_with_checkpoints_files_become_visible_once_theirs_is_complete(tmp_path: Path) -> None:
    sink = text_file_sink(tmp_path)
    operator = opened(SinkOperator(sink), checkpointing=True)
    list(operator.process(RowBatch(["a"]), 0))
    list(operator.prepare_snapshot(1))
    snapshot = operator.snapshot_state(1)
    assert snapshot is not None
    list(operator.process(RowBatch(["b"]), 0))
    visible = lambda: [path.name for path in tmp_path.glob("part-*")]  # noqa: E731
    assert visible() == []
    operator.notify_checkpoint_complete(1)
    operator.notify_checkpoint_complete(1)
    assert visible() == ["part-0-0.txt"]
    operator.close()  # fails here

    restored = SinkOperator(sink)
    restored.setup(context(attempt=1, checkpointing=True))
    restored.initialize_state((snapshot,))
    restored.open()  # commits again what checkpoint 1 holds
    list(restored.process(RowBatch(["b"]), 0))
    list(restored.finish())
    assert visible() == ["part-0-0.txt"]
    list(restored.prepare_snapshot(2))
    restored.snapshot_state(2)
    restored.notify_checkpoint_complete(2)
    restored.close()
    assert _content(tmp_path) == {"part-0-0.txt": "a\n", "part-0-1.txt": "b\n"}


def test_a_checkpoint_whose_notice_was_lost_is_committed_by_the_restore(tmp_path: Path) -> None:
    operator = opened(SinkOperator(text_file_sink(tmp_path)), checkpointing=True)
    list(operator.process(RowBatch(["a"]), 0))
    list(operator.prepare_snapshot(1))
    snapshot = operator.snapshot_state(1)
    operator.close()
    assert snapshot is not None
    restored = SinkOperator(text_file_sink(tmp_path))
    restored.setup(context(attempt=1, checkpointing=True))
    inline = InlineSnapshots(1)
    restored.initialize_state((loaded(stored(snapshot, inline), inline),))
    restored.open()
    restored.close()
    assert _content(tmp_path) == {"part-0-0.txt": "a\n"}


def test_without_checkpoints_all_files_are_visible_at_the_end_whatever_the_option(
    tmp_path: Path,
) -> None:
    operator = opened(SinkOperator(text_file_sink(tmp_path)), config={"execution.checkpointing.interval": "1 s"})
    list(operator.process(RowBatch(["a"]), 0))
    list(operator.prepare_snapshot(1))
    operator.snapshot_state(1)  # taken, but never said to be complete
    list(operator.process(RowBatch(["b"]), 0))
    list(operator.finish())
    operator.close()
    assert _content(tmp_path) == {"part-0-0.txt": "a\n", "part-0-1.txt": "b\n"}


def test_a_folder_that_cannot_be_made_is_an_error_that_names_the_operator(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserCodeError, match="operator 'op' failed in open: (FileExistsError|NotADirectoryError)"):
        opened(SinkOperator(text_file_sink(tmp_path / "file")))
