"""Our job with large keyed state on RocksDB that takes a checkpoint each second.

Each key is set once, to a value that does not compress; then keys drawn at random are set anew at a steady rate. The
source goes by the clock: what was lost by a failure is read again as fast as the job can.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

from benchmarks.inputs.one_split import OneSplitSource
from benchmarks.keyed_state.large_job import KEYED, NUMBER, PROMPT, VALUE_BYTES, LargeJob, Rescaled, Size, await_true
from rayflink.common.connector_base.source import PENDING, Polled
from rayflink.common.functions.function_classes import KeyedProcessFunction, RuntimeContext, SinkFunction
from rayflink.common.records.batches import RowBatch
from rayflink.state.descriptors import ValueStateDescriptor

_TOLD_EVERY = 64


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
            os.pwrite(self._file, NUMBER.pack(value), 0)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class RayJob(LargeJob):
    """The job on the Ray that is there.

    Args:
        size: of it.
        folder: for checkpoints and output; there is one for the state of tasks too.
        parallelism: of the operator with the state.
        options: more of the configuration.
    """

    def __init__(self, size: Size, folder: Path, parallelism: int, options: dict[str, Any]) -> None:
        from rayflink.datastream.environment import StreamExecutionEnvironment

        out = folder / "out"
        out.mkdir()
        env = StreamExecutionEnvironment.get_execution_environment(options_of(size, folder) | options)
        env.set_parallelism(parallelism)
        write(env, Updates(size), Reached(str(out)))
        self._client = env.execute_async(f"{size.state_mb} MB of state")
        super().__init__(size, out)

    def status(self) -> Mapping[str, Any]:
        return self._client.status()

    def checkpoints(self) -> Mapping[str, Any]:
        return self._client.checkpoints()

    def close(self) -> None:
        super().close()
        if not self._client.get_job_status().result().is_terminal:
            self._client.cancel().result()
            await_true(lambda: self._client.get_job_status().result().is_terminal, 60, "the end of the job")

    def rescale(self, parallelism: int) -> Rescaled:
        pause_ms = self._client.rescale({KEYED: parallelism}).result()
        return Rescaled(time.time(), pause_ms / 1000)


def options_of(size: Size, folder: Path) -> dict[str, Any]:
    """The configuration that the state of this size wants; restarts come at once."""
    return {
        "execution.target": "ray",
        "state.backend.type": "rocksdb",
        "state.backend.rocksdb.localdir": str(folder / "state"),
        "state.backend.rocksdb.memory.fixed-per-slot": f"{size.memory_mb}m",
        "execution.checkpointing.interval": f"{size.checkpoint_ms} ms",
        "execution.checkpointing.dir": str(folder / "checkpoints"),
        **PROMPT,
    }


def write(env: Any, source: Updates, sink: SinkFunction) -> None:
    """Put the program into an environment."""
    env.set_max_parallelism(128)
    keyed = env.from_source(source, None, "keys").key_by(itemgetter(0)).process(Values()).name(KEYED).uid(KEYED)
    keyed.add_sink(sink).name("reached")
