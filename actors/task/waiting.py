"""Describes why a running task does nothing, for people."""

from __future__ import annotations

from rayflink.operators.chain import OperatorChain

from ..exchange.gate import ChannelState, InputGate
from .final_checkpoint import FinalCheckpoint


def reasons_to_wait(is_full: bool, chain: OperatorChain, gate: InputGate, final: FinalCheckpoint) -> list[str]:
    """Return what the task waits for apart from time; `is_full` says that its outputs are full."""
    reasons = ["outputs are full, waits for credit"] if is_full else []
    if not chain.takes_records():
        reasons.append("waits for work that it has given out")
    if final.is_suspended:
        reasons.append("waits for the savepoint that stops it")
    elif final.awaited:
        reasons.append("has worked all its data, waits for the final checkpoint")
    if chain.idle and gate.channels:
        missing = [c.index for c in gate.channels if not c.queue and c.state is not ChannelState.FINISHED]
        reasons.append(f"waits for input on channels {missing}")
        held = [c.index for c in gate.channels if c.blocked]
        if held:
            reasons.append(f"holds back channels {held} for a barrier")
    return reasons


__all__ = ["reasons_to_wait"]
