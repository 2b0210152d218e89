"""What all sources and sinks share, under PyFlink's module path."""

from __future__ import annotations

from rayflink.common.delivery_guarantee import DeliveryGuarantee
from rayflink.common.sink import Sink
from rayflink.common.source import Source

__all__ = ["DeliveryGuarantee", "Sink", "Source"]
