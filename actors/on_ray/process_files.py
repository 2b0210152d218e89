"""The log files of one process as people read them: each file, all of them as one, and what was printed alone."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from .task_log import ENDING, LogLine, Piece, lines_of

__all__ = ["FileFacts", "ProcessFiles"]

FileFacts = tuple[str, int, int]
"""Name, bytes, and when it was changed, in epoch milliseconds."""


class ProcessFiles:
    """The files that a process has written.

    Args:
        sources: (folder, name of the process in it): a process has a file in the folder of each of its jobs.
        main: name of the whole log, such as "taskmanager"; MAIN.log has all lines, MAIN.out those that were printed.
    """

    def __init__(self, sources: Iterable[tuple[Path, str]], main: str) -> None:
        self._sources, self._main = list(sources), main

    def list(self) -> list[FileFacts]:
        """Return the whole log, what was printed, and each file."""
        files = [(name, *_facts(path)) for name, path in sorted(self._paths().items())]
        size, changed_ms = sum(file[1] for file in files), max((file[2] for file in files), default=0)
        return [(f"{self._main}.log", size, changed_ms), (f"{self._main}.out", size, changed_ms), *files]

    def read(self, name: str, most_bytes: int) -> bytes:
        """Return the end of a file of the list, in whole lines.

        Raises:
            FileNotFoundError: the list does not have it.
        """
        paths = self._paths()
        if name in (f"{self._main}.log", f"{self._main}.out"):
            lines = [line for path in paths.values() for line in _tail(path, most_bytes)]
            lines.sort(key=lambda line: line.at_ms)
            chosen = [line for line in lines if name.endswith(".log") or line.stream in ("out", "err")]
            return _written(chosen, most_bytes, with_time=name.endswith(".log"))
        if name not in paths:
            raise FileNotFoundError(name)
        return _written(_tail(paths[name], most_bytes), most_bytes)

    def _paths(self) -> dict[str, Path]:
        return {
            f"{folder.name}-{path.name}": path
            for folder, process in self._sources
            for path in folder.glob(f"{process}.*{ENDING}")
        }


def _facts(path: Path) -> tuple[int, int]:
    try:
        facts = path.stat()
    except FileNotFoundError:  # it was the oldest, and is gone
        return 0, 0
    return facts.st_size, int(facts.st_mtime * 1000)


def _tail(path: Path, most_bytes: int) -> list[LogLine]:
    try:
        with open(path, "rb") as file:
            begin = max(os.fstat(file.fileno()).st_size - most_bytes, 0)
            file.seek(begin)
            data = file.read(most_bytes)
    except FileNotFoundError:  # it was the oldest, and is gone
        return []
    if begin:
        data = data.partition(b"\n")[2]
    return lines_of(Piece(path.name, path.name, 0, data)) if data else []


def _written(lines: Sequence[LogLine], most_bytes: int, with_time: bool = True) -> bytes:
    written, size = [], 0
    for line in reversed(lines):
        data = (_with_head(line) if with_time else f"{line.text}\n").encode("utf-8", "replace")
        size += len(data)
        if size > most_bytes:
            break
        written.append(data)
    return b"".join(reversed(written))


def _with_head(line: LogLine) -> str:
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(line.at_ms / 1000))
    task = f" [{line.vertex} ({line.subtask + 1})]" if line.vertex else ""
    return f"{stamp},{line.at_ms % 1000:03d}{task} {line.text}\n"
