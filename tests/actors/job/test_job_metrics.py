"""What is counted of a job as a whole."""

from __future__ import annotations

from rayflink.actors.job.job_metrics import JobMetrics
from rayflink.actors.messages.states import JobStatus
from rayflink.common.metrics.prometheus import samples


def shown(metrics: JobMetrics) -> dict[str, int]:
    return {name: value for name, value in metrics.group.snapshot().items() if value}


def test_the_time_in_a_state_ends_with_the_state() -> None:
    metrics = JobMetrics("j" * 32, "words", {})
    metrics.update(JobStatus.CREATED, {"CREATED": 100}, 0, 130)
    assert shown(metrics) == {"createdTime": 30}
    metrics.update(JobStatus.RUNNING, {"CREATED": 100, "RUNNING": 200}, 0, 1_200)
    assert shown(metrics) == {"uptime": 1_000, "runningTime": 1_000}
    metrics.update(JobStatus.FAILING, {"CREATED": 100, "RUNNING": 200, "FAILING": 1_300}, 2, 1_304)
    assert shown(metrics) == {"failingTime": 4, "downtime": 4, "numRestarts": 2}


def test_a_job_that_has_ended_is_not_up_as_in_flink() -> None:
    metrics = JobMetrics("j" * 32, "words", {})
    metrics.update(JobStatus.FINISHED, {"RUNNING": 200, "FINISHED": 300}, 0, 300)
    assert shown(metrics) == {"uptime": -1, "downtime": -1}


def test_a_jobs_scope_is_that_of_its_coordinator() -> None:
    metrics = JobMetrics("j" * 32, "words", {"metrics.scope.jm-job": "*.<job_id>"})
    metrics.located("n1")
    assert metrics.group.get_metric_identifier("uptime") == f"n1.jobmanager.{'j' * 32}.uptime"
    [uptime] = [sample for sample in samples(metrics.group) if sample.name == "flink_jobmanager_job_uptime"]
    assert uptime.labels == {"host": "n1", "job_id": "j" * 32, "job_name": "words"}
