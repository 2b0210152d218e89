"""What a sink promises about each record."""

from __future__ import annotations

from enum import Enum


class DeliveryGuarantee(Enum):
    """How often a record arrives where a sink writes, when tasks are restarted in between."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"
    NONE = "none"


__all__ = ["DeliveryGuarantee"]
