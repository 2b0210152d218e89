"""What Prometheus scrapes of a dispatcher: a function of the statuses of its jobs."""

from __future__ import annotations

from typing import Any

import pytest

from rayflink.cluster.jobs.cluster_process import ClusterProcess
from rayflink.cluster.registry.counted_storage import CountedStorage
from rayflink.cluster.rest.prometheus_endpoint import PrometheusEndpoint
from rayflink.common.errors import ControlPlaneTimeout
from rayflink.common.metrics.prometheus_text import OMITTED
from rayflink.serving.json_requests import FileAnswer, JsonRequest, Role
from rayflink.serving.request_statistics import OTHER, RequestStatistics
from rayflink.state.storage.memory_storage import MemoryStorage
from rayflink.state.storage.storage import MissingFileError, StorageError
from rayflink.testing import check_storage


def status(number: int, state: str, operators: int = 0, **more: Any) -> dict[str, Any]:
    """A job with one task."""
    of_operators = [{"id": f"{n}", "name": f"op {n}", "metrics": {"numRecordsIn": n}} for n in range(operators)]
    report = {"host": "n1", "pid": 7, "numRecordsIn": 3, "operators": of_operators}
    subtask = {"subtask": 0, "attempt": 2, "id": "cafe", "state": "RUNNING", "metrics": report}
    vertices = [{"id": "beef", "name": "Map", "subtasks": [subtask]}]
    return {"jid": f"{number:032x}", "name": f"job {number}", "state": state, "metrics": {"numRestarts": 1},
            "vertices": vertices, **more}  # fmt: skip


class Jobs:
    """Known jobs, of which only the statuses are asked for."""

    def __init__(self, *statuses: dict[str, Any]) -> None:
        self._statuses = statuses

    def statuses(self) -> list[Any]:
        return list(self._statuses)


class Processes:
    """Two processes, one of them free."""

    def list(self) -> list[ClusterProcess]:
        return [ClusterProcess("a:1-0", "a", 1, slots=2, free_slots=2), ClusterProcess("a:2-0", "a", 2, slots=3)]


def scrape(endpoint: PrometheusEndpoint, accept: str = "") -> FileAnswer:
    [route] = endpoint.routes()
    assert (route.method, route.pattern, route.role) == ("GET", "/metrics", Role.READ)
    answer = route.answer(JsonRequest("/metrics", {}, {}, headers={"accept": accept}))
    assert isinstance(answer, FileAnswer)
    return answer


def series(answer: FileAnswer) -> dict[str, float]:
    lines = [line.rpartition(" ") for line in answer.content.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def test_jobs_are_counted_by_state_and_known_by_name() -> None:
    jobs = Jobs(status(1, "RUNNING"), status(2, "FAILED"), status(3, "CREATED", waiting="for 2 slots"))
    shown = series(scrape(PrometheusEndpoint(jobs, Processes(), host="n0")))  # type: ignore[arg-type]
    assert shown['rayflink_jobs{state="RUNNING"}'] == shown['rayflink_jobs{state="FAILED"}'] == 1
    assert shown['rayflink_jobs{state="FINISHED"}'] == 0
    assert shown['flink_jobmanager_numRunningJobs{host="n0"}'] == 1
    assert shown[f'rayflink_job_state{{job_id="{2:032x}",job_name="job_2",state="FAILED"}}'] == 1
    waiting = {name: value for name, value in shown.items() if name.startswith("rayflink_job_waiting_for_slots")}
    assert [value for _, value in sorted(waiting.items())] == [0, 1], "of jobs that have not ended"
    slots = [shown[f'flink_jobmanager_{name}{{host="n0"}}'] for name in ("taskSlotsTotal", "taskSlotsAvailable")]
    assert slots == [5, 2] and shown['flink_jobmanager_numRegisteredTaskManagers{host="n0"}'] == 2


class Lost:
    """A cluster that does not answer."""

    def list(self) -> list[ClusterProcess]:
        raise ControlPlaneTimeout("list", "the cluster", 1000)


def test_what_the_cluster_does_not_say_now_is_left_out() -> None:
    shown = series(scrape(PrometheusEndpoint(Jobs(), Lost())))  # type: ignore[arg-type]
    assert "rayflink_build_info" in str(shown) and "taskSlots" not in str(shown)


def test_tasks_have_flinks_names_and_labels() -> None:
    shown = series(scrape(PrometheusEndpoint(Jobs(status(1, "RUNNING", operators=1)))))  # type: ignore[arg-type]
    of_task = (
        f'host="n1",tm_id="n1:7",job_id="{1:032x}",job_name="job_1",task_id="beef",task_name="Map",'
        'task_attempt_id="cafe",task_attempt_num="2",subtask_index="0"'
    )
    assert shown[f"flink_taskmanager_job_task_numRecordsIn{{{of_task}}}"] == 3
    of_operator = f'{of_task},operator_id="0",operator_name="op_0"'
    assert shown[f"flink_taskmanager_job_task_operator_numRecordsIn{{{of_operator}}}"] == 0
    assert shown[f'flink_jobmanager_job_numRestarts{{host="localhost",job_id="{1:032x}",job_name="job_1"}}'] == 1
    assert shown["process_threads"] >= 1 and shown["process_resident_memory_bytes"] > 1 << 20


def test_an_answer_is_bounded_and_the_operators_are_left_out_first() -> None:
    jobs = Jobs(*(status(number, "RUNNING", operators=50) for number in range(50)))
    answer = scrape(PrometheusEndpoint(jobs, most_bytes=100_000))  # type: ignore[arg-type]
    shown = series(answer)
    assert len(answer.content) <= 100_000 and shown[OMITTED] > 1_000
    assert sum(name.startswith("flink_taskmanager_job_task_numRecordsIn") for name in shown) == 50


@pytest.mark.parametrize("accept, media", [("", "text/plain"), ("application/openmetrics-text", "application/openm")])
def test_the_form_is_that_which_the_scraper_accepts(accept: str, media: str) -> None:
    answer = scrape(PrometheusEndpoint(Jobs()), accept)  # type: ignore[arg-type]
    assert answer.media_type.startswith(media)
    assert answer.content.endswith(b"# EOF\n") is media.startswith("application")


def test_requests_are_counted_by_path_and_in_buckets_of_time() -> None:
    statistics = RequestStatistics()
    for path, seconds in (("/v1/jobs", 0.004), ("/jobs", 0.3), ("/jobs", 20.0)):
        statistics.record("GET", path, 200, seconds)
    statistics.record("BREW", OTHER, 404, 0.0)
    endpoint = PrometheusEndpoint(Jobs(), sources=[statistics.samples])  # type: ignore[arg-type]
    shown = series(scrape(endpoint))
    assert shown['rayflink_http_requests_total{method="GET",path="/jobs",status="200"}'] == 3
    assert shown['rayflink_http_requests_total{method="other",path="other",status="404"}'] == 1
    buckets = {
        bound: shown[f'rayflink_http_request_duration_seconds_bucket{{method="GET",path="/jobs",le="{bound}"}}']
        for bound in ("0.005", "0.25", "0.5", "10.0", "+Inf")
    }
    assert buckets == {"0.005": 1, "0.25": 1, "0.5": 2, "10.0": 2, "+Inf": 3}


class Full(MemoryStorage):
    """Takes no file any more."""

    def put_if_absent(self, path: str, data: bytes) -> bool:
        raise StorageError("write", "memory", "it is full")


def test_writes_of_a_registry_are_counted_and_a_missing_file_is_no_failure() -> None:
    storage = CountedStorage(Full("full"))
    with pytest.raises(StorageError):
        storage.put_if_absent("a", b"")
    with pytest.raises(MissingFileError):
        storage.read("a")
    done = {(s.labels["operation"], s.labels["result"]): s.value for s in storage.samples() if "result" in s.labels}
    assert done == {("read", "done"): 1, ("read", "failed"): 0, ("write", "done"): 0, ("write", "failed"): 1}


def test_a_counted_storage_is_a_storage() -> None:
    check_storage(lambda: CountedStorage(MemoryStorage()))
