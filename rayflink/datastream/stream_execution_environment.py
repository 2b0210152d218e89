"""The environment, under PyFlink's module path."""

from __future__ import annotations

from .environment import StreamExecutionEnvironment

__all__ = ["StreamExecutionEnvironment"]
