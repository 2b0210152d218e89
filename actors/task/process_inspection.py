"""A look into a process from within: what its threads run, what it uses, and where it spends its time."""

from __future__ import annotations

import gc
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rayflink.common.errors import RayflinkError

__all__ = ["ProcessInspection", "ProfilerError", "process_begin", "process_place", "stacks_of"]

SAMPLES_PER_S = 100
PROFILER = "py-spy"
INSTALL = "pip install 'rayflink[profile]'"
MARGIN_S = 30.0
"""Seconds that the profiler may take beyond the time for which it takes samples."""
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
Stacks = Sequence["tuple[str, int]"]


class ProfilerError(RayflinkError):
    """A process cannot be profiled.

    Args:
        problem: what was found.
        remedy: what to do.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem, self.remedy = problem, remedy

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}"


class ProcessInspection:
    """Shows this process: its threads, its figures, its stacks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._profiling = threading.Lock()
        self._last = time.monotonic(), time.process_time()

    def threads(self) -> list[tuple[str, str]]:
        """Return name and stack of every thread, the innermost call last."""
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        return [
            (names.get(ident, f"thread {ident}"), "".join(traceback.format_stack(frame)))
            for ident, frame in sorted(sys._current_frames().items())
        ]

    def figures(self) -> dict[str, float]:
        """Return what the process uses: seconds of CPU, the part of all CPUs since the last call, memory, threads."""
        now, spent = time.monotonic(), time.process_time()
        with self._lock:
            since, spent_before = self._last
            self._last = now, spent
        load = (spent - spent_before) / max(now - since, 1e-6) / (os.cpu_count() or 1)
        figures: dict[str, float] = {
            "cpuSeconds": spent,
            "cpuLoad": min(max(load, 0.0), 1.0),
            "threads": threading.active_count(),
            "collections": sum(generation["collections"] for generation in gc.get_stats()),
            "machineBytes": _memory_bytes("SC_PHYS_PAGES"),
            "freeBytes": _memory_bytes("SC_AVPHYS_PAGES"),
            "cpus": os.cpu_count() or 1,
        }
        try:
            figures["residentBytes"] = int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES
            figures["openFiles"] = len(os.listdir("/proc/self/fd"))
        except OSError:  # no Linux
            pass
        return figures

    def profile(self, duration_s: float, with_idle: bool) -> Stacks:
        """Sample the stacks of this process by another one; see `stacks_of` for the form.

        Raises:
            ProfilerError: the profiler is not installed, is busy with another request, or may not look.
        """
        if not self._profiling.acquire(blocking=False):
            raise ProfilerError(f"process {os.getpid()} is being profiled already", "ask again when that has ended")
        try:
            return _sampled(os.getpid(), duration_s, with_idle)
        finally:
            self._profiling.release()


def process_begin(pid: int) -> str:
    """Return when a process began, in ticks since the machine's start; "" where that is not known.

    With its id it names the process: another one that gets the same id has begun later.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] == "Z" else fields[19]
    except (OSError, IndexError):
        return ""


@cache
def process_place() -> dict[str, Any]:
    """Return what names this process in the metrics of its tasks, where one process runs whole jobs."""
    pid = os.getpid()
    return {"host": socket.gethostname(), "pid": pid, "begin": process_begin(pid)}


def _memory_bytes(name: str) -> int:
    try:
        return os.sysconf(name) * _PAGE_BYTES
    except (OSError, ValueError):  # no Linux
        return 0


def _sampled(pid: int, duration_s: float, with_idle: bool) -> Stacks:
    beside = Path(sys.executable).with_name(PROFILER)
    program = str(beside) if beside.exists() else shutil.which(PROFILER)
    if program is None:
        raise ProfilerError(f"{PROFILER}, which takes samples, is not installed", f"run {INSTALL} on every node")
    with tempfile.TemporaryDirectory(prefix="rayflink-profile-") as folder:
        output = Path(folder) / "stacks"
        command = [program, "record", "--pid", str(pid), "--duration", str(max(1, round(duration_s)))]
        command += ["--rate", str(SAMPLES_PER_S), "--format", "raw", "--threads", "--nonblocking"]
        command += ["--output", str(output), *(["--idle"] if with_idle else [])]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=duration_s + MARGIN_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ProfilerError(f"{PROFILER} does not run: {error}", "ask again") from error
        if done.returncode or not output.exists():
            last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it does not say why"]
            remedy = "let it trace processes of its user (sysctl kernel.yama.ptrace_scope=0, or CAP_SYS_PTRACE)"
            raise ProfilerError(f"{PROFILER} takes no samples of process {pid}: {last[0]}", remedy)
        return stacks_of(output.read_text("utf-8", "replace"))


def stacks_of(text: str) -> Stacks:
    """Parse what the profiler has written.

    >>> stacks_of("thread (7): Map (1/2);run (task.py:3);add (job.py:9) 12\\n")
    [('Map (1/2);run (task.py:3);add (job.py:9)', 12)]

    Returns: (name of the thread and its frames, outermost first, joined by ";", number of samples).
    """
    stacks: dict[str, int] = {}
    for line in text.splitlines():
        stack, _, samples = line.rpartition(" ")
        thread, separator, frames = stack.partition(";")
        if not separator or not samples.isdigit():
            continue
        name = thread.partition("): ")[2] or thread
        key = f"{name};{frames}"
        stacks[key] = stacks.get(key, 0) + int(samples)
    return list(stacks.items())
