"""The sizes of a task's queues, pools and buffers, as a value for people and tests."""

from __future__ import annotations

from dataclasses import dataclass

from ..exchange.exchange_statistics import (
    CurrentBufferStatistics,
    EndpointStatistics,
    GateStatistics,
    WriterStatistics,
)


@dataclass(frozen=True, slots=True)
class TaskStatistics:
    """The queues, pools and buffers of one attempt, between two steps."""

    mails: int
    """Messages that wait in the mailbox."""
    gate: GateStatistics
    """Its input channels."""
    buffer: CurrentBufferStatistics
    """The buffer that it is processing."""
    writers: tuple[WriterStatistics, ...]
    """Its outputs, in their order."""
    endpoint: EndpointStatistics
    """Its messages to and from its peers."""


__all__ = ["TaskStatistics"]
