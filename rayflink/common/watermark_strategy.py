"""Watermark strategies, under PyFlink's module path."""

from __future__ import annotations

from .watermarks import TimestampAssigner, WatermarkStrategy

__all__ = ["TimestampAssigner", "WatermarkStrategy"]
