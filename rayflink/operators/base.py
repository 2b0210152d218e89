"""The interface of operators: elements in, elements out, state in between. It knows no channel, no actor and no clock
of its own.

An operator answers each element with an iterable of elements. The chain draws from it only while its outputs have
room, so an operator that may emit much (a flat_map, a firing of many timers) answers with a generator and is thereby
resumable: it stops wherever the outputs are full and goes on when they are not. A watermark is passed on after
everything it caused, because the operator yields it last.

Life cycle (Flink's order): `setup` - `initialize_state` - `open` - (`process*`, `on_processing_time`, per checkpoint
`prepare_snapshot`, `snapshot_state`, `notify_checkpoint_complete`) - `finish` - `close`. `close` is called exactly
once, also after a failure or a cancel; `finish` only at the end of all input.

An operator never waits. One whose work is done elsewhere, in an event loop or in other processes, says so by
`works_outside`. It is then asked whether it `takes` an element before it is fed one, and for what has been `completed`
whenever the task steps; completed work calls `OperatorContext.wake`, so that a task that sleeps does step.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from rayflink.common.errors import described
from rayflink.common.managed_memory import Allowance
from rayflink.common.records.batches import (
    Batch,
    Element,
    EndOfData,
    EndOfSuperstep,
    LatencyMarker,
    Tagged,
    Watermark,
    WatermarkStatus,
)
from rayflink.common.text_output.bounded_text import TookTooLong, bounded_repr
from rayflink.common.watermarks import WatermarkAlignment
from rayflink.state.snapshots import SNAPSHOT_VERSION, OperatorSnapshot

from .latency import record_latency


class ProcessingTime(Protocol):
    """The task's clocks."""

    def now_ms(self) -> int:
        """Return the epoch milliseconds of the wall clock, read once a slice."""
        ...

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start, for durations."""
        ...


@dataclass
class OperatorContext:
    """The surroundings that the task passes to an operator at `setup`.

    Args:
        operator_id: 32 hex digits, stable across submissions.
        operator_name: as shown to people.
        task_name: name of the chained vertex, without the subtask.
        subtask: index in [0, parallelism).
        attempt: 0 for the first execution of this subtask.
        epoch: of the coordinator that counts these attempts; one more with each that takes over.
        max_parallelism: key groups in all.
        clock: processing time, and durations (`ProcessingTime`).
        metrics: the operator's metric group (`rayflink.common.metrics.metric_group.MetricGroup`).
        config: the job's configuration, option key -> value.
        accumulators: name -> accumulator, merged over all subtasks at the end of the job.
        cached_files: name -> local path of the distributed cache.
        call_site: the line of the user's program that created the operator, or "".
        request_split: asks the coordinator for a split (sources only).
        report_watermark: reports to the coordinator where a source stands that is aligned with others, None for idle.
        wake: lets the task step soon, may be called by any thread; None: nothing runs beside the task, and time is the
            clock's alone, so that outside work belongs into the task's own thread.
        open_worker: makes the workers of functions that run in processes of their own; None: the runner has none, and
            they live in this process.
        checkpointing: whether checkpoints are triggered in this attempt, the last of them after the end of input; what
            belongs to a checkpoint then waits for it. An option that asks for checkpoints does not make them: who
            triggers them sets this.
        finished: whether all data was worked before this attempt, which only ends what was begun.
        managed_memory: what it may keep in memory of what it could also write to disk; None: no bound.
        spill_folder: where it may write that, a folder of this attempt, which may still have to be made and is removed
            with it; "" where there is none.
        uid: that the program gave the operator; "" for none.
    """

    operator_id: str
    operator_name: str
    task_name: str = "task"
    job_id: str = "0" * 32
    subtask: int = 0
    parallelism: int = 1
    max_parallelism: int = 128
    attempt: int = 0
    clock: Any = None
    metrics: Any = None
    config: Mapping[str, Any] = field(default_factory=dict)
    accumulators: dict[str, Any] = field(default_factory=dict)
    cached_files: Mapping[str, str] = field(default_factory=dict)
    call_site: str = ""
    request_split: Callable[[], None] | None = None
    report_watermark: Callable[[WatermarkAlignment, int | None], None] | None = None
    wake: Callable[[], None] | None = None
    open_worker: Callable[[Any], Any] | None = None
    checkpointing: bool = False
    finished: bool = False
    managed_memory: Allowance | None = None
    spill_folder: str = ""
    epoch: int = 0
    uid: str = ""

    @property
    def label(self) -> str:
        """Return the operator's name in messages: its uid where the program gave it one, else its name."""
        return self.uid or self.operator_name


class Operator(ABC):
    """One step of a stream program, for one subtask.

    Subclasses override `process` (and what else they need). All methods are called from one thread.
    """

    ctx: OperatorContext
    works_outside = False
    """True if some of its work is done outside of the task; then it may not accept an element at once."""
    ends_early = False
    """True if the operator may be satisfied before its input ends."""
    snapshots_late = False
    """True if a snapshot becomes whole only some time after `snapshot_state`; then `rest_of_snapshot` returns it."""

    def setup(self, ctx: OperatorContext) -> None:
        """Take the context; nothing else is called before."""
        self.ctx = ctx

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:  # noqa: B027
        """Create the state, or restore it from `snapshots` (several after a rescale, none at a first start)."""

    def open(self) -> None:  # noqa: B027
        """Open user functions and outside resources; state is there, no timer has fired yet."""

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        """Work one batch of input `input_index` (0, or 1 for the second input of a two-input operator)."""
        raise NotImplementedError(f"{type(self).__name__} takes no records")

    @property
    def reads_ahead(self) -> int:
        """Return how many records `read_ahead` should be shown: what they need may have to be read from disk; 0 for
        none.
        """
        return 0

    def read_ahead(self, batch: Batch, input_index: int) -> None:  # noqa: B027
        """Read in one go the state that the next records, given in slices, will need. It only saves time."""

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        """Advance event time: whatever that causes, then the watermark."""
        return (watermark,)

    def process_status(self, status: WatermarkStatus) -> Iterable[Element]:
        """Handle a change of the input to idle or active."""
        return (status,)

    def process_latency_marker(self, marker: LatencyMarker) -> Iterable[Element]:
        """Record how old a latency marker is, and pass it on; user code never sees it."""
        record_latency(self.ctx, marker)
        return (marker,)

    def process_superstep(self, end: EndOfSuperstep) -> Iterable[Element]:
        """Handle the end of a superstep of an iteration on all inputs: emit its consequences, then its end."""
        return (end,)

    def next_processing_time(self) -> int | None:
        """Return the epoch milliseconds of the earliest registered processing-time timer, or None."""
        return None

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        """Fire processing-time timers up to and including `now_ms`."""
        return ()

    @property
    def is_satisfied(self) -> bool:
        """Return whether no further record can change the output; asked only where it `ends_early`, and true for
        good.
        """
        return False

    def takes(self, element: Element) -> bool:
        """Return whether the operator can be fed an element now; the end of data waits until nothing is under way
        outside.
        """
        return True

    def completed(self) -> Iterable[Element]:
        """Return the results that have come back from outside, in the order in which they may be emitted."""
        return ()

    def next_completion_ms(self) -> int | None:
        """Return the epoch milliseconds at which `completed` has something to do; None: when `OperatorContext.wake` is
        called.
        """
        return None

    def next_upkeep_ms(self) -> int | None:
        """Return the epoch milliseconds at which `upkeep` is due, or None: work in the background that emits
        nothing.
        """
        return None

    def upkeep(self, now_ms: int) -> None:  # noqa: B027
        """Do a little of that work: a few milliseconds."""

    def end_input(self, input_index: int) -> Iterable[Element]:
        """Handle the end of one of the inputs; the operator goes on with the others."""
        return ()

    def finish(self) -> Iterable[Element]:
        """Emit the remaining output after all inputs have ended. The MAX watermark has fired the timers of event
        time.
        """
        return ()

    def announce(self, checkpoint_id: int) -> None:  # noqa: B027
        """Announce a checkpoint that comes soon: slow parts of its snapshot may be begun in `upkeep`."""

    def prepare_snapshot(self, checkpoint_id: int) -> Iterable[Element]:
        """Emit the elements that must precede the barrier, before it is passed on."""
        return ()

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot | None:
        """Return a copy of the state as of now, or None for a stateless operator."""
        return None

    def rest_of_snapshot(self, checkpoint_id: int) -> OperatorSnapshot | None:
        """Return the whole snapshot, once; None while it is not whole. Asked for in every step of the task until
        then.
        """
        raise NotImplementedError(f"{type(self).__name__} gives its snapshot at once")

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:  # noqa: B027
        """Commit the side effects that belong to a checkpoint, now that it is durable."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:  # noqa: B027
        """Handle a checkpoint that will never be complete."""

    def close(self) -> None:  # noqa: B027
        """Release everything; called exactly once, after success, failure or cancel."""


class SourceOperator(Operator):
    """An operator without input: the task polls it while its outputs have room."""

    ends_by_itself = False
    """True if the source continues until its own end though the job is asked to stop."""

    def poll(self, max_records: int) -> Iterable[Element] | None:
        """Return the next elements, about `max_records` at most; `()` when nothing is there now; None at the end of
        input.
        """
        raise NotImplementedError

    def next_poll_ms(self) -> int | None:
        """Return the epoch milliseconds at which polling makes sense again after `()`; None: when a split or a mail
        arrives.
        """
        return None

    def add_splits(self, splits: list[Any]) -> None:
        """Add splits that the enumerator assigned."""

    def no_more_splits(self) -> None:
        """Note that the enumerator has no more splits for this reader."""

    def watermark_announced(self, max_allowed: int) -> None:
        """Allow reading up to this watermark: the other sources of the alignment group have come far enough."""


class UserCodeError(Exception):
    """A user's function raised; the cause is `__cause__`.

    Args:
        operator: name of the operator.
        call_site: line of the user's program that created it.
        record: the shortened repr of the record at which it happened, or "" when it was no record (open, timer, ...).
        where: which method of the user's function.
    """

    def __init__(self, operator: str, call_site: str, record: str, where: str) -> None:
        super().__init__(operator, call_site, record, where)
        self.operator, self.call_site, self.record, self.where = operator, call_site, record, where

    def __str__(self) -> str:
        at = f" (created at {self.call_site})" if self.call_site else ""
        record = f" on record {self.record}" if self.record else ""
        cause = self.__cause__
        what = f": {described(cause)}" if cause is not None else ""
        return f"user function of operator {self.operator!r}{at} failed in {self.where}{record}{what}"


def shortened(value: object, limit: int = 200) -> str:
    """Return `repr(value)`, cut to `limit` characters; a repr that itself raises or is slow is named, not
    propagated.
    """
    try:
        return "".join(bounded_repr(value, limit))
    except TookTooLong as late:
        return f"<{type(value).__name__} whose repr {late}>"
    except Exception as error:  # a user's __repr__ may raise anything
        return f"<{type(value).__name__} whose repr raised {type(error).__name__}>"


def record_at(values: list[Any], iterator: Iterator[Any]) -> str:
    """Return the record a C-level loop over `iterator` (a list iterator over `values`) stood at when it raised,
    shortened.
    """
    taken = len(values) - iterator.__length_hint__()  # type: ignore[attr-defined]
    return shortened(values[taken - 1]) if 0 < taken <= len(values) else ""


def ensure_all_taken(iterator: Iterator[Any]) -> None:
    """Check that a C-level loop over `iterator` (of a list) came to the list's end.

    To such a loop a StopIteration from the function it calls is the end of the records: it stops there and reports
    nothing. An iterator that was asked for more than its last record has let go of its list, and only then.

    Raises:
        StopIteration: the function raised one, at the record that `record_at` names.
    """
    if len(iterator.__reduce__()) == 3:
        raise StopIteration("the function called next() on an iterator without more elements; give next() a default")


__all__ = [
    "Element", "EndOfData", "Operator", "OperatorContext", "OperatorSnapshot", "ProcessingTime", "SNAPSHOT_VERSION",
    "SourceOperator", "Tagged", "UserCodeError", "ensure_all_taken", "record_at", "shortened",
]  # fmt: skip
