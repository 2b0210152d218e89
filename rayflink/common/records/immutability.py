"""Types whose values never change: the same for records on their way as for values in state."""

from __future__ import annotations

from rayflink.state.value_isolation import IMMUTABLE_TYPES
from rayflink.state.value_isolation import is_immutable_type as is_immutable

__all__ = ["IMMUTABLE_TYPES", "is_immutable"]
