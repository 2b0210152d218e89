"""Sources: an enumerator that finds splits of the input and distributes them, and readers that read them.

The enumerator runs once, at the job's coordinator; each parallel subtask runs one reader. Both are plain objects called
from one thread; neither blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from rayflink.state.clock import Clock
from rayflink.user_types import EnumeratorState

from ..data_types.type_base import TypeInformation
from ..functions.type_variables import Output
from ..metrics.metric_group import MetricGroup
from ..records.batches import ArrowBatch, RowBatch, Tagged, Watermark, WatermarkStatus

_Answer = TypeVar("_Answer")


class Boundedness(Enum):
    """The boundedness of a source: whether it ends by itself."""

    BOUNDED = 0
    CONTINUOUS_UNBOUNDED = 1


class Poll(Enum):
    """The answer of a reader that has no records at hand."""

    PENDING = 0
    """Nothing now; more may come (a split, the network, the next moment of a rate limit)."""
    END = 1
    """Nothing any more."""


PENDING = Poll.PENDING
END = Poll.END

Polled = RowBatch | ArrowBatch | Tagged | Watermark | WatermarkStatus | Poll
"""The answers of a reader's `poll`.

A source that knows event time emits watermarks between its batches; a `Tagged` batch goes to a side output.
"""


@dataclass
class ReaderContext:
    """The facts that a reader knows of its subtask.

    Args:
        subtask: index in [0, parallelism).
        clock: the task's processing time.
        config: the job's configuration, option key -> value.
        send_source_event: sends an object, which can be pickled, to the enumerator's `handle_source_event`. Events of
            a reader arrive in order, each once, unless the reader fails; None: no coordinator is there.
        checkpointing: whether checkpoints are taken, so that `SourceReader.notify_checkpoint_complete` is called.
    """

    subtask: int = 0
    parallelism: int = 1
    clock: Clock | None = None
    metrics: MetricGroup | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    send_source_event: Callable[[object], None] | None = None
    checkpointing: bool = False

    def now_ms(self) -> int:
        """Return the processing time in epoch milliseconds."""
        assert self.clock is not None, "a task gives its own clock"
        return int(self.clock.now_ms())


class EnumeratorContext(Protocol):
    """The services of the coordinator for an enumerator."""

    def assign_splits(self, assignment: Mapping[int, Sequence[Any]]) -> None:
        """Send splits to readers; subtask -> splits."""
        ...

    def signal_no_more_splits(self, subtask: int) -> None:
        """Signal to a reader that it will get no further split."""
        ...

    def current_parallelism(self) -> int:
        """Return how many readers there are."""
        ...

    def call_async(
        self,
        work: Callable[[], _Answer],
        then: Callable[[_Answer | None, Exception | None], None],
        period_ms: int | None = None,
    ) -> None:
        """Run work that blocks beside the coordinator's decisions, such as the listing of a bucket.

        Args:
            work: runs in another thread, so it must not touch what the enumerator changes.
            then: called with the answer, or with the exception that `work` raised, like any other method of the
                enumerator: it may assign splits. An exception that it raises fails the job.
            period_ms: the pause, in milliseconds, after which the work is done again; None: it is done once.

        Source: apache/flink SplitEnumeratorContext.callAsync.
        """
        ...


class SourceReader(ABC):
    """Reads the splits given to one subtask."""

    def start(self) -> None:  # noqa: B027
        """Start the reader; called once, before anything else; restored splits follow by `add_splits`."""

    @abstractmethod
    def add_splits(self, splits: list[Any]) -> None:
        """Take splits to read, after those already held."""

    @abstractmethod
    def notify_no_more_splits(self) -> None:
        """Note that no further split will come: answer END once those at hand are read."""

    @abstractmethod
    def poll(self, max_records: int) -> Polled:
        """Return the next records, at most about `max_records`, without blocking; or a watermark, PENDING or END."""

    def needs_split(self) -> bool:
        """Return whether the reader has nothing left to read and would take another split."""
        return False

    def next_poll_ms(self) -> int | None:
        """Return the epoch milliseconds of the next useful poll after PENDING; None: when a split arrives."""
        return None

    def split_ids(self) -> Collection[str] | None:
        """Return the ids of the splits at hand, those still to be read among them; None: all records are one stream.

        Each split has watermarks of its own, and the source's are the minimum over the splits at hand.
        """
        return None

    def current_split(self) -> str:
        """Return the id of the split that the records polled last are from; asked only where `split_ids` names it."""
        raise NotImplementedError(f"{type(self).__name__} names splits but does not implement current_split()")

    def pause_or_resume_splits(self, splits_to_pause: Collection[str], splits_to_resume: Collection[str]) -> None:
        """Give no records of some splits until they are resumed; the others are read on.

        Raises:
            NotImplementedError: the reader cannot, and is paused as a whole when all its splits are ahead.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot pause single splits")

    @abstractmethod
    def snapshot_state(self) -> list[Any]:
        """Return the splits not yet finished, each with the position up to which its records were given out."""

    def notify_checkpoint_complete(self, checkpoint_id: int, splits: Sequence[Any]) -> None:  # noqa: B027
        """Act on a checkpoint that is complete: commit offsets, or acknowledge messages; without blocking.

        A checkpoint may be skipped; the next one that is complete contains it.

        Args:
            splits: what `snapshot_state` returned for this checkpoint.
        """

    def close(self) -> None:  # noqa: B027
        """Release files and connections; called exactly once."""


class SplitEnumerator(ABC):
    """Finds splits and assigns them to readers, at the coordinator."""

    def start(self) -> None:  # noqa: B027
        """Start the enumerator; called once, before anything else."""

    @abstractmethod
    def handle_split_request(self, subtask: int) -> None:
        """Assign a split to a reader that has nothing to read, or signal that there are no more."""

    @abstractmethod
    def add_splits_back(self, splits: list[Any], subtask: int) -> None:
        """Take back splits of a reader that failed before a checkpoint had them."""

    def add_reader(self, subtask: int) -> None:  # noqa: B027
        """Note that a reader has started."""

    def handle_source_event(self, subtask: int, event: object) -> None:
        """Act on an event that a reader sent by `ReaderContext.send_source_event`, such as a split that it has read.

        What the enumerator changes here belongs to the next checkpoint; the one under way may contain the reader's
        state of after the event. A reader therefore repeats, after a restore, what it cannot know to have arrived.

        Raises:
            NotImplementedError: the enumerator has no use for events.

        Source: apache/flink SplitEnumerator.handleSourceEvent.
        """
        raise NotImplementedError(f"{type(self).__name__} takes no events of readers, found {event!r}")

    def pending_bytes(self) -> int | None:
        """Return the size of the splits not assigned yet, which the autoscaler counts as lag; None: it is unknown."""
        return None

    @abstractmethod
    def snapshot_state(self) -> Any:
        """Return the splits not assigned yet (and what else is needed); can be pickled."""

    def close(self) -> None:  # noqa: B027
        """Release files and connections; called exactly once."""


class Source(ABC, Generic[Output]):
    """A source of records, `Source[str]` of strings: a value that can be pickled and makes enumerator and readers."""

    @property
    @abstractmethod
    def boundedness(self) -> Boundedness:
        """The boundedness of the source: whether it ends by itself."""

    @property
    def max_parallelism(self) -> int | None:
        """Return the highest parallelism at which it can run; None: any."""
        return None

    def configured(self, config: Mapping[str, object]) -> Source[Output]:
        """Return the source with what it needs of the job's options; called before `check`, and before an enumerator or
        a reader is created. By itself, it uses none.

        Args:
            config: option key -> value. Secrets among them belong into no pickle and no message.
        """
        return self

    def check(self) -> None:
        """Check that it can be read; called where its enumerator will run, before a job that starts afresh has slots.

        Raises: what keeps it from being read.
        """

    @property
    def produced_type(self) -> TypeInformation | None:
        """Return the type of the records, which the stream has where the program declares none; None: it is unknown."""
        return None

    @abstractmethod
    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        """Return the enumerator of a job that starts afresh."""

    @abstractmethod
    def restore_enumerator(self, ctx: EnumeratorContext, state: EnumeratorState) -> SplitEnumerator:
        """Return the enumerator of a job that goes on from what `SplitEnumerator.snapshot_state` gave."""

    @abstractmethod
    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        """Return the reader of one subtask."""


class PendingSplits(SplitEnumerator):
    """An enumerator that distributes splits known from the start, one for each request, in order.

    Args:
        ctx: the coordinator.
        splits: not assigned yet.
    """

    def __init__(self, ctx: EnumeratorContext, splits: Sequence[Any]) -> None:
        self._ctx = ctx
        self._splits = list(splits)

    def handle_split_request(self, subtask: int) -> None:
        if self._splits:
            self._ctx.assign_splits({subtask: [self._splits.pop(0)]})
        else:
            self._ctx.signal_no_more_splits(subtask)

    def add_splits_back(self, splits: list[Any], subtask: int) -> None:
        self._splits[:0] = splits

    def snapshot_state(self) -> list[Any]:
        return list(self._splits)
