"""Estimates of how many bytes of memory a value takes."""

from __future__ import annotations

import sys
from collections.abc import Iterator


def estimate_bytes(value: object, depth: int = 4) -> int:
    """Estimate how many bytes of memory a value takes; of long lists and maps only some elements are sampled.

    >>> estimate_bytes("abc") < 100 < estimate_bytes(list(range(1000)))
    True
    """
    size = sys.getsizeof(value, 64)
    if depth == 0 or type(value) in (int, str, bytes, float, bool, type(None)):
        return size
    if isinstance(value, dict):
        parts: Iterator[object] = (part for pair in value.items() for part in pair)
        count = 2 * len(value)
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts, count = iter(value), len(value)
    elif hasattr(value, "nbytes"):
        return size + int(value.nbytes)
    elif hasattr(value, "__dict__"):
        return size + estimate_bytes(vars(value), depth - 1)
    else:
        return size
    looked_at = [estimate_bytes(part, depth - 1) for part, _ in zip(parts, range(16), strict=False)]
    return size + (sum(looked_at) * count // len(looked_at) if looked_at else 0)


__all__ = ["estimate_bytes"]
