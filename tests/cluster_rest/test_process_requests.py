"""Requests about processes, without a server: task managers, the job manager, profiles and flame graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rayflink.actors.task.process_inspection import ProcessInspection, ProfilerError
from rayflink.cluster.dispatcher.dispatcher_log import JOB_MANAGER, DispatcherLog
from rayflink.cluster.jobs.cluster_job import Document
from rayflink.cluster.jobs.cluster_process import ClusterProcess, LogFile, ThreadDump, UnknownProcess
from rayflink.cluster.rest.applications import ApplicationEndpoints
from rayflink.cluster.rest.processes.flame_graphs import FORGOTTEN_MS, FRESH_MS, FlameGraphs
from rayflink.cluster.rest.processes.flame_tree import flame_page
from rayflink.cluster.rest.processes.job_manager_endpoints import JobManagerEndpoints
from rayflink.cluster.rest.processes.profiles import HISTORY, Profiles
from rayflink.cluster.rest.processes.task_manager_endpoints import TaskManagerEndpoints
from rayflink.common.errors import ControlPlaneTimeout
from rayflink.common.text_output.logs import get_logger
from tests.cluster_rest.known_jobs import ENDED, RUNNING, SOURCE, UNKNOWN, KnownJobs, Requests

PROCESS = "n1:7-5"
PATH = f"/taskmanagers/{PROCESS}"
STACKS = [("source (1/1);run (task.py:3);read (job.py:9)", 6), ("source (1/1);run (task.py:3)", 2), ("main;wait", 10)]


class OneProcess:
    """A process in memory."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.profiles: list[tuple[float, bool]] = []

    def list(self) -> Sequence[ClusterProcess]:
        return [ClusterProcess(PROCESS, "n1", 7, slots=2, free_slots=1, cpus=2.0, memory_bytes=4 << 30, heard_ms=1)]

    def log_files(self, process_id: str) -> Sequence[LogFile]:
        return [LogFile("taskmanager.log", 5, 9)] if self._knows(process_id) else []

    def log(self, process_id: str, name: str, most_bytes: int) -> bytes:
        self._knows(process_id)
        if name != "taskmanager.log":
            raise FileNotFoundError(name)
        return b"line\n"

    def threads(self, process_id: str) -> Sequence[ThreadDump]:
        return [ThreadDump("main", "a stack")] if self._knows(process_id) else []

    def figures(self, process_id: str) -> Mapping[str, float]:
        self._knows(process_id)
        memory = {"residentBytes": 5, "machineBytes": 6}
        return {"cpuLoad": 0.5, "cpuSeconds": 2.0, "threads": 3, "collections": 4, **memory}

    def profile(self, process_id: str, duration_s: float, with_idle: bool = False) -> Sequence[tuple[str, int]]:
        self._knows(process_id)
        self.profiles.append((duration_s, with_idle))
        return STACKS if with_idle else STACKS[:1]

    def _knows(self, process_id: str) -> bool:
        if self.error is not None:
            raise self.error
        if process_id != PROCESS:
            raise UnknownProcess(process_id)
        return True


class LocatedJobs(KnownJobs):
    """The job that runs has its source in the process."""

    def __init__(self) -> None:
        super().__init__()
        metrics = {"host": "n1", "pid": 7, "begin": "5"}
        self.subtasks: list[Document] = [{"subtask": 0, "id": "x", "state": "RUNNING", "metrics": metrics}]
        status = self.job.status
        self.job.status = lambda: _with_subtasks(status(), self.subtasks)  # type: ignore[method-assign]


def _with_subtasks(status: Document, subtasks: list[Document]) -> Document:
    return {**status, "vertices": [{**vertex, "subtasks": subtasks} for vertex in status["vertices"][:1]]}


class Server:
    """The endpoints, with work that waits until `finish`, and a clock."""

    def __init__(self, folder: Path) -> None:
        self.now_ms, self.work = 1_000, list[Callable[[], None]]()
        self.process, self.jobs, self.log = OneProcess(), LocatedJobs(), DispatcherLog(folder)
        profiles = Profiles(lambda: self.now_ms, self.work.append)
        options = {"rest.port": "8081", "s3.secret-key": "hunter2"}
        topics = [
            TaskManagerEndpoints(self.jobs, self.process, profiles),
            JobManagerEndpoints(
                self.jobs, self.process, options, ProcessInspection(), self.log.files, profiles
            ),
            FlameGraphs(self.jobs, self.process, lambda: self.now_ms, self.work.append),
            ApplicationEndpoints(self.jobs),
        ]
        self.send = Requests(*(route for topic in topics for route in topic.routes())).send

    def finish(self) -> None:
        while self.work:
            self.work.pop(0)()


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path)


def test_a_process_has_its_tasks_slots_and_memory(server: Server) -> None:
    (entry,) = server.send("GET", "/taskmanagers")[1]["taskmanagers"]
    assert (entry["id"], entry["assignedTasks"], entry["slotsNumber"], entry["freeSlots"]) == (PROCESS, 1, 2, 1)
    assert (entry["totalResource"]["cpuCores"], entry["freeResource"]["taskHeapMemory"]) == (2.0, 2048)
    details = server.send("GET", PATH)[1]
    (slot,) = details["allocatedSlots"]
    assert (slot["jobId"], slot["assignedTasks"], details["metrics"]["heapUsed"]) == (RUNNING, 1, 5)


def test_logs_are_texts(server: Server) -> None:
    assert server.send("GET", f"{PATH}/logs") == (200, {"logs": [{"name": "taskmanager.log", "size": 5, "mtime": 9}]})
    assert server.send("GET", f"{PATH}/log") == server.send("GET", f"{PATH}/logs/taskmanager.log") == (200, b"line\n")
    assert server.send("GET", f"{PATH}/stdout")[0] == server.send("GET", f"{PATH}/logs/nosuch")[0] == 404
    (thread,) = server.send("GET", f"{PATH}/thread-dump")[1]["threadInfos"]
    assert thread == {"threadName": "main", "stringifiedThreadInfo": '"main" Id=1\na stack\n'}


@pytest.mark.parametrize("path", ["", "/logs", "/log", "/thread-dump", "/profiler", "/logs/x", "/profiler/x"])
def test_a_process_that_does_not_live_is_not_found(server: Server, path: str) -> None:
    assert server.send("GET", f"/taskmanagers/nosuch{path}")[0] == 404
    assert server.send("GET", "/taskmanagers/nosuch/metrics") == (200, []), "as in Flink"


def test_a_process_that_does_not_answer_is_no_fault_of_the_server(server: Server) -> None:
    server.process.error = ControlPlaneTimeout("threads", "the process of a slot", 10_000)
    status, errors = server.send("GET", f"{PATH}/thread-dump")
    assert status == 503 and "the process of a slot" in errors[0]


def test_metrics_of_processes(server: Server) -> None:
    load, used = "Status.JVM.CPU.Load", "Status.JVM.Memory.Heap.Used"
    assert {"id": load} in server.send("GET", f"{PATH}/metrics")[1]
    metrics = server.send("GET", f"{PATH}/metrics", query={"get": f"{load},nosuch"})
    assert metrics == (200, [{"id": load, "value": "0.5"}])
    spread = server.send("GET", "/taskmanagers/metrics", query={"get": used, "agg": "max"})
    assert spread == (200, [{"id": used, "max": 5.0}])
    assert server.send("GET", "/taskmanagers/metrics", query={"get": used, "taskmanagers": "nosuch"}) == (200, [])
    slots = server.send("GET", "/jobmanager/metrics", query={"get": "taskSlotsTotal,numRunningJobs"})[1]
    assert slots == [{"id": "taskSlotsTotal", "value": "2"}, {"id": "numRunningJobs", "value": "1"}]


def test_the_configuration_and_the_environment_have_no_secrets(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAYFLINK_TOKEN", "hunter2")
    entries = [{"key": "rest.port", "value": "8081"}, {"key": "s3.secret-key", "value": "******"}]
    for prefix in ("", f"/jobs/{RUNNING}"):
        assert server.send("GET", f"{prefix}/jobmanager/config") == (200, entries)
        assert "hunter2" not in str(server.send("GET", f"{prefix}/jobmanager/environment"))
    assert server.send("GET", f"/jobs/{UNKNOWN}/jobmanager/config")[0] == 404


def test_the_dispatcher_shows_what_its_loggers_say(server: Server) -> None:
    server.log.start()
    get_logger("rayflink.cluster.example").warning("the registry is full")
    server.log.stop()
    get_logger("rayflink.cluster.example").warning("not any more")
    text = server.send("GET", "/jobmanager/log")[1].decode()
    assert text.endswith(" WARNING rayflink.cluster.example: the registry is full\n")
    names = [log["name"] for log in server.send("GET", "/jobmanager/logs")[1]["logs"]]
    assert names[:2] == [f"{JOB_MANAGER}.log", f"{JOB_MANAGER}.out"] and len(names) == 3
    assert server.send("GET", f"/jobmanager/logs/{names[2]}")[1].decode() == text
    assert server.send("GET", "/jobmanager/stdout") == (200, b"")
    assert server.send("GET", "/jobmanager/logs/..%2F..%2Fetc%2Fpasswd")[0] == 404


def test_a_profile_is_a_page(server: Server) -> None:
    status, info = server.send("POST", f"{PATH}/profiler", {"mode": "WALL", "duration": 3})
    assert (status, info["status"], info["finishedTime"]) == (200, "RUNNING", None)
    assert server.send("POST", f"{PATH}/profiler", {"mode": "CPU", "duration": 3})[0] == 409
    server.finish()
    (done,) = server.send("GET", f"{PATH}/profiler")[1]["profilingList"]
    assert (done["status"], done["message"]) == ("FINISHED", "Profiling Successful")
    assert server.process.profiles == [(3, True)]
    page = server.send("GET", f"{PATH}/profiler/{done['outputFile']}")[1]
    assert b"read (job.py:9): 6 samples, 33.3 %" in page
    assert server.send("GET", "/jobmanager/profiler") == (200, {"profilingList": []})


def test_a_profile_that_cannot_be_taken_says_what_to_install(server: Server) -> None:
    server.process.error = ProfilerError("py-spy is not installed", "run pip install 'rayflink[profile]'")
    server.send("POST", f"{PATH}/profiler", {"mode": "CPU", "duration": 3})
    server.process.error, work = server.process.error, server.work.pop()
    work()
    server.process.error = None
    (failed,) = server.send("GET", f"{PATH}/profiler")[1]["profilingList"]
    assert failed["status"] == "FAILED" and "pip install" in failed["message"]


@pytest.mark.parametrize("body", [{}, {"mode": "NOSUCH", "duration": 2}, {"mode": "CPU", "duration": 0},
                                  {"mode": "CPU", "duration": 301}, {"mode": "ALLOC", "duration": 2}])  # fmt: skip
def test_profiles_that_there_are_not_are_refused(server: Server, body: Mapping[str, Any]) -> None:
    assert server.send("POST", f"{PATH}/profiler", body)[0] == 400
    assert server.send("POST", "/jobmanager/profiler", body)[0] == 400


def test_the_newest_profiles_are_kept(server: Server) -> None:
    for _ in range(HISTORY + 2):
        server.now_ms += 1_000
        server.send("POST", f"{PATH}/profiler", {"mode": "CPU", "duration": 1})
        server.finish()
    infos = server.send("GET", f"{PATH}/profiler")[1]["profilingList"]
    assert [info["triggerTime"] for info in infos] == [13_000 - 1_000 * number for number in range(HISTORY)]


def graph(server: Server, **query: str) -> Any:
    return server.send("GET", f"/jobs/{RUNNING}/vertices/{SOURCE}/flamegraph", query=query)


def test_a_flame_graph_has_the_threads_of_its_vertex(server: Server) -> None:
    assert graph(server) == (200, {"endTimestamp": -3})
    server.finish()
    tree = graph(server)[1]
    (run,) = tree["data"]["children"]
    assert (tree["endTimestamp"], run["name"], run["value"]) == (1_000, "run (task.py:3)", 8)
    assert [child["value"] for child in run["children"]] == [6]
    assert graph(server, type="on_cpu")[1]["data"]["value"] == 6
    assert graph(server, type="off_cpu", subtaskindex="0")[1]["data"]["value"] == 2
    assert graph(server, subtaskindex="99")[0] == 404 and graph(server, type="nosuch")[0] == 400


def test_a_flame_graph_of_a_shared_process_has_no_threads_of_other_jobs(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = f"source (1/1) of {RUNNING[:8]};own (task.py:3)", "source (1/1) of 01234567;other (task.py:3)"
    monkeypatch.setattr(f"{__name__}.STACKS", [(own, 6), (other, 2)])
    graph(server)
    server.finish()
    assert [child["name"] for child in graph(server)[1]["data"]["children"]] == ["own (task.py:3)"]


def test_samples_are_taken_again_when_they_are_old(server: Server) -> None:
    graph(server)
    server.finish()
    server.now_ms += FRESH_MS + 1
    assert graph(server)[1]["endTimestamp"] == 1_000, "those that there are, meanwhile"
    server.finish()
    assert graph(server)[1]["endTimestamp"] == 1_000 + FRESH_MS + 1
    server.now_ms += FORGOTTEN_MS + 1
    assert graph(server)[1] == {"endTimestamp": -3}


def test_a_vertex_that_does_not_run_has_no_flame_graph(server: Server) -> None:
    server.jobs.subtasks[0] = {**server.jobs.subtasks[0], "state": "FINISHED"}
    assert graph(server) == (200, {"endTimestamp": -1})
    assert server.send("GET", f"/jobs/{RUNNING}/vertices/{UNKNOWN}/flamegraph")[0] == 404
    assert server.send("GET", f"/jobs/{UNKNOWN}/vertices/{SOURCE}/flamegraph")[0] == 404


def test_a_flame_graph_without_the_profiler_says_what_to_install(server: Server) -> None:
    graph(server)
    server.process.error = ProfilerError("py-spy is not installed", "run pip install 'rayflink[profile]'")
    server.finish()
    status, errors = graph(server)
    assert status == 503 and "pip install" in errors[0]


def test_a_profiler_with_a_fault_keeps_no_later_profile_from_being_taken(server: Server) -> None:
    server.process.error = OSError("no more processes")
    graph(server)
    server.send("POST", f"{PATH}/profiler", {"mode": "CPU", "duration": 3})
    server.finish()
    assert "no more processes" in graph(server)[1][0]
    server.process.error = None
    server.finish()
    assert graph(server)[1]["data"]["value"] > 0
    (failed,) = server.send("GET", f"{PATH}/profiler")[1]["profilingList"]
    assert failed["status"] == "FAILED" and "no more processes" in failed["message"]
    assert server.send("POST", f"{PATH}/profiler", {"mode": "CPU", "duration": 3})[0] == 200


def test_names_of_frames_are_text_in_the_page() -> None:
    page = flame_page("<b>", [("main;<script>alert(1)</script>", 1)])
    assert b"<script" not in page and b"&lt;script&gt;alert(1)" in page


def test_an_application_is_its_job(server: Server) -> None:
    overview = server.send("GET", "/applications/overview")[1]["applications"]
    assert [(entry["id"], entry["status"], entry["jobs"]) for entry in overview] == [
        (RUNNING, "RUNNING", {"RUNNING": 1}), (ENDED, "FINISHED", {"FINISHED": 1}),
    ]  # fmt: skip
    details = server.send("GET", f"/applications/{RUNNING}")[1]
    assert (details["name"], details["jobs"][0]["jid"]) == ("SingleJobApplication(words)", RUNNING)
    assert server.send("GET", f"/applications/{RUNNING}/exceptions")[1] == {"exceptionHistory": {"entries": []}}
    assert server.send("POST", f"/applications/{RUNNING}/cancel") == (202, {})
    assert server.jobs.job.calls[0][0] == "cancel"
    assert server.send("POST", f"/applications/{ENDED}/cancel")[0] == 409
    for path in ("", "/exceptions"):
        assert server.send("GET", f"/applications/{UNKNOWN}{path}")[0] == 404


