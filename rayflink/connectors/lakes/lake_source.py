"""Tables of a lake as a source: a snapshot, new commits, or one after the other."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from rayflink.common.connector_base.source import (
    PENDING,
    Boundedness,
    EnumeratorContext,
    Polled,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.connector_base.split_reader import OneByOneReader, SplitCursor
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.errors import described
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.text_output.logs import get_logger
from rayflink.user_types import UserRecord

from .background_reading import BackgroundCursor, BlockCursor
from .data_file_reading import DataFileSplit
from .lake_errors import LakeError, without_secrets

log = get_logger(__name__)

POLL_AGAIN_MS = 2
"""Pause before the next look for rows that are being read in the background."""
MOST_FAILURES = 10
"""Discoveries in a row that may fail before the job does."""
MOST_PENDING = 10_000
"""Splits that wait for a reader; with more, nothing new is looked for."""


@dataclass(frozen=True)
class Discovered:
    """The splits of some commits.

    Args:
        position: the last commit that was looked at; None: the table has none yet.
        splits: in the order of their commits.
        skipped: commits that are no appends and were passed over, after the last split.
    """

    position: int | None
    splits: tuple[DataFileSplit, ...] = ()
    skipped: int = 0


class TablePlan(Protocol):
    """The decisions of a table format on which files are read; a value that can be pickled. Both methods block."""

    def first(self) -> Discovered:
        """Return what a job that starts afresh reads first."""
        ...

    def after(self, position: int | None) -> Discovered:
        """Return what was committed after a position, oldest first, of some commits if there are many.

        Raises:
            LakeError: it is no append, or the commit is gone.
        """
        ...


@dataclass(frozen=True)
class LakeEnumeratorState:
    """The enumerator's state.

    Args:
        position: the last commit whose splits were found.
        splits: found and not assigned.
        has_begun: whether the first splits were found.
        skipped: commits passed over that no split counts yet.
    """

    position: int | None = None
    splits: tuple[DataFileSplit, ...] = ()
    has_begun: bool = False
    skipped: int = 0


class LakeEnumerator(SplitEnumerator):
    """Finds data files beside the coordinator's decisions, and assigns them to readers in the order of commits.

    Args:
        ctx: the coordinator.
        plan: of the table.
        monitor_ms: pause between looks for new commits; None: the first splits are all.
        state: from which it goes on.
    """

    def __init__(
        self, ctx: EnumeratorContext, plan: TablePlan, monitor_ms: int | None, state: LakeEnumeratorState
    ) -> None:
        self._ctx, self._plan, self._monitor_ms = ctx, plan, monitor_ms
        self._position, self._splits = state.position, deque(state.splits)
        self._has_begun, self._skipped = state.has_begun, state.skipped
        self._asking: deque[int] = deque()
        self._failures = 0

    def start(self) -> None:
        if self._monitor_ms is not None:
            self._ctx.call_async(self._look, self._found, self._monitor_ms)
        elif not self._has_begun:
            self._ctx.call_async(self._look, self._found)

    def handle_split_request(self, subtask: int) -> None:
        if subtask not in self._asking:
            self._asking.append(subtask)
        self._assign()

    def add_splits_back(self, splits: list[DataFileSplit], subtask: int) -> None:
        self._splits.extendleft(reversed(splits))
        self._assign()

    def snapshot_state(self) -> LakeEnumeratorState:
        return LakeEnumeratorState(self._position, tuple(self._splits), self._has_begun, self._skipped)

    def _look(self) -> tuple[int | None, Discovered] | None:
        position = self._position  # written by the coordinator's thread alone; an older one finds the same again
        if not self._has_begun:
            return None, self._plan.first()
        if len(self._splits) >= MOST_PENDING:
            return None
        return position, self._plan.after(position)

    def _found(self, answer: tuple[int | None, Discovered] | None, error: Exception | None) -> None:
        if error is not None:
            self._failures += 1
            may_pass = not isinstance(error, LakeError) and self._monitor_ms is not None
            if not may_pass or self._failures >= MOST_FAILURES:
                raise error
            log.warning("the look for new commits failed, and is repeated: %s", without_secrets(described(error)))
            return
        self._failures = 0
        if answer is None:
            return
        looked_after, discovery = answer
        if self._has_begun and looked_after != self._position:
            return
        self._has_begun = True
        self._position, skipped = discovery.position, self._skipped
        for split in discovery.splits:
            self._splits.append(replace(split, skipped_commits=split.skipped_commits + skipped))
            skipped = 0
        self._skipped = skipped + discovery.skipped
        self._assign()

    def _assign(self) -> None:
        while self._asking and self._splits:
            self._ctx.assign_splits({self._asking.popleft(): [self._splits.popleft()]})
        if self._monitor_ms is None and self._has_begun and not self._splits:
            while self._asking:
                self._ctx.signal_no_more_splits(self._asking.popleft())


class LakeReader(OneByOneReader):
    """Reads data files as columns, one after the other.

    Args:
        source: opens a file.
        in_background: files are read in a thread, as each look at them may take long.
    """

    def __init__(self, source: LakeSource, ctx: ReaderContext, in_background: bool) -> None:
        super().__init__()
        self._source, self._ctx, self._in_background = source, ctx, in_background
        metrics = ctx.metrics or MetricGroup()
        self._files = metrics.counter("numDataFiles")
        self._skipped_commits = metrics.counter("numSkippedCommits")

    def add_splits(self, splits: list[DataFileSplit]) -> None:
        super().add_splits(splits)
        fresh = [split for split in splits if split.offset is None]
        self._files.inc(len(fresh))
        self._skipped_commits.inc(sum(split.skipped_commits for split in fresh))

    def open_split(self, split: DataFileSplit) -> SplitCursor:
        if self._in_background:
            return BackgroundCursor(split, self._source.open_data_file)
        return self._source.open_data_file(split)

    def next_poll_ms(self) -> int | None:
        return self._ctx.now_ms() + POLL_AGAIN_MS if self._splits and self._in_background else None

    def poll(self, max_records: int) -> Polled:
        answer = super().poll(max_records)
        return PENDING if answer is None else answer


class LakeSource(Source[UserRecord]):
    """A table of a lake as columns; subclasses open its files and plan what is read."""

    monitor_ms: int | None = None
    """Milliseconds between looks for new commits; None: the snapshot at the start is all."""

    @property
    @abstractmethod
    def plan(self) -> TablePlan:
        """Return the plan of the table."""

    @property
    @abstractmethod
    def is_local(self) -> bool:
        """True if the files are in a local folder."""

    @abstractmethod
    def open_data_file(self, split: DataFileSplit) -> BlockCursor:
        """Start to read a data file at the position of its split; may block."""

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED if self.monitor_ms is None else Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def produced_type(self) -> TypeInformation | None:
        return None

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return LakeEnumerator(ctx, self.plan, self.monitor_ms, LakeEnumeratorState())

    def restore_enumerator(self, ctx: EnumeratorContext, state: LakeEnumeratorState) -> SplitEnumerator:
        return LakeEnumerator(ctx, self.plan, self.monitor_ms, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return LakeReader(self, ctx, not self.is_local)


def of_schema(names: Sequence[str], known: Sequence[str], table: str) -> None:
    """Check that a table has some columns.

    Raises:
        LakeError: it lacks one.
    """
    missing = [name for name in names if name not in known]
    if missing:
        remedy = f"its columns are {', '.join(known)}"
        raise LakeError(f"{table} has no column {', '.join(map(repr, missing))}", remedy)


__all__ = [
    "Discovered", "LakeEnumerator", "LakeEnumeratorState", "LakeReader", "LakeSource", "TablePlan", "of_schema",
]  # fmt: skip
