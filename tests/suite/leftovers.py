"""What a run of tests leaves on the machine, told apart from what others run there at the same time.

Every process a test starts inherits one environment variable, however deep it sits and whoever adopted it; temporary
files go to one folder of the run. So a run is blamed for its own leftovers only.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import psutil

MARK = "RAYFLINK_TEST_RUN"
SHARED_MEMORY = Path("/dev/shm")
FOLDER = "rf-"  # short: Ray's socket paths below it may take 107 bytes
ROOM = 6 << 30
EXPECTED = ("pytest-of-", "ray")  # pytest keeps its tmp_path folders, Ray its logs; both lie in the run's own folder


@dataclass
class Watch:
    """One run of tests: its mark, its temporary folder, and what the machine held before it."""

    mark: str
    folder: Path
    before: frozenset[str]
    environment: dict[str, str | None]
    kept_tempdir: str | None = field(default=None)

    @classmethod
    def start(cls) -> Watch:
        """Begin to watch: marks this process's environment and moves its temporary files to a folder of the run."""
        mark = uuid.uuid4().hex
        folder = Path(tempfile.mkdtemp(prefix=FOLDER, dir=_memory_folder()))
        wanted = {MARK: mark, "TMPDIR": str(folder), "RAY_TMPDIR": str(folder / "ray")}
        (folder / "ray").mkdir()
        watch = cls(mark, folder, shared_memory_files(), {name: os.environ.get(name) for name in wanted})
        watch.kept_tempdir, tempfile.tempdir = tempfile.tempdir, str(folder)
        os.environ.update(wanted)
        return watch

    def leftovers(self, deadline_s: float) -> list[str]:
        """What the run left, one line each; processes get until the deadline to end.

        Args:
            deadline_s: seconds to wait at most; nothing is waited for when nothing is left.
        """
        deadline = time.monotonic() + deadline_s
        while (processes := self.processes()) and time.monotonic() < deadline:
            psutil.wait_procs(processes, timeout=0.2)
        lines = [f"process {process.pid}: {_command(process)}" for process in processes]
        lines += [f"shared memory {name}" for name in sorted(self._shared_memory())]
        lines += [
            f"temporary file {path}" for path in sorted(self.folder.iterdir()) if not path.name.startswith(EXPECTED)
        ]
        return lines

    def processes(self) -> list[psutil.Process]:
        """Live processes, other than this one, that bear the run's mark."""
        return [
            process
            for process in psutil.process_iter()
            if process.pid != os.getpid() and self._is_ours(process) and "resource_tracker" not in _command(process)
        ]

    def close(self) -> None:
        """Give the environment back and delete the run's folder."""
        tempfile.tempdir = self.kept_tempdir
        for name, value in self.environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        shutil.rmtree(self.folder, ignore_errors=True)

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == self.mark
        except (psutil.Error, OSError):
            return False

    def _shared_memory(self) -> frozenset[str]:
        """Shared-memory files that the run has left; those of other runs, which may end meanwhile, are not its own."""
        new = shared_memory_files() - self.before
        return (new - self._held_by_others()) & shared_memory_files() if new else new

    def _held_by_others(self) -> frozenset[str]:
        """Shared-memory files that a process outside this run maps or holds open."""
        held: set[str] = set()
        for process in psutil.process_iter():
            if process.pid == os.getpid() or self._is_ours(process):
                continue
            try:
                paths = [mapped.path for mapped in process.memory_maps()]
                paths += [opened.path for opened in process.open_files()]
            except (psutil.Error, OSError):
                continue
            held.update(Path(path).name for path in paths if path.startswith(f"{SHARED_MEMORY}/"))
        return frozenset(held)


def shared_memory_files() -> frozenset[str]:
    """Names in /dev/shm; empty where the system has none. Locks of multiprocessing are of other suites at work.

    So are folders of runs; each run deletes its own.
    """
    if not SHARED_MEMORY.is_dir():
        return frozenset()
    return frozenset(path.name for path in SHARED_MEMORY.iterdir() if not path.name.startswith(("sem.mp-", FOLDER)))


def _memory_folder() -> Path | None:
    """Where temporary files never wait for a disk, if there is room and nobody asks for another place.

    A database makes the disk write a dozen times when it is opened, and thousands are.
    """
    if "TMPDIR" in os.environ or not (SHARED_MEMORY.is_dir() and os.access(SHARED_MEMORY, os.W_OK)):
        return None
    return SHARED_MEMORY if shutil.disk_usage(SHARED_MEMORY).free >= ROOM else None


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:200] or process.name()
    except psutil.Error:
        return "(ended)"
