"""The result of a task's step, and the items of its mailbox."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from ..exchange.frames import Envelope
from ..messages.messages import ToTask
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


__all__ = ["Mail", "Progress"]
