"""The time characteristic of a program, in Flink 1.x."""

from __future__ import annotations

from enum import Enum


class TimeCharacteristic(Enum):
    """Time of a program as a whole, in Flink 1.x; since 1.12 a window assigner or a timer says which time it means."""

    ProcessingTime = 0
    IngestionTime = 1
    EventTime = 2


__all__ = ["TimeCharacteristic"]
