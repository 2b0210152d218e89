"""Detects the end of a superstep at a task: it has come on every channel that has not ended. Pure.

Source: apache/flink AbstractReader (it counts EndOfSuperstepEvents until there are as many as channels).
"""

from __future__ import annotations

from collections import deque

from rayflink.common.records.batches import EndOfSuperstep

from ..exchange.gate import InputGate


class SuperstepAligner:
    """Joins the ends of supersteps of all channels; a channel may be several supersteps ahead of another.

    Args:
        channels: number of input channels of the task.
    """

    def __init__(self, channels: int) -> None:
        self._open = set(range(channels))
        self._came: dict[int, dict[int, deque[EndOfSuperstep]]] = {}

    def arrived(self, channel: int, end: EndOfSuperstep) -> list[EndOfSuperstep]:
        """Note the end of a superstep on a channel; return the ends to forward now."""
        self._came.setdefault(end.iteration, {}).setdefault(channel, deque()).append(end)
        return self._complete()

    def ended(self, channel: int) -> list[EndOfSuperstep]:
        """Stop waiting for a channel that has ended."""
        self._open.discard(channel)
        return self._complete()

    def _complete(self) -> list[EndOfSuperstep]:
        ends = []
        for iteration, came in self._came.items():
            while any(came.values()) and all(came.get(channel) for channel in self._open):
                joined = [waiting.popleft() for waiting in came.values() if waiting]
                number = max(end.superstep for end in joined)
                ends.append(EndOfSuperstep(iteration, number, any(end.active for end in joined)))
        return ends


class BlockingSupersteps:
    """Joins ends of supersteps; in batch mode a channel that has ended one is blocked until the others have.

    Args:
        gate: whose channels are blocked.
        in_batches: whether the job runs in batch mode.
    """

    def __init__(self, gate: InputGate, in_batches: bool) -> None:
        self._aligner = SuperstepAligner(len(gate.channels))
        self._gate, self._in_batches = gate, in_batches

    def arrived(self, channel: int, end: EndOfSuperstep) -> list[EndOfSuperstep]:
        """Note the end of a superstep on a channel; return the ends to forward now."""
        if self._in_batches:
            self._gate.block(channel)
        return self._go_on(self._aligner.arrived(channel, end))

    def ended(self, channel: int) -> list[EndOfSuperstep]:
        """Stop waiting for a channel that has ended; return the ends to forward now."""
        return self._go_on(self._aligner.ended(channel))

    def _go_on(self, ends: list[EndOfSuperstep]) -> list[EndOfSuperstep]:
        if ends and self._in_batches:
            self._gate.unblock()
        return ends


__all__ = ["BlockingSupersteps", "SuperstepAligner"]
