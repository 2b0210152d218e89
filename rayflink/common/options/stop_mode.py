"""The way in which a job ends that is stopped with a savepoint."""

from __future__ import annotations

from enum import Enum


class StopMode(Enum):
    """The treatment of event time and of open windows when a job is stopped with a savepoint.

    Source: apache/flink CheckpointType.SAVEPOINT_TERMINATE, SAVEPOINT_SUSPEND.
    """

    DRAIN = "drain"
    """Event time goes to its end: all timers of event time fire and all windows close, as if the input had ended."""
    SUSPEND = "suspend"
    """Nothing fires; a job that starts from the savepoint goes on as if it had never stopped."""


__all__ = ["StopMode"]
