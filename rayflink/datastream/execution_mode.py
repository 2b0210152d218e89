"""Streaming or batch, under PyFlink's module path."""

from __future__ import annotations

from .environment import RuntimeExecutionMode

__all__ = ["RuntimeExecutionMode"]
