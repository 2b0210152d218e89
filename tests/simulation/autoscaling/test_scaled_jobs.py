"""Whole jobs whose parallelism follows their load, in the simulator: it converges, and every record counts once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from rayflink.testing import KillCoordinator, KillTask
from rayflink.testing.faults import ClusterFault
from rayflink.testing.load_curves import LoadCurve, LoadCurveSource, RecordCost
from rayflink.testing.scaled_jobs import START_MS, run_scaled

pytestmark = pytest.mark.slow
COST = RecordCost("Count", 20)
"""Fifty records a second for each subtask."""
STEPS = 12
"""Moments of a rescaling, spread evenly, at which its coordinator dies."""


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


def test_a_hot_key_lets_the_job_grow_once_and_go_back() -> None:
    run = run_scaled(LoadCurve.steps((150, 50)), RecordCost("Count", 25), keys=1)
    assert [width for _, width in run.widths][::2] == [1, 1] and len(run.widths) == 3
    assert any("would not help: look for a hot key" in reason for reason in run.reasons)
    assert any("was tried in vain, and was taken back" in reason for reason in run.reasons)


@pytest.mark.parametrize("start", [1, 2])
def test_a_slow_sink_lets_the_job_grow_once_and_go_back(start: int) -> None:
    run = run_scaled(LoadCurve.steps((150, 50)), RecordCost("Count", 25, is_shared=True), parallelism=start)
    assert [width for _, width in run.widths][::2] == [start, start] and len(run.widths) == 3


def test_a_source_that_does_not_say_what_waits_lets_the_job_grow_and_shrink() -> None:
    curve = LoadCurve.steps((30, 20), (110, 100), (100, 20))
    run = run_scaled(LoadCurveSource(curve, START_MS, reports_pending=False), COST)
    assert run.width_at(138) * 50 >= 100 and run.width_at(235) <= 2
    assert len(run.widths) <= 7 and run.turns == 1
    assert any("its source always has more, and does not say how much" in reason for reason in run.reasons)


def test_subtasks_in_vain_stay_where_the_option_says_so() -> None:
    run = run_scaled(LoadCurve.steps((100, 50)), RecordCost("Count", 25), keys=1,
                     rayflink__autoscaler__revert_ineffective="false")  # fmt: skip
    assert len(run.widths) == 2 and run.turns == 0


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


@dataclass
class KillWhileRescaling(ClusterFault):
    """Kills the coordinator some moves after the autoscaler's first decision; without a number it only counts them.

    Args:
        moves: that the first rescaling took, in order.
        killed_ms: when the coordinator died.
    """

    after: int | None = None
    moves: list[int] = field(default_factory=list)
    killed_ms: int = 0

    def inject(self, cluster: Any, move: int) -> bool:
        decisions = cluster.job.autoscaler.history.decisions
        if not decisions:
            return False
        if decisions[0].outcome != "under way":
            return True
        self.moves.append(move)
        if self.after is None or len(self.moves) <= self.after or not cluster.kill_coordinator():
            return False
        self.killed_ms = cluster.clock.now_ms()
        return True


def _grows(fault: KillWhileRescaling) -> Any:
    options = {"execution__checkpointing__interval": "2 s", "job__autoscaler__metrics__window": "4 s"}
    return run_scaled(LoadCurve.steps((4, 20), (26, 100)), COST, 3, faults=(fault,), **options)


@pytest.mark.soak
def test_nothing_is_lost_when_the_coordinator_dies_at_any_step_of_a_rescaling() -> None:
    counted = KillWhileRescaling()
    _grows(counted)
    steps = len(counted.moves)
    outcomes = set()
    for after in range(0, steps, max(1, steps // STEPS)):
        fault = KillWhileRescaling(after)
        run = _grows(fault)
        assert fault.killed_ms and run.cluster.story.coordinators == 1, after
        decisions = run.cluster.job.autoscaler.history.decisions
        first, *later = decisions
        assert first.decided_ms <= fault.killed_ms, after
        assert first.detail == "its coordinator was lost before it was done", after
        outcomes.add(first.outcome)
        assert {each.outcome for each in later} <= {"done"}, after
        assert all(each.decided_ms >= fault.killed_ms + 6_000 for each in later), "it decides before it is stable again"
        assert run.width_at(10_000) >= 2, after
    assert outcomes == {"failed"}
