"""Load curves of hours over jobs as flows: what the autoscaler costs, beside a fixed parallelism and beside an oracle.

A job is source -> map -> keyed aggregation; a subtask of the last takes 50 records a second. The fixed parallelism is
the least with which no subtask is busy for more than the target at the highest load, as a careful operator chooses. The
oracle knows the load of each step, rescales at once and without a pause, and keeps subtasks as busy as the target; it
works off a backlog in the same catch-up duration. Only a job that is busier than the target takes fewer slots.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from rayflink.testing.fluid_jobs import KEYED, MAP, SOURCE, FluidJob, three_steps

SEEDS = (1, 2, 3, 4, 5)
TARGET, CATCH_UP_S, MOST = 0.7, 120, 32
"""Options of the job: `utilization.target`, `catch-up.duration` and `vertex.max-parallelism`."""
LOW, HIGH = 100, 500
KEY_GROUPS = 128
Load = Callable[[float], float]


@dataclass(frozen=True)
class Flow:
    """A curve and the job under it; `load` takes the second, and the noise by which it is multiplied.

    Args:
        noise: standard deviation of the load, as a share of it, by steps of a minute.
        reports_lag: the source says how many records wait.
    """

    load: Load
    seconds: int = 7_200
    noise: float = 0.0
    hot: float | Load = 0.0
    limit: float = math.inf
    pause_s: int = 5
    map_speed: float = 500.0
    reports_lag: bool = True

    def noisy(self, seed: int) -> Load:
        """Return the load of a seed."""
        draw = random.Random(seed)
        factors = [max(0.0, draw.gauss(1.0, self.noise)) for _ in range(self.seconds // 60 + 2)]
        return lambda second: self.load(second) * factors[int(second // 60)]

    def job(self, seed: int, parallelism: int = 1, **options: str) -> FluidJob:
        """Return the job of a seed."""
        speeds = {SOURCE: 2_000.0, MAP: self.map_speed, KEYED: 50.0}
        graph = three_steps(parallelism, **options)
        job = FluidJob(graph, self.noisy(seed), speeds, self.hot, self.limit, self.pause_s)
        job.reports_lag = self.reports_lag
        return job


def _sine(period_s: int) -> Load:
    middle, swing = (LOW / 2 + HIGH) / 2, (HIGH - LOW / 2) / 2
    return lambda second: middle - swing * math.cos(2 * math.pi * second / period_s)


def _step(second: float) -> float:
    return HIGH if 2_400 <= second < 4_800 else LOW


def _outage(second: float) -> float:
    if 2_400 <= second < 3_000:
        return 0.0
    return 200.0 if second >= 3_060 or second < 2_400 else 200.0 * 11  # all of ten minutes arrive in one


FLOWS = {
    "steps": Flow(_step),
    "sine": Flow(_sine(3_600)),
    "spikes": Flow(lambda second: 750 if second % 1_800 >= 1_560 else LOW),
    "day": Flow(_sine(14_400), 28_800, noise=0.15),
    "ramp": Flow(lambda second: LOW / 2 + (HIGH - LOW / 2) * second / 7_200),
    "outage": Flow(_outage),
    "two_bottlenecks": Flow(_step, map_speed=60.0),
    "moving_skew": Flow(lambda second: 150, hot=lambda second: 0.2 if 2_400 <= second < 4_800 else 0.0),
    "slow_start": Flow(_step, pause_s=60),
    "unknown_lag": Flow(_step, reports_lag=False),
    "hot_key": Flow(lambda second: 200, hot=0.6),
    "slow_sink": Flow(lambda second: 200, limit=120.0),
}


def run(data_path: str = "", small: bool = False) -> dict[str, Any]:
    """Run each curve with the autoscaler, with a fixed parallelism, and under the oracle.

    Args:
        data_path: not used.
        small: with one seed.
    """
    result: dict[str, float] = {}
    for name, flow in FLOWS.items():
        seeds = SEEDS[:1] if small else SEEDS
        scaled = [flow.job(seed).run(flow.seconds) for seed in seeds]
        best = [_with_oracle(flow, seed) for seed in seeds]
        enough = max(job.most for job in best)
        fixed = [flow.job(seed, enough, enabled="false").run(flow.seconds) for seed in seeds]
        result |= _figures(name, "scaled", scaled) | _figures(name, "fixed", fixed)
        result |= _figures(name, "oracle", [job.flowing for job in best])
        result[f"{name}_enough"] = enough
        result[f"{name}_rescalings"] = median(len(job.rescales) for job in scaled)
        ratios = [job.slot_seconds / other.flowing.slot_seconds for job, other in zip(scaled, best, strict=True)]
        result[f"{name}_to_oracle"] = round(median(ratios), 2)
    return result


def _figures(name: str, way: str, jobs: list[FluidJob]) -> dict[str, float]:
    return {
        f"{name}_{way}_slot_seconds": median(job.slot_seconds for job in jobs),
        f"{name}_{way}_lag_mean": round(median(sum(job.lags) / len(job.lags) for job in jobs)),
        f"{name}_{way}_lag_max": round(median(max(job.lags) for job in jobs)),
    }


@dataclass
class _OracleRun:
    flowing: FluidJob
    most: int = 1
    widths: dict[tuple[float, float], int] = field(default_factory=dict)


def _with_oracle(flow: Flow, seed: int) -> _OracleRun:
    """Run a job whose parallelism is, in each step, what its load and its backlog need at the target."""
    run = _OracleRun(flow.job(seed, enabled="false"))
    while run.flowing.second < flow.seconds:
        job = run.flowing
        second = job.second + job.step_s
        hot = flow.hot(second) if callable(flow.hot) else flow.hot
        need = job.load(second) / TARGET + job.lag / CATCH_UP_S
        key = round(need, 3), hot
        if key not in run.widths:
            run.widths[key] = _width(flow, need, hot)
        if hot and job.load(second) / TARGET > 0 or not job.lag:
            run.most = max(run.most, _width(flow, job.load(second) / TARGET, hot))
        job.become(run.widths[key])
        job.run(job.step_s)
    return run


def _width(flow: Flow, need: float, hot: float) -> int:
    """Return the least parallelism that takes a rate; where none does, the least that takes the most."""
    capacities = [_capacity(flow, parallelism, hot) for parallelism in range(1, MOST + 1)]
    reachable = min(need, 0.9 * max(capacities))
    return next(width for width, capacity in enumerate(capacities, 1) if capacity >= reachable)


def _capacity(flow: Flow, parallelism: int, hot: float) -> float:
    share = hot + (1 - hot) * math.ceil(KEY_GROUPS / parallelism) / KEY_GROUPS
    return min(50.0 / share, flow.map_speed * parallelism, flow.limit)


if __name__ == "__main__":
    print(run())
