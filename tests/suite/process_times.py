"""The CPU time of all processes of a run, also of those that have ended and that nobody waited for.

Nothing waits for Ray's processes, and once Ray has renamed them, their environment cannot be read. So a thread looks at
the list of processes a few times a second: what bears the run's mark, or has a parent that is counted, is counted from
then on, with what it had taken when it was last seen.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from tests.suite.leftovers import MARK

EVERY_S = 0.25
"""Between two looks; the last quarter of a second of a process may not be counted."""
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


class ProcessTimes:
    """Processes of this run other than this one.

    Args:
        proc: where the system tells about processes.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc, self._mark = proc, b""
        self._ours: dict[int, int] = {}
        self._others: set[int] = set()
        self._ended_ticks = 0
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def seconds(self) -> float:
        """Return the CPU seconds of all processes so far; from the first call on, a thread looks for them."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._look_often, name="CPU times of the run", daemon=True)
            self._thread.start()
        self.look()
        return self.total()

    def total(self) -> float:
        """Return the CPU seconds of all processes when they were seen last."""
        with self._lock:
            return (self._ended_ticks + sum(self._ours.values())) / _TICKS_A_SECOND

    def look(self) -> None:
        """Look at all processes once."""
        mark = os.environ.get(MARK)
        with self._lock:
            self._mark = f"{MARK}={mark}\0".encode() if mark else b""
            present = {int(entry.name) for entry in self._proc.glob("[0-9]*")} - {os.getpid()}
            for pid in self._ours.keys() - present:
                self._ended_ticks += self._ours.pop(pid)
            self._others &= present
            for pid in sorted(present - self._others):
                self._count(pid)

    def close(self) -> None:
        """End the thread."""
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()

    def _look_often(self) -> None:
        while not self._is_over.wait(EVERY_S):
            self.look()

    def _count(self, pid: int) -> None:
        try:
            parent, ticks = self._stat(pid)
            if pid in self._ours or parent in self._ours or parent == os.getpid() or self._is_marked(pid):
                self._ours[pid] = ticks
            else:
                self._others.add(pid)
        except OSError:
            return  # it has ended, or is another user's

    def _stat(self, pid: int) -> tuple[int, int]:
        """Return the parent of a process and what it has taken."""
        fields = (self._proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return int(fields[1]), int(fields[11]) + int(fields[12])

    def _is_marked(self, pid: int) -> bool:
        return bool(self._mark) and self._mark in (self._proc / str(pid) / "environ").read_bytes()
