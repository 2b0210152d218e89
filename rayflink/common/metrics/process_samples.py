"""Memory, processor time and files of this process, under the names that Prometheus's client libraries give them."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

from .prometheus import Sample

__all__ = ["process_samples"]

_PROC = Path("/proc")


def process_samples(proc: Path = _PROC) -> Iterator[Sample]:
    """Return what the operating system knows of this process; without `/proc`, processor time and greatest memory.

    Args:
        proc: folder in which Linux describes processes.

    >>> {"process_cpu_seconds_total"} <= {sample.name for sample in process_samples()}
    True
    """
    usage = resource.getrusage(resource.RUSAGE_SELF)
    seconds = usage.ru_utime + usage.ru_stime
    yield Sample("process_cpu_seconds_total", {}, seconds, "Processor time in seconds", "counter")
    yield Sample("process_max_resident_memory_bytes", {}, usage.ru_maxrss * 1024, "Greatest resident memory so far")
    try:
        fields = (proc / "self" / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        pages = int((proc / "self" / "statm").read_text(encoding="utf-8").split()[1])
        open_files = len(os.listdir(proc / "self" / "fd"))
        since_boot_s = float((proc / "uptime").read_text(encoding="utf-8").split()[0])
    except (OSError, IndexError, ValueError):  # another system than Linux
        return
    began_s = time.time() - since_boot_s + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    yield Sample("process_start_time_seconds", {}, round(began_s, 2), "Start of the process, seconds since 1970")
    yield Sample("process_resident_memory_bytes", {}, pages * os.sysconf("SC_PAGE_SIZE"), "Resident memory")
    yield Sample("process_open_fds", {}, open_files, "Open files, connections included")
    yield Sample("process_threads", {}, int(fields[17]), "Threads")
