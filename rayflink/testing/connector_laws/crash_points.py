"""Places in a connector at which a run is made to fail, and wrappers that have them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from random import Random
from threading import Lock
from typing import Protocol

from rayflink.common.connector_base.commits import CommitRequest
from rayflink.common.connector_base.sink import (
    Committer,
    CommitterContext,
    GlobalCommitter,
    Sink,
    SinkWriter,
    WriterContext,
)
from rayflink.common.connector_base.source import (
    Boundedness,
    EnumeratorContext,
    Polled,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.records.batches import Batch
from rayflink.user_types import EnumeratorState, SourceSplit, UserValue

SINK_PLACES = (
    "before write", "after write", "after flush", "after prepare_commit", "after snapshot_state", "before begin",
    "after begin", "before commit", "after commit",
)  # fmt: skip
GLOBAL_SINK_PLACES = (*SINK_PLACES, "before combine", "after combine")
"""Those of a sink with a global committer."""
SOURCE_PLACES = (
    "before poll", "after poll", "after add_splits", "after snapshot_state", "before notify_checkpoint_complete",
    "after notify_checkpoint_complete",
)  # fmt: skip
UNKNOWN_SUBTASK = -1
"""That of a committer, until the writer of the same subtask is created, which is next."""
MOST_PASSES = 6
"""Times that a place is passed, at most, before it fails."""


class Closable(Protocol):
    """A reader, a writer or a committer."""

    def close(self) -> None:
        """Release files and connections."""


class InjectedCrash(Exception):
    """A place of a connector was made to fail; `str()` names it."""


class CrashPoints:
    """The places of the connector of one run, of which one at most is armed.

    Wrappers find it by its name, since a job copies its operators.

    Args:
        name: unique in this process.
        draw: of the choices.
    """

    _all: dict[str, CrashPoints] = {}

    def __init__(self, name: str, places: Sequence[str], draw: Random) -> None:
        self.name, self._places, self.draw = name, places, draw
        self._armed, self._passes = "", 0
        self._open: list[tuple[int, Closable]] = []
        self._all[name] = self

    def arm(self) -> str:
        """Choose a place that fails when it is passed next, or some times later; return its name."""
        self._armed = self.draw.choice(self._places)
        self._passes = self.draw.randint(1, MOST_PASSES)
        return self._armed

    def disarm(self) -> None:
        """Let no place fail."""
        self._armed = ""

    def close(self) -> None:
        """Forget the run."""
        self._all.pop(self.name, None)

    @classmethod
    def reach(cls, name: str, place: str) -> None:
        """Pass a place.

        Raises:
            InjectedCrash: it is to fail.
        """
        points = cls._all.get(name)
        if points is None or points._armed != place:
            return
        points._passes -= 1
        if points._passes <= 0:
            points._armed = ""
            raise InjectedCrash(place)

    @classmethod
    def opened(cls, name: str, subtask: int, resource: Closable) -> None:
        """Note a reader, writer or committer that is open."""
        points = cls._all.get(name)
        if points is not None:
            if subtask != UNKNOWN_SUBTASK:
                points._open = [
                    (subtask if number == UNKNOWN_SUBTASK else number, each) for number, each in points._open
                ]
            points._open.append((subtask, resource))

    def release(self, subtask: int | None = None) -> None:
        """Close what a task has open that is killed, as the end of its process does; None: of all tasks."""
        for each in [each for each in self._open if subtask in (None, each[0])]:
            self._open.remove(each)
            with suppress(Exception):  # the process has ended: an error has no consequence
                each[1].close()


class CrashingSink(Sink):
    """A sink with crash points.

    Args:
        inner: the sink under test.
        points: name of the `CrashPoints`.
    """

    def __init__(self, inner: Sink, points: str) -> None:
        self._inner, self._points = inner, points

    @property
    def max_parallelism(self) -> int | None:
        return self._inner.max_parallelism

    @property
    def writes_alone_to(self) -> str:
        return self._inner.writes_alone_to

    @property
    def shows_with_checkpoints(self) -> bool:
        return self._inner.shows_with_checkpoints

    def for_type(self, type_info: TypeInformation | None) -> CrashingSink:
        return crashing_sink(self._inner.for_type(type_info), self._points)

    def configured(self, config: Mapping[str, object]) -> CrashingSink:
        return crashing_sink(self._inner.configured(config), self._points)

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        inner = self._inner.create_writer(ctx)
        kind = type("CrashingWriter", (_CrashingWriter,), {"state_mode": inner.state_mode})
        writer: SinkWriter = kind(inner, self._points)
        CrashPoints.opened(self._points, ctx.subtask, writer)
        return writer

    def create_committer(self) -> Committer | None:
        inner = self._inner.create_committer()
        if inner is None:
            return None
        kind = type("CrashingCommitter", (_CrashingCommitter,), _settings(inner))
        committer: Committer = kind(inner, self._points)
        CrashPoints.opened(self._points, UNKNOWN_SUBTASK, committer)
        return committer


class CrashingGlobalSink(CrashingSink):
    """The same of a sink with a global committer."""

    def create_global_committer(self, ctx: CommitterContext) -> GlobalCommitter:
        inner = self._inner.create_global_committer(ctx)
        kind = type("CrashingGlobalCommitter", (_CrashingGlobalCommitter,), _settings(inner))
        committer: GlobalCommitter = kind(inner, self._points)
        CrashPoints.opened(self._points, 0, committer)
        return committer


def crashing_sink(inner: Sink, points: str) -> CrashingSink:
    """Return a sink with crash points, which commits as `inner` does."""
    return (CrashingGlobalSink if inner.commits_globally else CrashingSink)(inner, points)


class _CrashingWriter(SinkWriter):
    def __init__(self, inner: SinkWriter, points: str) -> None:
        self._inner, self._points, self._is_closed = inner, points, False

    def write(self, batch: Batch) -> None:
        CrashPoints.reach(self._points, "before write")
        self._inner.write(batch)
        CrashPoints.reach(self._points, "after write")

    def flush(self, end_of_input: bool) -> None:
        self._inner.flush(end_of_input)
        CrashPoints.reach(self._points, "after flush")

    def next_time_ms(self) -> int | None:
        return self._inner.next_time_ms()

    def on_time(self, now_ms: int) -> None:
        self._inner.on_time(now_ms)

    def on_watermark(self, watermark_ms: int) -> None:
        self._inner.on_watermark(watermark_ms)

    def snapshot_state(self) -> object:
        state = self._inner.snapshot_state()
        CrashPoints.reach(self._points, "after snapshot_state")
        return state

    def prepare_commit(self) -> Sequence[object]:
        committables = self._inner.prepare_commit()
        CrashPoints.reach(self._points, "after prepare_commit")
        return committables

    def snapshot_unfinished(self) -> Sequence[object]:
        return self._inner.snapshot_unfinished()

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._inner.close()


def _settings(committer: Committer) -> dict[str, object]:
    """Return the class attributes of a committer that say how it is called."""
    return {
        "most_at_once": committer.most_at_once, "in_background": committer.in_background,
        "has_large_committables": committer.has_large_committables, "early_ms": committer.early_ms,
    }  # fmt: skip


class _CrashingCommitter(Committer):
    """A committer with crash points; one whose task is killed while it commits is closed after that commit."""

    def __init__(self, inner: Committer, points: str) -> None:
        self._inner, self._points, self._is_closed, self._commit = inner, points, False, Lock()

    def open(self, ctx: WriterContext) -> None:
        self._inner.open(ctx)

    def group_of(self, committable: UserValue) -> Hashable:
        return self._inner.group_of(committable)

    def begin(self, requests: Sequence[CommitRequest[object]]) -> None:
        CrashPoints.reach(self._points, "before begin")
        self._inner.begin(requests)
        CrashPoints.reach(self._points, "after begin")

    def abandon(self) -> None:
        self._inner.abandon()

    def commit(self, requests: Sequence[CommitRequest[object]]) -> None:
        with self._commit:
            if self._is_closed:  # the task was killed before this thread came to its call
                return
            CrashPoints.reach(self._points, "before commit")
            self._inner.commit(requests)
            self.in_background = self._inner.in_background
            CrashPoints.reach(self._points, "after commit")

    def close(self) -> None:
        with self._commit:
            if not self._is_closed:
                self._is_closed = True
                self._inner.close()


class _CrashingGlobalCommitter(_CrashingCommitter, GlobalCommitter):
    _inner: GlobalCommitter

    def combine(self, checkpoint_id: int, committables: Sequence[object]) -> object:
        CrashPoints.reach(self._points, "before combine")
        combined = self._inner.combine(checkpoint_id, committables)
        CrashPoints.reach(self._points, "after combine")
        return combined


class CrashingSource(Source):
    """A source with crash points in its readers.

    Args:
        inner: the source under test.
        points: name of the `CrashPoints`.
    """

    def __init__(self, inner: Source, points: str) -> None:
        self._inner, self._points = inner, points

    @property
    def boundedness(self) -> Boundedness:
        return self._inner.boundedness

    @property
    def max_parallelism(self) -> int | None:
        return self._inner.max_parallelism

    def configured(self, config: Mapping[str, object]) -> CrashingSource:
        return CrashingSource(self._inner.configured(config), self._points)

    def check(self) -> None:
        self._inner.check()

    @property
    def produced_type(self) -> TypeInformation | None:
        return self._inner.produced_type

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return self._inner.create_enumerator(ctx)

    def restore_enumerator(self, ctx: EnumeratorContext, state: EnumeratorState) -> SplitEnumerator:
        return self._inner.restore_enumerator(ctx, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        reader = _CrashingReader(self._inner.create_reader(ctx), self._points)
        CrashPoints.opened(self._points, ctx.subtask, reader)
        return reader


class _CrashingReader(SourceReader):
    def __init__(self, inner: SourceReader, points: str) -> None:
        self._inner, self._points, self._is_closed = inner, points, False

    def start(self) -> None:
        self._inner.start()

    def add_splits(self, splits: list[SourceSplit]) -> None:
        self._inner.add_splits(splits)
        CrashPoints.reach(self._points, "after add_splits")

    def notify_no_more_splits(self) -> None:
        self._inner.notify_no_more_splits()

    def poll(self, max_records: int) -> Polled:
        CrashPoints.reach(self._points, "before poll")
        answer = self._inner.poll(max_records)
        if hasattr(answer, "slice"):
            CrashPoints.reach(self._points, "after poll")
        return answer

    def needs_split(self) -> bool:
        return self._inner.needs_split()

    def next_poll_ms(self) -> int | None:
        return self._inner.next_poll_ms()

    def split_ids(self) -> Collection[str] | None:
        return self._inner.split_ids()

    def current_split(self) -> str:
        return self._inner.current_split()

    def pause_or_resume_splits(self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]) -> None:
        self._inner.pause_or_resume_splits(splits_to_pause, splits_to_resume)

    def snapshot_state(self) -> list[SourceSplit]:
        splits = self._inner.snapshot_state()
        CrashPoints.reach(self._points, "after snapshot_state")
        return splits

    def notify_checkpoint_complete(self, checkpoint_id: int, splits: Sequence[SourceSplit]) -> None:
        CrashPoints.reach(self._points, "before notify_checkpoint_complete")
        self._inner.notify_checkpoint_complete(checkpoint_id, splits)
        CrashPoints.reach(self._points, "after notify_checkpoint_complete")

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._inner.close()


__all__ = [
    "CrashPoints", "CrashingSink", "CrashingSource", "GLOBAL_SINK_PLACES", "InjectedCrash", "SINK_PLACES",
    "SOURCE_PLACES", "crashing_sink",
]  # fmt: skip
