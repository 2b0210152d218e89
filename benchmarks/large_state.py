"""A job with large keyed state on RocksDB that takes a checkpoint each second, and the eye on its output.

Each key is set once, to a value that does not compress; then keys drawn at random are set anew at a steady rate. The
source goes by the clock: what was lost by a failure is read again as fast as the job can.
"""

from __future__ import annotations

import os
import random
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rayflink.common.batches import RowBatch
from rayflink.common.functions import KeyedProcessFunction, RuntimeContext, SinkFunction
from rayflink.common.source import PENDING, Polled
from rayflink.state.descriptors import ValueStateDescriptor

from .one_split import OneSplitSource

VALUE_BYTES = 200
KEYED = "values"
"""The name of the operator with the state."""
_TOLD_EVERY = 64
_LOOKS_EVERY_S = 0.005
_NUMBER = struct.Struct("<q")


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


class Updates(OneSplitSource):
    """Gives (key, number of the record): each key once, then drawn ones by the clock; without end, but for `count`.

    Args:
        count: of the drawn ones; None: no bound.
    """

    def __init__(self, size: Size, count: int | None = None) -> None:
        self.size, self.count = size, count

    def cursor(self, given: Any) -> _Cursor:
        next_record, began = given or (0, None)
        return _Cursor(self, next_record, began)


class _Cursor:
    def __init__(self, source: Updates, next_record: int, began: float | None) -> None:
        self._source, self._next, self._began = source, next_record, began

    def read(self, max_records: int) -> Polled | None:
        keys, rate, count = self._source.size.keys, self._source.size.updates, self._source.count
        start = self._next
        if start < keys:
            self._next = min(keys, start + max_records)
            return RowBatch([(number, number) for number in range(start, self._next)])
        if self._began is None:
            self._began = time.time()
        if count is not None and start >= keys + count:
            return None
        due = keys + int((time.time() - self._began) * rate)
        self._next = min(due, start + max_records, keys + count if count is not None else due)
        if self._next <= start:
            self._next = start
            return PENDING
        draw = random.Random(start).randrange
        return RowBatch([(draw(keys), number) for number in range(start, self._next)])

    def position(self) -> Any:
        return self._next, self._began

    def close(self) -> None:
        """Nothing is open."""


class Values(KeyedProcessFunction):
    """Sets the value of the key, and tells the number of some records."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Register the state."""
        self._value = runtime_context.get_state(ValueStateDescriptor(KEYED))
        self._seen = 0

    def process_element(self, value: tuple[int, int], ctx: KeyedProcessFunction.Context) -> Iterator[int]:
        """Set it."""
        self._value.update(random.randbytes(VALUE_BYTES))
        self._seen += 1
        if not self._seen % _TOLD_EVERY:
            yield value[1]


class Reached(SinkFunction):
    """Keeps in a file of its own the highest number that has come.

    Args:
        folder: of these files.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def open(self, runtime_context: RuntimeContext) -> None:
        """Make the file."""
        name = f"{runtime_context.get_index_of_this_subtask()}-{os.getpid()}-{time.time_ns()}"
        self._file = os.open(os.path.join(self._folder, name), os.O_WRONLY | os.O_CREAT)
        self._highest = -1

    def invoke(self, value: int) -> None:
        """Keep it."""
        if value > self._highest:
            self._highest = value
            os.pwrite(self._file, _NUMBER.pack(value), 0)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


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
    return int(_NUMBER.unpack(data)[0]) if len(data) == _NUMBER.size else -1


class LargeJob:
    """The job on the Ray that is there, its state filled and a checkpoint of it complete.

    Args:
        size: of it.
        folder: for checkpoints and output; there is one for the state of tasks too.
        parallelism: of the operator with the state.
        options: more of the configuration.
    """

    def __init__(self, size: Size, folder: Path, parallelism: int, options: dict[str, Any]) -> None:
        from rayflink.datastream.environment import StreamExecutionEnvironment

        self.size, self._options = size, options
        out = folder / "out"
        out.mkdir()
        env = StreamExecutionEnvironment.get_execution_environment(options_of(size, folder) | options)
        env.set_parallelism(parallelism)
        write(env, Updates(size), Reached(str(out)))
        self.client = env.execute_async(f"{size.state_mb} MB of state")
        self.output = Output(out)

    def await_filled(self, within_s: float) -> None:
        """Wait until all keys are set, and two more checkpoints are complete."""
        self.output.await_beyond(self.size.keys, within_s)
        self.await_checkpoints(2, within_s)

    def await_checkpoints(self, more: int, within_s: float) -> None:
        """Wait until so many more are complete."""
        wanted = self.completed() + more
        await_true(lambda: self.completed() >= wanted, within_s, f"{more} checkpoints more")

    def completed(self) -> int:
        """Checkpoints that are complete."""
        return int(self.client.checkpoints()["counts"]["completed"])

    def tasks(self) -> list[dict[str, Any]]:
        """What the status says of each subtask."""
        return [task for vertex in self.client.status()["vertices"] for task in vertex["subtasks"]]

    def await_running(self, attempts: int, within_s: float) -> float:
        """Wait until all tasks run, in attempts from this number on; epoch seconds at which the last one did.

        Raises:
            RuntimeError: they do not, within the time.
        """
        await_true(lambda: self._run(attempts), within_s, "tasks that run")
        return float(max(task["timestamps"]["RUNNING"] for task in self.tasks())) / 1000

    def _run(self, attempts: int) -> bool:
        tasks = self.tasks()
        return all(task["state"] == "RUNNING" and task["attempt"] >= attempts for task in tasks)

    def close(self) -> None:
        """End it."""
        self.output.close()
        if not self.client.get_job_status().result().is_terminal:
            self.client.cancel().result()
            await_true(lambda: self.client.get_job_status().result().is_terminal, 60, "the end of the job")


def options_of(size: Size, folder: Path) -> dict[str, Any]:
    """The configuration that the state of this size wants; restarts come at once."""
    return {
        "execution.target": "ray",
        "state.backend.type": "rocksdb",
        "state.backend.rocksdb.localdir": str(folder / "state"),
        "state.backend.rocksdb.memory.fixed-per-slot": f"{size.memory_mb}m",
        "execution.checkpointing.interval": f"{size.checkpoint_ms} ms",
        "execution.checkpointing.dir": str(folder / "checkpoints"),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": 1_000,
        "restart-strategy.fixed-delay.delay": "0 ms",
        "heartbeat.interval": "1 s",
        "heartbeat.timeout": "4 s",
    }


def write(env: Any, source: Updates, sink: SinkFunction) -> None:
    """Put the program into an environment."""
    env.set_max_parallelism(128)
    keyed = env.from_source(source, None, "keys").key_by(itemgetter(0)).process(Values()).name(KEYED).uid(KEYED)
    keyed.add_sink(sink).name("reached")


@contextmanager
def job_folder() -> Iterator[Path]:
    """A folder for a job, which is deleted in the end."""
    with TemporaryDirectory(prefix="rayflink-bench-") as folder:
        yield Path(folder)


def await_true(condition: Callable[[], bool], within_s: float, what: str) -> None:
    """Wait for it.

    Raises:
        RuntimeError: it was not true within the time.
    """
    until = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError(f"no {what} within {within_s:.0f} s")
        time.sleep(0.02)
