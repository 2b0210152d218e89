"""What a sink is: a writer a subtask. What writers hand over at a checkpoint is made visible by a committer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from ..data_types.type_base import TypeInformation
from ..errors import shorten
from ..functions.type_variables import Input
from ..records.batches import Batch
from .commits import CommitRequest

_T = TypeVar("_T")


@dataclass
class WriterContext:
    """What a writer knows of its subtask.

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
    metrics: Any = None
    config: Mapping[str, Any] = field(default_factory=dict)
    accumulators: dict[str, Any] = field(default_factory=dict)
    restored: tuple[Any, ...] = ()
    clock: Any = None
    operator_id: str = "0" * 32
    checkpointing: bool = False
    epoch: int = 0

    def now_ms(self) -> int:
        """Processing time in epoch milliseconds."""
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
    """What `write_all` makes of the records; where it fails, `write` says on which of them.

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
    """How the states of all writers are dealt out to those that are restored: "split", or "union", all to each."""

    @abstractmethod
    def write(self, batch: Batch) -> None:
        """Take a batch, in order."""

    @abstractmethod
    def flush(self, end_of_input: bool) -> None:
        """Before a checkpoint, and with `end_of_input` after the last record: nothing may be held back any more."""

    def next_time_ms(self) -> int | None:
        """Epoch milliseconds at which `on_time` shall be called; None: not at all."""
        return None

    def on_time(self, now_ms: int) -> None:  # noqa: B027
        """The time that `next_time_ms` gave has come."""

    def on_watermark(self, watermark_ms: int) -> None:  # noqa: B027
        """No later record is expected at or before this time, in epoch milliseconds."""

    def snapshot_state(self) -> Any:
        """State to find again in `WriterContext.restored`, or None; can be pickled."""
        return None

    def prepare_commit(self) -> Sequence[Any]:
        """What was written since the last call and waits to be committed; given to the sink's `Committer`."""
        return ()

    def snapshot_unfinished(self) -> Sequence[Any]:
        """What is to be committed should the job be restored from this checkpoint, but not while it runs on.

        Such as the beginning of a file that is still written to. Called between `prepare_commit` and the next record.
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
    """How many requests a call is given at most; between two calls the task may do other work."""

    @abstractmethod
    def commit(self, requests: Sequence[CommitRequest[Any]]) -> None:
        """Commit each of them, and signal on a request where that went another way.

        When it raises, those without a signal are tried again later, as often as `sink.committer.retries` says; then
        the task fails.
        """

    def close(self) -> None:  # noqa: B027
        """Release everything; called exactly once."""


class Sink(ABC, Generic[Input]):
    """A sink, as `Sink[str]` of strings: a value that can be pickled and makes writers."""

    name = "Sink"
    """The operator's name where the user gave none."""

    @property
    def max_parallelism(self) -> int | None:
        """The highest parallelism at which it can run; None: any."""
        return None

    @property
    def writes_alone_to(self) -> str:
        """What no other sink of its job may write to, for one would replace what the other wrote; "": nothing."""
        return ""

    @property
    def shows_with_checkpoints(self) -> bool:
        """Whether records are seen when a checkpoint is complete, or at the end of a job that takes none."""
        return type(self).create_committer is not Sink.create_committer

    def for_type(self, type_info: TypeInformation | None) -> Sink[Input]:
        """The sink for a stream of this declared type; None: none was declared."""
        return self

    @abstractmethod
    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        """The writer of one subtask."""

    def create_committer(self) -> Committer | None:
        """The committer for what writers prepare; None for a sink whose writers make records visible themselves."""
        return None


class TwoPhaseCommittingSink(Sink[Input]):
    """A sink that writes in two phases: what its writers prepare, its committers make visible after the checkpoint.

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
        """The committer for what writers prepare."""
