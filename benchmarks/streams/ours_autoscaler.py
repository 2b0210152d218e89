"""Load curves in the simulator: what a job that the autoscaler rescales costs, and how far it is behind.

Beside it runs the same job with parallelisms that do not change. One of them is the least with which subtasks are busy
for at most the target of the autoscaler at the highest load, as a careful operator chooses; from that the autoscaler
starts in a further run. A subtask takes 50 records a second (40 with a hot key or a slow sink).
All times are virtual, so the figures depend on the seed alone, and not on the machine.
"""

from __future__ import annotations

import math
from statistics import median
from typing import Any

from rayflink.testing.load_curves import LoadCurve, RecordCost
from rayflink.testing.scaled_jobs import ScaledRun, run_scaled

FIXED = (1, 2, 4)
SEEDS = (1, 2, 3)
TARGET = 0.7
"""The default of `job.autoscaler.utilization.target`."""


def run(data_path: str = "", seconds: int = 240) -> dict[str, Any]:
    """Run each curve with the autoscaler and with each fixed parallelism.

    Args:
        data_path: not used.
        seconds: length of the curves, in virtual time.
    """
    third = seconds // 3
    cost, slow = RecordCost("Count", 20), RecordCost("Count", 25)
    curves: dict[str, tuple[LoadCurve, RecordCost, int]] = {
        "steps": (LoadCurve.steps((third, 20), (third, 100), (third, 20)), cost, 64),
        "sine": (LoadCurve.sine(10, 100, seconds // 2, seconds), cost, 64),
        "spikes": (LoadCurve.spikes(20, 150, seconds // 4, 8, seconds), cost, 64),
        "hot_key": (LoadCurve.steps((seconds, 50)), slow, 1),
        "slow_sink": (LoadCurve.steps((seconds, 50)), RecordCost("Count", 25, is_shared=True), 64),
    }
    result: dict[str, float] = {}
    for name, (curve, record_cost, keys) in curves.items():
        scaled = [run_scaled(curve, record_cost, seed, keys) for seed in SEEDS]
        result |= _figures(f"{name}_scaled", scaled)
        result[f"{name}_scaled_rescalings"] = median(len(each.widths) - 1 for each in scaled)
        enough = math.ceil(max(curve.rates) * record_cost.ms / 1000 / TARGET)
        result[f"{name}_enough"] = enough
        from_enough = [run_scaled(curve, record_cost, seed, keys, enough) for seed in SEEDS]
        result |= _figures(f"{name}_scaled_from_enough", from_enough)
        for width in sorted({*FIXED, enough}):
            off = {"job__autoscaler__enabled": "false"}
            fixed = [run_scaled(curve, record_cost, seed, keys, width, **off) for seed in SEEDS]
            result |= _figures(f"{name}_fixed_{width}", fixed)
    return result


def _figures(name: str, runs: list[ScaledRun]) -> dict[str, float]:
    """Return medians over the seeds: slot seconds, mean and highest number of records that wait, and the time taken."""
    return {
        f"{name}_slot_seconds": median(each.slot_seconds for each in runs),
        f"{name}_lag_mean": round(median(sum(each.lags) / len(each.lags) for each in runs)),
        f"{name}_lag_max": median(max(each.lags) for each in runs),
        f"{name}_seconds": median(len(each.lags) for each in runs),
    }


if __name__ == "__main__":
    print(run())
