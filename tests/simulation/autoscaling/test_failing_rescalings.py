"""Rescalings of the autoscaler that fail in their middle, and checkpoints that they need and do not get."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from rayflink.testing.faults import ClusterFault, Fault, FullStorage
from rayflink.testing.load_curves import LoadCurve, RecordCost
from rayflink.testing.scaled_jobs import ScaledRun, run_scaled

pytestmark = pytest.mark.slow
COST = RecordCost("Count", 20)
"""Fifty records a second for each subtask."""


@dataclass
class KillTaskWhileRescaling(ClusterFault):
    """Kills a task some moves after each of the first decisions of the autoscaler.

    Args:
        after: moves.
        times: decisions during which it kills one.
        moves: decision -> moves seen while it was carried out.
    """

    after: int
    times: int = 1
    moves: dict[int, int] = field(default_factory=dict)

    def inject(self, cluster: Any, move: int) -> bool:
        decisions = cluster.job.autoscaler.history.decisions
        if decisions and decisions[-1].outcome == "under way":
            self.moves[len(decisions)] = seen = self.moves.get(len(decisions), 0) + 1
            if seen == self.after:
                assert cluster.kill_named("Count")
                self.times -= 1
        return self.times == 0


def _grows(*faults: Fault, **options: str) -> ScaledRun:
    """Run a job that needs two or three subtasks from its fourth second on."""
    return run_scaled(LoadCurve.steps((4, 20), (90, 100)), COST, 3, faults=faults, **options)


def _errors(run: ScaledRun) -> int:
    """Return the requests not carried out, which the status and the metrics have to count alike."""
    described = run.cluster.job.report.describe()["autoscaler"]
    failed = sum(decision["outcome"] == "failed" for decision in described["decisions"])
    assert _metric(run, "AutoScaler.errors") == failed
    return failed


def _metric(run: ScaledRun, name: str) -> int:
    return run.cluster.job.report.job_metrics()["metrics"][name]


@pytest.mark.parametrize("refused", [3, 20])
def test_a_checkpoint_that_fails_is_taken_again_and_the_rescaling_goes_on(refused: int) -> None:
    run = _grows(FullStorage(count=refused), execution__checkpointing__tolerable_failed_checkpoints="100")
    decisions = run.cluster.job.autoscaler.history.decisions
    assert [each.outcome for each in decisions][:1] == ["done"] and len(decisions) <= 2 and _errors(run) == 0
    assert run.turns == 0 and run.width_at(85) * 50 >= 100
    (since, _) = run.widths[1]
    assert since >= 14 + refused and _metric(run, "numberOfFailedCheckpoints") == refused


@pytest.mark.parametrize("refused", [1, 5])
def test_a_job_that_tolerates_no_failed_checkpoint_restarts_and_grows_all_the_same(refused: int) -> None:
    run = _grows(FullStorage(count=refused))
    decisions = run.cluster.job.autoscaler.history.decisions
    assert _metric(run, "numRestarts") == refused + len(run.widths) - 1 and len(decisions) <= 3
    assert _metric(run, "numberOfFailedCheckpoints") == refused and decisions[0].outcome == "done"
    assert run.turns == 0 and run.width_at(85) * 50 >= 100


def test_a_request_that_comes_while_the_job_restarts_is_counted_and_made_again_later() -> None:
    run = _grows(KillTaskWhileRescaling(1), execution__checkpointing__interval="2 s")
    first, *later = run.cluster.job.autoscaler.history.decisions
    assert (first.outcome, first.detail) == ("failed", "the job is RESTARTING: ask again when it runs")
    assert _errors(run) == 1 and later and {each.outcome for each in later} == {"done"}
    assert later[0].decided_ms >= first.decided_ms + 12_000  # a window, and what it waits until it is stable
    assert run.turns == 0 and run.width_at(85) * 50 >= 100


@pytest.mark.parametrize("after", [10, 60, 110])
def test_a_task_that_dies_in_the_middle_of_each_rescaling_does_not_let_a_job_flap(after: int) -> None:
    fault = KillTaskWhileRescaling(after, times=2)
    run = _grows(fault, execution__checkpointing__interval="2 s")
    decisions = run.cluster.job.autoscaler.history.decisions
    assert max(fault.moves.values()) >= after and 1 <= len(decisions) <= 3, decisions
    assert decisions[-1].outcome == "done" and _errors(run) == sum(each.outcome == "failed" for each in decisions)
    assert run.turns == 0 and run.width_at(85) * 50 >= 100
