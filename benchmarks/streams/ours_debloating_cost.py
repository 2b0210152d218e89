"""The cost of buffer debloating where nothing is slow: jobs with it and without it, in pairs within one process.

Windows of records start small, so a job loses some milliseconds at its start, however long it is. Each job runs over
all of its rows and over a quarter of them, which tells what the start costs from what each further second costs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.runs.ray_bounded import bounded_ray
from benchmarks.streams import ours_arrow_shuffle, ours_w1

OPTION = "taskmanager.network.memory.buffer-debloat.enabled"
_WARM = 1
"""Pairs before the ones that count."""
_PART = 4
"""The smaller job has one row for this number of rows of the larger one."""
CASES = ("w1", *ours_arrow_shuffle.CASES)
Seconds = Callable[[dict[str, Any], int], float]
"""Options of a job and by how much its rows are divided -> the seconds that it takes."""


def run(
    data_path: str, case: str, target: str, pairs: int = 10, share: float = 1.0, parallelism: int = 2
) -> dict[str, Any]:
    """Run one of `CASES` with debloating and without, by turns.

    The results are the cost of each second behind the start, in percent of that second without debloating, and the cost
    of the start in milliseconds. On Ray they are of the clock from the first record on, in this process of CPU.

    Args:
        data_path: words for W1.
        case: one of `CASES`.
        target: "local" or "ray".
        pairs: how many count.
        share: of the rows of the Arrow shuffle's cases.
    """
    began = time.time()
    with TemporaryDirectory() as folder:
        files = {1: data_path, _PART: _first_lines(Path(data_path), Path(folder) / "words.txt")}
        rows = 0

        def words(option: dict[str, Any], divisor: int) -> float:
            nonlocal rows
            before = time.process_time()
            result = ours_w1.run(files[divisor], parallelism, target, **option)
            rows = max(rows, result["rows"])
            if target == "local":
                return time.process_time() - before
            return float(result["seconds_total"] - result["seconds_startup"])

        def batches(option: dict[str, Any], divisor: int) -> float:
            nonlocal rows
            count = -int(-ours_arrow_shuffle.CASES[case] * share // ours_arrow_shuffle.BATCH_ROWS // divisor)
            rows = max(rows, count * ours_arrow_shuffle.BATCH_ROWS)
            before = time.process_time()
            options = {"execution.target": target, **option}
            numbers, _ = ours_arrow_shuffle.shuffle(case, count, parallelism, options)
            return time.process_time() - before if target == "local" else numbers["seconds"]

        with bounded_ray(parallelism) if target == "ray" else nullcontext():
            ready = time.time()
            costs = _costs(words if case == "w1" else batches, pairs)
    return {"rows": rows, "seconds_total": time.time() - began, "seconds_startup": ready - began, **costs}


def _first_lines(path: Path, part: Path) -> str:
    """Write the first part of a file's lines to another; return its path."""
    with path.open("rb") as lines, part.open("wb") as out:
        count = sum(1 for _ in lines)
        lines.seek(0)
        out.writelines(islice(lines, count // _PART))
    return str(part)


def _costs(seconds: Seconds, pairs: int) -> dict[str, float]:
    """Return the medians and quartiles of the costs of pairs; the two ways begin by turns."""
    percents, starts = [], []
    for number in range(-_WARM, pairs):
        order = (True, False) if number % 2 else (False, True)
        small = {enabled: seconds({OPTION: enabled}, _PART) for enabled in order}
        large = {enabled: seconds({OPTION: enabled}, 1) for enabled in order}
        if number >= 0:
            percents.append(100 * (large[True] - small[True]) / (large[False] - small[False]) - 100)
            start = {enabled: small[enabled] - (large[enabled] - small[enabled]) / (_PART - 1) for enabled in order}
            starts.append(1000 * (start[True] - start[False]))
    costs = {}
    for name, values in (("cost of a second, %", percents), ("cost of the start, ms", starts)):
        first, _, third = quantiles(values, n=4)
        costs |= {name: median(values), f"{name}, quartile 1": first, f"{name}, quartile 3": third}
    return costs
