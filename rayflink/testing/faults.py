"""What may go wrong in a simulated run, as values.

A fault that names a task takes part of its name: "Map" means every subtask of every vertex whose name holds it,
"Map (2/3)" one subtask.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Protocol

from rayflink.actors.exchange.frames import Envelope, TaskAddress


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
        """What it carries, for people."""
        names = [type(frame).__name__ for frame in self.envelope.frames]
        return " ".join(f"{names.count(n)}x{n}" if names.count(n) > 1 else n for n in dict.fromkeys(names))


class Victim(Protocol):
    """What a fault may do to a cluster."""

    def kill_named(self, name: str) -> bool:
        """Kill the tasks; False when none runs now."""
        ...

    def freeze_named(self, name: str) -> bool:
        """Let the tasks do nothing any more; False when none runs now."""
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
    """Whether calls of one pair of tasks may overtake each other."""

    def sent(self, call: Call, nth: int, draw: random.Random) -> list[Call]:
        """What becomes of a call; `nth` counts the calls for which `concerns` was true."""
        return [call]

    def concerns(self, call: Call) -> bool:
        """Whether the call is one of those that are counted."""
        return True

    def strikes(self, victim: Victim, move: int) -> bool:
        """Called before each move until it is true: the fault has done what it does once."""
        return True

    def step_ms(self, name: str) -> int:
        """Virtual milliseconds that each step of a task takes on top."""
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
    """One call never arrives; the sender is told that it returned.

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
class FreezeTask(Fault):
    """Tasks do nothing and say nothing from then on, as behind a broken network."""

    name: str
    at: int = 0

    def strikes(self, victim: Victim, move: int) -> bool:
        return move >= self.at and victim.freeze_named(self.name)


@dataclass(frozen=True)
class CancelJob(Fault):
    """Somebody cancels the job before move `at`."""

    at: int = 0

    def strikes(self, victim: Victim, move: int) -> bool:
        if move >= self.at:
            victim.cancel()
        return move >= self.at


@dataclass(frozen=True)
class StopJob(Fault):
    """Somebody stops the job before move `at`: its sources end."""

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
class SlowTask(Fault):
    """Every step of the tasks takes `ms` longer."""

    name: str
    ms: int = 50

    def step_ms(self, name: str) -> int:
        return self.ms if self.name in name else 0


@dataclass(frozen=True)
class SlowSink(SlowTask):
    """Every step of a task with a sink takes `ms` longer."""

    name: str = "Sink: "


ROUGH_NETWORK: tuple[Fault, ...] = (ReorderCalls(), DelayCalls(), DuplicateCalls(), StaleAttempt())
"""All that the exchange must bear without anybody noticing."""
