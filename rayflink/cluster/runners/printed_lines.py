"""Lines that functions of local jobs print: to the log of their job and to its client, and not among other lines."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from rayflink.actors.on_ray.driver.terminal import Printed, Terminal
from rayflink.actors.on_ray.shared_output import SharedStream
from rayflink.actors.on_ray.task_log import TaskLog

__all__ = ["PrintedLines"]


class PrintedLines:
    """The standard streams of this process, by thread: those of a job's thread belong to the job.

    Args:
        folder: of the logs, with a folder for each job.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._jobs = threading.local()
        self._before: tuple[TextIO, TextIO] | None = None
        self._streams: tuple[SharedStream, SharedStream] | None = None

    @property
    def folder(self) -> Path:
        """Return the folder of the logs."""
        return self._folder

    def install(self) -> None:
        """Take the place of sys.stdout and sys.stderr; threads without a job print as before."""
        self._before = sys.stdout, sys.stderr
        router = _Router(self._jobs, self._before)
        self._streams = SharedStream(router, False), SharedStream(router, True)
        sys.stdout, sys.stderr = self._streams

    def remove(self) -> None:
        """Give the standard streams back, unless others have taken them meanwhile."""
        streams, before = self._streams, self._before
        if streams is None or before is None:
            return
        for stream in streams:
            stream.flush()
        if sys.stdout is streams[0]:
            sys.stdout = before[0]
        if sys.stderr is streams[1]:
            sys.stderr = before[1]
        self._streams = None

    @contextmanager
    def of_this_thread(self, job_id: str, terminal: Terminal) -> Iterator[None]:
        """Give what this thread prints within the block to a job: its log, and the terminal of its client."""
        log = TaskLog(self._folder / job_id, "local")
        self._jobs.outputs = log, terminal
        try:
            yield
        finally:
            for stream in self._streams or ():
                stream.flush()
            self._jobs.outputs = None
            log.close()


class _Router(Printed):
    """Gives each text to the job of the thread that printed it."""

    def __init__(self, jobs: threading.local, before: tuple[TextIO, TextIO]) -> None:
        super().__init__(lambda chunks: lambda seconds: True)
        self._jobs, self._before = jobs, before

    def put(self, to_stderr: bool, text: str) -> None:
        outputs = getattr(self._jobs, "outputs", None)
        if outputs is None:
            stream = self._before[to_stderr]
            stream.write(text)
            stream.flush()
            return
        log, terminal = outputs
        log.put("err" if to_stderr else "out", text)
        log.flush()
        terminal.put([(to_stderr, text)])
