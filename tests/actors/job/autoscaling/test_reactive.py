"""Reactive mode: a job fits into the slots that there are, in its decisions and as a simulated job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from rayflink.actors.job.autoscaling.reactive import ReactiveScaling, fitted_graph
from rayflink.actors.messages.commands import KillTask, RequestRescale, RequestSlots, SlotsAvailable, TaskGone, Tick
from rayflink.testing.faults import ClusterFault
from rayflink.testing.fluid_jobs import three_steps
from rayflink.testing.load_curves import LoadCurve, RecordCost
from rayflink.testing.scaled_jobs import run_scaled
from tests.actors.job.job_events import Job, names

REACTIVE = {
    "scheduler-mode": "reactive",
    "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": "1 s",
    "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "2 s",
}


def reactive(parallelism: int) -> Any:
    graph = three_steps(parallelism)
    graph.configuration.update(REACTIVE)
    return graph


@pytest.mark.parametrize(("slots", "width"), [(0, 1), (1, 1), (5, 5), (1_000, 128)])
def test_a_job_has_as_many_subtasks_as_there_are_slots(slots: int, width: int) -> None:
    fitted = fitted_graph(three_steps(2), slots)
    assert {vertex.parallelism for vertex in fitted.vertices} == {width}


def test_the_number_of_slots_has_to_stay_for_a_time() -> None:
    scaling, graph = ReactiveScaling(REACTIVE), three_steps(2)
    scaling.slots_seen(4, 100)
    assert scaling.fitting(graph, 1_000) is None
    scaling.slots_seen(3, 1_050)
    assert scaling.fitting(graph, 1_200) is None
    scaling.slots_seen(3, 1_900)
    fitted = scaling.fitting(graph, 2_050)
    assert fitted is not None and fitted.vertices[0].parallelism == 3
    scaling.slots_seen(2, 3_000)
    assert scaling.fitting(graph, 9_000) is None
    assert ReactiveScaling({}).fitting(graph, 9_000) is None


def test_a_running_job_asks_for_more_and_one_that_waits_for_fewer() -> None:
    job = Job(reactive(2))
    job.start()
    job.on(SlotsAvailable(1), 100)
    assert not job.on(Tick(), 500)
    fewer = next(each for each in job.on(Tick(), 1_200) if isinstance(each, RequestSlots))
    assert len(fewer.slots) == 1
    running = Job(reactive(2))
    running.all_run()
    running.on(SlotsAvailable(4), 100)
    assert not any(isinstance(each, RequestRescale) for each in running.on(Tick(), 1_500))
    request = next(each for each in running.on(Tick(), 2_100) if isinstance(each, RequestRescale))
    assert set(request.request.parallelism.values()) == {4}


def test_tasks_that_wait_for_lost_slots_are_ended_and_the_job_goes_on_in_fewer() -> None:
    graph = reactive(3)
    graph.configuration.update({"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "1 s"})
    job = Job(graph)
    job.all_run()
    job.on(SlotsAvailable(3), 100)
    for execution in list(job.master.executions.values()):
        job.on(TaskGone(execution.attempt, "its node is lost"), 5_000)
    assert names(job.on(Tick(), 6_500))
    job.on(SlotsAvailable(1), 7_000)
    killed = [each.attempt for each in job.on(Tick(), 8_500) if isinstance(each, KillTask)]
    assert set(killed) == set(job.master.executions)
    commands = [command for attempt in killed for command in job.on(TaskGone(attempt, "it was ended"), 8_600)]
    assert [len(each.slots) for each in commands if isinstance(each, RequestSlots)] == [1]


@dataclass(frozen=True)
class Slots(ClusterFault):
    """The cluster has a number of slots for the job from a second of the run on."""

    second: int
    count: int

    def inject(self, cluster: Any, move: int) -> bool:
        if cluster.clock.now_ms() < 1_000_000 + 1_000 * self.second:
            return False
        cluster.slots_available(self.count)
        return True


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.soak)])
def test_a_simulated_job_grows_and_shrinks_and_counts_each_record_once(seed: int) -> None:
    options = {key.replace("-", "_").replace(".", "__"): value for key, value in REACTIVE.items()}
    faults = (Slots(10, 4), Slots(25, 2), Slots(40, 3))
    run = run_scaled(LoadCurve.steps((60, 40)), RecordCost("Count", 10), seed, parallelism=1, faults=faults,
                     job__autoscaler__enabled="false", execution__checkpointing__interval="2 s", **options)  # fmt: skip
    assert [width for _, width in run.widths] == [1, 4, 2, 3]
