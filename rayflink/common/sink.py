"""What a sink is: a writer a subtask. What writers hand over at a checkpoint is made visible by a committer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .batches import Batch
from .errors import shorten
from .type_base import TypeInformation

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

    def snapshot_state(self) -> Any:
        """State to find again in `WriterContext.restored`, or None; can be pickled."""
        return None

    def prepare_commit(self) -> Sequence[Any]:
        """What was written since the last call and waits to be committed; given to the sink's `Committer`."""
        return ()

    @abstractmethod
    def close(self) -> None:
        """Release everything; called exactly once. What was not flushed with `end_of_input` need not become visible."""


class Committer(ABC):
    """Makes what writers prepared visible, once the checkpoint that contains it is complete."""

    @abstractmethod
    def commit(self, committables: Sequence[Any]) -> None:
        """Commit each of them; the same one may be given again after a failure, which must change nothing."""

    def close(self) -> None:  # noqa: B027
        """Release everything; called exactly once."""


class Sink(ABC):
    """A sink: a value that can be pickled and makes writers."""

    name = "Sink"
    """The operator's name where the user gave none."""

    def for_type(self, type_info: TypeInformation | None) -> Sink:
        """The sink for a stream of this declared type; None: none was declared."""
        return self

    @abstractmethod
    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        """The writer of one subtask."""

    def create_committer(self) -> Committer | None:
        """The committer for what writers prepare; None for a sink whose writers make records visible themselves."""
        return None
