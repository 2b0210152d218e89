"""Timers, under PyFlink's module path."""

from __future__ import annotations

from rayflink.common.functions.function_classes import TimerService

__all__ = ["TimerService"]
