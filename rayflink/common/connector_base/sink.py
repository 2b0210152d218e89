"""Sinks: a writer a subtask, and a committer that makes visible what writers hand over at a checkpoint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from rayflink.state.clock import Clock
from rayflink.user_types import UserValue

from ..data_types.type_base import TypeInformation
from ..errors import shorten
from ..functions.type_variables import Input
from ..metrics.metric_group import MetricGroup
from ..records.batches import Batch
from .commits import CommitRequest

_T = TypeVar("_T")


@dataclass
class WriterContext:
    """The facts that a writer knows of its subtask.

    Args:
        subtask: index in [0, parallelism).
        attempt: 0 for the first execution of this subtask.
        job_id: 32 hex digits.
        accumulators: name -> accumulator, merged over all subtasks in the job's result.
        restored: what `SinkWriter.snapshot_state` gave, of all the subtasks whose state this one took over.
        clock: the task's processing time.
        operator_id: 32 hex digits, the same in every attempt and for every subtask.
        checkpointing: whether checkpoints are taken, the last of them after the end of input; what is prepared is then
            committed with them alone.
        epoch: of the coordinator that counts these attempts; one more with each that takes over. Of one that was
            believed to be dead attempts may still run, with the same numbers.
    """

    subtask: int = 0
    parallelism: int = 1
    attempt: int = 0
    job_id: str = "0" * 32
    operator_name: str = "Sink"
    metrics: MetricGroup | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    accumulators: dict[str, Any] = field(default_factory=dict)
    restored: tuple[Any, ...] = ()
    clock: Clock | None = None
    operator_id: str = "0" * 32
    checkpointing: bool = False
    epoch: int = 0

    def now_ms(self) -> int:
        """Return the processing time in epoch milliseconds."""
        assert self.clock is not None, "a task gives its own clock"
        return int(self.clock.now_ms())


class UnwritableRecord(Exception):
    """A sink's writer cannot write one record; `__cause__` says why.

    Args:
        record: shortened.
    """

    def __init__(self, record: str) -> None:
        super().__init__(record)
        self.record = record


def all_or_named(
    write_all: Callable[[Sequence[Any]], list[_T]], write: Callable[[Any], _T], records: Sequence[Any]
) -> list[_T]:
    """Return the result of `write_all` on the records; where it fails, `write` finds the record it failed on.

    Raises:
        UnwritableRecord: `write` failed on one of them.
    """
    with suppress(Exception):
        return write_all(records)
    written = []
    for record in records:
        try:
            written.append(write(record))
        except Exception as error:
            raise UnwritableRecord(shorten(record)) from error
    return written


class SinkWriter(ABC):
    """Writes the records of one subtask."""

    state_mode: ClassVar[str] = "split"
    """The way in which the states of all writers are distributed: "split", or "union", all to each."""

    @abstractmethod
    def write(self, batch: Batch) -> None:
        """Write a batch, in order."""

    @abstractmethod
    def flush(self, end_of_input: bool) -> None:
        """Write out everything, before a checkpoint and, with `end_of_input`, after the last record."""

    def next_time_ms(self) -> int | None:
        """Return the epoch milliseconds at which `on_time` shall be called; None: not at all."""
        return None

    def on_time(self, now_ms: int) -> None:  # noqa: B027
        """Act on the arrival of the time that `next_time_ms` returned."""

    def on_watermark(self, watermark_ms: int) -> None:  # noqa: B027
        """Note that no later record is expected at or before this time, in epoch milliseconds."""

    def snapshot_state(self) -> Any:
        """Return the state to find again in `WriterContext.restored`, or None; can be pickled."""
        return None

    def prepare_commit(self) -> Sequence[Any]:
        """Return the committables written since the last call; they are given to the sink's `Committer`."""
        return ()

    def snapshot_unfinished(self) -> Sequence[Any]:
        """Return committables for a restore from this checkpoint, which are not committed while the job runs on.

        The beginning of a file that is still written to is such a one. Called between `prepare_commit` and the next
        record.
        """
        return ()

    @abstractmethod
    def close(self) -> None:
        """Release everything; called exactly once. What was not flushed with `end_of_input` need not become visible."""


class Committer(ABC):
    """Makes what writers prepared visible, once the checkpoint that contains it is complete.

    After a failure it is given again what may have been committed already; that must change nothing.
    """

    most_at_once: ClassVar[int] = 100
    """The number of requests that a call is given at most; between two calls the task may do other work."""
    in_background: bool = False
    """Whether the next call of `commit` runs in a thread of its own while the task processes records.

    It should where commits mostly wait for another system, and share nothing with the writer. Where they compute in
    Python, it makes both slower, as these threads take turns, so that belongs in `begin`. One call of `commit` runs at
    a time, and none beside `open`, `begin` and `close`; but `group_of` and `combine` may run meanwhile, and
    committables are pickled, so `commit` must not change them. When the next checkpoint is complete, the task waits for
    the commits of the one before.
    """

    has_large_committables: ClassVar[bool] = False
    """Whether a snapshot waits a short time for commits in the background, as it would contain their data once more."""

    early_ms: int = 0
    """Milliseconds for which what `begin` has done may stand before its checkpoint is complete; 0: not at all.

    Above 0, `begin` may be called as soon as a snapshot contains its requests, in a thread of its own, while the task
    processes records. Others must not see what it did. If the checkpoint is not complete in time, `abandon` is called.
    """

    def open(self, ctx: WriterContext) -> None:  # noqa: B027
        """Learn of the subtask; called once, before the first commit. What `ctx` has restored is of the writers."""

    def group_of(self, committable: UserValue) -> Hashable:
        """Return the group of a committable; those of a group stay together, in order, when the parallelism changes.

        None: it is on its own.
        """
        return None

    def begin(self, requests: Sequence[CommitRequest[Any]]) -> None:  # noqa: B027
        """Do that part of the next `commit`, which is of the same requests, that computes; the task does it.

        When it raises, all of them are tried again later, as if `commit` had raised.
        """

    def abandon(self) -> None:  # noqa: B027
        """Take back what `begin` did for requests whose checkpoint is not complete; they may be begun again."""

    @abstractmethod
    def commit(self, requests: Sequence[CommitRequest[Any]]) -> None:
        """Commit each of them, and signal on a request where that went another way.

        When it raises, those without a signal are tried again later, as often as `sink.committer.retries` says; then
        the task fails.
        """

    def close(self) -> None:  # noqa: B027
        """Release everything; called exactly once."""


@dataclass
class CommitterContext:
    """The facts that a sink's global committer knows.

    Args:
        job_id: 32 hex digits; a job that is restored from a savepoint has another than the job that wrote it.
        operator_id: 32 hex digits, the same in every attempt.
        clock: the task's processing time.
        config: the job's configuration, option key -> value.
    """

    job_id: str = "0" * 32
    operator_id: str = "0" * 32
    operator_name: str = "Sink"
    metrics: MetricGroup | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    clock: Clock | None = None


class GlobalCommitter(Committer):
    """Commits what all writers of a sink prepared for a checkpoint at once, in one subtask for the whole sink.

    Source: apache/flink GlobalCommitter.
    """

    @abstractmethod
    def combine(self, checkpoint_id: int, committables: Sequence[Any]) -> Any:
        """Return one committable made of those that the writers prepared for a checkpoint; None: nothing to commit.

        It is part of the checkpoint, and `commit` gets it when the checkpoint is complete.

        Args:
            checkpoint_id: ids ascend; 2**63 - 1 at the end of a job that takes no checkpoints.
            committables: at least one; in no order between the writers.
        """


class Sink(ABC, Generic[Input]):
    """A sink, as `Sink[str]` of strings: a value that can be pickled and makes writers."""

    name = "Sink"
    """The operator's name where the user named none."""

    @property
    def max_parallelism(self) -> int | None:
        """Return the highest parallelism at which it can run; None: any."""
        return None

    @property
    def writes_alone_to(self) -> str:
        """The target to which no other sink of its job may write, as one would replace the other's data; "": none."""
        return ""

    @property
    def shows_with_checkpoints(self) -> bool:
        """True where records are seen when a checkpoint is complete, or at the end of a job that takes none."""
        return type(self).create_committer is not Sink.create_committer or self.commits_globally

    @property
    def commits_globally(self) -> bool:
        """True where one committer commits what all writers prepared, by `create_global_committer`."""
        return type(self).create_global_committer is not Sink.create_global_committer

    def for_type(self, type_info: TypeInformation | None) -> Sink[Input]:
        """Return the sink for a stream of this declared type; None: none was declared."""
        return self

    def configured(self, config: Mapping[str, object]) -> Sink[Input]:
        """Return the sink with what it needs of the job's options; called before a writer or committer is created. By
        itself, it uses none.

        Args:
            config: option key -> value. Secrets among them belong into no pickle and no message.
        """
        return self

    @abstractmethod
    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        """Return the writer of one subtask."""

    def create_committer(self) -> Committer | None:
        """Return the committer of what writers prepare; None where the writers make records visible themselves."""
        return None

    def create_global_committer(self, ctx: CommitterContext) -> GlobalCommitter:
        """Return the committer that commits what all writers prepared, once for each checkpoint.

        A sink that implements it needs no `create_committer`. Its writers then send their committables before each
        barrier to an operator of its own, with parallelism 1. Unfinished committables
        (`SinkWriter.snapshot_unfinished`) are not supported.
        """
        raise NotImplementedError(f"{type(self).__name__} has no global committer")


class TwoPhaseCommittingSink(Sink[Input]):
    """A sink that writes in two phases: its writers prepare committables, its committers make them visible.

    The second phase follows the checkpoint.

    >>> from rayflink.common.records.batches import rows_of
    >>> from rayflink.datastream import StreamExecutionEnvironment
    >>> shelf = {}
    >>> class Boxes(TwoPhaseCommittingSink):
    ...     def create_writer(self, ctx):
    ...         return Packer(ctx)
    ...     def create_committer(self):
    ...         return Shelver()
    >>> class Packer(SinkWriter):
    ...     def __init__(self, ctx):
    ...         self.subtask, self.box = ctx.subtask, []
    ...         self.number = max(ctx.restored, default=0)
    ...     def write(self, batch):
    ...         self.box += rows_of(batch)
    ...     def flush(self, end_of_input):
    ...         pass
    ...     def prepare_commit(self):
    ...         box, self.box, self.number = self.box, [], self.number + 1
    ...         return [(f"{self.subtask}-{self.number}", box)] if box else []
    ...     def snapshot_state(self):
    ...         return self.number
    ...     def close(self):
    ...         pass
    >>> class Shelver(Committer):
    ...     def commit(self, requests):
    ...         for request in requests:
    ...             label, box = request.get_committable()
    ...             if label in shelf:
    ...                 request.signal_already_committed()
    ...             shelf[label] = box
    >>> env = StreamExecutionEnvironment({"execution.target": "local"})
    >>> _ = env.from_collection(["a", "b"]).sink_to(Boxes())
    >>> _ = env.execute()
    >>> shelf
    {'0-1': ['a', 'b']}

    Source: apache/flink TwoPhaseCommittingSink, which Flink 2 calls SupportsCommitter.
    """

    @abstractmethod
    def create_committer(self) -> Committer:
        """Return the committer of what writers prepare."""
