"""The reasons why a running task waits, and how long it has waited for each; asked when it reports, never in a step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rayflink.common.metrics.waits import ANSWERS, BARRIER, INPUT, ROOM, SAVEPOINT, TRIGGER
from rayflink.operators.chain import OperatorChain

from ..exchange.gate import ChannelState, InputGate
from .task_checkpoints import TaskCheckpoints


@dataclass(frozen=True, slots=True)
class Wait:
    """A reason to wait.

    Args:
        kind: one of the names in `rayflink.common.metrics.waits`.
        reason: the same for people.
        episode: the number of the checkpoint, or the work done so far; where it differs, a new wait of the kind begins.
    """

    kind: str
    reason: str
    episode: int | None = None


def reasons_to_wait(
    is_full: bool, is_idle: bool, work_done: int, chain: OperatorChain, gate: InputGate, checkpoints: TaskCheckpoints
) -> list[Wait]:
    """Return what the task waits for apart from time.

    Args:
        is_full: the outputs have no room.
        is_idle: no record that was taken from the gate is unfinished.
        work_done: a count that grows whenever something was received, processed or sent.
        chain: of the task.
        gate: the task's input channels.
        checkpoints: the task's part in checkpoints.
    """
    waits: list[Wait] = []
    if is_full:
        waits.append(Wait(ROOM, "outputs are full, waits for credit", work_done))
        if checkpoints.triggered_id is not None:
            waits.append(Wait(TRIGGER, "a triggered checkpoint waits for room", checkpoints.triggered_id))
    if not chain.accepts_records():
        waits.append(Wait(ANSWERS, "waits for asynchronous work", work_done))
    final = checkpoints.final
    if final.is_suspended:
        waits.append(Wait(SAVEPOINT, "waits for the savepoint that stops it"))
    elif final.awaited:
        waits.append(Wait(SAVEPOINT, "has processed all its data, waits for the final checkpoint"))
    missing = [c.index for c in gate.channels if not c.queue and c.state is not ChannelState.FINISHED]
    if is_idle and missing and not gate.has_input:
        waits.append(Wait(INPUT, f"waits for input on channels {missing}", work_done))
    blocked = [c.index for c in gate.channels if c.blocked]
    if blocked:
        waits.append(Wait(BARRIER, f"holds back channels {blocked} for a barrier", checkpoints.aligning_id))
    return waits


class WaitTimes:
    """Measures how long a task has waited for each of its reasons, as far as its reports show."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, int | None], float] = {}

    def report(self, waits: Iterable[Wait], now_s: float) -> list[dict[str, Any]]:
        """Return each wait with the milliseconds since the first report of an unbroken row in which it stood.

        Args:
            waits: the present ones.
            now_s: seconds, monotonic.
        """
        present = list(waits)
        self._since = {(w.kind, w.episode): self._since.get((w.kind, w.episode), now_s) for w in present}
        return [
            {"for": w.kind, "reason": w.reason, "ms": round((now_s - self._since[w.kind, w.episode]) * 1000)}
            for w in present
        ]


__all__ = ["Wait", "WaitTimes", "reasons_to_wait"]
