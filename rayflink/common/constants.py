"""Bounds and marks that PyFlink names."""

from __future__ import annotations

MAX_LONG_VALUE = 2**63 - 1
"""The largest number of 64 bits; the watermark that ends a stream."""
MIN_LONG_VALUE = -(2**63)
"""The smallest number of 64 bits; no timestamp, no watermark yet."""
DEFAULT_OUTPUT_TAG = ""
"""Stands for the main output, where others are named by tags."""

__all__ = ["DEFAULT_OUTPUT_TAG", "MAX_LONG_VALUE", "MIN_LONG_VALUE"]
