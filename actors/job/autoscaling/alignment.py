"""Fits a parallelism to the number of key groups, or of a source's partitions, that its subtasks share. Pure.

Source: apache/flink-kubernetes-operator ParallelismAligner, BuiltInAlignmentMode, KeyGroupOrPartitionsAdjustMode;
SUFFICIENT is ours.
"""

from __future__ import annotations

import math

from rayflink.common.options.autoscaler_options import KeyGroupAdjustment, ParallelismAlignment

AlignmentMode = ParallelismAlignment | KeyGroupAdjustment


def sufficient(factor: float, current: int, shares: int) -> tuple[int, float]:
    """Return the least parallelism whose fullest subtask is fast enough for the present rate times a factor.

    The speed of a vertex is that of the subtask that has most of the shares. With 128 of them, 5 subtasks are as fast
    as 4.92 would be that share evenly, and 60 as fast as 43.

    >>> sufficient(1.2, 4, 128), sufficient(1.25, 4, 128), sufficient(0.4, 32, 128)
    ((5, 1.0), (6, 1.0), (13, 1.0))

    Args:
        factor: rate needed, as a multiple of what `current` subtasks can take.
        shares: key groups or partitions, at least 1, that load alike.

    Returns: it, and the part of the rate needed that it takes: below 1 where one share for each subtask is too much.
    """
    most_of = math.ceil(shares / min(current, shares)) / factor
    each = max(1, min(shares, math.floor(round(most_of, 6))))
    return math.ceil(shares / each), min(1.0, most_of)


def aligned(wanted: int, current: int, shares: int, bounds: tuple[int, int], mode: AlignmentMode) -> int:
    """Return the parallelism to take for a wanted one, by a mode of Flink; SUFFICIENT is not one.

    Flink's older modes return `current` if no parallelism leads into the wanted direction; the others `wanted`.

    >>> aligned(5, 4, 128, (1, 200), ParallelismAlignment.EVENLY_SPREAD)
    8
    >>> aligned(5, 4, 128, (1, 200), ParallelismAlignment.BALANCED)
    6
    >>> aligned(70, 60, 128, (1, 100), ParallelismAlignment.EVENLY_SPREAD)
    70
    >>> aligned(70, 60, 128, (1, 100), KeyGroupAdjustment.EVENLY_SPREAD)
    64

    Args:
        shares: key groups or partitions, at least 1.
        bounds: least and highest parallelism.
    """
    if wanted == current or mode is ParallelismAlignment.OFF:
        return wanted
    is_up = wanted > current
    least, most = bounds
    takes_fewer = mode in (ParallelismAlignment.BALANCED, KeyGroupAdjustment.MAXIMIZE_UTILISATION)
    highest = min(shares, most) if is_up else min(current, shares, most)
    for parallelism in range(wanted, highest + 1):
        if shares % parallelism == 0 or takes_fewer and shares // parallelism < shares // wanted:
            return parallelism
    if isinstance(mode, ParallelismAlignment):
        return wanted
    parallelism = wanted
    while parallelism > 0 and shares // parallelism <= shares // wanted:
        parallelism -= 1
    if parallelism and shares % parallelism:
        parallelism += 1
    parallelism = max(parallelism, least, 1)
    goes_back = parallelism <= current if is_up else parallelism >= current
    return current if goes_back else parallelism


__all__ = ["AlignmentMode", "aligned", "sufficient"]
