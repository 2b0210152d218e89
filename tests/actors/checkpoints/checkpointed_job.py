"""A checkpoint coordinator under test, with a source, a map of two subtasks, and a shell that keeps files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from rayflink.actors.checkpoints.coordinator import CheckpointCoordinator, Decision
from rayflink.actors.checkpoints.master_hooks import MasterHooks
from rayflink.actors.checkpoints.plan import CheckpointedJob, CheckpointPlan, OperatorPlace
from rayflink.actors.exchange.frames import TaskAddress
from rayflink.actors.messages.checkpoint_settings import CheckpointSettings
from rayflink.actors.messages.checkpoint_statistics import CheckpointMetrics
from rayflink.actors.messages.commands import SendToTask
from rayflink.actors.messages.messages import CheckpointAcknowledged
from rayflink.common.functions.master_hook import MasterTriggerRestoreHook
from rayflink.state.snapshots import DatabaseFiles, FileSlice, StoredSnapshot

JOB_ID = "abcdef" + "0" * 26
S, M0, M1 = TaskAddress("s"), TaskAddress("m0"), TaskAddress("m1")
ALL = (S, M0, M1)
BASE = f"/c/{JOB_ID}"
PLAN = CheckpointPlan(
    trigger=(S,),
    acknowledge={S: ("vs", 0), M0: ("vm", 0), M1: ("vm", 1)},
    commit_to=ALL,
    operators=(OperatorPlace("os", "", "Source", 1, 128), OperatorPlace("om", "map", "Map", 2, 128)),
)
NOTHING_MEASURED = CheckpointMetrics()
OPERATOR = {S: "os", M0: "om", M1: "om"}


def part(path: str) -> FileSlice:
    return FileSlice(path, 0, 1, 0)


def state(own: str = "", *shared: str) -> StoredSnapshot:
    """A snapshot with a file of its own, and some that others may refer to."""
    files = {name: part(name) for name in shared}
    databases = (DatabaseFiles(0, 128, files, frozenset(files), b""),) if files else ()
    return StoredSnapshot({0: part(own)} if own else {}, databases=databases)


class Checkpoints:
    """A coordinator and the moment."""

    def __init__(self, *hooks: MasterTriggerRestoreHook, plan: CheckpointPlan = PLAN, **settings: Any) -> None:
        job_id, new_id = settings.pop("job_id", JOB_ID), settings.pop("new_id", "")
        given: dict[str, Any] = {"interval_ms": 100, "directory": "/c", "tolerable_failures": 2} | settings
        self.plan: CheckpointPlan | str = plan
        self.enumerators: Mapping[str, bytes] = {"os": b"splits"}
        self.broken: Exception | None = None
        self.now = 0
        numbers = count(1)
        self.it = CheckpointCoordinator(
            CheckpointedJob(job_id, "job", 3),
            replace(CheckpointSettings(), **given),
            lambda: self.plan,
            self._enumerate,
            lambda: (new_id or f"{next(numbers):012x}") + "f" * 20,
            MasterHooks(hooks),
        )

    def _enumerate(self, checkpoint_id: int) -> Mapping[str, bytes]:
        if self.broken is not None:
            raise self.broken
        return self.enumerators

    def run(self) -> Checkpoints:
        self.it.resume(self.now)
        return self

    def at(self, now: int) -> list[Decision]:
        """The commands of a tick at that moment."""
        self.now = now
        return self.it.tick(now)

    def ack(
        self,
        attempt: TaskAddress,
        number: int,
        snapshot: StoredSnapshot | None = None,
        metrics: CheckpointMetrics = NOTHING_MEASURED,
    ) -> list[Decision]:
        given = {OPERATOR[attempt]: snapshot or StoredSnapshot()}
        return self.it.acknowledge(CheckpointAcknowledged(attempt, number, given, metrics), self.now)

    def ack_all(self, number: int, *shared: str) -> list[Decision]:
        """The commands after the last acknowledgement."""
        commands: list[Decision] = []
        for attempt in ALL:
            commands = self.ack(attempt, number, state(f"chk-{number}/{attempt}", *shared))
        return commands

    def complete(self, number: int, *shared: str) -> list[Decision]:
        """The commands once it is published."""
        self.ack_all(number, *shared)
        return self.it.published(number, self.now)


def sent(message: Any, *attempts: TaskAddress) -> list[SendToTask]:
    """The message to these, or to all tasks."""
    return [SendToTask(attempt, message) for attempt in attempts or ALL]


__all__ = [
    "ALL", "BASE", "JOB_ID", "M0", "M1", "NOTHING_MEASURED", "PLAN", "Checkpoints", "S", "part", "state", "sent",
]  # fmt: skip
