"""Faults of a simulated run, as values.

A fault that names a task takes a part of its name: "Map" means every subtask of each vertex whose name contains it,
"Map (2/3)" one subtask. A fault of your own derives from the class of what it disturbs, such as `ClusterFault`.
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
        sender, receiver: names of the tasks.
        deliver: False: it never arrives.
        attempt: in whose mailbox it is put; the receiver's as a rule.
        is_answered: the call returns to its sender when it arrives; of several copies of a call one does so.
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
    """Some calls take up to `most_ms` milliseconds.

    Args:
        chance: of each call, in [0, 1].
    """

    chance: float = 0.3
    most_ms: int = 200

    def transmit(self, call: Call, number: int, draw: random.Random) -> list[Call]:
        if draw.random() >= self.chance:
            return [call]
        return [replace(call, due_ms=call.due_ms + draw.randint(1, self.most_ms))]


@dataclass(frozen=True)
class DuplicateCalls(CallFault):
    """Some calls arrive twice, the second time up to `most_ms` milliseconds later.

    Args:
        chance: of each call, in [0, 1].
    """

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
        nth: its number, from 0, among the calls with a frame of type `carrying` to `receiver`.
        carrying: part of a frame type's name, such as "BufferResponse"; "": any.
        receiver: part of a task's name; "": any.
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
    """Before some calls arrives one with the same number and no content, for an attempt that is dead.

    Args:
        chance: of each call, in [0, 1].
    """

    chance: float = 0.3

    def transmit(self, call: Call, number: int, draw: random.Random) -> list[Call]:
        if draw.random() >= self.chance:
            return [call]
        stale = replace(call.envelope, receiver=TaskAddress("dead" * 8), frames=())
        return [replace(call, envelope=stale, is_answered=False), call]


@dataclass(frozen=True)
class KillTask(ClusterFault):
    """Tasks die without notice, at the first move from `move` on at which one of that name runs."""

    name: str
    move: int = 0

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        return move >= self.move and cluster.kill_named(self.name)


@dataclass(frozen=True)
class KillSlot(ClusterFault):
    """All tasks of one slot die, as when their process ends, at the first move from `move` on at which a task runs.

    Args:
        index: among the slots with tasks, modulo their number.
    """

    index: int = 0
    move: int = 0

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        return move >= self.move and cluster.kill_slot(self.index)


@dataclass(frozen=True)
class KillCoordinator(ClusterFault):
    """The coordinator dies, and with it all that is not in a checkpoint storage; a new one takes over some moves later.

    Its tasks die with it. The new one begins with the checkpoints that it finds below `execution.checkpointing.dir`;
    where that is not set, from the beginning.

    Args:
        zombie_ms: time for which the old coordinator and its tasks go on beside the new ones, because they are not dead
            but cut off; 0: they are dead.
    """

    move: int = 0
    zombie_ms: int = 0

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        return move >= self.move and cluster.kill_coordinator(self.zombie_ms)


@dataclass(frozen=True)
class CrashBeforeNotify(CheckpointFault):
    """Tasks or the coordinator die when a checkpoint is complete and no task knows it yet.

    Args:
        nth: the number of that checkpoint among the complete ones, from 0.
        name: of the tasks; "": the coordinator.
    """

    nth: int = 0
    name: str = ""

    def on_published(self, cluster: FaultTarget, number: int) -> None:
        if number == self.nth:
            _ = cluster.kill_named(self.name) if self.name else cluster.kill_coordinator()


@dataclass(frozen=True)
class FreezeTask(ClusterFault):
    """Tasks do nothing and send nothing from move number `move` on, as behind a broken network.

    Args:
        for_ms: for that time; then they go on for as long again, even where others have replaced them. None: for ever.
    """

    name: str
    move: int = 0
    for_ms: int | None = None

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        return move >= self.move and cluster.freeze_named(self.name, self.for_ms)


@dataclass(frozen=True)
class LoseCommand(CommandFault):
    """One command of the coordinator to a task is lost; the coordinator sees that the call failed.

    Args:
        nth: its number, from 0, among the commands of type `carrying` to `receiver`.
        carrying: part of a command type's name, such as "CheckpointComplete"; "": any.
        receiver: part of a task's name; "": any.
        obeyed: the command arrives, and only the answer is lost.
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
    """Some of the coordinator's commands take up to `most_ms` milliseconds; those for one task keep their order."""

    chance: float = 0.3
    most_ms: int = 200

    def command_delay_ms(self, draw: random.Random) -> int:
        return draw.randint(1, self.most_ms) if draw.random() < self.chance else 0


@dataclass(frozen=True)
class SlowStorage(StorageDelay):
    """Some of the work on a checkpoint storage takes up to `most_ms` milliseconds longer."""

    chance: float = 0.3
    most_ms: int = 200

    def storage_delay_ms(self, draw: random.Random) -> int:
        return draw.randint(1, self.most_ms) if draw.random() < self.chance else 0


@dataclass(frozen=True)
class StorageFault(Fault):
    """Some operations of checkpoint storages are disturbed.

    Args:
        first: the number of the first of them, from 0, among those of that action and path.
        count: the number of operations, one after the other.
        action: "write", "read", "list" or "delete"; "": any.
        part: part of the path; "": any.
    """

    first: int = 0
    count: int = 1
    action: str = "write"
    part: str = ""

    failure = Outcome.DONE
    """The outcome of the disturbed operations."""

    def concerns_operation(self, operation: Operation) -> bool:
        """Return whether an operation of a checkpoint storage is one of those that the fault counts."""
        return self.action in operation.action and self.part in operation.path

    def outcome(self, operation: Operation, number: int, draw: random.Random) -> Outcome:
        """Return the outcome of an operation that is counted; `number` counts from 0."""
        return self.failure if self.first <= number < self.first + self.count else Outcome.DONE


@dataclass(frozen=True)
class FullStorage(StorageFault):
    """The storage is full for a while: it refuses to write."""

    failure = Outcome.REFUSED


@dataclass(frozen=True)
class UnheardStorage(StorageFault):
    """The storage does its work and seems to fail, because the answer is lost."""

    failure = Outcome.UNHEARD


@dataclass(frozen=True)
class LyingStorage(StorageFault):
    """The storage reports a write that it did not do. No job survives that; it must name the missing file."""

    failure = Outcome.PRETENDED


@dataclass(frozen=True)
class LoseFile(ClusterFault):
    """A file of a checkpoint disappears at the first move from `move` on at which there is one.

    Args:
        part: part of its path, such as "/_metadata" or "/chk-3/"; "": a file with state, not metadata.
    """

    part: str = ""
    move: int = 0

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        return move >= self.move and cluster.lose_file(self.part)


@dataclass(frozen=True)
class TakeSavepoint(ClusterFault):
    """A user requests a savepoint from move number `move` on until there is one; `Story.savepoints` has its address."""

    directory: str = "/savepoints"
    move: int = 0

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        return move >= self.move and cluster.savepoint(self.directory, None)


@dataclass(frozen=True)
class StopWithSavepoint(ClusterFault):
    """A user stops the job with a savepoint, from move number `move` on until it works or the job has ended.

    Args:
        drain: event time is advanced to its end first; False: another job can continue from the savepoint.
    """

    directory: str = "/savepoints"
    move: int = 0
    drain: bool = False

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        stop = StopMode.DRAIN if self.drain else StopMode.SUSPEND
        return move >= self.move and cluster.savepoint(self.directory, stop)


@dataclass(frozen=True)
class CancelJob(ClusterFault):
    """A user cancels the job before move number `move`."""

    move: int = 0

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        if move >= self.move:
            cluster.cancel()
        return move >= self.move


@dataclass(frozen=True)
class StopJob(ClusterFault):
    """A user stops the job before move number `move`: its sources end."""

    move: int = 0

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        if move >= self.move:
            cluster.stop()
        return move >= self.move


@dataclass(frozen=True)
class TriggerCheckpoint(ClusterFault):
    """Checkpoint `number` is triggered at the first move from `move` on at which a source runs."""

    number: int = 1
    move: int = 0

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        return move >= self.move and cluster.trigger_checkpoint(self.number)


@dataclass(frozen=True)
class Rescale(ClusterFault):
    """A user requests other parallelisms, at the first move from `move` on at which all tasks run.

    Args:
        parallelism: pairs of an operator, by its name or uid, and its number of subtasks.
    """

    parallelism: tuple[tuple[str, int], ...]
    move: int = 0

    def inject(self, cluster: FaultTarget, move: int) -> bool:
        return move >= self.move and cluster.rescale(dict(self.parallelism))


@dataclass(frozen=True)
class SlowTask(StepDelay):
    """Every step of the tasks takes `ms` longer."""

    name: str
    ms: int = 50

    def step_delay_ms(self, task: str, records: int, draw: random.Random) -> int:
        return self.ms if self.name in task else 0


@dataclass(frozen=True)
class SlowRecords(StepDelay):
    """Every record costs the tasks a random time, uniformly distributed between two bounds in milliseconds."""

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
"""Everything that the exchange must hide from the tasks."""
