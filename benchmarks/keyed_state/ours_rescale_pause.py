"""How long a job with 1 GB of keyed state pauses when it is rescaled in place, from 1 to 2 subtasks and back."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.keyed_state.large_job import LargeJob, Size, job_folder
from benchmarks.keyed_state.large_state import RayJob
from benchmarks.runs.job_numbers import flat, medians
from benchmarks.runs.ray_bounded import bounded_ray

TARGET_S = 10.0
_WITHIN_S = 600.0


def run(data_path: str | None, rounds: int = 3, **size: int) -> dict[str, Any]:
    """One job, rescaled up and down once a round.

    Args:
        rounds: whose medians are given.
        size: see `Size`.
    """
    began = time.time()
    given = Size(**size)
    with job_folder() as folder, bounded_ray(2):
        job = RayJob(given, folder, 1, {})
        try:
            job.await_filled(_WITHIN_S)
            ready = time.time()
            numbers = up_and_down(job, rounds)
            state_mb = job.state_mb()
            rows = job.output.reached
        finally:
            job.close()
    return {
        "rows": rows,
        "seconds_total": time.time() - began,
        "seconds_startup": ready - began,
        "rounds": rounds,
        "state_mb": state_mb,
        **numbers,
        "target_pause_s_at_most": TARGET_S,
    }


def up_and_down(job: LargeJob, rounds: int) -> dict[str, float]:
    """Medians over so many rounds from 1 subtask to 2 and back."""
    changes: dict[str, list[dict[str, float]]] = {"up_1_to_2": [], "down_2_to_1": []}
    for _ in range(rounds):
        changes["up_1_to_2"].append(_rescaled(job, 2))
        changes["down_2_to_1"].append(_rescaled(job, 1))
    return flat({change: medians(measured) for change, measured in changes.items()})


def _rescaled(job: LargeJob, parallelism: int) -> dict[str, float]:
    """Seconds: what the runtime says; how long nothing new came out; from the request until the job has caught up."""
    asked = time.time()
    done = job.rescale(parallelism)
    seen = job.output.await_after(done.at, _WITHIN_S)
    silence = job.output.longest_silence(asked)
    job.await_checkpoints(2, _WITHIN_S)  # so that the next round begins from a job that has caught up
    return {
        **({} if done.pause_s is None else {"pause_s": done.pause_s}),
        "output_silent_s": silence,
        "answered_s": done.at - asked,
        "first_output_s": seen - asked,
    }
