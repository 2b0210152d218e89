"""The cost of buffer debloating where nothing is slow: jobs with it and without it, in pairs within one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from statistics import median, quantiles
from typing import Any

from benchmarks.runs.ray_bounded import bounded_ray
from benchmarks.streams import ours_arrow_shuffle, ours_w1

OPTION = "taskmanager.network.memory.buffer-debloat.enabled"
_WARM = 1
"""Pairs before the ones that count."""
CASES = ("w1", *ours_arrow_shuffle.CASES)


def run(
    data_path: str, case: str, target: str, pairs: int = 10, share: float = 0.25, parallelism: int = 2
) -> dict[str, Any]:
    """Run one of `CASES` with debloating and without, by turns.

    The result is the ratio of the seconds with debloating to those without, in percent; above 100 is the cost. On Ray
    they are seconds of the clock from the first record on, in this process seconds of CPU.

    Args:
        data_path: words for W1.
        case: one of `CASES`.
        target: "local" or "ray".
        pairs: how many count.
        share: of the rows of the Arrow shuffle's cases.
    """
    began = time.time()
    rows = 0

    def words(option: dict[str, Any]) -> float:
        nonlocal rows
        before = time.process_time()
        result = ours_w1.run(data_path, parallelism, target, **option)
        rows = result["rows"]
        if target == "local":
            return time.process_time() - before
        return float(result["seconds_total"] - result["seconds_startup"])

    def batches(option: dict[str, Any]) -> float:
        nonlocal rows
        count = -int(-ours_arrow_shuffle.CASES[case] * share // ours_arrow_shuffle.BATCH_ROWS)
        rows = count * ours_arrow_shuffle.BATCH_ROWS
        before = time.process_time()
        given = {"execution.target": target, **option}
        numbers, _ = ours_arrow_shuffle.shuffle(case, count, parallelism, given)
        return time.process_time() - before if target == "local" else numbers["seconds"]

    seconds = words if case == "w1" else batches
    with bounded_ray(parallelism) if target == "ray" else nullcontext():
        ready = time.time()
        found = _numbers(seconds, pairs)
    return {"rows": rows, "seconds_total": time.time() - began, "seconds_startup": ready - began, **found}


def _numbers(seconds: Callable[[dict[str, Any]], float], pairs: int) -> dict[str, float]:
    """Return the median and the quartiles of the ratios of pairs, in percent; the two ways begin by turns."""
    ratios = []
    for number in range(-_WARM, pairs):
        order = (True, False) if number % 2 else (False, True)
        took = {enabled: seconds({OPTION: enabled}) for enabled in order}
        if number >= 0:
            ratios.append(100 * took[True] / took[False])
    first, _, third = quantiles(ratios, n=4)
    return {"percent": median(ratios), "first quartile": first, "third quartile": third}
