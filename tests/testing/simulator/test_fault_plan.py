"""The faults of a run, sorted by what they disturb; each counts what concerns it."""

from __future__ import annotations

import random
from typing import Any

from rayflink.actors.exchange.frames import Envelope, TaskAddress
from rayflink.testing import DelayCommands, LoseCall, LoseCommand, LyingStorage, Operation, Outcome, SlowTask
from rayflink.testing.faults import Call, ClusterFault, CommandFate, Fault, StepDelay
from rayflink.testing.simulator.fault_plan import FaultPlan


def plan(*faults: Fault) -> FaultPlan:
    return FaultPlan(faults, random.Random(1))


def call(receiver: str) -> Call:
    envelope = Envelope(TaskAddress("sender"), TaskAddress(receiver), 1, ())
    return Call(envelope, "Source (1/1)", receiver, 0, TaskAddress(receiver))


def test_without_faults_nothing_is_disturbed() -> None:
    calm = plan(Fault())
    assert calm.transmit(call("Map")) == [call("Map")]
    assert list(calm.command_fates("CancelTask", "Map")) == []
    assert calm.storage_outcome(Operation("write", "/a")) is Outcome.DONE
    assert (calm.step_delay_ms("Map", 3), calm.command_delay_ms(), calm.storage_delay_ms()) == (0, 0, 0)
    assert not calm.reorders


def test_a_fault_counts_only_what_concerns_it() -> None:
    losing = plan(LoseCall(nth=1, receiver="Map"), LoseCommand(1, "CancelTask"), LyingStorage(1, part="/chk-"))
    delivered = [losing.transmit(call(name))[0].deliver for name in ("Map", "Sink", "Map", "Map")]
    assert delivered == [True, True, False, True]
    fates = [list(losing.command_fates(name, "Map")) for name in ("CancelTask", "StopTask", "CancelTask")]
    assert fates == [[], [], [CommandFate.LOST]]
    outcomes = [losing.storage_outcome(Operation("write", path)) for path in ("/chk-1", "/other", "/chk-2")]
    assert outcomes == [Outcome.DONE, Outcome.DONE, Outcome.PRETENDED]


class KillsAndSlows(ClusterFault, StepDelay):
    """One fault that disturbs two things."""

    def inject(self, cluster: Any, move: int) -> bool:
        return bool(cluster.append(move)) or move == 2

    def step_delay_ms(self, task: str, records: int, draw: random.Random) -> int:
        return records


def test_a_fault_may_disturb_several_things_and_acts_until_it_is_done() -> None:
    moves: Any = []
    both = plan(KillsAndSlows(), SlowTask("Map", ms=5), DelayCommands(chance=0.0))
    for move in range(5):
        both.inject(moves, move)
    assert moves == [0, 1, 2]
    assert (both.step_delay_ms("Map", 3), both.step_delay_ms("Sink", 3)) == (8, 3)
