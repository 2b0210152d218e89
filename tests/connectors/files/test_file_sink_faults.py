"""The file sink under faults: killed before or after any operation on files, restored from the last checkpoint.

A model runs the subtasks of a sink in this process. A checkpoint knows how many records were given; a restore takes the
last complete one, with any parallelism. Whatever happened, the files that readers see hold no record twice and none
that is in no complete checkpoint, and at the end each record once.
"""

from __future__ import annotations

import builtins
import errno
import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common import Encoder, Row, Types
from rayflink.common.records.batches import RowBatch
from rayflink.connectors.files import part_files
from rayflink.connectors.files.buckets import BucketAssigner
from rayflink.connectors.files.file_blocks import find_files
from rayflink.connectors.files.file_sink import FileSink
from rayflink.connectors.files.file_source import FileSource
from rayflink.connectors.files.rolling import RollingPolicy
from rayflink.connectors.formats.arrow_files import ArrowBulkWriters, ArrowFormat
from rayflink.connectors.formats.csv_writing import CsvLines
from rayflink.connectors.formats.json_files import json_lines_encoder
from rayflink.connectors.formats.orc_files import OrcBulkWriters, OrcFormat
from rayflink.connectors.formats.parquet_files import ParquetBulkWriters, ParquetFormat
from rayflink.operators.base import UserCodeError
from rayflink.operators.sinks import SinkOperator
from rayflink.testing import OperatorHarness, Place, rescaled_snapshots
from rayflink.testing.harness import Snapshots
from tests.connectors.reading import read

OF = Types.ROW_NAMED(["n"], [Types.INT()])
HERE = BucketAssigner.base_path_bucket_assigner()
OPERATIONS = ("mkdir", "replace", "remove", "fsync", "open")


class Killed(BaseException):
    """The process is gone."""


class FaultyFiles:
    """In place of `os` and `open` of the part files: counts operations, and one of them does not return.

    Args:
        fault: raised at the operation; None: the file system only counts.
        at: number of the operation, from 0.
        is_done: whether the operation has happened when the fault is raised.
    """

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []
        self.fault: Callable[[], BaseException] | None = None
        self.at, self.is_done = -1, False
        self._paths: dict[int, str] = {}

    def __getattr__(self, name: str) -> Any:
        found = getattr(os, name)
        return self._watched(name, found) if name in OPERATIONS else found

    def arm(self, fault: Callable[[], BaseException], after: int, is_done: bool) -> None:
        self.fault, self.at, self.is_done = fault, len(self.log) + after, is_done

    def _watched(self, name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            what = self._paths.get(given[0], "?") if name == "fsync" else str(given[name == "replace"])
            number = len(self.log)
            self.log.append((name, what))
            if number == self.at and not self.is_done and self.fault is not None:
                raise self.fault()
            answer = None if name == "fsync" else operation(*given, **named)  # a kill spares the page cache
            if name == "open":
                self._paths[answer if isinstance(answer, int) else answer.fileno()] = what
            if number == self.at and self.fault is not None:
                raise self.fault()
            return answer

        return call

    @contextmanager
    def installed(self) -> Iterator[None]:
        patch = pytest.MonkeyPatch()
        patch.setattr(part_files, "os", self)
        patch.setattr(part_files, "open", self._watched("open", builtins.open), raising=False)
        try:
            yield
        finally:
            patch.undo()


def _rows(form: Any, path: str) -> list[int]:
    return [row.n for row in read(FileSource.for_bulk_file_format(form, path).build())]


def _row_sink(encoder: Encoder, part_size: int) -> Callable[[str], FileSink]:
    policy = RollingPolicy.default_rolling_policy(part_size)
    return lambda folder: (
        FileSink.for_row_format(folder, encoder).with_rolling_policy(policy).with_bucket_assigner(HERE).build()
    )


def _bulk_sink(writers: Any) -> Callable[[str], FileSink]:
    return lambda folder: FileSink.for_bulk_format(folder, writers).with_bucket_assigner(HERE).build()


FORMATS: dict[str, tuple[Callable[[str], FileSink], Callable[[str], list[int]]]] = {
    "text": (_row_sink(Encoder.simple_string_encoder(), 20), lambda path: [int(line[6:-2]) for line in open(path)]),
    "json": (_row_sink(json_lines_encoder(OF), 30), lambda path: [json.loads(line)["n"] for line in open(path)]),
    "csv": (_bulk_sink(CsvLines()), lambda path: [int(line) for line in Path(path).read_text().split()[1:]]),
    "parquet": (_bulk_sink(ParquetBulkWriters.for_row_type(OF)), lambda path: _rows(ParquetFormat(), path)),
    "arrow": (_bulk_sink(ArrowBulkWriters.for_row_type(OF)), lambda path: _rows(ArrowFormat(), path)),
    "orc": (_bulk_sink(OrcBulkWriters.for_row_type(OF)), lambda path: _rows(OrcFormat(), path)),
}
COLUMNS = ("json", "parquet", "arrow", "orc")


class Model:
    """Subtasks of one file sink and the checkpoints they took.

    Args:
        folder: empty.
        kind: of `FORMATS`.
    """

    def __init__(self, folder: Path, kind: str, parallelism: int, files: FaultyFiles) -> None:
        self.folder, self.files = folder, files
        self.make, self.read_file = FORMATS[kind]
        self.next, self.number, self.attempt = 0, 0, -1
        self.last: tuple[int, list[Snapshots]] = (0, [])
        self.subtasks: list[OperatorHarness] = []
        self.zombies: list[OperatorHarness] = []
        self.start(parallelism)

    def start(self, parallelism: int) -> None:
        """Go on from the last complete checkpoint; nobody could tell the old attempt to stop."""
        self.zombies += self.subtasks
        self.subtasks = []
        self.attempt += 1
        self.next, taken = self.last
        snapshots = rescaled_snapshots(taken, parallelism) if taken else [{}] * parallelism
        for subtask in range(parallelism):
            self.subtasks.append(self._harness(subtask, parallelism, snapshots[subtask]))

    def _harness(self, subtask: int, parallelism: int, restore: Snapshots) -> OperatorHarness:
        attempt = self.attempt

        class Numbered(SinkOperator):
            def setup(self, ctx: Any) -> None:
                ctx.attempt = attempt
                super().setup(ctx)

        sink = self.make(str(self.folder))
        return OperatorHarness(lambda: Numbered(sink), place=Place(subtask, parallelism), restore=[restore])

    def write(self, count: int) -> None:
        for _ in range(count):
            self.subtasks[self.next % len(self.subtasks)].process(Row(n=self.next))
            self.next += 1

    def checkpoint(self, how: str) -> None:
        self.number += 1
        taken = [harness.snapshot(self.number) for harness in self.subtasks]
        if how != "aborted":
            self._check_synced()
            self.last = (self.next, taken)
        if how == "complete":
            for harness in self.subtasks:
                harness.notify_checkpoint_complete(self.number)
            self._check_shown()

    def cancel(self, parallelism: int) -> None:
        """The attempt is told to stop, and then there is another."""
        for harness in self.subtasks:
            harness.close()
        self.subtasks = []
        self.start(parallelism)

    def haunt(self) -> None:
        """Attempts that should be dead write on, as far as they can where a kill left them."""
        for zombie in self.zombies:
            writer = zombie.operators[0]._writer  # type: ignore[attr-defined]
            if writer is not None:
                with suppress(UserCodeError, ValueError):
                    zombie.process(Row(n=10**6))
                    for opened in writer._open.values():
                        opened.part.file.flush()

    def finish(self) -> None:
        for harness in self.subtasks:
            harness.end_input()
            harness.close()
        for zombie in self.zombies:
            with suppress(UserCodeError):
                zombie.close()

    def seen(self) -> list[int]:
        """What a reader of the folder finds; it leaves hidden files out."""
        if not any(self.folder.iterdir()):
            return []
        return [number for path in find_files([str(self.folder)]) for number in self.read_file(path)]

    def check(self) -> None:
        seen = Counter(self.seen())
        assert max(seen.values(), default=1) == 1, f"records twice: {seen}"
        assert all(number < self.last[0] for number in seen), "seen before its checkpoint was complete"

    def _check_synced(self) -> None:
        """What the checkpoint relies on is on the disk: files, and their names."""
        last = {path: at for at, (name, path) in enumerate(self.files.log) if name == "fsync"}
        for at, (name, path) in enumerate(self.files.log):
            if name == "open" and path.endswith(f".inprogress.0.{self.attempt}") and os.path.exists(path):
                assert last.get(path, -1) > at or not os.path.getsize(path), f"{path} is not on the disk"
                assert last.get(os.path.dirname(path), -1) > at, f"the name {path} is not on the disk"

    def _check_shown(self) -> None:
        """What is visible is so on the disk, and what it was made of went after that."""
        synced: set[str] = set()
        for name, path in reversed(self.files.log):
            if name == "fsync":
                synced.add(path)
            elif name == "replace":
                assert os.path.dirname(path) in synced, f"the name {path} is not on the disk"


def _play(model: Model, history: list[tuple[str, Any]]) -> None:
    for step, argument in history:
        getattr(model, step)(argument)
        model.check()


STORY: list[tuple[str, Any]] = [
    ("write", 5), ("checkpoint", "complete"), ("write", 3), ("checkpoint", "unheard"), ("write", 2),
    ("checkpoint", "aborted"), ("write", 4), ("checkpoint", "complete"), ("write", 1),
]  # fmt: skip


def _run_with_a_fault(folder: Path, kind: str, at: int, is_done: bool, parallelism: int) -> bool:
    """Play the story, killed at an operation, and then to its end on another parallelism; False: there is none."""
    files = FaultyFiles()
    with files.installed():
        model = Model(folder, kind, 2, files)
        files.arm(Killed, at, is_done)
        try:
            _play(model, STORY)
        except Killed:
            files.fault = None
            model.start(parallelism)
            model.check()
            model.haunt()
        was_killed = files.fault is None
        files.fault = None
        model.write(20 - model.next)
        model.checkpoint("complete")
        model.check()
        model.finish()
    assert sorted(model.seen()) == list(range(20))
    if was_killed:
        assert not any(".cut" in path.name for path in folder.iterdir())
    return was_killed


@pytest.mark.slow
@pytest.mark.spec("H24")
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("kind", ["text", "parquet"])
def test_a_kill_at_any_operation_on_files_leaves_each_record_once(tmp_path: Path, kind: str, is_done: bool) -> None:
    at = 0
    while True:
        folder = tmp_path / str(at)
        folder.mkdir()
        if not _run_with_a_fault(folder, kind, at, is_done, 1 + at % 3):
            break
        at += 1
    assert at > 25


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "parallelism"), [
    pytest.param(kind, parallelism, marks=() if parallelism == 1 + number % 3 else pytest.mark.soak)
    for number, kind in enumerate(FORMATS) for parallelism in (1, 2, 3)
])  # fmt: skip
def test_a_kill_while_the_restore_commits_is_made_good_by_the_next_one(
    tmp_path: Path, kind: str, parallelism: int
) -> None:
    at, is_left = 0, True
    while is_left:
        for is_done in (False, True):
            folder = tmp_path / f"{at}-{is_done}"
            folder.mkdir()
            files = FaultyFiles()
            with files.installed():
                model = Model(folder, kind, 2, files)
                _play(model, STORY[:-2])
                model.checkpoint("unheard")
                model.write(2)
                files.arm(Killed, at, is_done)
                try:
                    model.start(parallelism)
                    is_left = False
                except Killed:
                    files.fault = None
                    model.check()
                    model.start(3)
                files.fault = None
                model.check()
                model.haunt()
                model.write(20 - model.next)
                model.finish()
            assert sorted(model.seen()) == list(range(20))
        at += 1
    assert at > 2


histories = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 6)),
        st.tuples(st.just("checkpoint"), st.sampled_from(["complete", "unheard", "aborted"])),
        st.tuples(st.sampled_from(["start", "cancel"]), st.integers(1, 3)),
        st.tuples(st.just("kill"), st.tuples(st.integers(0, 12), st.booleans())),
    ),
    max_size=14,
)


@pytest.mark.spec("H24")
@pytest.mark.parametrize("kind", ["text", "csv", *(pytest.param(kind, marks=pytest.mark.slow) for kind in COLUMNS)])
@settings(max_examples=15)
@given(parallelism=st.integers(1, 3), history=histories)
def test_whatever_happens_each_record_is_seen_once(
    tmp_path_factory: Any, kind: str, parallelism: int, history: list[tuple[str, Any]]
) -> None:
    folder, files = tmp_path_factory.mktemp("out"), FaultyFiles()
    with files.installed():
        model = Model(folder, kind, parallelism, files)
        for step, argument in history:
            try:
                if step == "kill":
                    files.arm(Killed, *argument)
                else:
                    getattr(model, step)(argument)
                    model.haunt()
            except Killed:
                files.fault = None
                model.start(parallelism)
            model.check()
        files.fault = None
        model.finish()
    assert sorted(model.seen()) == list(range(model.next))


def test_a_commit_that_the_file_system_refuses_is_tried_again(tmp_path: Path) -> None:
    files = FaultyFiles()
    with files.installed():
        model = Model(tmp_path, "text", 1, files)
        model.write(5)
        taken = model.subtasks[0].snapshot(1)
        assert taken
        files.arm(lambda: OSError(errno.EIO, "broken"), 0, False)
        model.last = (5, [taken])
        model.subtasks[0].notify_checkpoint_complete(1)
        files.fault = None
        assert len(model.seen()) < 5
        model.subtasks[0].set_processing_time(100)
        model.write(0)
        model.subtasks[0].end_input()
        model.subtasks[0].close()
    assert sorted(model.seen()) == [0, 1, 2, 3, 4]


def test_of_a_file_that_has_not_grown_nothing_is_written_to_the_disk(tmp_path: Path) -> None:
    with (files := FaultyFiles()).installed():
        model = Model(tmp_path, "text", 1, files)
        model.write(1)
        model.checkpoint("complete")
        before = len(files.log)
        model.checkpoint("complete")
        assert files.log[before:] == []
        model.write(1)
        model.checkpoint("complete")
        assert [name for name, _ in files.log[before:]] == ["fsync"]
        model.finish()
    assert sorted(model.seen()) == [0, 1]


def test_the_leftovers_of_many_subtasks_are_found_in_one_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (files := FaultyFiles()).installed():
        model = Model(tmp_path, "csv", 8, files)
        model.write(8)
        model.checkpoint("complete")
        model.write(8)
        assert len([path for path in tmp_path.iterdir() if path.name.startswith(".")]) == 8
        walked: list[str] = []
        walk = os.walk
        monkeypatch.setattr(os, "walk", lambda folder: walked.append(folder) or walk(folder))
        model.start(1)
        assert walked == [str(tmp_path)]
        assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
        model.write(1)
        model.finish()
    assert sorted(model.seen()) == list(range(9))


def test_no_number_is_given_twice_when_an_older_checkpoint_is_restored(tmp_path: Path) -> None:
    with (files := FaultyFiles()).installed():
        model = Model(tmp_path, "csv", 1, files)
        model.write(1)
        model.checkpoint("complete")
        older = model.last
        model.write(1)
        model.checkpoint("complete")
        model.last = older
        model.start(1)
        model.write(1)
        model.finish()
    assert sorted(model.seen()) == [0, 1, 1]  # what was seen before stays as it was
    assert len(list(tmp_path.iterdir())) == 3


def test_a_hidden_file_that_is_gone_is_an_error_with_the_remedies(tmp_path: Path) -> None:
    with (files := FaultyFiles()).installed():
        model = Model(tmp_path, "csv", 1, files)
        model.write(1)
        model.checkpoint("unheard")
        (hidden,) = tmp_path.iterdir()
        hidden.unlink()
        remedies = r"is the same on every node, and if the file was shown and then moved away, put an empty file"
        with pytest.raises(UserCodeError, match=remedies):
            model.start(1)
        (tmp_path / hidden.name[1:].partition(".")[0]).touch()
        model.start(1)
        model.finish()


def test_readers_of_a_folder_see_nothing_of_what_is_written_there(tmp_path: Path) -> None:
    sink = FORMATS["text"][0](str(tmp_path))
    with OperatorHarness(lambda: SinkOperator(sink)) as harness:
        harness.process_batch(RowBatch([Row(n=1), Row(n=2)]))
        harness.snapshot(1)
        assert len(list(tmp_path.iterdir())) == 1
        with pytest.raises(FileNotFoundError):
            find_files([str(tmp_path / "part-*")])
        assert find_files([str(tmp_path)]) == []


@pytest.mark.parametrize("kind", FORMATS)
def test_a_full_disk_is_an_error_that_names_the_folder_and_everything_is_closed(tmp_path: Path, kind: str) -> None:
    """The disk takes nothing any more from some moment on; Arrow's ORC would end the process."""
    make, _ = FORMATS[kind]
    harness = OperatorHarness(lambda: SinkOperator(make(str(tmp_path))))
    harness.process(Row(n=1))
    writer: Any = harness.operators[0]._writer  # type: ignore[attr-defined]
    (opened,) = writer._open.values()
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, opened.part.file.fileno())
    os.close(full)
    numbers = random.Random(1)
    with pytest.raises(UserCodeError, match=f"cannot write below .*{tmp_path.name}.* No space left.*; free space"):
        harness.process_batch(RowBatch([Row(n=numbers.getrandbits(31)) for _ in range(5_000)]))
        harness.end_input()
    harness.close()
    assert opened.part.file.closed and not list(tmp_path.iterdir())


def test_a_writer_that_raises_as_it_is_given_up_keeps_no_other_file_open(tmp_path: Path) -> None:
    class Stubborn(CsvLines):
        def create(self, file: Any) -> Any:
            writer = super().create(file)
            writer.abandon = _raise  # type: ignore[method-assign]
            return writer

    class EachItsOwn(BucketAssigner):
        def get_bucket_id(self, element: Any, context: Any) -> str:
            return str(element.n)

    sink = FileSink.for_bulk_format(str(tmp_path), Stubborn()).with_bucket_assigner(EachItsOwn()).build()
    harness = OperatorHarness(lambda: SinkOperator(sink))
    harness.process_batch(RowBatch([Row(n=1), Row(n=2)]))
    opened = list(harness.operators[0]._writer._open.values())  # type: ignore[attr-defined]
    with pytest.raises(UserCodeError, match="failed in close: OSError: stubborn"):
        harness.close()
    assert [one.part.file.closed for one in opened] == [True, True]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def _raise() -> None:
    raise OSError("stubborn")
