"""Checkpoints of 1 GB of keyed state on RocksDB, one a second, while keys drawn at random are updated.

A backend by itself, without a job: one thread updates, captures and prepares as a task does, another one writes what
was captured to files in a folder. What is measured is how long the first one stands still for a capture, how much is
stored against how much was changed, and how long a restore takes until the first value is read.

Then the same through a whole job in this process, from the statistics of its checkpoints.
"""

from __future__ import annotations

import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.keyed_state.large_job import VALUE_BYTES, Size, job_folder
from benchmarks.keyed_state.large_state import Reached, Updates, options_of, write
from benchmarks.runs.job_numbers import flat
from rayflink.state.backend import KeyedTable
from rayflink.state.descriptors import ValueStateDescriptor
from rayflink.state.rocksdb.rocksdb_backend import RocksDBBackend, StateMemory
from rayflink.state.rocksdb.rocksdb_store import RocksDBOptions
from rayflink.state.snapshots import KeyedCapture, KeyedParts, size_of
from rayflink.state.storage.local_storage import LocalStorage
from rayflink.state.storage.snapshot_files import SnapshotFileReader, SnapshotFileWriter, SnapshotPlace

STATE_MB = 1024
UPDATES_A_SECOND = 20_000
CHECKPOINTS = 60
MEMORY_MB = 256
ANNOUNCED_S = 0.3
TARGET_SYNC_P99_MS = 50.0
TARGET_RESTORE_S = 10.0
_BATCH = 500
_GROUPS = range(128)
_COUNTS = ValueStateDescriptor("counts")
_SLICE_S = 0.005
_BUSY = ("num-running-compactions", "num-running-flushes")


class Timeline:
    """The work and the checkpoints of one backend.

    Args:
        folder: for the database and for the stored files.
        keys: whole numbers from 0 on.
        compaction: "level" or "universal".
    """

    def __init__(self, folder: Path, keys: int, compaction: str) -> None:
        self._compaction = compaction
        self._folder, self._keys, self._random = folder, keys, random.Random(7)
        self.backend = self._new_backend("first")
        self.table: KeyedTable = self.backend.table(_COUNTS)
        self.storage = LocalStorage(folder / "checkpoints")
        self._writing = ThreadPoolExecutor(1, "checkpoint")
        self.updates = 0
        self.sync_ms: list[float] = []
        self.step_ms: list[float] = []
        self.stored_mb: list[float] = []
        self.write_s: list[float] = []
        self.newest: KeyedParts | None = None

    def _new_backend(self, name: str) -> RocksDBBackend:
        memory, options = StateMemory(MEMORY_MB << 20), RocksDBOptions(compaction=self._compaction)
        return RocksDBBackend(_GROUPS, len(_GROUPS), "bench", self._folder / name, memory, options)

    def fill(self) -> None:
        """Give each key a value that does not compress, and let RocksDB come to rest."""
        for start in range(0, self._keys, 10_000):
            self._update(range(start, min(start + 10_000, self._keys)))
        self.backend.announce(0)
        while self.backend.prepare(lambda: True) == 0:
            pass
        rows, quiet = self.backend.store.column("state/counts")._rows, 0
        while quiet < 10:  # what is pending may never run: universal compaction finds nothing to do
            busy = any(rows.property_int_value(f"rocksdb.{name}") for name in _BUSY)
            quiet = 0 if busy else quiet + 1
            time.sleep(0.05)

    def _update(self, keys: Any) -> None:
        loaded, noise = self.table.load(keys), self._random.randbytes
        for key in keys:
            loaded[key] = noise(VALUE_BYTES)
        self.table.changed(keys)

    def second(self, checkpoint_id: int, updates: int, announced_s: float) -> None:
        """A second of updates, evenly; then a checkpoint, which is announced before, and written beside the next."""
        began, done, longest = time.perf_counter(), 0, 0.0
        announced, prepare_at, before = False, 0.0, 0.0
        while (now := time.perf_counter() - began) < 1:
            longest, before = max(longest, now - before), now
            if not announced and now > 1 - announced_s:
                announced = True
                self.backend.announce(checkpoint_id)
            if announced and now >= prepare_at:
                until = time.perf_counter() + _SLICE_S
                after_ms = self.backend.prepare(lambda until=until: time.perf_counter() < until)  # type: ignore[misc]
                prepare_at = 2.0 if after_ms is None else now + after_ms / 1000
            if done < updates * now:
                self._update([self._random.randrange(self._keys) for _ in range(_BATCH)])
                done += _BATCH
            else:
                time.sleep(0.001)
        self.updates += done
        self.step_ms.append(longest * 1000)

    def checkpoint(self, checkpoint_id: int, writing: Future[KeyedParts] | None) -> Future[KeyedParts]:
        """Confirm the one before, which must be written by now, and capture."""
        if writing is not None:
            self.newest = writing.result()
            self.backend.confirm(checkpoint_id - 1)
        began = time.perf_counter()
        capture = self.backend.capture(checkpoint_id)
        self.sync_ms.append((time.perf_counter() - began) * 1000)
        return self._writing.submit(self._write, checkpoint_id, capture)

    def _write(self, checkpoint_id: int, capture: KeyedCapture) -> KeyedParts:
        began = time.perf_counter()
        writer = SnapshotFileWriter(self.storage, SnapshotPlace.of_checkpoint(checkpoint_id, 0))
        try:
            parts = capture.write(writer)
            writer.finish()
        finally:
            capture.release()
        self.stored_mb.append(writer.bytes_written / (1 << 20))
        self.write_s.append(time.perf_counter() - began)
        return parts

    def restored_seconds(self, parts: KeyedParts) -> float:
        """How long a new backend takes until it has read a value of the newest checkpoint."""
        self.backend.close()
        again, reader = self._new_backend("again"), SnapshotFileReader(self.storage)
        began = time.perf_counter()
        again.restore_databases(parts.databases, reader, reusable=True)
        again.restore([{group: reader.read(blob) for group, blob in parts.groups.items()}])
        if len(again.table(_COUNTS).get(self._keys // 2)) != VALUE_BYTES:
            raise RuntimeError("the restored state has another value")
        seconds = time.perf_counter() - began
        again.close()
        return seconds


def run(
    data_path: str | None,
    state_mb: int = STATE_MB,
    updates: int = UPDATES_A_SECOND,
    checkpoints: int = CHECKPOINTS,
    announced_s: float = ANNOUNCED_S,
) -> dict[str, Any]:
    """Each way to compact files once.

    Args:
        state_mb: of values, which do not compress.
        updates: a second; those of one second are of different keys mostly.
        checkpoints: a second apart.
        announced_s: how long before a capture it is announced, in [0, 1].
    """
    began, ready, rows, cases = time.time(), 0.0, 0, {}
    for compaction in ("level", "universal"):
        folder = Path(tempfile.mkdtemp(prefix="rayflink-bench-"))
        try:
            line = Timeline(folder, (state_mb << 20) // VALUE_BYTES, compaction)
            line.fill()
            ready = ready or time.time()
            cases[compaction] = _measured(line, checkpoints, updates, announced_s)
            rows += line.updates
        finally:
            shutil.rmtree(folder)
    cases["job"] = in_a_job(Size(state_mb, updates, MEMORY_MB), checkpoints)
    return {
        "rows": rows,
        "seconds_total": time.time() - began,
        "seconds_startup": ready - began,
        "cases": cases,
        **flat(cases),
        "target_sync_ms_p99_at_most": TARGET_SYNC_P99_MS,
        "target_restore_s_at_most": TARGET_RESTORE_S,
    }


def in_a_job(size: Size, checkpoints: int) -> dict[str, float]:
    """A checkpoint a second of a local job: of the last ones, which begin when all keys are set.

    Raises:
        RuntimeError: fewer were complete.
    """
    from rayflink.datastream.environment import StreamExecutionEnvironment

    with job_folder() as folder:
        given = {"execution.target": "local", "web.checkpoints.history": 10_000}
        env = StreamExecutionEnvironment.get_execution_environment(options_of(size, folder) | given)
        out = folder / "out"
        out.mkdir()
        write(env.set_parallelism(1), Updates(size, count=size.updates * (checkpoints + 4)), Reached(str(out)))
        client: Any = env.execute_async("checkpoints")
        vertices = client.get_job_execution_result().result().vertices
        history = client._cluster.job.checkpoints.history
        complete = [one for one in client.checkpoints()["history"] if one["status"] == "COMPLETED"]
    newest = complete[1 : checkpoints + 1]  # the very last one is that of the end
    if len(newest) < checkpoints // 2:
        raise RuntimeError(f"{len(newest)} checkpoints were complete, wanted {checkpoints} or nearly so many")
    return numbers_of(size, newest, [history.of_vertex(one["id"], vertices[-1]["id"]) for one in newest])


def numbers_of(
    size: Size, newest: Sequence[Mapping[str, Any]], details: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    """What checkpoints of one job cost.

    Args:
        newest: what the history says of each, the newest one first.
        details: of each, what it says of the vertex with the state.
    """
    sync = sorted(one["summary"]["checkpoint_duration"]["sync"]["max"] for one in details)
    stored_mb = sum(one["checkpointed_size"] for one in newest[:-1]) / (1 << 20)
    seconds = (newest[0]["trigger_timestamp"] - newest[-1]["trigger_timestamp"]) / 1000
    changed_mb = seconds * size.updates * VALUE_BYTES / (1 << 20)
    return {
        "checkpoints": len(newest),
        "sync_ms_p50": statistics.median(sync),
        "sync_ms_p99": sync[min(len(sync) - 1, int(len(sync) * 0.99))],
        "changed_mb": changed_mb,
        "stored_mb": stored_mb,
        "stored_by_changed": stored_mb / changed_mb,
        "state_mb": newest[0]["state_size"] / (1 << 20),
    }


def _measured(line: Timeline, checkpoints: int, updates: int, announced_s: float) -> dict[str, float]:
    """A checkpoint a second; the first one, which is whole, is not counted."""
    writing = line.checkpoint(0, None)
    writing.result()
    for number in range(1, checkpoints + 1):
        line.second(number, updates, announced_s)
        writing = line.checkpoint(number, writing)
    parts = writing.result()
    sync, steps, stored = sorted(line.sync_ms[1:]), sorted(line.step_ms), line.stored_mb[1:]
    changed_mb = line.updates * VALUE_BYTES / (1 << 20)
    return {
        "sync_ms_p50": statistics.median(sync),
        "sync_ms_p99": sync[min(len(sync) - 1, int(len(sync) * 0.99))],
        "step_ms_p50": statistics.median(steps),
        "step_ms_p99": steps[min(len(steps) - 1, int(len(steps) * 0.99))],
        "updates_a_second": line.updates / checkpoints,
        "changed_mb": changed_mb,
        "stored_mb": sum(stored),
        "stored_by_changed": sum(stored) / changed_mb,
        "write_s_p50": statistics.median(line.write_s[1:]),
        "state_mb": sum(size_of(blob) for database in parts.databases for blob in database.files.values()) / (1 << 20),
        "restore_s": line.restored_seconds(parts),
    }
