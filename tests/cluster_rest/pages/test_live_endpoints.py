"""The requests of the dashboard for which Flink has no path."""

from __future__ import annotations

from typing import Any

import pytest

from rayflink.cluster.jobs.cluster_job import UnknownJob
from rayflink.cluster.jobs.trends import Trends
from rayflink.cluster.rest.live_endpoints import LiveEndpoints
from rayflink.serving.json_requests import JsonRequest, Refusal, Role
from tests.cluster_rest.pages.job_statuses import IDS, NOW_MS, description, operator, status, subtask, vertex

JOB = "d" * 32


class Job:
    """A job that counts how often it is asked for a checkpoint."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.latest: dict[str, Any] = {}

    def status(self) -> dict[str, Any]:
        reader = operator("in", None, numRecordsOutPerSecond=5.0)
        source = subtask(0, 5, 0, 0, numRecordsIn=0, operators=[reader])
        return status(vertex("source", [source]), vertex("sink", [subtask(0, 5, 0, 0)]))

    def description(self) -> dict[str, Any]:
        return description(("source", "sink"), names=("source", "sink"))

    def checkpoints(self, checkpoint_id: int | None = None) -> dict[str, Any] | None:
        history = [{"id": 2, "status": "IN_PROGRESS"}, {"id": 1, "status": "COMPLETED"}]
        if checkpoint_id is None:
            return {"history": history, "latest": self.latest}
        self.asked.append(checkpoint_id)
        return {"tasks": {}}

    def accumulators(self) -> dict[str, Any]:
        return {}


class Jobs:
    """One job."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def statuses(self) -> list[dict[str, Any]]:
        return [self.job.status()]

    def view(self, job_id: str) -> Job:
        if job_id != JOB:
            raise UnknownJob(job_id)
        return self.job

    def running(self, job_id: str) -> Any:
        raise NotImplementedError


def ask(job: Job, path: str, job_id: str = JOB, endpoints: LiveEndpoints | None = None, **parameters: str) -> Any:
    routes = (endpoints or LiveEndpoints(Jobs(job), now_ms=lambda: NOW_MS)).routes()
    [route] = [route for route in routes if route.pattern == path]
    assert route.role is Role.READ and route.method == "GET"
    return route.answer(JsonRequest(path, {"job": job_id, **parameters}, {}))


@pytest.mark.spec("U09", "execution")
def test_live_figures_are_answered_for_all_jobs_and_for_one() -> None:
    [row] = ask(Job(), "/rayflink/live")["jobs"]
    assert (row["jid"], row["read_per_second"], row["now_ms"]) == (JOB, 5.0, NOW_MS)
    assert ask(Job(), "/rayflink/jobs/{job}/live", JOB.upper())["edges"][0]["records_per_second"] == 5.0
    assert ask(Job(), "/rayflink/jobs/{job}/findings")["findings"] == []
    assert ask(Job(), "/rayflink/jobs/{job}/configuration") == {"configuration": {}}
    assert ask(Job(), "/rayflink/jobs/{job}/trends")["points"] == []
    known = ask(Job(), "/rayflink/jobs/{job}/live/vertices/{vertex}", vertex=IDS["sink"])
    assert known == {"id": IDS["sink"], "name": "sink", "operators": []}


def test_the_figures_of_the_last_hour_are_those_that_were_noted() -> None:
    job, trends = Job(), Trends()
    trends.note([job.status()], NOW_MS)
    endpoints = LiveEndpoints(Jobs(job), trends=trends)
    answer = ask(job, "/rayflink/jobs/{job}/trends", JOB.upper(), endpoints)
    assert dict(zip(answer["figures"], answer["points"][0], strict=True))["read_per_second"] == 5.0
    assert answer["points"][0][0] == NOW_MS and answer["every_ms"] == 10_000


@pytest.mark.parametrize(("job_id", "code"), [("nonsense", 400), ("0" * 32, 404)])
def test_a_job_that_is_not_known_is_refused(job_id: str, code: int) -> None:
    with pytest.raises(Refusal) as refused:
        ask(Job(), "/rayflink/jobs/{job}/live", job_id)
    assert refused.value.status == code
    with pytest.raises(Refusal, match="has no vertex"):
        ask(Job(), "/rayflink/jobs/{job}/live/vertices/{vertex}", vertex="x")


@pytest.mark.spec("U09", "checkpoints")
def test_a_checkpoint_that_has_ended_is_asked_for_once() -> None:
    job = Job()
    endpoints = LiveEndpoints(Jobs(job))
    for _ in range(3):
        answer = ask(job, "/rayflink/jobs/{job}/phases", endpoints=endpoints)
    assert [entry["vertices"] for entry in answer["history"]] == [[], []]
    assert job.asked == [2, 1, 2, 2]


@pytest.mark.parametrize(
    ("latest", "reason"),
    [({}, "no checkpoint has been completed yet"), ({"completed": {"id": 1, "external_path": ""}}, "in memory"),
     ({"completed": {"id": 1, "external_path": "/nowhere/chk-1"}}, "cannot be read from here")],
)  # fmt: skip
def test_state_that_is_not_known_says_why(latest: dict[str, Any], reason: str) -> None:
    job = Job()
    job.latest = latest
    answer = ask(job, "/rayflink/jobs/{job}/state")
    assert reason in answer["reason"] and answer["operators"] == []
