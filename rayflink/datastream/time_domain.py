"""The two kinds of time, under PyFlink's module path."""

from __future__ import annotations

from rayflink.common.functions.function_classes import TimeDomain

__all__ = ["TimeDomain"]
