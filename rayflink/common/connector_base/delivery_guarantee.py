"""The promise of a sink about each record."""

from __future__ import annotations

from enum import Enum


class DeliveryGuarantee(Enum):
    """The number of times that a record arrives where a sink writes, when tasks are restarted in between."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"
    NONE = "none"


__all__ = ["DeliveryGuarantee"]
