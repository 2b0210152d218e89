"""check_sink and check_source pass connectors that keep their promise, and find planted faults."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from rayflink.common.connector_base.commits import CommitRequest
from rayflink.common.connector_base.delivery_guarantee import DeliveryGuarantee
from rayflink.common.connector_base.sink import (
    Committer,
    CommitterContext,
    GlobalCommitter,
    Sink,
    SinkWriter,
    WriterContext,
)
from rayflink.common.connector_base.source import (
    PENDING,
    Boundedness,
    EnumeratorContext,
    PendingSplits,
    Polled,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.records.batches import Batch, RowBatch, rows_of
from rayflink.common.serialization import Encoder
from rayflink.common.time import Duration
from rayflink.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    RollingPolicy,
    StreamFormat,
)
from rayflink.testing import SinkSubject, SourceSubject, check_sink, check_source
from rayflink.testing.connector_laws.crash_points import GLOBAL_SINK_PLACES, CrashPoints
from rayflink.testing.connector_laws.crashing_job import quick_collections


@dataclass
class System:
    """An outside system in memory: a log with a few partitions, and transactions."""

    committed: dict[str, list[int]] = field(default_factory=dict)
    partitions: list[list[int]] = field(default_factory=lambda: [[], []])
    commits: int = 0
    offsets: dict[int, int] = field(default_factory=dict)


SYSTEM = System()
FAULTS = ("appends again", "shows at once", "forgets what it prepared")


class PlantedSink(Sink):
    """Numbers in transactions with ids of their own; with a planted fault where one is named."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        return PlantedWriter(self.fault)

    def create_committer(self) -> Committer:
        return PlantedCommitter(self.fault)


class PlantedWriter(SinkWriter):
    def __init__(self, fault: str) -> None:
        self._fault, self._rows = fault, list[int]()

    def write(self, batch: Batch) -> None:
        if self._fault == "shows at once":
            SYSTEM.committed[os.urandom(8).hex()] = list(rows_of(batch))
        else:
            self._rows += rows_of(batch)

    def flush(self, end_of_input: bool) -> None:
        pass

    def prepare_commit(self) -> Sequence[Any]:
        rows, self._rows = self._rows, []
        forgets = self._fault == "forgets what it prepared" and len(rows) > 20
        return [(os.urandom(8).hex(), rows)] if rows and not forgets else []

    def close(self) -> None:
        pass


class PlantedCommitter(Committer):
    def __init__(self, fault: str) -> None:
        self._fault = fault

    def commit(self, requests: Sequence[CommitRequest[Any]]) -> None:
        for request in requests:
            name, rows = request.get_committable()
            SYSTEM.commits += 1
            SYSTEM.committed[f"{name} {SYSTEM.commits}" if self._fault == "appends again" else name] = rows


class Planted(SinkSubject):
    fault = ""

    def __init__(self) -> None:
        SYSTEM.committed.clear()

    def create_sink(self) -> Sink:
        return PlantedSink(self.fault)

    def read(self) -> Iterable[int]:
        return [number for rows in SYSTEM.committed.values() for number in rows]


@pytest.mark.slow
def test_a_sink_that_keeps_its_promise_passes() -> None:
    check_sink(Planted, seeds=range(3))


@pytest.mark.slow
@pytest.mark.parametrize("planted", FAULTS)
def test_the_planted_fault_of_a_sink_is_found(planted: str) -> None:
    class Faulty(Planted):
        fault = planted

    with pytest.raises(AssertionError, match="records are (there twice|lost)"):
        check_sink(Faulty, seeds=range(8))


class PlantedGlobalSink(Sink):
    """The same numbers, of which one committer commits those of all writers."""

    def __init__(self, fault: str) -> None:
        self.fault = fault

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        return PlantedWriter(self.fault)

    def create_global_committer(self, ctx: CommitterContext) -> GlobalCommitter:
        return PlantedGlobalCommitter(self.fault)


class PlantedGlobalCommitter(PlantedCommitter, GlobalCommitter):
    def combine(self, checkpoint_id: int, committables: Sequence[Any]) -> Any:
        combined = committables[:1] if self._fault == "combines only the first" else committables
        return committables[0][0], [row for _, rows in combined for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("planted", ["", "appends again", "combines only the first"])
def test_a_global_committer_is_held_against_the_laws(planted: str) -> None:
    class Global(Planted):
        def create_sink(self) -> Sink:
            return PlantedGlobalSink(planted)

    if not planted:
        check_sink(Global, seeds=range(3))
        return
    with pytest.raises(AssertionError, match="records are (there twice|lost)"):
        check_sink(Global, seeds=range(8))


@pytest.mark.slow
def test_places_before_and_after_combine_are_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    passed: set[str] = set()
    monkeypatch.setattr(CrashPoints, "reach", classmethod(lambda cls, name, place: passed.add(place)))

    class Global(Planted):
        def create_sink(self) -> Sink:
            return PlantedGlobalSink("")

    check_sink(Global, seeds=range(1), records=60)
    assert passed == {*GLOBAL_SINK_PLACES}


@pytest.mark.parametrize("frozen", [0, 5])
def test_collections_look_at_what_a_check_has_made_alone(frozen: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    for name in ("collect", "freeze", "unfreeze"):
        monkeypatch.setattr(gc, name, lambda name=name: calls.append(name))
    monkeypatch.setattr(gc, "get_freeze_count", lambda: frozen)
    with pytest.raises(AssertionError, match="a law is broken"), quick_collections():
        assert calls == ["collect", "freeze"], "garbage of before is not frozen"
        raise AssertionError("a law is broken")
    assert calls[2:] == ([] if frozen else ["unfreeze"]), "what the program froze stays frozen"


@pytest.mark.slow
def test_at_least_once_may_repeat_but_not_lose() -> None:
    class Repeating(Planted):
        fault = "appends again"
        guarantee = DeliveryGuarantee.AT_LEAST_ONCE

    check_sink(Repeating, seeds=range(2))


@dataclass(frozen=True)
class Partition:
    number: int
    offset: int = 0

    @property
    def split_id(self) -> str:
        return str(self.number)


class LogSource(Source[int]):
    """Reads the partitions of `SYSTEM`; `fault` is "" or the name of a planted one."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return PendingSplits(ctx, [Partition(number) for number in range(len(SYSTEM.partitions))])

    def restore_enumerator(self, ctx: EnumeratorContext, state: Any) -> SplitEnumerator:
        return PendingSplits(ctx, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return LogReader(ctx, self.fault)


class LogReader(SourceReader):
    def __init__(self, ctx: ReaderContext, fault: str) -> None:
        self._ctx, self._fault, self._splits = ctx, fault, list[Partition]()

    def add_splits(self, splits: list[Any]) -> None:
        if self._fault == "starts at committed offsets":
            splits = [replace(split, offset=SYSTEM.offsets.get(split.number, split.offset)) for split in splits]
        self._splits += splits

    def notify_no_more_splits(self) -> None:
        pass

    def needs_split(self) -> bool:
        return True

    def poll(self, max_records: int) -> Polled:
        for index, split in enumerate(self._splits):
            rows = SYSTEM.partitions[split.number][split.offset : split.offset + min(5, max_records)]
            if rows:
                self._splits[index] = replace(split, offset=split.offset + len(rows))
                return RowBatch(rows)
        return PENDING

    def next_poll_ms(self) -> int | None:
        return self._ctx.now_ms() + 2

    def snapshot_state(self) -> list[Any]:
        if self._fault == "positions are late":
            return [replace(split, offset=max(0, split.offset - 1)) for split in self._splits]
        return list(self._splits)

    def notify_checkpoint_complete(self, checkpoint_id: int, splits: Sequence[Any]) -> None:
        for split in splits:
            SYSTEM.offsets[split.number] = split.offset + (self._fault == "starts at committed offsets")


class Log(SourceSubject):
    fault = ""

    def __init__(self) -> None:
        SYSTEM.partitions[:] = [[], []]
        SYSTEM.offsets.clear()

    def create_source(self) -> Source:
        return LogSource(self.fault)

    def write(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            SYSTEM.partitions[number % 2].append(number)


@pytest.mark.slow
def test_a_source_that_keeps_its_promise_passes() -> None:
    check_source(Log, seeds=range(3))


@pytest.mark.slow
def test_the_splits_of_a_source_may_be_of_a_class_that_a_function_defines() -> None:
    @dataclass(frozen=True)
    class Local(Partition):
        pass

    class LocalSource(LogSource):
        def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
            return PendingSplits(ctx, [Local(number) for number in range(len(SYSTEM.partitions))])

    class Locals(Log):
        def create_source(self) -> Source:
            return LocalSource()

    check_source(Locals, seeds=range(1), records=60)


@pytest.mark.slow
@pytest.mark.parametrize("planted", ["positions are late", "starts at committed offsets"])
def test_the_planted_fault_of_a_source_is_found(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rayflink.testing.connector_laws.crashing_job.ENDS_WITHIN_S", 3.0)

    class Faulty(Log):
        fault = planted

    with pytest.raises(AssertionError, match="seed .: .*(there twice|did not come out, such as)"):
        check_source(Faulty, seeds=range(8))


@pytest.mark.slow
def test_the_file_sink_keeps_its_promise(tmp_path: Path) -> None:
    class Files(SinkSubject):
        number = 0

        def __init__(self) -> None:
            Files.number += 1
            self.folder = tmp_path / str(Files.number)

        def create_sink(self) -> Sink:
            form = FileSink.for_row_format(str(self.folder), Encoder.simple_string_encoder())
            form = form.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
            return form.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=100)).build()

        def read(self) -> Iterable[int]:
            whole = [path for path in self.folder.glob("*") if not path.name.startswith((".", "_"))]
            return [int(line) for path in whole for line in path.read_text().split()]

    check_sink(Files, seeds=range(4))


@pytest.mark.slow
def test_the_file_source_keeps_its_promise(tmp_path: Path) -> None:
    class Folder(SourceSubject):
        folders = 0

        def __init__(self) -> None:
            Folder.folders += 1
            self.files, self.folder = 0, tmp_path / f"in-{Folder.folders}"
            self.folder.mkdir()

        def create_source(self) -> Source:
            builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(self.folder))
            return builder.monitor_continuously(Duration.of_millis(20)).build()

        def write(self, numbers: Sequence[int]) -> None:
            self.files += 1
            hidden = self.folder / f".{self.files}"
            hidden.write_text("".join(json.dumps(number) + "\n" for number in numbers))
            hidden.rename(self.folder / f"{self.files}.txt")

    check_source(Folder, seeds=range(3))
