"""The log of a job on one machine: the lines that its tasks print and log, each with its task, in bounded files.

A process of the job appends to a file of its own. `rayflink logs` reads the files of all machines from outside.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rayflink.common.text_output.logs import IdentityFilter, JsonFormatter, identity, is_json
from rayflink.common.text_output.masked import masked
from rayflink.common.text_output.safe_write import write_text
from rayflink.state.private_folders import make_private

from .driver.terminal import Printed, Text

MAX_FILE_BYTES = 8 << 20
"""A file as long as this is followed by another."""
MAX_FILES = 2
"""The number of files of a process that are kept, the newest."""
MAX_READ_BYTES = 4 << 20
"""The bytes read of one file at a time."""
ENDING = ".log"
_LEVEL = {
    "log": re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) "),
    "err": re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} (DEBUG|INFO|WARNING|ERROR|CRITICAL) "),
}
"""The beginning of a line that a logger wrote."""
_JSON_LEVEL = re.compile(r'\{"time": "[^"]*", "level": "(DEBUG|INFO|WARNING|ERROR|CRITICAL)"')
"""The beginning of such a line as JSON."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a job's log.

    Args:
        at_ms: when it was written.
        stream: "out", "err", or "log" of the runtime.
        vertex: whose task wrote it; "" where the process itself or a thread of the user's did.
        subtask: of the vertex, from 0; -1 where there is none.
        text: without its end.
        process: the slot, or "coordinator".
    """

    at_ms: int
    stream: str
    vertex: str
    subtask: int
    text: str
    process: str


class TaskLog:
    """Appends lines to a file of a process; a file that cannot be written is given up with a message.

    Args:
        folder: of the files; it is made.
        name: of the process; its files are `NAME.0.log`, `NAME.1.log` and so on.
        now_ms: the time, in milliseconds since 1970.
        max_bytes: how long the file may grow.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
        max_bytes: int = MAX_FILE_BYTES,
    ) -> None:
        self._folder, self._name, self._now_ms, self._max_bytes = folder, name, now_ms, max_bytes
        self._file: BinaryIO | None = None
        self._given_up = False
        self._lock = threading.RLock()

    def put(self, stream: str, text: str) -> None:
        """Add lines printed by the task of this thread."""
        if self._given_up or not text:
            return
        bound = identity()
        vertex = " ".join(str(bound.get("vertex", "")).split())
        head = f"{self._now_ms()}\t{stream}\t{bound.get('subtask', -1)}\t{vertex}\t"
        lines = "".join(f"{head}{line}\n" for line in text.rstrip("\n").split("\n"))
        with self._lock:
            try:
                self._write(lines.encode("utf-8", "backslashreplace"))
            except OSError as error:
                self._give_up(error)

    def flush(self) -> None:
        """Write buffered lines, so that readers see them."""
        with self._lock:
            if self._file is not None:
                try:
                    self._file.flush()
                except OSError as error:
                    self._give_up(error)

    def close(self) -> None:
        """Close the file; whoever writes again opens another."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _give_up(self, error: OSError) -> None:
        self._given_up = True
        write_text(sys.__stderr__ or sys.stderr, f"the log of {self._name} is given up: {error}\n")

    def _write(self, data: bytes) -> None:
        if self._file is not None and self._file.tell() + len(data) > self._max_bytes:
            self._file.close()
            self._file = None
        if self._file is None:
            make_private(self._folder)
            before = sorted(_number(path) for path in self._folder.glob(f"{self._name}.*{ENDING}"))
            for number in before[: len(before) - MAX_FILES + 1]:
                (self._folder / f"{self._name}.{number}{ENDING}").unlink()
            number = before[-1] + 1 if before else 0
            self._file = open(self._folder / f"{self._name}.{number}{ENDING}", "ab")
        self._file.write(data)


class JobLogs:
    """The logs of jobs that share a process; lines of threads without a job go to all of them.

    Args:
        below: level from which on records of loggers come by standard error, and are not taken twice.
    """

    def __init__(self, below: int = logging.CRITICAL + 1) -> None:
        self._logs: dict[str, TaskLog] = {}
        log_goes_to(self, below)

    def add(self, job_id: str, task_log: TaskLog) -> None:
        """Route the lines of a job to its log from now on."""
        self._logs = {**self._logs, job_id: task_log}

    def remove(self, job_id: str, task_log: TaskLog) -> None:
        """Close a log of a job, which may have another one by now."""
        self._logs = {key: present for key, present in self._logs.items() if (key, present) != (job_id, task_log)}
        task_log.close()

    def put(self, stream: str, text: str) -> None:
        """Add lines of this thread."""
        for task_log in self._of_thread():
            task_log.put(stream, text)

    def flush(self) -> None:
        """Write buffered lines, so that readers see them."""
        for task_log in self._of_thread():
            task_log.flush()

    def _of_thread(self) -> Iterable[TaskLog]:
        job_id = identity().get("job")
        if job_id is None:
            return self._logs.values()
        task_log = self._logs.get(str(job_id))
        return () if task_log is None else (task_log,)


class LoggedPrinted(Printed):
    """The output of a process, which goes to its log as well as to the driver.

    Args:
        send: as for `Printed`.
        task_log: of the process.
    """

    def __init__(self, send: Callable[[list[Text]], Callable[[float], bool]], task_log: TaskLog) -> None:
        super().__init__(send)
        self._task_log = task_log

    def put(self, to_stderr: bool, text: str) -> None:
        self._task_log.put("err" if to_stderr else "out", text)
        super().put(to_stderr, text)

    def send(self, wait: bool = False) -> None:
        self._task_log.flush()
        super().send(wait)


class _TaskLogFormatter(logging.Formatter):
    """Writes level, logger and message, as the log itself has the time and the task; or JSON, where that is chosen."""

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")
        self._json = JsonFormatter()

    def format(self, record: logging.LogRecord) -> str:
        return self._json.format(record) if is_json() else masked(super().format(record))


class TaskLogHandler(logging.Handler):
    """Writes the records of loggers to the log of the process.

    Args:
        task_log: of the process.
        below: level from which on records come by standard error, and are not taken twice.
    """

    def __init__(self, task_log: TaskLog | JobLogs, below: int = logging.CRITICAL + 1) -> None:
        super().__init__()
        self.redirect(task_log, below)
        self.setFormatter(_TaskLogFormatter())
        self.addFilter(IdentityFilter())

    def redirect(self, task_log: TaskLog | JobLogs, below: int) -> None:
        """Write to another log from now on."""
        self._task_log, self._below = task_log, below

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < self._below:
            self._task_log.put("log", self.format(record))
            self._task_log.flush()


class _LastResort(logging.Handler):
    """Stands for `logging.lastResort`: receives the records of loggers for which the program has set up no handler."""

    def __init__(self, *handlers: logging.Handler | None) -> None:
        super().__init__()
        self._handlers = [handler for handler in handlers if handler is not None]

    def emit(self, record: logging.LogRecord) -> None:
        for handler in self._handlers:
            if record.levelno >= handler.level:
                handler.handle(record)


def log_goes_to(task_log: TaskLog | JobLogs, below: int = logging.CRITICAL + 1) -> None:
    """Route the records of loggers in this process to its log.

    Those of the program too, unless it sets up `logging` itself; the levels of the loggers decide what that is. What
    has stood for `logging.lastResort` goes on. A second call redirects them to another log.
    """
    logger = logging.getLogger("rayflink")
    for present in logger.handlers:
        if isinstance(present, TaskLogHandler):
            present.redirect(task_log, below)
            return
    handler = TaskLogHandler(task_log, below)
    logger.addHandler(handler)
    logging.lastResort = _LastResort(logging.lastResort, handler)


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole lines of one file.

    Args:
        process: whose file it is.
        file: its name with device and inode, as nodes of one machine may share a folder.
        end: the position behind them.
        data: the lines.
    """

    process: str
    file: str
    end: int
    data: bytes


def read_pieces(folder: Path, positions: Mapping[str, int]) -> list[Piece]:
    """Read the files of a folder from the positions on, at most `MAX_READ_BYTES` of each."""
    pieces = []
    for path in sorted(folder.glob(f"*{ENDING}"), key=_number):
        try:
            with open(path, "rb") as file:
                stat = os.fstat(file.fileno())
                key = f"{path.name}:{stat.st_dev}:{stat.st_ino}"
                begin = positions.get(key, 0)
                file.seek(begin)
                data = file.read(MAX_READ_BYTES)
        except FileNotFoundError:  # it was the oldest, and is gone
            continue
        whole = data[: data.rfind(b"\n") + 1] if len(data) < MAX_READ_BYTES or b"\n" in data else data
        if whole:
            pieces.append(Piece(path.name.rsplit(".", 2)[0], key, begin + len(whole), whole))
    return pieces


def _number(path: Path) -> int:
    return int(path.name.rsplit(".", 2)[1])


def lines_of(piece: Piece) -> list[LogLine]:
    """Parse the lines of a piece; one that is not of this form is text of the process."""
    lines = []
    for line in piece.data.decode("utf-8", "replace").rstrip("\n").split("\n"):
        parts = line.split("\t", 4)
        if len(parts) == 5 and parts[0].isdigit():
            at_ms, stream, subtask, vertex, text = parts
            lines.append(LogLine(int(at_ms), stream, vertex, int(subtask), text, piece.process))
        else:
            lines.append(LogLine(lines[-1].at_ms if lines else 0, "out", "", -1, line, piece.process))
    return lines


def of_level(lines: Iterable[LogLine], least: str) -> list[LogLine]:
    """Return the lines that loggers wrote with such a level or a higher one, each with the lines of its traceback.

    >>> said = ["INFO my_job: begins", "WARNING my_job: no price for 'X1'", "Traceback ...", "INFO my_job: goes on"]
    >>> [line.text for line in of_level([LogLine(0, "log", "Map", 0, text, "a") for text in said], "WARNING")]
    ["WARNING my_job: no price for 'X1'", 'Traceback ...']
    """
    wanted = getattr(logging, least)
    levels: dict[tuple[str, str, str, int], int] = {}
    chosen = []
    for line in lines:
        writer = (line.process, line.stream, line.vertex, line.subtask)
        if match := _level(line):
            levels[writer] = getattr(logging, match[1])
        if levels.get(writer, -1) >= wanted:
            chosen.append(line)
    return chosen


def _level(line: LogLine) -> re.Match[str] | None:
    """Return the match of the level at the beginning of a line; None where none begins there."""
    beginning = _LEVEL.get(line.stream)
    return None if beginning is None else beginning.match(line.text) or _JSON_LEVEL.match(line.text)


__all__ = ["JobLogs", "LogLine", "LoggedPrinted", "Piece", "TaskLog", "TaskLogHandler", "lines_of", "log_goes_to",
           "of_level", "read_pieces"]  # fmt: skip
