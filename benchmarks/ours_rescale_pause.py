"""How long a job with 1 GB of keyed state pauses when it is rescaled in place, from 1 to 2 subtasks and back."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

from .job_numbers import flat
from .large_state import KEYED, LargeJob, Size, job_folder
from .ray_bounded import bounded_ray

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
    changes: dict[str, list[dict[str, float]]] = {"up_1_to_2": [], "down_2_to_1": []}
    with job_folder() as folder, bounded_ray(2):
        job = LargeJob(given, folder, 1, {})
        try:
            job.await_filled(_WITHIN_S)
            ready = time.time()
            for _ in range(rounds):
                changes["up_1_to_2"].append(_rescaled(job, 2))
                changes["down_2_to_1"].append(_rescaled(job, 1))
            state_mb = job.client.checkpoints()["latest"]["completed"]["state_size"] / (1 << 20)
            rows = job.output.reached
        finally:
            job.close()
    medians = {
        change: {name: median(one[name] for one in measured) for name in measured[0]}
        for change, measured in changes.items()
    }
    return {
        "rows": rows,
        "seconds_total": time.time() - began,
        "seconds_startup": ready - began,
        "rounds": rounds,
        "state_mb": state_mb,
        **flat(medians),
        "target_pause_s_at_most": TARGET_S,
    }


def _rescaled(job: LargeJob, parallelism: int) -> dict[str, float]:
    """Seconds: what the runtime says; how long nothing new came out; from the request until the job has caught up."""
    asked = time.time()
    pause_ms = job.client.rescale({KEYED: parallelism}).result()
    reached = job.output.reached
    answered = time.time()
    seen = job.output.await_beyond(reached, _WITHIN_S)
    silence = job.output.longest_silence(asked)
    job.await_checkpoints(2, _WITHIN_S)  # so that the next round begins from a job that has caught up
    return {
        "pause_s": pause_ms / 1000,
        "output_silent_s": silence,
        "answered_s": answered - asked,
        "first_output_s": seen - asked,
    }
