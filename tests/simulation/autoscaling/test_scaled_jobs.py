"""Whole jobs whose parallelism follows their load, in the simulator: it converges, and every record counts once."""

from __future__ import annotations

import pytest

from rayflink.testing import KillCoordinator, KillTask
from rayflink.testing.load_curves import LoadCurve, RecordCost
from rayflink.testing.scaled_jobs import run_scaled

pytestmark = pytest.mark.slow
COST = RecordCost("Count", 20)
"""Fifty records a second for each subtask."""


def test_steps_of_the_load_are_followed_up_and_down() -> None:
    run = run_scaled(LoadCurve.steps((40, 20), (70, 100), (70, 20)), COST)
    assert run.width_at(100) * 50 >= 100 and run.width_at(175) <= 2
    assert len(run.widths) <= 6 and run.turns == 1
    assert max(run.lags[95:109]) <= 100  # what had piled up is worked off
    described = run.cluster.job.report.describe()["autoscaler"]
    assert {each["outcome"] for each in described["decisions"]} == {"done"}
    assert described["scalings"] == len(described["decisions"]) and described["restartMs"] < 1_000
    assert run.slot_seconds < 180 * 3  # three subtasks would have been enough for the highest load
    metrics = run.cluster.job.report.job_metrics()["metrics"]
    assert metrics["AutoScaler.scalings"] == described["scalings"] and metrics["AutoScaler.errors"] == 0
    assert sum(name.endswith(".TRUE_PROCESSING_RATE.Average") for name in metrics) == 2


def test_a_sine_is_followed_with_few_rescalings() -> None:
    run = run_scaled(LoadCurve.sine(10, 100, 120, 180), COST)
    assert len(run.widths) <= 12 and run.turns <= 4 and max(run.lags) < 100 * 20


def test_spikes_are_worked_off_and_their_subtasks_given_back() -> None:
    run = run_scaled(LoadCurve.spikes(20, 150, 60, 6, 170), COST)
    assert max(run.lags) < 150 * 10 and run.lags[165] <= 60 and len(run.widths) <= 7


def test_a_hot_key_lets_the_job_grow_once() -> None:
    run = run_scaled(LoadCurve.steps((100, 50)), RecordCost("Count", 25), keys=1)
    assert len(run.widths) <= 2 and run.turns == 0
    assert any("would not help: look for a hot key" in reason for reason in run.reasons)


def test_a_slow_sink_lets_the_job_grow_once() -> None:
    run = run_scaled(LoadCurve.steps((100, 50)), RecordCost("Count", 25, is_shared=True))
    assert len(run.widths) <= 2 and run.turns == 0


@pytest.mark.parametrize("seed", range(2))
def test_every_record_counts_once_when_tasks_and_coordinators_die(seed: int) -> None:
    faults = (KillTask("Count", move=3_000 + 500 * seed), KillCoordinator(move=6_000 + 900 * seed),
              KillTask("Source", move=9_000))  # fmt: skip
    run = run_scaled(LoadCurve.steps((20, 20), (50, 100)), COST, seed, faults=faults,
                     execution__checkpointing__interval="2 s")  # fmt: skip
    assert run.cluster.story.coordinators == 1 and run.width_at(10_000) >= 2


def test_with_scaling_switched_off_it_only_says_what_it_would_do() -> None:
    run = run_scaled(LoadCurve.steps((40, 100)), COST, job__autoscaler__scaling__enabled="false")
    assert run.widths == [(0, 1)]
    decisions = run.cluster.job.report.describe()["autoscaler"]["decisions"]
    assert decisions[0]["outcome"] == "advice"
    assert "1 -> 4: needs" in decisions[0]["changes"]["Count -> Sink: Collect"]
