"""A hot key on one core: aggregates over a changelog and the first ten rows of a key, of one key with all rows.

A batch takes rows back and brings as many new ones: rows that are drawn, or always the best ones, where the new ones
are the worst; of FIRST_VALUE the oldest ones. The same with as many keys as rows, in batches of 64 K changes. The
operators are stepped by hand, so that nothing else is measured; times are those of the process's CPU.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from rayflink.table.runtime.keyed_state.table_operator import KeyedTableOperator

    Numbers = NDArray[np.int64]

BATCH = 65_536
BATCHES = 40
"""Batches of a hot key that are measured."""


def run(data_path: str = "", rows: int = 1_000_000, changes: int = 1_000) -> dict[str, Any]:
    """Measure both operators with one key, and with many.

    Args:
        data_path: not used; rows are drawn.
        rows: that are there before anything is measured.
        changes: in a batch of the hot key.
    """
    import numpy as np

    result: dict[str, float] = {}
    operators: dict[str, tuple[Callable[[], KeyedTableOperator], Callable[[Numbers], Numbers] | None]] = {
        "max": (partial(_aggregate, "MAX"), lambda values: np.argsort(-values)),
        "first_value": (partial(_aggregate, "FIRST_VALUE"), lambda values: np.arange(len(values))),
        "last_value": (partial(_aggregate, "LAST_VALUE"), None),
        "top_10": (_top, lambda values: np.argsort(-values)),
    }
    for name, (new_operator, best) in operators.items():
        result |= _hot(f"{name}_drawn", new_operator(), rows, changes, None)
        if best is not None:
            result |= _hot(f"{name}_best", new_operator(), rows, changes, best)
        result[f"m_changes_per_cpu_second_{name}_of_many_keys"] = _cold(new_operator(), rows)
    return result


def _aggregate(name: str) -> KeyedTableOperator:
    import pyarrow as pa

    from rayflink.table.runtime.aggregates.aggregates import Aggregate, AggregateKind
    from rayflink.table.runtime.groups.group_changes import GroupSpec
    from rayflink.table.runtime.groups.group_operators import StreamGroupOperator
    from rayflink.table.types import DataTypes

    kinds = (pa.int64(),) * 3
    spec = GroupSpec(kinds, (0,), (Aggregate(AggregateKind[name], 1, DataTypes.BIGINT()),), retracts=True)
    return _opened(StreamGroupOperator(spec, pa.schema([("key", pa.int64()), ("most", pa.int64())]), True))


def _top() -> KeyedTableOperator:
    import pyarrow as pa

    from rayflink.table.runtime.upserts.top_operator import TopRowsOperator
    from rayflink.table.runtime.upserts.top_rows import TopSpec

    kinds = (pa.int64(),) * 3
    schema = pa.schema([(name, pa.int64()) for name in ("key", "value", "id", "rank")])
    return _opened(TopRowsOperator(TopSpec(kinds, (0,), ((1, True, False),), 1, 10, True), schema))


def _opened(operator: Any) -> Any:
    from rayflink.operators.base import OperatorContext
    from rayflink.state.clock import SystemClock

    operator.setup(OperatorContext("0" * 32, "hot key", clock=SystemClock()))
    operator.initialize_state(())
    return operator


def _rows(keys: Numbers, values: Numbers, ids: Numbers, signs: Numbers) -> pa.RecordBatch:
    import numpy as np
    import pyarrow as pa

    from rayflink.common.records.row_kinds import with_kinds
    from rayflink.common.types import RowKind

    columns = [pa.array(column) for column in (keys, values, ids)]
    kinds = np.where(signs > 0, RowKind.INSERT.value, RowKind.DELETE.value).astype(np.int8)
    return with_kinds(pa.RecordBatch.from_arrays(columns, names=["key", "value", "id"]), kinds)


def _add(operator: Any, rows: pa.RecordBatch) -> float:
    """Return the seconds of CPU that a batch takes."""
    began = time.process_time()
    for _ in operator.add(rows):
        pass
    return time.process_time() - began


def _fill(operator: Any, keys: Numbers, values: Numbers) -> None:
    import numpy as np

    for first in range(0, len(values), BATCH):
        part = slice(first, first + BATCH)
        ids = np.arange(first, first + len(values[part]))
        _add(operator, _rows(keys[part], values[part], ids, np.ones(len(ids), dtype=np.int64)))


def _hot(
    name: str, operator: Any, rows: int, changes: int, best: Callable[[Numbers], Numbers] | None
) -> dict[str, float]:  # fmt: skip
    import numpy as np

    chance = np.random.default_rng(1)
    values = chance.permutation(rows)
    _fill(operator, np.zeros(rows, dtype=np.int64), values)
    order, half, seconds = values if best is None else best(values), changes // 2, 0.0
    signs = np.repeat([-1, 1], half)
    with _checkpoints(operator) as checkpoint:
        checkpoint()
        for number in range(BATCHES):
            first = number * half % rows
            chosen = order[first : first + half] if best is not None else chance.choice(rows, half, replace=False)
            lowest = -(number + 1) * half
            fresh = np.arange(lowest, lowest + half) if best is not None else chance.permutation(half) + rows - lowest
            both = np.concatenate([values[chosen], fresh]), np.concatenate([chosen, chosen])
            values[chosen] = fresh
            seconds += _add(operator, _rows(np.zeros(2 * half, dtype=np.int64), *both, signs))
            if not number:
                stored = checkpoint()
    return {f"ms_per_batch_{name}": 1000 * seconds / BATCHES, f"kb_of_a_checkpoint_of_a_batch_{name}": stored / 1e3}


def _cold(operator: Any, rows: int) -> float:
    import numpy as np

    chance = np.random.default_rng(1)
    values = chance.permutation(rows)
    _fill(operator, np.arange(rows), values)
    half = min(BATCH // 2, rows // 2)
    seconds, batches = 0.0, max(2 * rows // half, 1)
    for number in range(batches):
        keys = chance.choice(rows, half, replace=False)
        fresh = rows * (number + 1) + chance.permutation(half)
        pairs = np.stack([values[keys], fresh], axis=1).ravel()
        values[keys] = fresh
        seconds += _add(operator, _rows(np.repeat(keys, 2), pairs, np.repeat(keys, 2), np.tile([-1, 1], half)))
    return 2 * half * batches / seconds / 1e6


@contextmanager
def _checkpoints(operator: KeyedTableOperator) -> Iterator[Callable[[], int]]:
    """Return a function that takes a checkpoint, complete before the next, and returns the bytes of it."""
    from rayflink.state.storage.local_storage import LocalStorage
    from rayflink.state.storage.snapshot_files import SnapshotFileWriter, SnapshotPlace

    folder, numbers = Path(tempfile.mkdtemp(prefix="rayflink-bench-")), count(1)
    storage = LocalStorage(str(folder))

    def checkpoint() -> int:
        number = next(numbers)
        writer = SnapshotFileWriter(storage, SnapshotPlace.of_checkpoint(number, 0), uploads=0)
        capture = operator.stored.capture(number)
        capture.write(writer)
        writer.finish()
        capture.release()
        operator.stored.confirm(number)
        return writer.bytes_written

    try:
        yield checkpoint
    finally:
        shutil.rmtree(folder, ignore_errors=True)
