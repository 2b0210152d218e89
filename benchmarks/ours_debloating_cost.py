"""What buffer debloating costs where nothing is slow: jobs with it and without it, in pairs within one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median, quantiles
from typing import Any

from benchmarks.ray_bounded import bounded_ray

from . import ours_arrow_shuffle, ours_w1

OPTION = "taskmanager.network.memory.buffer-debloat.enabled"
_WARM = 1
"""Pairs before the ones that count."""


def run(data_path: str, pairs: int = 12, share: float = 0.25, parallelism: int = 2) -> dict[str, Any]:
    """Run W1 and both Arrow shuffles, on Ray and in this process.

    A ratio is of the seconds with debloating to those without, of a pair; above 1 is the cost. On Ray they are seconds
    of the clock from the first record on; in this process seconds of CPU, which other programs disturb less.

    Args:
        data_path: words for W1.
        pairs: how many count.
        share: of the rows of the Arrow shuffle's cases.
    """
    began = time.time()
    found: dict[str, Any] = {}
    rows = 0

    def words(target: str, option: dict[str, Any]) -> float:
        nonlocal rows
        before = time.process_time()
        result = ours_w1.run(data_path, parallelism, target, **option)
        rows = result["rows"]
        if target == "local":
            return time.process_time() - before
        return float(result["seconds_total"] - result["seconds_startup"])

    def batches(kind: str, target: str, option: dict[str, Any]) -> float:
        count = -int(-ours_arrow_shuffle.CASES[kind] * share // ours_arrow_shuffle.BATCH_ROWS)
        before = time.process_time()
        given = {"execution.target": target, **option}
        numbers, _ = ours_arrow_shuffle.shuffle(kind, count, parallelism, given)
        return time.process_time() - before if target == "local" else numbers["seconds"]

    def measure(target: str) -> None:
        found.update(_numbers(f"w1 {target}", lambda option: words(target, option), pairs))
        for kind in ours_arrow_shuffle.CASES:
            found.update(_numbers(f"{kind} {target}", lambda option, k=kind: batches(k, target, option), pairs))

    measure("local")
    ready = time.time()
    with bounded_ray(parallelism):
        measure("ray")
    return {"rows": rows, "seconds_total": time.time() - began, "seconds_startup": ready - began, **found}


def _numbers(name: str, seconds: Callable[[dict[str, Any]], float], pairs: int) -> dict[str, float]:
    """The ratios of pairs, each begun by the other way in turns: their median and their quartiles."""
    ratios = []
    for number in range(-_WARM, pairs):
        order = (True, False) if number % 2 else (False, True)
        took = {enabled: seconds({OPTION: enabled}) for enabled in order}
        if number >= 0:
            ratios.append(took[True] / took[False])
    first, _, third = quantiles(ratios, n=4)
    return {f"{name} ratio": median(ratios), f"{name} first quartile": first, f"{name} third quartile": third}
