"""Fits a parallelism to the number of key groups, or of a source's partitions, that its subtasks share. Pure.

Source: apache/flink-kubernetes-operator JobVertexScaler.scale, KeyGroupOrPartitionsAdjustMode.
"""

from __future__ import annotations

from rayflink.common.options.autoscaler_options import ParallelismAlignment


def aligned(wanted: int, current: int, shares: int, bounds: tuple[int, int], mode: ParallelismAlignment) -> int:
    """Return the parallelism to take for a wanted one; `current` if none leads into the wanted direction.

    The next larger divisor of `shares` loads all subtasks alike. Where there is none within the bounds, the least
    parallelism with the same largest share is enough.

    >>> aligned(5, 4, 128, (1, 200), ParallelismAlignment.EVENLY_SPREAD)
    8
    >>> aligned(70, 60, 128, (1, 100), ParallelismAlignment.EVENLY_SPREAD)
    64
    >>> aligned(5, 8, 128, (1, 200), ParallelismAlignment.EVENLY_SPREAD)
    8

    Args:
        shares: key groups or partitions, at least 1.
        bounds: least and highest parallelism.
    """
    if wanted == current:
        return current
    is_up = wanted > current
    least, most = bounds
    highest = min(shares, most) if is_up else min(current, shares, most)
    for parallelism in range(wanted, highest + 1):
        fewer = mode is ParallelismAlignment.MAXIMIZE_UTILISATION and shares // parallelism < shares // wanted
        if shares % parallelism == 0 or fewer:
            return parallelism
    parallelism = wanted
    while parallelism > 0 and shares // parallelism <= shares // wanted:
        parallelism -= 1
    if parallelism and shares % parallelism:
        parallelism += 1
    parallelism = max(parallelism, least, 1)
    goes_back = parallelism <= current if is_up else parallelism >= current
    return current if goes_back else parallelism


__all__ = ["aligned"]
