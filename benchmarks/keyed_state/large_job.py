"""What a job with large keyed state has in common on each engine: its size, its output, and what is asked of it."""

from __future__ import annotations

import struct
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

VALUE_BYTES = 200
KEYED = "values"
"""The name of the operator with the state."""
NUMBER = struct.Struct("<q")
"""How a sink keeps the highest number that has come."""
PROMPT = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "1000",
    "restart-strategy.fixed-delay.delay": "0 ms",
    "heartbeat.interval": "1 s",
    "heartbeat.timeout": "4 s",
}
"""Restarts come at once, and who is silent is soon missed."""
_LOOKS_EVERY_S = 0.005


@dataclass(frozen=True)
class Size:
    """How large the job is.

    Args:
        state_mb: of values.
        updates: a second.
        memory_mb: of each slot, for keyed state.
        checkpoint_ms: between two checkpoints.
    """

    state_mb: int = 1024
    updates: int = 20_000
    memory_mb: int = 256
    checkpoint_ms: int = 1_000

    @property
    def keys(self) -> int:
        """Whole numbers from 0 on."""
        return (self.state_mb << 20) // VALUE_BYTES


class Output:
    """What the sinks have reached, looked at by a thread of its own.

    Args:
        folder: of `Reached`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.reached = -1
        self._rises: list[tuple[float, int]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="output", daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(_LOOKS_EVERY_S):
            highest = max((_number_in(file) for file in self._folder.iterdir()), default=-1)
            if highest > self.reached:
                self.reached = highest
                self._rises.append((time.time(), highest))

    def await_beyond(self, number: int, within_s: float) -> float:
        """Epoch seconds at which a higher number was seen first.

        Raises:
            RuntimeError: none was, within the time.
        """
        await_true(lambda: self.reached > number, within_s, f"output beyond record {number}")
        return next(at for at, highest in self._rises if highest > number)

    def await_after(self, since: float, within_s: float) -> float:
        """Epoch seconds at which new output was seen first after `since`, which is in epoch seconds.

        Raises:
            RuntimeError: there was none, within the time.
        """
        await_true(lambda: self._rises[-1][0] > since, within_s, "new output")
        return next(at for at, _ in self._rises if at > since)

    def longest_silence(self, since: float) -> float:
        """Seconds for which nothing new came, at most, from `since` (epoch seconds) to the newest."""
        rises = [since, *(at for at, _ in self._rises if at >= since)]
        return max((after - before for before, after in zip(rises, rises[1:], strict=False)), default=0.0)

    def close(self) -> None:
        """Look no more."""
        self._over.set()
        self._thread.join()


def _number_in(file: Path) -> int:
    data = file.read_bytes()
    return int(NUMBER.unpack(data)[0]) if len(data) == NUMBER.size else -1


@dataclass(frozen=True)
class Rescaled:
    """A change of parallelism that is done.

    Args:
        at: when the new tasks ran, or it was said so, in epoch seconds.
        pause_s: how long the engine says that the job paused; None where it does not say.
    """

    at: float
    pause_s: float | None = None


class LargeJob(ABC):
    """The job of an engine, which runs, and its output.

    Args:
        size: of it.
        out: the folder of what its sinks have reached.
    """

    asks_every_s = 0.02

    def __init__(self, size: Size, out: Path) -> None:
        self.size = size
        self.output = Output(out)

    @abstractmethod
    def status(self) -> Mapping[str, Any]:
        """Its timestamps, failures and vertices with subtasks, the source first."""

    @abstractmethod
    def checkpoints(self) -> Mapping[str, Any]:
        """Counts, the latest and the history of its checkpoints, as in Flink's REST API."""

    @abstractmethod
    def rescale(self, parallelism: int) -> Rescaled:
        """Change the parallelism of the operator with the state, and wait until it is so."""

    def close(self) -> None:
        """End it."""
        self.output.close()

    def await_filled(self, within_s: float) -> None:
        """Wait until all keys are set, and two more checkpoints are complete."""
        self.output.await_beyond(self.size.keys, within_s)
        self.await_checkpoints(2, within_s)

    def await_checkpoints(self, more: int, within_s: float) -> None:
        """Wait until so many more are complete."""
        wanted = self.completed() + more
        self.await_true(lambda: self.completed() >= wanted, within_s, f"{more} checkpoints more")

    def await_true(self, condition: Callable[[], bool], within_s: float, what: str) -> None:
        """As the function of this name, asked as often as this engine may be."""
        await_true(condition, within_s, what, self.asks_every_s)

    def completed(self) -> int:
        """Checkpoints that are complete."""
        return int(self.checkpoints()["counts"]["completed"])

    def state_mb(self) -> float:
        """Size of the newest checkpoint."""
        return float(self.checkpoints()["latest"]["completed"]["state_size"]) / (1 << 20)

    def tasks(self) -> list[dict[str, Any]]:
        """What the status says of each subtask."""
        return [task for vertex in self.status()["vertices"] for task in vertex["subtasks"]]

    def await_running(self, attempts: int, within_s: float) -> float:
        """Wait until all tasks run, in attempts from this number on; epoch seconds at which the last one did.

        Raises:
            RuntimeError: they do not, within the time.
        """
        self.await_true(lambda: self._run(attempts), within_s, "tasks that run")
        return float(max(task["timestamps"]["RUNNING"] for task in self.tasks())) / 1000

    def _run(self, attempts: int) -> bool:
        tasks = self.tasks()
        return all(task["state"] == "RUNNING" and task["attempt"] >= attempts for task in tasks)


@contextmanager
def job_folder() -> Iterator[Path]:
    """A folder for a job, which is deleted in the end."""
    with TemporaryDirectory(prefix="rayflink-bench-") as folder:
        yield Path(folder)


def await_true(condition: Callable[[], bool], within_s: float, what: str, every_s: float = 0.02) -> None:
    """Wait for it.

    Raises:
        RuntimeError: it was not true within the time.
    """
    until = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError(f"no {what} within {within_s:.0f} s")
        time.sleep(every_s)
