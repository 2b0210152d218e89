"""Faults of a simulated run, as values.

A fault that names a task takes part of its name: "Map" means every subtask of every vertex whose name holds it,
"Map (2/3)" one subtask.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
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


class Victim(Protocol):
    """The actions that a fault may take on a cluster."""

    def kill_named(self, name: str) -> bool:
        """Kill the tasks and return whether one was running."""
        ...

    def kill_slot(self, index: int) -> bool:
        """Kill all tasks of one slot, counted among those with tasks; return False when there is none."""
        ...

    def kill_coordinator(self, zombie_ms: int = 0) -> bool:
        """Let another coordinator take over; False while it cannot be killed, since none is there."""
        ...

    def freeze_named(self, name: str, for_ms: int | None = None) -> bool:
        """Let the tasks do nothing, for a time or for ever; False when none runs now."""
        ...

    def lose_file(self, part: str) -> bool:
        """Delete a file of a checkpoint whose path has that part; False when there is none."""
        ...

    def savepoint(self, directory: str, stop: StopMode | None) -> bool:
        """Ask for a savepoint, and again where it failed; False until there is one, or the job has ended."""
        ...

    def rescale(self, parallelism: Mapping[str, int]) -> bool:
        """Ask for other parallelisms; False until all tasks run, or the job has ended."""
        ...

    def cancel(self, by: str = "the user") -> None:
        """Ask for the job's cancellation."""
        ...

    def stop(self) -> None:
        """Let the sources end."""
        ...

    def trigger_checkpoint(self, number: int) -> bool:
        """Send the barrier to the sources; False while no source runs."""
        ...


class Fault:
    """Nothing goes wrong; subclasses override what they disturb."""

    reorders = False
    """True if calls of one pair of tasks may overtake each other."""

    def sent(self, call: Call, nth: int, draw: random.Random) -> list[Call]:
        """Decide the outcome of a call; `nth` counts the calls for which `concerns` was true."""
        return [call]

    def concerns(self, call: Call) -> bool:
        """Return whether the call is one of those that are counted."""
        return True

    def strikes(self, victim: Victim, move: int) -> bool:
        """Return whether the fault has struck; called before each move until it returns True."""
        return True

    def step_ms(self, name: str, records: int, draw: random.Random) -> int:
        """Return the extra virtual milliseconds of a task's step, which processed `records` records."""
        return 0

    def published(self, victim: Victim, nth: int) -> None:
        """Observe that a checkpoint was stored, before any task knows of it; counted from 0."""

    def concerns_file(self, operation: Operation) -> bool:
        """Return whether an operation of a checkpoint storage is one of those that are counted."""
        return False

    def outcome(self, operation: Operation, nth: int, draw: random.Random) -> Outcome:
        """Decide the outcome of an operation for which `concerns_file` was true, counted from 0."""
        return Outcome.DONE

    def storage_ms(self, draw: random.Random) -> int:
        """Return the extra virtual milliseconds of a storage operation."""
        return 0

    def concerns_command(self, command: str, receiver: str) -> bool:
        """Return whether a command of the coordinator, of a type and to a task, is one of those that are counted."""
        return False

    def command(self, nth: int) -> CommandFate:
        """Decide the outcome of a command for which `concerns_command` was true, counted from 0."""
        return CommandFate.ARRIVES

    def command_ms(self, draw: random.Random) -> int:
        """Return the virtual milliseconds that a command takes."""
        return 0


@dataclass(frozen=True)
class ReorderCalls(Fault):
    """Calls between two tasks arrive in any order."""

    reorders = True


@dataclass(frozen=True)
class DelayCalls(Fault):
    """A part of the calls takes up to `most_ms`."""

    chance: float = 0.3
    most_ms: int = 200

    def sent(self, call: Call, nth: int, draw: random.Random) -> list[Call]:
        if draw.random() >= self.chance:
            return [call]
        return [replace(call, due_ms=call.due_ms + draw.randint(1, self.most_ms))]


@dataclass(frozen=True)
class DuplicateCalls(Fault):
    """A part of the calls arrives twice, the second time up to `most_ms` later."""

    chance: float = 0.3
    most_ms: int = 200

    def sent(self, call: Call, nth: int, draw: random.Random) -> list[Call]:
        if draw.random() >= self.chance:
            return [call]
        return [call, replace(call, due_ms=call.due_ms + draw.randint(0, self.most_ms), is_answered=False)]


@dataclass(frozen=True)
class LoseCall(Fault):
    """One call never arrives; to the sender it appears to have returned.

    Args:
        nth: which of those that carry a frame of type `carrying` ("" any) to `receiver`, from 0.
    """

    nth: int = 0
    carrying: str = ""
    receiver: str = ""

    def concerns(self, call: Call) -> bool:
        return self.carrying in call.frames and self.receiver in call.receiver

    def sent(self, call: Call, nth: int, draw: random.Random) -> list[Call]:
        return [replace(call, deliver=False)] if nth == self.nth else [call]


@dataclass(frozen=True)
class StaleAttempt(Fault):
    """Before a part of the calls comes one of the same number, without content, meant for an attempt that is dead."""

    chance: float = 0.3

    def sent(self, call: Call, nth: int, draw: random.Random) -> list[Call]:
        if draw.random() >= self.chance:
            return [call]
        stale = replace(call.envelope, receiver=TaskAddress("dead" * 8), frames=())
        return [replace(call, envelope=stale, is_answered=False), call]


@dataclass(frozen=True)
class KillTask(Fault):
    """Tasks die without a word, at the first move from `at` on at which one of the name runs."""

    name: str
    at: int = 0

    def strikes(self, victim: Victim, move: int) -> bool:
        return move >= self.at and victim.kill_named(self.name)


@dataclass(frozen=True)
class KillSlot(Fault):
    """All tasks of one slot die, as when their process does, at the first move from `at` on at which there is one.

    Args:
        index: among the slots with tasks, modulo their number.
    """

    index: int = 0
    at: int = 0

    def strikes(self, victim: Victim, move: int) -> bool:
        return move >= self.at and victim.kill_slot(self.index)


@dataclass(frozen=True)
class KillCoordinator(Fault):
    """The coordinator dies, and with it all that is not in a checkpoint storage; a new one takes over some moves later.

    Its tasks die with it. The new one begins with the checkpoints that it finds below `execution.checkpointing.dir`;
    where that is not set, from the beginning.

    Args:
        zombie_ms: so long the old coordinator and its tasks go on beside the new ones, since they are not dead but cut
            off; 0: not at all.
    """

    at: int = 0
    zombie_ms: int = 0

    def strikes(self, victim: Victim, move: int) -> bool:
        return move >= self.at and victim.kill_coordinator(self.zombie_ms)


@dataclass(frozen=True)
class CrashBeforeNotify(Fault):
    """A checkpoint is complete, and before anybody hears of it tasks or the coordinator die.

    Args:
        nth: which of the complete checkpoints, from 0.
        name: of the tasks; "": the coordinator.
    """

    nth: int = 0
    name: str = ""

    def published(self, victim: Victim, nth: int) -> None:
        if nth == self.nth:
            _ = victim.kill_named(self.name) if self.name else victim.kill_coordinator()


@dataclass(frozen=True)
class FreezeTask(Fault):
    """Tasks do nothing and say nothing from then on, as behind a broken network.

    Args:
        for_ms: so long; then they go on for as long again, also where they were given up and others run in their place.
            None: for ever.
    """

    name: str
    at: int = 0
    for_ms: int | None = None

    def strikes(self, victim: Victim, move: int) -> bool:
        return move >= self.at and victim.freeze_named(self.name, self.for_ms)


@dataclass(frozen=True)
class LoseCommand(Fault):
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

    def command(self, nth: int) -> CommandFate:
        if nth != self.nth:
            return CommandFate.ARRIVES
        return CommandFate.UNHEARD if self.obeyed else CommandFate.LOST


@dataclass(frozen=True)
class DelayCommands(Fault):
    """A part of the coordinator's commands takes up to `most_ms`; those for one task keep their order."""

    chance: float = 0.3
    most_ms: int = 200

    def command_ms(self, draw: random.Random) -> int:
        return draw.randint(1, self.most_ms) if draw.random() < self.chance else 0


@dataclass(frozen=True)
class SlowStorage(Fault):
    """A part of what is written to a checkpoint storage takes up to `most_ms` longer."""

    chance: float = 0.3
    most_ms: int = 200

    def storage_ms(self, draw: random.Random) -> int:
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

    becomes = Outcome.DONE

    def concerns_file(self, operation: Operation) -> bool:
        return self.action in operation.action and self.part in operation.path

    def outcome(self, operation: Operation, nth: int, draw: random.Random) -> Outcome:
        return self.becomes if self.first <= nth < self.first + self.count else Outcome.DONE


@dataclass(frozen=True)
class FullStorage(StorageFault):
    """The storage is full for a while: nothing is written, and it says so."""

    becomes = Outcome.REFUSED


@dataclass(frozen=True)
class UnheardStorage(StorageFault):
    """The storage does what is asked, and says that it failed: the answer was lost."""

    becomes = Outcome.UNHEARD


@dataclass(frozen=True)
class LyingStorage(StorageFault):
    """The storage says that it wrote, and did not. No job survives the loss; it must say which file is missing."""

    becomes = Outcome.PRETENDED


@dataclass(frozen=True)
class LoseFile(Fault):
    """A file of a checkpoint disappears at the first move from `at` on at which there is one.

    Args:
        part: of its path, such as "/_metadata" or "/chk-3/"; "": a file with state, no metadata.
    """

    part: str = ""
    at: int = 0

    def strikes(self, victim: Victim, move: int) -> bool:
        return move >= self.at and victim.lose_file(self.part)


@dataclass(frozen=True)
class TakeSavepoint(Fault):
    """A user requests a savepoint from move `at` on, until there is one; `Story.savepoints` says where it is."""

    directory: str = "/savepoints"
    at: int = 0

    def strikes(self, victim: Victim, move: int) -> bool:
        return move >= self.at and victim.savepoint(self.directory, None)


@dataclass(frozen=True)
class StopWithSavepoint(Fault):
    """A user stops the job with a savepoint, from move `at` on until it works or the job has ended.

    Args:
        drain: event time goes to its end first; else the job can be gone on with from the savepoint.
    """

    directory: str = "/savepoints"
    at: int = 0
    drain: bool = False

    def strikes(self, victim: Victim, move: int) -> bool:
        stop = StopMode.DRAIN if self.drain else StopMode.SUSPEND
        return move >= self.at and victim.savepoint(self.directory, stop)


@dataclass(frozen=True)
class CancelJob(Fault):
    """A user cancels the job before move `at`."""

    at: int = 0

    def strikes(self, victim: Victim, move: int) -> bool:
        if move >= self.at:
            victim.cancel()
        return move >= self.at


@dataclass(frozen=True)
class StopJob(Fault):
    """A user stops the job before move `at`: its sources end."""

    at: int = 0

    def strikes(self, victim: Victim, move: int) -> bool:
        if move >= self.at:
            victim.stop()
        return move >= self.at


@dataclass(frozen=True)
class TriggerCheckpoint(Fault):
    """Checkpoint `number` is triggered at the first move from `at` on at which a source runs."""

    number: int = 1
    at: int = 0

    def strikes(self, victim: Victim, move: int) -> bool:
        return move >= self.at and victim.trigger_checkpoint(self.number)


@dataclass(frozen=True)
class Rescale(Fault):
    """A user requests other parallelisms, at the first move from `at` on at which all tasks run.

    Args:
        parallelism: pairs of an operator, by its name or uid, and its number of subtasks.
    """

    parallelism: tuple[tuple[str, int], ...]
    at: int = 0

    def strikes(self, victim: Victim, move: int) -> bool:
        return move >= self.at and victim.rescale(dict(self.parallelism))


@dataclass(frozen=True)
class SlowTask(Fault):
    """Every step of the tasks takes `ms` longer."""

    name: str
    ms: int = 50

    def step_ms(self, name: str, records: int, draw: random.Random) -> int:
        return self.ms if self.name in name else 0


@dataclass(frozen=True)
class SlowRecords(Fault):
    """Every record that the tasks take costs a random time, evenly distributed between two bounds in milliseconds."""

    name: str
    least_ms: int = 0
    most_ms: int = 20

    def step_ms(self, name: str, records: int, draw: random.Random) -> int:
        return sum(draw.randint(self.least_ms, self.most_ms) for _ in range(records)) if self.name in name else 0


@dataclass(frozen=True)
class SlowSink(SlowTask):
    """Every step of a task with a sink takes `ms` longer."""

    name: str = "Sink: "


UNRELIABLE_NETWORK: tuple[Fault, ...] = (ReorderCalls(), DelayCalls(), DuplicateCalls(), StaleAttempt())
"""All that the exchange must bear without anybody noticing."""


def faults_overriding(method: str, faults: Sequence[Fault]) -> list[tuple[int, Fault]]:
    """Return the faults that have a method of their own, and their places."""
    own = getattr(Fault, method)
    return [(place, fault) for place, fault in enumerate(faults) if getattr(type(fault), method) is not own]
