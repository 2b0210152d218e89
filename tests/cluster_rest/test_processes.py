"""The processes of a cluster: which there are, and their logs, threads, figures and profiles."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from rayflink.actors.on_ray.driver.slot_calls import SlotCalls, SlotGone
from rayflink.actors.on_ray.process_files import ProcessFiles
from rayflink.actors.on_ray.task_log import TaskLog
from rayflink.actors.task import process_inspection
from rayflink.actors.task.process_inspection import ProcessInspection, ProfilerError
from rayflink.cluster.jobs.cluster_process import UnknownProcess
from rayflink.cluster.runners.local_processes import LocalProcesses
from rayflink.cluster.runners.ray_processes import RayProcesses

MOST = 1 << 20
FIRST, SECOND = "a" * 32, "b" * 32


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two jobs that have printed by turns."""
    times = iter(range(1_000_000_000_000, 2_000_000_000_000, 1_000))
    first, second = (TaskLog(tmp_path / job, "local", lambda: next(times)) for job in (FIRST, SECOND))
    for log, stream, text in [(first, "out", "one"), (second, "log", "INFO rayflink: two"), (first, "err", "three")]:
        log.put(stream, f"{text}\n")
        log.flush()
    return tmp_path


def test_a_log_has_the_lines_of_all_files_in_their_order_and_what_was_printed_alone(folder: Path) -> None:
    files = ProcessFiles([(folder / FIRST, "local"), (folder / SECOND, "local")], "taskmanager")
    names = [name for name, _, _ in files.list()]
    assert names == ["taskmanager.log", "taskmanager.out", f"{FIRST}-local.0.log", f"{SECOND}-local.0.log"]
    lines = files.read("taskmanager.log", MOST).decode().splitlines()
    assert [line.split(" ", 2)[2] for line in lines] == ["one", "INFO rayflink: two", "three"]
    assert files.read("taskmanager.out", MOST) == b"one\nthree\n"
    assert files.read(f"{SECOND}-local.0.log", MOST).endswith(b" INFO rayflink: two\n")


def test_only_the_end_of_a_long_log_is_read_and_no_other_file(folder: Path) -> None:
    log = TaskLog(folder / FIRST, "local")
    log.put("out", "x" * 1000 + "\nlast\n")
    log.flush()
    files = ProcessFiles([(folder / FIRST, "local")], "taskmanager")
    assert files.read("taskmanager.out", 100) == b"one\nthree\nlast\n", "of the second file only what fits"
    for name in ("../secret", f"{FIRST}/local.0.log", "local.0.log", ""):
        with pytest.raises(FileNotFoundError):
            files.read(name, MOST)


def test_the_process_of_a_local_cluster_shows_itself(folder: Path) -> None:
    processes = LocalProcesses(folder, lambda: [{"jid": FIRST}], ProcessInspection())
    (process,) = processes.list()
    assert process.slots - process.free_slots == 1 and process.process_id.startswith(f"{process.host}:{process.pid}-")
    threads = {thread.name: thread.stack for thread in processes.threads(process.process_id)}
    assert "test_the_process_of_a_local_cluster" in threads[threading.current_thread().name]
    figures = processes.figures(process.process_id)
    assert figures["residentBytes"] > 1 << 20 and 0 <= figures["cpuLoad"] <= 1 and figures["threads"] >= 1
    assert processes.log_files(process.process_id)[0].name == "taskmanager.log"
    for ask in (processes.threads, processes.figures, processes.log_files):
        with pytest.raises(UnknownProcess):
            ask("elsewhere:1-2")


def test_without_the_profiler_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_inspection, "PROFILER", "no-such-profiler")
    with pytest.raises(ProfilerError, match=r"pip install 'rayflink\[profile\]' on every node"):
        ProcessInspection().profile(1, False)


@pytest.mark.slow  # the profiler takes samples for a second
def test_the_stacks_of_a_thread_that_runs_are_sampled() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=_spin, args=(stop,), name="spinning -> sum (1/1)")
    thread.start()
    try:
        stacks = ProcessInspection().profile(1, False)
    finally:
        stop.set()
        thread.join()
    assert any(stack.startswith("spinning -> sum (1/1);") and "_spin" in stack for stack, _ in stacks), stacks


def _spin(stop: threading.Event) -> None:
    while not stop.is_set():
        sum(range(1000))


class Slot(SlotCalls):
    """The process of a slot that answers without Ray."""

    def __init__(self, is_gone: bool = False) -> None:
        super().__init__(None)
        self.is_gone = is_gone

    def _ask(self, what: str, *arguments: object, within_s: float = 1) -> Any:
        if self.is_gone:
            raise SlotGone("it was killed")
        log = b"line\n" if arguments[:1] == ("taskmanager.log",) else None
        return {"threads": [("main", "stack")], "log": log}[what]


MEMORY = {
    "Status.Flink.Memory.Managed.Total": 3, "Status.Shuffle.Netty.TotalMemory": 2,
    "rayflink.Status.Memory.Remaining": 5,
}  # fmt: skip


def _status(job_id: str, *pids: int, state: str = "RUNNING") -> dict[str, Any]:
    subtasks = [
        {
            "id": f"{job_id[0]}{number}",
            "state": state,
            "metrics": {"host": "n1", "pid": pid, "begin": "5", "node": "node", "reportedMs": number, **MEMORY},
        }
        for number, pid in enumerate(pids)
    ]
    return {"jid": job_id, "vertices": [{"subtasks": subtasks}, {"subtasks": [{"state": "CREATED", "metrics": {}}]}]}


def test_the_processes_on_ray_are_those_of_the_subtasks_that_run() -> None:
    slots: dict[tuple[str, str], SlotCalls] = {(FIRST, "a0"): Slot(), (SECOND, "b0"): Slot(is_gone=True)}
    statuses = [_status(FIRST, 7, 8, 7), _status(SECOND, 9), _status("c" * 32, 10, state="FINISHED")]
    processes = RayProcesses(lambda: statuses, lambda job_id, attempt: slots.get((job_id, attempt)))
    assert [(process.process_id, process.job_id, process.heard_ms) for process in processes.list()] == [
        ("n1:7-5", FIRST, 2), ("n1:8-5", FIRST, 1), ("n1:9-5", SECOND, 0),
    ]  # fmt: skip
    process = processes.list()[0]
    assert (process.memory_bytes, process.managed_bytes, process.network_bytes) == (10, 3, 2)
    assert (process.slots, process.free_slots) == (1, 0), "though one that has ended may be replaced by another"
    (thread,) = processes.threads("n1:7-5")
    assert (thread.name, processes.log("n1:7-5", "taskmanager.log", MOST)) == ("main", b"line\n")
    with pytest.raises(FileNotFoundError):
        processes.log("n1:7-5", "nosuch", MOST)
    for gone in ("n1:8-5", "n1:9-5", "n1:10-5", "n1:7-6"):
        with pytest.raises(UnknownProcess):
            processes.threads(gone)


def test_a_process_that_slots_of_several_jobs_share_has_their_slots_and_memory() -> None:
    statuses = [_status(FIRST, 7, 7), _status(SECOND, 7)]
    for status in statuses:
        for subtask in status["vertices"][0]["subtasks"]:
            subtask["metrics"]["processSlots"] = 8
    [process] = RayProcesses(lambda: statuses, lambda job_id, attempt: None).list()
    assert (process.slots, process.free_slots, process.job_id, process.cpus) == (8, 5, "", 1.0)
    assert (process.memory_bytes, process.managed_bytes) == (80, 24)
