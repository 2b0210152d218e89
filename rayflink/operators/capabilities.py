"""Capabilities that some operators have beyond the contract of `base.Operator`: one class for each.

An operator inherits the capability and implements its methods. The chain looks for capabilities once, when it is
built, and asks only the operators that have them; an operator that defines a method of a capability without inheriting
it is refused when its class is defined.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rayflink.common.records.batches import Batch, Element, EndOfSuperstep, LatencyMarker, WatermarkStatus
from rayflink.state.snapshots import OperatorSnapshot

from .latency import record_latency

if TYPE_CHECKING:
    from .base import OperatorContext


class ProcessingTimers(ABC):
    """An operator with timers of processing time. They fire as long as its input has not ended."""

    @abstractmethod
    def next_processing_time(self) -> int | None:
        """Called between elements. Return the epoch milliseconds of the earliest timer, or None."""

    @abstractmethod
    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        """Called when the earliest timer is due. Return what timers up to and including `now_ms` emit."""


class Upkeep(ABC):
    """An operator with background work that emits nothing, such as dropping expired state."""

    @abstractmethod
    def next_upkeep_ms(self) -> int | None:
        """Called between elements. Return the epoch milliseconds at which `upkeep` is due, or None."""

    @abstractmethod
    def upkeep(self, now_ms: int) -> None:
        """Called when upkeep is due: do a few milliseconds of the work."""


class AsyncCompletion(ABC):
    """An operator whose work is done elsewhere, in an event loop or in other processes, while it accepts more.

    Work that is completed calls `OperatorContext.wake`, so that a task that sleeps does step.
    """

    @abstractmethod
    def accepts(self, element: Element) -> bool:
        """Called before each element. Return whether the operator can be fed it now; the chain waits otherwise.

        The end of data has to wait until no work is under way elsewhere.
        """

    @abstractmethod
    def take_completed(self) -> Iterable[Element]:
        """Called in every step. Return the results that have come back, in the order in which they may be emitted."""

    @abstractmethod
    def next_completion_ms(self) -> int | None:
        """Called between elements. Return the epoch milliseconds at which `take_completed` has something to return.

        None: when `OperatorContext.wake` is called.
        """


class EventHandler(ABC):
    """An operator that handles events other than watermarks; by default each is passed on."""

    ctx: OperatorContext

    def process_status(self, status: WatermarkStatus) -> Iterable[Element]:
        """Called when the input becomes idle or active. Return what follows from that, the status last."""
        return (status,)

    def process_latency_marker(self, marker: LatencyMarker) -> Iterable[Element]:
        """Called when a latency marker arrives. Record its age and return it; user code never sees it."""
        record_latency(self.ctx, marker)
        return (marker,)

    def process_superstep(self, end: EndOfSuperstep) -> Iterable[Element]:
        """Called when a superstep of an iteration has ended on all inputs. Return what follows, the end last."""
        return (end,)


class BoundedMultiInput(ABC):
    """An operator of several inputs that has something to do when one of them ends. Flink: BoundedMultiInput."""

    @abstractmethod
    def end_input(self, input_index: int) -> Iterable[Element]:
        """Called when an input has ended, unless it was the last one. Return what that lets the operator emit."""


class BroadcastInput:
    """An operator of two inputs, one of which is broadcast: every subtask receives all of it."""

    broadcast_input = 1
    """The index of that input."""


class Satisfiable(ABC):
    """An operator that may need no further record before its input ends, such as a LIMIT."""

    @property
    @abstractmethod
    def is_satisfied(self) -> bool:
        """Called in every step until it is true. Return whether no further record can change the output."""


class StatePrefetch(ABC):
    """An operator that can load the state of many records at once, before they are processed in slices."""

    @property
    @abstractmethod
    def reads_ahead(self) -> int:
        """Called before each slice. Return how many records `read_ahead` should see; 0 if state is all in memory."""

    @abstractmethod
    def read_ahead(self, batch: Batch, input_index: int) -> None:
        """Called with records that `process` will get soon: load their state in one go. It only saves time."""


class CheckpointListener:
    """An operator that acts when a checkpoint is near, complete or aborted. Flink: CheckpointListener."""

    def announce(self, checkpoint_id: int) -> None:
        """Called when a checkpoint comes soon: slow parts of its snapshot may begin, in `Upkeep.upkeep`."""

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """Called when a checkpoint is durable: commit the side effects that belong to it."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Called when a checkpoint will never be complete."""


class PreBarrier(ABC):
    """An operator that emits or prepares something before each barrier. Flink: prepareSnapshotPreBarrier."""

    @abstractmethod
    def prepare_snapshot(self, checkpoint_id: int) -> Iterable[Element]:
        """Called before the barrier is passed on. Return the elements that must precede it."""


class DeferredSnapshot(ABC):
    """An operator whose snapshot is complete only some time after `snapshot_state`, which returns None."""

    ctx: OperatorContext

    @abstractmethod
    def rest_of_snapshot(self, checkpoint_id: int) -> OperatorSnapshot | None:
        """Called in every step after the barrier. Return the complete snapshot, once; None while it is not."""


class SplitReceiver(ABC):
    """A source that reads splits, which an enumerator in the coordinator assigns."""

    @abstractmethod
    def add_splits(self, splits: list[object]) -> None:
        """Called when the enumerator has assigned splits to this subtask."""

    @abstractmethod
    def no_more_splits(self) -> None:
        """Called when the enumerator has no more splits for this subtask."""

    @abstractmethod
    def watermark_announced(self, max_allowed: int) -> None:
        """Called when the alignment group allows reading up to this watermark (epoch milliseconds)."""


CAPABILITIES: tuple[type, ...] = (
    ProcessingTimers, Upkeep, AsyncCompletion, EventHandler, BoundedMultiInput, BroadcastInput, Satisfiable,
    StatePrefetch, CheckpointListener, PreBarrier, DeferredSnapshot, SplitReceiver,
)  # fmt: skip


def methods_of(capability: type) -> list[str]:
    """Return the names of a capability's methods and attributes.

    >>> methods_of(Upkeep)
    ['next_upkeep_ms', 'upkeep']
    """
    return [name for name in vars(capability) if not name.startswith("_")]


def missing_capability(operator: type) -> tuple[str, type] | None:
    """Return a method of the class, and the capability that it belongs to and the class does not inherit, or None."""
    for capability in CAPABILITIES:
        if capability not in operator.__mro__:
            for name in methods_of(capability):
                if hasattr(operator, name):
                    return name, capability
    return None


__all__ = [
    "AsyncCompletion", "BoundedMultiInput", "BroadcastInput", "CheckpointListener", "EventHandler", "DeferredSnapshot",
    "PreBarrier", "ProcessingTimers", "Satisfiable", "SplitReceiver", "StatePrefetch", "Upkeep", "methods_of",
    "missing_capability",
]  # fmt: skip
