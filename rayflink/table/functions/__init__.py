"""Scalar functions by family; importing this makes all of them known."""

from . import arithmetic, casts, comparison, conditional, logic

__all__ = ["arithmetic", "casts", "comparison", "conditional", "logic"]
