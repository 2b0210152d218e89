"""Faults of a simulated run, as values.

A fault that names a task takes part of its name: "Map" means every subtask of every vertex whose name holds it,
"Map (2/3)" one subtask.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from rayflink.actors.exchange.frames import Envelope, TaskAddress
from rayflink.common.options.stop_mode import StopMode

from .simulated_storage import Operation, Outcome


@dataclass(frozen=True, slots=True)
class Call:
    """An envelope on its way; it arrives at `due_ms` or later.

    Args:
        deliver: False: it never arrives.
        attempt: whose mailbox it comes to, as a rule the receiver's.
        is_answered: its arrival returns the call to the sender; of several copies one does.
    """

    envelope: Envelope
    sender: str
    receiver: str
    due_ms: int
    attempt: TaskAddress
    deliver: bool = True
    is_answered: bool = True

    @property
    def frames(self) -> str:
        """Describe the frames of the message, for reports."""
        names = [type(frame).__name__ for frame in self.envelope.frames]
        return " ".join(f"{names.count(n)}x{n}" if names.count(n) > 1 else n for n in dict.fromkeys(names))


class CommandFate(Enum):
    """The outcome of a command to a task. Except for the first, the call fails for the coordinator."""

    ARRIVES = "arrives"
    LOST = "never arrives"
    UNHEARD = "arrives, and the answer is lost"


class FaultTarget(Protocol):
    """A simulated cluster, as a fault acts on it."""

    def kill_named(self, name: str) -> bool:
        """Kill tasks by a part of their name; return False when none runs now."""
        ...

    def kill_slot(self, index: int) -> bool:
        """Kill all tasks of one slot, counted among those with tasks; return False when there is none."""
        ...

    def kill_coordinator(self, zombie_ms: int = 0) -> bool:
        """Let another coordinator take over; return False while there is none to kill."""
        ...

    def freeze_named(self, name: str, for_ms: int | None = None) -> bool:
        """Let tasks do nothing, for a time or for ever; return False when none runs now."""
        ...

    def lose_file(self, part: str) -> bool:
        """Delete a file of a checkpoint whose path has that part; return False when there is none."""
        ...

    def savepoint(self, directory: str, stop: StopMode | None) -> bool:
        """Request a savepoint, and again where it failed; return False until there is one, or the job has ended."""
        ...

    def rescale(self, parallelism: Mapping[str, int]) -> bool:
        """Request other parallelisms; return False until all tasks run, or the job has ended."""
        ...

    def cancel(self, by: str = "the user") -> None:
        """Request the job's cancellation."""
        ...

    def stop(self) -> None:
        """Let the sources end."""
        ...

    def trigger_checkpoint(self, number: int) -> bool:
        """Send the barrier to the sources; return False while no source runs."""
        ...


class Fault:
    """Something that goes wrong in a simulated run.

    This class disturbs nothing. Derive from those below, each of which disturbs one thing; a fault that disturbs
    several derives from several.
    """


class ClusterFault(Fault):
    """A fault that acts on the cluster at some moment: it kills, freezes, deletes, or does what users do."""

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        """Act if it is time, and return True when the fault has done all it does.

        Called before each move until it returns True; `move` counts them from 0.
        """
        return True


class CallFault(Fault):
    """A fault of the calls between tasks."""

    def concerns_call(self, call: Call) -> bool:
        """Return whether the call is one of those that the fault counts."""
        return True

    def transmit(self, call: Call, number: int, draw: random.Random) -> list[Call]:
        """Return the calls that are under way in the place of one that is counted; `number` counts from 0."""
        return [call]


class CommandFault(Fault):
    """A fault of the coordinator's commands to tasks."""

    def concerns_command(self, command: str, receiver: str) -> bool:
        """Return whether a command, by the name of its type, to a task is one of those that the fault counts."""
        return True

    def fate(self, number: int) -> CommandFate:
        """Return the outcome of a command that is counted; `number` counts from 0."""
        return CommandFate.ARRIVES


class CommandDelay(Fault):
    """A fault that delays the coordinator's commands to tasks; those for one task keep their order."""

    def command_delay_ms(self, draw: random.Random) -> int:
        """Return the virtual milliseconds that a command takes."""
        return 0


class StepDelay(Fault):
    """A fault that lets the steps of tasks take time; without one they take none."""

    def step_delay_ms(self, task: str, records: int, draw: random.Random) -> int:
        """Return the virtual milliseconds that a step of a task takes, which worked `records` records."""
        return 0


class StorageDelay(Fault):
    """A fault that delays what is written to a checkpoint storage, and what is deleted there."""

    def storage_delay_ms(self, draw: random.Random) -> int:
        """Return the virtual milliseconds that the work takes."""
        return 0


class CheckpointFault(Fault):
    """A fault that acts when a checkpoint has been stored, before any task knows it."""

    def on_published(self, cluster: FaultTarget, number: int) -> None:
        """Act on the cluster; `number` counts the stored checkpoints from 0."""


@dataclass(frozen=True)
class ReorderCalls(CallFault):
    """Calls between two tasks arrive in any order."""


@dataclass(frozen=True)
class DelayCalls(CallFault):
    """A part of the calls takes up to `most_ms`."""

    chance: float = 0.3
    most_ms: int = 200

    def transmit(self, call: Call, number: int, draw: random.Random) -> list[Call]:
        if draw.random() >= self.chance:
            return [call]
        return [replace(call, due_ms=call.due_ms + draw.randint(1, self.most_ms))]


@dataclass(frozen=True)
class DuplicateCalls(CallFault):
    """A part of the calls arrives twice, the second time up to `most_ms` later."""

    chance: float = 0.3
    most_ms: int = 200

    def transmit(self, call: Call, number: int, draw: random.Random) -> list[Call]:
        if draw.random() >= self.chance:
            return [call]
        return [call, replace(call, due_ms=call.due_ms + draw.randint(0, self.most_ms), is_answered=False)]


@dataclass(frozen=True)
class LoseCall(CallFault):
    """One call never arrives; to the sender it appears to have returned.

    Args:
        nth: which of those that carry a frame of type `carrying` ("" any) to `receiver`, from 0.
    """

    nth: int = 0
    carrying: str = ""
    receiver: str = ""

    def concerns_call(self, call: Call) -> bool:
        return self.carrying in call.frames and self.receiver in call.receiver

    def transmit(self, call: Call, number: int, draw: random.Random) -> list[Call]:
        return [replace(call, deliver=False)] if number == self.nth else [call]


@dataclass(frozen=True)
class StaleAttempt(CallFault):
    """Before a part of the calls comes one of the same number, without content, meant for an attempt that is dead."""

    chance: float = 0.3

    def transmit(self, call: Call, number: int, draw: random.Random) -> list[Call]:
        if draw.random() >= self.chance:
            return [call]
        stale = replace(call.envelope, receiver=TaskAddress("dead" * 8), frames=())
        return [replace(call, envelope=stale, is_answered=False), call]


@dataclass(frozen=True)
class KillTask(ClusterFault):
    """Tasks die without a word, at the first move from `at` on at which one of the name runs."""

    name: str
    at: int = 0

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        return move >= self.at and cluster.kill_named(self.name)


@dataclass(frozen=True)
class KillSlot(ClusterFault):
    """All tasks of one slot die, as when their process does, at the first move from `at` on at which there is one.

    Args:
        index: among the slots with tasks, modulo their number.
    """

    index: int = 0
    at: int = 0

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        return move >= self.at and cluster.kill_slot(self.index)


@dataclass(frozen=True)
class KillCoordinator(ClusterFault):
    """The coordinator dies, and with it all that is not in a checkpoint storage; a new one takes over some moves later.

    Its tasks die with it. The new one begins with the checkpoints that it finds below `execution.checkpointing.dir`;
    where that is not set, from the beginning.

    Args:
        zombie_ms: so long the old coordinator and its tasks go on beside the new ones, since they are not dead but cut
            off; 0: not at all.
    """

    at: int = 0
    zombie_ms: int = 0

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        return move >= self.at and cluster.kill_coordinator(self.zombie_ms)


@dataclass(frozen=True)
class CrashBeforeNotify(CheckpointFault):
    """A checkpoint is complete, and before anybody hears of it tasks or the coordinator die.

    Args:
        nth: which of the complete checkpoints, from 0.
        name: of the tasks; "": the coordinator.
    """

    nth: int = 0
    name: str = ""

    def on_published(self, cluster: FaultTarget, number: int) -> None:
        if number == self.nth:
            _ = cluster.kill_named(self.name) if self.name else cluster.kill_coordinator()


@dataclass(frozen=True)
class FreezeTask(ClusterFault):
    """Tasks do nothing and say nothing from then on, as behind a broken network.

    Args:
        for_ms: so long; then they go on for as long again, also where they were given up and others run in their place.
            None: for ever.
    """

    name: str
    at: int = 0
    for_ms: int | None = None

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        return move >= self.at and cluster.freeze_named(self.name, self.for_ms)


@dataclass(frozen=True)
class LoseCommand(CommandFault):
    """One command of the coordinator to a task is lost, and to the coordinator the call has failed.

    Args:
        nth: which of those of type `carrying` ("" any, else such as "CheckpointComplete") to `receiver`, from 0.
        obeyed: the command arrives; only the answer is lost.
    """

    nth: int = 0
    carrying: str = ""
    receiver: str = ""
    obeyed: bool = False

    def concerns_command(self, command: str, receiver: str) -> bool:
        return self.carrying in command and self.receiver in receiver

    def fate(self, number: int) -> CommandFate:
        if number != self.nth:
            return CommandFate.ARRIVES
        return CommandFate.UNHEARD if self.obeyed else CommandFate.LOST


@dataclass(frozen=True)
class DelayCommands(CommandDelay):
    """A part of the coordinator's commands takes up to `most_ms`; those for one task keep their order."""

    chance: float = 0.3
    most_ms: int = 200

    def command_delay_ms(self, draw: random.Random) -> int:
        return draw.randint(1, self.most_ms) if draw.random() < self.chance else 0


@dataclass(frozen=True)
class SlowStorage(StorageDelay):
    """A part of what is written to a checkpoint storage takes up to `most_ms` longer."""

    chance: float = 0.3
    most_ms: int = 200

    def storage_delay_ms(self, draw: random.Random) -> int:
        return draw.randint(1, self.most_ms) if draw.random() < self.chance else 0


@dataclass(frozen=True)
class StorageFault(Fault):
    """Some operations of checkpoint storages are disturbed.

    Args:
        first: the first one of those that are of `action`, with `part` in their path, from 0.
        count: how many one after the other.
        action: "write", "read", "list", "delete"; "" any.
        part: of the path; "" any.
    """

    first: int = 0
    count: int = 1
    action: str = "write"
    part: str = ""

    failure = Outcome.DONE

    def concerns_operation(self, operation: Operation) -> bool:
        """Return whether an operation of a checkpoint storage is one of those that the fault counts."""
        return self.action in operation.action and self.part in operation.path

    def outcome(self, operation: Operation, number: int, draw: random.Random) -> Outcome:
        """Return the outcome of an operation that is counted; `number` counts from 0."""
        return self.failure if self.first <= number < self.first + self.count else Outcome.DONE


@dataclass(frozen=True)
class FullStorage(StorageFault):
    """The storage is full for a while: nothing is written, and it says so."""

    failure = Outcome.REFUSED


@dataclass(frozen=True)
class UnheardStorage(StorageFault):
    """The storage does what is asked, and says that it failed: the answer was lost."""

    failure = Outcome.UNHEARD


@dataclass(frozen=True)
class LyingStorage(StorageFault):
    """The storage says that it wrote, and did not. No job survives the loss; it must say which file is missing."""

    failure = Outcome.PRETENDED


@dataclass(frozen=True)
class LoseFile(ClusterFault):
    """A file of a checkpoint disappears at the first move from `at` on at which there is one.

    Args:
        part: of its path, such as "/_metadata" or "/chk-3/"; "": a file with state, no metadata.
    """

    part: str = ""
    at: int = 0

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        return move >= self.at and cluster.lose_file(self.part)


@dataclass(frozen=True)
class TakeSavepoint(ClusterFault):
    """A user requests a savepoint from move `at` on, until there is one; `Story.savepoints` says where it is."""

    directory: str = "/savepoints"
    at: int = 0

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        return move >= self.at and cluster.savepoint(self.directory, None)


@dataclass(frozen=True)
class StopWithSavepoint(ClusterFault):
    """A user stops the job with a savepoint, from move `at` on until it works or the job has ended.

    Args:
        drain: event time goes to its end first; else the job can be gone on with from the savepoint.
    """

    directory: str = "/savepoints"
    at: int = 0
    drain: bool = False

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        stop = StopMode.DRAIN if self.drain else StopMode.SUSPEND
        return move >= self.at and cluster.savepoint(self.directory, stop)


@dataclass(frozen=True)
class CancelJob(ClusterFault):
    """A user cancels the job before move `at`."""

    at: int = 0

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        if move >= self.at:
            cluster.cancel()
        return move >= self.at


@dataclass(frozen=True)
class StopJob(ClusterFault):
    """A user stops the job before move `at`: its sources end."""

    at: int = 0

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        if move >= self.at:
            cluster.stop()
        return move >= self.at


@dataclass(frozen=True)
class TriggerCheckpoint(ClusterFault):
    """Checkpoint `number` is triggered at the first move from `at` on at which a source runs."""

    number: int = 1
    at: int = 0

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        return move >= self.at and cluster.trigger_checkpoint(self.number)


@dataclass(frozen=True)
class Rescale(ClusterFault):
    """A user requests other parallelisms, at the first move from `at` on at which all tasks run.

    Args:
        parallelism: pairs of an operator, by its name or uid, and its number of subtasks.
    """

    parallelism: tuple[tuple[str, int], ...]
    at: int = 0

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        return move >= self.at and cluster.rescale(dict(self.parallelism))


@dataclass(frozen=True)
class SlowTask(StepDelay):
    """Every step of the tasks takes `ms` longer."""

    name: str
    ms: int = 50

    def step_delay_ms(self, task: str, records: int, draw: random.Random) -> int:
        return self.ms if self.name in task else 0


@dataclass(frozen=True)
class SlowRecords(StepDelay):
    """Every record that the tasks take costs a random time, evenly distributed between two bounds in milliseconds."""

    name: str
    least_ms: int = 0
    most_ms: int = 20

    def step_delay_ms(self, task: str, records: int, draw: random.Random) -> int:
        return sum(draw.randint(self.least_ms, self.most_ms) for _ in range(records)) if self.name in task else 0


@dataclass(frozen=True)
class SlowSink(SlowTask):
    """Every step of a task with a sink takes `ms` longer."""

    name: str = "Sink: "


UNRELIABLE_NETWORK: tuple[Fault, ...] = (ReorderCalls(), DelayCalls(), DuplicateCalls(), StaleAttempt())
"""All that the exchange must bear without anybody noticing."""
