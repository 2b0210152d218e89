"""The faults of one run, sorted by what they disturb."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..faults import (
    Call,
    CallFault,
    CheckpointFault,
    ClusterFault,
    CommandDelay,
    CommandFate,
    CommandFault,
    Fault,
    FaultTarget,
    ReorderCalls,
    StepDelay,
    StorageDelay,
    StorageFault,
)
from ..simulated_storage import Operation, Outcome

FaultT = TypeVar("FaultT", bound=Fault)


@dataclass(slots=True)
class Counted(Generic[FaultT]):
    """A fault, and how many calls, commands or operations it has counted."""

    fault: FaultT
    count: int = 0

    def next_number(self) -> int:
        """Count one more and return its number, from 0."""
        self.count += 1
        return self.count - 1


class FaultPlan:
    """Asks the faults of a run about each thing that they may disturb.

    The kinds of fault from which its class derives say what a fault disturbs; it may be several things.

    Args:
        faults: in the order in which they are asked.
        draw: the chance of the run.
    """

    def __init__(self, faults: Sequence[Fault], draw: random.Random) -> None:
        self._draw = draw
        self._calls = [Counted(fault) for fault in faults if isinstance(fault, CallFault)]
        self._commands = [Counted(fault) for fault in faults if isinstance(fault, CommandFault)]
        self._storage = [Counted(fault) for fault in faults if isinstance(fault, StorageFault)]
        self._step_delays = [fault for fault in faults if isinstance(fault, StepDelay)]
        self._command_delays = [fault for fault in faults if isinstance(fault, CommandDelay)]
        self._storage_delays = [fault for fault in faults if isinstance(fault, StorageDelay)]
        self._checkpoints = [fault for fault in faults if isinstance(fault, CheckpointFault)]
        self._waiting = [fault for fault in faults if isinstance(fault, ClusterFault)]
        self.reorders = any(isinstance(fault, ReorderCalls) for fault in faults)

    def inject(self, cluster: FaultTarget, move: int) -> None:
        """Let those faults act on the cluster that have not done so, before a move."""
        if self._waiting:
            self._waiting = [fault for fault in self._waiting if not fault.inject(cluster, move)]

    def transmit(self, call: Call) -> list[Call]:
        """Return the calls that are under way in the place of one."""
        calls = [call]
        for counted in self._calls:
            fault, transmitted = counted.fault, []
            for each in calls:
                if fault.concerns_call(each):
                    transmitted += fault.transmit(each, counted.next_number(), self._draw)
                else:
                    transmitted.append(each)
            calls = transmitted
        return calls

    def command_fates(self, command: str, receiver: str) -> Iterator[CommandFate]:
        """Yield each fate of a command that a fault has chosen; whoever stops leaves the other faults unasked."""
        for counted in self._commands:
            if counted.fault.concerns_command(command, receiver):
                fate = counted.fault.fate(counted.next_number())
                if fate is not CommandFate.ARRIVES:
                    yield fate

    def storage_outcome(self, operation: Operation) -> Outcome:
        """Return the outcome of an operation of a checkpoint storage."""
        for counted in self._storage:
            if counted.fault.concerns_operation(operation):
                outcome = counted.fault.outcome(operation, counted.next_number(), self._draw)
                if outcome is not Outcome.DONE:
                    return outcome
        return Outcome.DONE

    def step_delay_ms(self, task: str, records: int) -> int:
        """Return the virtual milliseconds that a step of a task takes, which worked `records` records."""
        return sum(fault.step_delay_ms(task, records, self._draw) for fault in self._step_delays)

    def command_delay_ms(self) -> int:
        """Return the virtual milliseconds that the next command takes."""
        return sum(fault.command_delay_ms(self._draw) for fault in self._command_delays)

    def storage_delay_ms(self) -> int:
        """Return the virtual milliseconds that the next work on a checkpoint storage takes."""
        return sum(fault.storage_delay_ms(self._draw) for fault in self._storage_delays)

    def on_published(self, cluster: FaultTarget, number: int) -> None:
        """Let faults act when a checkpoint was stored and no task knows it; `number` counts them from 0."""
        for fault in self._checkpoints:
            fault.on_published(cluster, number)


__all__ = ["FaultPlan"]
