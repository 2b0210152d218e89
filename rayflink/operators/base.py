"""The contract of operators: elements in, elements out, state in between. An operator knows no channel and no actor,
and has no clock of its own.

An operator answers each element with an iterable of elements. The chain draws from it only while its outputs have
room, so an operator that may emit much (a flat_map, many timers that fire) answers with a generator and is thereby
resumable: it stops wherever the outputs are full and goes on when they are not. A watermark is passed on after
everything it caused, because the operator yields it last.

Life cycle (Flink's order): `setup`, `initialize_state`, `open`; then `process`, `process_watermark` and, per
checkpoint, `snapshot_state`; at the end of all input `finish`; and `close`, exactly once, also after a failure or a
cancel.

`Operator` has what every operator needs. What only some need, such as timers or work that is done in other processes,
is a class of its own in `capabilities`, which they inherit too. An operator never waits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from rayflink.common.errors import described
from rayflink.common.managed_memory import Allowance
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import Batch, Element, Watermark
from rayflink.common.text_output.bounded_text import TookTooLong, bounded_repr
from rayflink.common.watermarks import WatermarkAlignment
from rayflink.state.snapshots import SNAPSHOT_VERSION, OperatorSnapshot

from .capabilities import missing_capability


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
        send_source_event: sends an event of a source's reader to its enumerator (sources only).
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
    clock: ProcessingTime = None  # type: ignore[assignment]  # left out where an operator needs no time
    metrics: MetricGroup = None  # type: ignore[assignment]  # and where it needs no metrics
    config: Mapping[str, Any] = field(default_factory=dict)
    accumulators: dict[str, Any] = field(default_factory=dict)
    cached_files: Mapping[str, str] = field(default_factory=dict)
    call_site: str = ""
    request_split: Callable[[], None] | None = None
    send_source_event: Callable[[object], None] | None = None
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
    """One step of a stream program, for one subtask. All methods are called from one thread.

    The smallest operator defines `process`:

    >>> from rayflink.common.records.batches import RowBatch
    >>> class Doubled(Operator):
    ...     def process(self, batch, input_index):
    ...         return (RowBatch([2 * value for value in batch.values], batch.timestamps),)
    >>> from rayflink.testing import OperatorHarness
    >>> with OperatorHarness(Doubled) as harness:
    ...     harness.process(4, timestamp=7)
    ...     harness.output
    [rec(8, 7)]

    Raises:
        TypeError: a class defines a method of a capability (`capabilities`) without inheriting the capability.
    """

    ctx: OperatorContext

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        missing = missing_capability(cls)
        if missing is not None:
            method, capability = missing
            raise TypeError(
                f"operator {cls.__name__} defines {method}(), which belongs to the capability {capability.__name__}, "
                f"and would never be called; inherit {capability.__name__} of rayflink.operators.capabilities too"
            )

    def setup(self, ctx: OperatorContext) -> None:
        """Called first, with the surroundings: keep them as `ctx`."""
        self.ctx = ctx

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:  # noqa: B027
        """Called before `open`: create the state, or restore it.

        Args:
            snapshots: several after a rescale, none at a first start.
        """

    def open(self) -> None:  # noqa: B027
        """Called before the first element: open user functions and connections; the state exists."""

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        """Called with each batch of records. Return what it leads to.

        Args:
            input_index: of several inputs the number of the one that it comes from, from 0 on.
        """
        raise NotImplementedError(f"{type(self).__name__} takes no records")

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        """Called when event time advances on all inputs. Return what that leads to, the watermark last."""
        return (watermark,)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot | None:
        """Called when the barrier has been passed on. Return a copy of the state as of now; None without state."""
        return None

    def finish(self) -> Iterable[Element]:
        """Called when all inputs have ended. Return the remaining output; timers of event time have fired already."""
        return ()

    def close(self) -> None:  # noqa: B027
        """Called last, exactly once, after success, failure or cancel: release everything."""


class SourceOperator(Operator):
    """An operator without input: the task polls it while its outputs have room."""

    ends_by_itself = False
    """True if the source continues until its own end though the job is asked to stop."""

    @abstractmethod
    def poll(self, max_records: int) -> Iterable[Element] | None:
        """Called while there is room. Return the next elements, about `max_records` at most.

        `()` means that nothing is there now, None the end of input.
        """

    def next_poll_ms(self) -> int | None:
        """Called after a poll that returned `()`. Return the epoch milliseconds at which to poll again.

        None: when a split or a mail arrives.
        """
        return None


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
        site = f" (created at {self.call_site})" if self.call_site else ""
        record = f" on record {self.record}" if self.record else ""
        cause = f": {described(self.__cause__)}" if self.__cause__ is not None else ""
        return f"user function of operator {self.operator!r}{site} failed in {self.where}{record}{cause}"


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


__all__ = [
    "Operator", "OperatorContext", "OperatorSnapshot", "ProcessingTime", "SNAPSHOT_VERSION", "SourceOperator",
    "UserCodeError", "shortened",
]  # fmt: skip
