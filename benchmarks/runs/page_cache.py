"""A bound on the file pages that the kernel keeps for a process.

`python -m benchmarks.runs.page_cache BYTES COMMAND...` runs a command within it.

A store larger than its caches would else be read from memory all the same, and the machine's free memory would decide.
The process is in a memory control group whose limit follows what it has allocated: that, and so many bytes of pages.
Needs version 1 of Linux's control groups, and the right to make one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.runs.environments import Unavailable

_ROOT = Path("/sys/fs/cgroup/memory")
_EVERY_S = 0.1
_PREFIX = "rayflink-bench-"
_GONE_S = 20.0


@contextmanager
def page_cache_cap(size: int) -> Iterator[Path]:
    """A control group that keeps at most `size` bytes of file pages; a process enters by its id in the file given.

    It is removed in the end; processes that are still in it then are waited for, and after 20 s let go.

    Raises:
        Unavailable: there are no such groups here, or none can be made.
    """
    _remove_left_behind()
    group = _ROOT / f"{_PREFIX}{os.getpid()}-{time.monotonic_ns()}"
    try:
        group.mkdir()
        (group / "memory.oom_control").write_text("1")  # who needs more than the limit waits until it has followed
        (group / "memory.limit_in_bytes").write_text(str(size))
    except OSError as refused:
        raise Unavailable(f"cannot cap the page cache: {refused}; it takes root and cgroups v1") from refused
    ended = threading.Event()
    follower = threading.Thread(target=_follow, args=(group, size, ended), name="page cache cap")
    follower.start()
    try:
        yield group / "cgroup.procs"
    finally:
        _empty(group)
        ended.set()
        follower.join()
        group.rmdir()


def _remove_left_behind() -> None:
    """Groups of runs that were killed."""
    for group in _ROOT.glob(f"{_PREFIX}*"):
        owner = Path("/proc", group.name.removeprefix(_PREFIX).partition("-")[0])
        if not owner.exists() and not (group / "cgroup.procs").read_text():
            group.rmdir()


def _follow(group: Path, size: int, ended: threading.Event) -> None:
    while not ended.wait(_EVERY_S):
        try:
            (group / "memory.limit_in_bytes").write_text(str(_allocated(group) + size))
        except OSError:
            continue  # busy: pages that are being written cannot go at once


def _allocated(group: Path) -> int:
    entries = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    return int(entries["rss"])


def _empty(group: Path) -> None:
    deadline = time.monotonic() + _GONE_S
    while ids := (group / "cgroup.procs").read_text().split():
        if time.monotonic() > deadline:
            for process in ids:
                (_ROOT / "cgroup.procs").write_text(process)
        time.sleep(_EVERY_S)


def main(size: str, *command: str) -> int:
    """Run a command under the cap; what it exits with."""
    with page_cache_cap(int(size)) as entrance:
        return subprocess.run(["sh", "-c", 'echo $$ >"$0"; exec "$@"', str(entrance), *command]).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
