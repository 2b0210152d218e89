"""The result of a task's step, the items of its mailbox, and the reasons why a running task does nothing."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from rayflink.operators.chain import OperatorChain

from ..exchange.frames import Envelope
from ..exchange.gate import ChannelState, InputGate
from ..messages.messages import ToTask
from .final_checkpoint import FinalCheckpoint
from .snapshot_writing import SnapshotWritten

Mail: TypeAlias = Envelope | ToTask | SnapshotWritten


class Progress(Enum):
    """The result of a step, by which the runner decides what to do next."""

    BUSY = "busy"
    """There is more to do at once."""
    IDLE = "idle"
    """Nothing until a mail comes or `deadline_ms()` is reached."""
    BACK_PRESSURED = "back-pressured"
    """Outputs are full: nothing until credit comes."""
    DONE = "done"
    """In a terminal state, and everything has been sent."""


def reasons_to_wait(is_full: bool, chain: OperatorChain, gate: InputGate, final: FinalCheckpoint) -> list[str]:
    """Return what the task waits for apart from time; `is_full` says that its outputs are full."""
    reasons = ["outputs are full, waits for credit"] if is_full else []
    if not chain.accepts_records():
        reasons.append("waits for asynchronous work")
    if final.is_suspended:
        reasons.append("waits for the savepoint that stops it")
    elif final.awaited:
        reasons.append("has processed all its data, waits for the final checkpoint")
    if chain.idle and gate.channels:
        missing = [c.index for c in gate.channels if not c.queue and c.state is not ChannelState.FINISHED]
        reasons.append(f"waits for input on channels {missing}")
        held = [c.index for c in gate.channels if c.blocked]
        if held:
            reasons.append(f"holds back channels {held} for a barrier")
    return reasons


__all__ = ["Mail", "Progress", "reasons_to_wait"]
