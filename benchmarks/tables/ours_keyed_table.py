"""The keyed table of SQL's state on one core: COUNT and SUM by BIGINT keys with a changelog, and its checkpoints.

Rates are rows a second of the process's CPU time, in batches of distinct keys that are drawn uniformly: the keys are
looked up, the old values read, the new ones stored, and both are there as columns. What groups a batch's rows and
makes rows of the changes is not in it.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rayflink.state.snapshots import StoredSnapshot
    from rayflink.table.runtime.keyed_state.stored_table import StoredTable

    Keys = NDArray[np.int64]

BATCH = 65_536


def run(data_path: str = "", keys: int = 10_000_000, rows: int = 12_000_000, share: float = 0.1) -> dict[str, Any]:
    """Measure the table in memory, with checkpoints, with a part of its memory, and a RocksDB of single values.

    Args:
        data_path: not used; keys are drawn.
        keys: that are in the table before anything is measured.
        rows: of each measurement; 12 million are what a task works off in 10 s at 1.2 M rows/s.
        share: of the state that fits the managed memory of the third measurement.
    """
    folder = Path(tempfile.mkdtemp(prefix="rayflink-bench-"))
    try:
        result = _in_memory(folder, keys, rows)
        result |= _spilled(folder, keys, rows // 2, int(result["state_mb"] * share * 1e6))
        return result | _rocksdb(folder, keys // 10, rows // 10)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _cpu(result: dict[str, float], name: str, rows: int) -> Iterator[None]:
    began = time.process_time()
    yield
    result[name] = rows / (time.process_time() - began) / 1e6


def _in_memory(folder: Path, keys: int, rows: int) -> dict[str, float]:
    import numpy as np

    result: dict[str, float] = {}
    stored = _opened(folder, 0)
    with _cpu(result, "m_new_rows_per_cpu_second", keys):
        longest = _fill(stored, keys)
    result["longest_batch_of_new_rows_ms"] = longest * 1000
    result["state_mb"] = stored.table.size / 1e6
    chance = np.random.default_rng(1)
    with _cpu(result, "m_rows_per_cpu_second", rows):
        _update(stored, keys, rows, chance)
    checkpoints = _Checkpoints(folder)
    checkpoints.take(stored)
    result["mb_of_the_first_checkpoint"] = checkpoints.bytes / 1e6
    result["restore_cpu_seconds"] = _restored(folder, checkpoints)
    for name, part in (("1_percent", 0.01), ("10_percent", 0.1), ("all", 1.0)):
        _change(stored, chance.permutation(keys)[: int(keys * part)] if part < 1 else np.arange(keys))
        checkpoints.take(stored)
        result[f"mb_of_a_checkpoint_{name}_changed"] = checkpoints.bytes / 1e6
        result[f"async_cpu_ms_{name}_changed"] = checkpoints.cpu_ms
    with _cpu(result, "m_rows_per_cpu_second_with_a_checkpoint", rows):
        _update(stored, keys, rows, chance)
        checkpoints.take(stored)
    result["sync_ms"] = checkpoints.longest_sync_ms
    return result


def _spilled(folder: Path, keys: int, rows: int, memory_bytes: int) -> dict[str, float]:
    import numpy as np

    result: dict[str, float] = {}
    stored = _opened(folder, memory_bytes)
    _fill(stored, keys)
    with _cpu(result, "m_rows_per_cpu_second_with_a_part_in_memory", rows):
        _update(stored, keys, rows, np.random.default_rng(2))
    result["mb_in_memory"] = stored.table.size / 1e6
    return result


def _opened(folder: Path, memory_bytes: int) -> StoredTable:
    """Return a new table of a count and a sum by BIGINT keys; 0 bytes are no bound."""
    import pyarrow as pa

    from rayflink.common.managed_memory import Allowance, MemoryManager
    from rayflink.operators.base import OperatorContext
    from rayflink.state.clock import SystemClock
    from rayflink.table.runtime.keyed_state.frame_memory import FrameMemory
    from rayflink.table.runtime.keyed_state.keyed_table import KeyedTable
    from rayflink.table.runtime.keyed_state.stored_table import StoredTable

    allowance = Allowance(MemoryManager(memory_bytes), "table", memory_bytes) if memory_bytes else None
    spill = str(folder / "spill")
    ctx = OperatorContext("0" * 32, "table", clock=SystemClock(), managed_memory=allowance, spill_folder=spill)
    table = KeyedTable([pa.int64()], [pa.int64(), pa.int64()])
    table.open(FrameMemory(ctx))
    return StoredTable(table, "a benchmark", ctx)


def _batches(keys: Keys) -> Iterator[Any]:
    import pyarrow as pa

    for first in range(0, len(keys), BATCH):
        yield pa.array(keys[first : first + BATCH])


def _fill(stored: StoredTable, keys: int) -> float:
    """Add rows, and return the seconds of the longest batch."""
    import numpy as np
    import pyarrow as pa

    longest, table = 0.0, stored.table
    for batch in _batches(np.arange(keys)):
        began = time.process_time()
        columns = table.comparable([batch])
        assert (table.find(columns, 0) < 0).all(), "new keys are not in the table"
        table.add(columns, [pa.array(np.ones(len(batch), dtype=np.int64)), batch], 0)
        longest = max(longest, time.process_time() - began)
    return longest


def _update(stored: StoredTable, keys: int, rows: int, chance: Any) -> None:
    """Update rows of keys that are drawn, each key of a batch once."""
    import numpy as np

    for _ in range(-(-rows // BATCH)):
        drawn = np.unique(chance.integers(0, keys, BATCH + BATCH // 128))[:BATCH]
        _change(stored, drawn)


def _change(stored: StoredTable, keys: Keys) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    table = stored.table
    for batch in _batches(keys):
        found = table.find(table.comparable([batch]), 0)
        counts, sums = table.take(found)
        table.put(found, [pc.add(counts, pa.array(np.ones(len(found), dtype=np.int64))), pc.add(sums, batch)], 0)


class _Checkpoints:
    """Checkpoints to a folder, each complete before the next.

    Args:
        folder: of the storage.
    """

    def __init__(self, folder: Path) -> None:
        from rayflink.state.storage.local_storage import LocalStorage

        self.storage = LocalStorage(str(folder / "checkpoints"))
        self.number, self.bytes, self.cpu_ms, self.longest_sync_ms = 0, 0, 0.0, 0.0
        self.last: StoredSnapshot | None = None

    def take(self, stored: StoredTable) -> None:
        """Take a checkpoint."""
        from rayflink.state.snapshots import StoredSnapshot
        from rayflink.state.storage.snapshot_files import SnapshotFileWriter, SnapshotPlace

        self.number += 1
        writer = SnapshotFileWriter(self.storage, SnapshotPlace.of_checkpoint(self.number, 0), uploads=0)
        began = time.perf_counter()
        capture = stored.capture(self.number)
        self.longest_sync_ms = max(self.longest_sync_ms, 1000 * (time.perf_counter() - began))
        began = time.process_time()
        parts = capture.write(writer)
        writer.finish()
        capture.release()
        self.cpu_ms, self.bytes = 1000 * (time.process_time() - began), writer.bytes_written
        stored.confirm(self.number)
        before, self.last = self.last, StoredSnapshot(parts.groups, databases=parts.databases)
        for path in _files(before) - _files(self.last):
            self.storage.delete(path)


def _files(snapshot: StoredSnapshot | None) -> set[str]:
    from rayflink.state.snapshots import FileSlice

    return {blob.path for blob in (snapshot.blobs if snapshot else ()) if isinstance(blob, FileSlice)}


def _restored(folder: Path, checkpoints: _Checkpoints) -> float:
    """Restore the last checkpoint, and return the seconds of CPU that it took."""
    from rayflink.state.snapshots import loaded
    from rayflink.state.storage.snapshot_files import SnapshotFileReader

    assert checkpoints.last is not None, "a checkpoint was taken"
    snapshot = loaded(checkpoints.last, SnapshotFileReader(checkpoints.storage), True)
    began = time.process_time()
    _opened(folder, 0).restore([snapshot])
    return time.process_time() - began


def _rocksdb(folder: Path, keys: int, rows: int) -> dict[str, float]:
    """Count in a RocksDB by a read of all keys of a batch and a write of all: what single values would cost."""
    import numpy as np
    import rocksdict

    options = rocksdict.Options(raw_mode=True)
    database = rocksdict.Rdict(str(folder / "rocksdb"), options)
    without_log = rocksdict.WriteOptions()
    without_log.disable_wal = True

    def update(drawn: Keys) -> None:
        names = [name.ljust(8, b"\0") for name in drawn.astype(">i8").view("S8").tolist()]
        before = database[names]
        counts = np.frombuffer(b"".join(value or bytes(16) for value in before), np.int64).reshape(-1, 2) + 1
        batch = rocksdict.WriteBatch(raw_mode=True)
        for name, value in zip(names, counts.view("V16").reshape(-1).tolist(), strict=True):
            batch.put(name, bytes(value))
        database.write(batch, without_log)

    result: dict[str, float] = {}
    for first in range(0, keys, BATCH):
        update(np.arange(first, min(first + BATCH, keys)))
    chance = np.random.default_rng(3)
    with _cpu(result, "m_rows_per_cpu_second_rocksdb_with_a_tenth_of_the_keys", rows):
        for _ in range(-(-rows // BATCH)):
            update(np.unique(chance.integers(0, keys, BATCH + BATCH // 8))[:BATCH])
    database.close()
    return result
