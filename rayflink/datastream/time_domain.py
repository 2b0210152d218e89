"""The two kinds of time, under PyFlink's module path."""

from __future__ import annotations

from rayflink.common.functions import TimeDomain

__all__ = ["TimeDomain"]
