"""A process in Flink's words: its slots, resources, memory and metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ...jobs.cluster_job import Document
from ...jobs.cluster_process import ClusterProcess, LogFile, ThreadDump, process_of

__all__ = [
    "LogList",
    "TaskManager",
    "TaskManagerDetails",
    "TaskManagers",
    "ThreadDumps",
    "Threads",
    "log_list",
    "metric_strings",
    "task_manager",
    "task_manager_details",
    "thread_dumps",
]

_ENDED = ("FINISHED", "CANCELED", "FAILED")
_MEBIBYTE = 1 << 20


class Resources(msgspec.Struct, rename="camel", frozen=True):
    """The resources of slots; memory in MiB."""

    cpu_cores: float
    task_heap_memory: int
    task_off_heap_memory: int
    managed_memory: int
    network_memory: int
    extended_resources: dict[str, float]


class Hardware(msgspec.Struct, rename="camel", frozen=True):
    """The machine of a process; memory in bytes. `free_memory` is what the process may use, as in Flink."""

    cpu_cores: int
    physical_memory: int
    free_memory: int
    managed_memory: int


class MemoryConfiguration(msgspec.Struct, rename="camel", frozen=True):
    """The parts of a process's memory, in bytes; a process here has no heap of Java, so those are 0."""

    framework_heap: int
    task_heap: int
    framework_off_heap: int
    task_off_heap: int
    network_memory: int
    managed_memory: int
    jvm_metaspace: int
    jvm_overhead: int
    total_flink_memory: int
    total_process_memory: int


class TaskManager(msgspec.Struct, rename="camel", frozen=True):
    """A process that runs tasks.

    Args:
        id: of the process.
        path: its machine and its id there.
        data_port: none: -1.
        jmx_port: none: -1.
        time_since_last_heartbeat: when it reported last, epoch milliseconds, as in Flink in spite of the name.
        slots_number: the subtasks of each vertex that it can run.
        free_slots: those that no job has.
        assigned_tasks: the subtasks that it runs.
    """

    id: str
    path: str
    data_port: int
    jmx_port: int
    time_since_last_heartbeat: int
    slots_number: int
    free_slots: int
    assigned_tasks: int
    total_resource: Resources
    free_resource: Resources
    hardware: Hardware
    memory_configuration: MemoryConfiguration


class TaskManagers(msgspec.Struct, frozen=True):
    """The processes that run tasks."""

    taskmanagers: list[TaskManager]


class AllocatedSlot(msgspec.Struct, rename="camel", frozen=True):
    """A slot that a job has."""

    job_id: str
    resource: Resources
    assigned_tasks: int


class GarbageCollector(msgspec.Struct, frozen=True):
    """A collector: its collections, and the milliseconds that they took (unknown: 0)."""

    name: str
    count: int
    time: int


class ProcessMetrics(msgspec.Struct, rename="camel", frozen=True):
    """The memory of a process, in bytes; what is resident stands where Flink has the heap of Java."""

    heap_used: int = 0
    heap_committed: int = 0
    heap_max: int = 0
    non_heap_used: int = 0
    non_heap_committed: int = 0
    non_heap_max: int = 0
    direct_count: int = 0
    direct_used: int = 0
    direct_max: int = 0
    mapped_count: int = 0
    mapped_used: int = 0
    mapped_max: int = 0
    netty_shuffle_memory_segments_available: int = 0
    netty_shuffle_memory_segments_used: int = 0
    netty_shuffle_memory_segments_total: int = 0
    netty_shuffle_memory_available: int = 0
    netty_shuffle_memory_used: int = 0
    netty_shuffle_memory_total: int = 0
    garbage_collectors: list[GarbageCollector] = []


class TaskManagerDetails(TaskManager, rename="camel", frozen=True):
    """A process that runs tasks, with its slots and its memory."""

    allocated_slots: list[AllocatedSlot]
    metrics: ProcessMetrics


class LogEntry(msgspec.Struct, frozen=True):
    """A file: its name, its bytes, and when it was changed, in epoch milliseconds."""

    name: str
    size: int
    mtime: int


class LogList(msgspec.Struct, frozen=True):
    """The files that a process writes."""

    logs: list[LogEntry]


class Threads(msgspec.Struct, rename="camel", frozen=True):
    """A thread and its stack."""

    thread_name: str
    stringified_thread_info: str


class ThreadDumps(msgspec.Struct, rename="camel", frozen=True):
    """The threads of a process."""

    thread_infos: list[Threads]


def task_manager(process: ClusterProcess, statuses: Iterable[Document]) -> TaskManager:
    """Return a process as the list of processes has it."""
    return TaskManager(*_fields(process, sum(_tasks(process, statuses).values()), {}))


def task_manager_details(
    process: ClusterProcess, statuses: Sequence[Document], figures: Mapping[str, float]
) -> TaskManagerDetails:
    """Return a process with its slots and its memory."""
    tasks = _tasks(process, statuses)
    slot = _resources(process, 1)
    slots = [AllocatedSlot(job_id, slot, number) for job_id, number in tasks.items()]
    resident = int(figures.get("residentBytes", 0))
    collectors = [GarbageCollector("Python", int(figures.get("collections", 0)), 0)]
    metrics = ProcessMetrics(resident, resident, process.memory_bytes, garbage_collectors=collectors)
    return TaskManagerDetails(*_fields(process, sum(tasks.values()), figures), slots, metrics)


def _fields(
    process: ClusterProcess, tasks: int, figures: Mapping[str, float]
) -> tuple[str, str, int, int, int, int, int, int, Resources, Resources, Hardware, MemoryConfiguration]:
    machine = int(figures.get("machineBytes", process.memory_bytes))
    managed, network, whole = process.managed_bytes, process.network_bytes, process.memory_bytes
    memory = MemoryConfiguration(0, max(whole - managed - network, 0), 0, 0, network, managed, 0, 0, whole, whole)
    hardware = Hardware(int(figures.get("cpus", process.cpus)), machine, whole, managed)
    return (
        process.process_id, f"{process.host}/{process.pid}", -1, -1, process.heard_ms, process.slots,
        process.free_slots, tasks, _resources(process, process.slots), _resources(process, process.free_slots),
        hardware, memory,
    )  # fmt: skip


def _resources(process: ClusterProcess, slots: int) -> Resources:
    """Return what a number of the slots may use."""
    part = slots / process.slots if process.slots else 0.0
    managed, network = int(process.managed_bytes * part), int(process.network_bytes * part)
    heap = max(int(process.memory_bytes * part) - managed - network, 0)
    return Resources(process.cpus * part, heap // _MEBIBYTE, 0, managed // _MEBIBYTE, network // _MEBIBYTE, {})


def _tasks(process: ClusterProcess, statuses: Iterable[Document]) -> dict[str, int]:
    """Return job id -> the number of its subtasks that the process runs."""
    numbers: dict[str, int] = {}
    for status in statuses:
        for vertex in status["vertices"]:
            for subtask in vertex["subtasks"]:
                if subtask["state"] not in _ENDED and process_of(subtask["metrics"]) == process.process_id:
                    numbers[str(status["jid"])] = numbers.get(str(status["jid"]), 0) + 1
    return numbers


def log_list(files: Iterable[LogFile]) -> LogList:
    """Return the files of a process."""
    return LogList([LogEntry(file.name, file.size, file.changed_ms) for file in files])


def thread_dumps(threads: Iterable[ThreadDump]) -> ThreadDumps:
    """Return the threads of a process."""
    return ThreadDumps(
        [
            Threads(thread.name, f'"{thread.name}" Id={number}\n{thread.stack}\n')
            for number, thread in enumerate(threads, 1)
        ]
    )


def metric_strings(figures: Mapping[str, float], limit_bytes: int) -> dict[str, str]:
    """Return what a process uses under the names of Flink's metrics, of those that mean something here."""
    resident = figures.get("residentBytes", 0)
    values = {
        "Status.JVM.CPU.Load": figures["cpuLoad"],
        "Status.JVM.CPU.Time": int(figures["cpuSeconds"] * 1e9),
        "Status.JVM.FileDescriptor.Open": figures.get("openFiles", 0),
        "Status.JVM.GarbageCollector.All.Count": figures["collections"],
        "Status.JVM.Memory.Heap.Committed": resident,
        "Status.JVM.Memory.Heap.Max": limit_bytes or figures["machineBytes"],
        "Status.JVM.Memory.Heap.Used": resident,
        "Status.JVM.Threads.Count": figures["threads"],
    }
    return {name: str(value) for name, value in values.items()}
