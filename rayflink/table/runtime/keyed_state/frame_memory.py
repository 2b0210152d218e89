"""Memory of columnar state: part of it in memory, the rest in Arrow files that are mapped.

A file has no name once it is mapped, and is gone when its last column is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rayflink.operators.base import OperatorContext
from rayflink.state.keys.key_columns import hash_columns
from rayflink.state.private_folders import make_private

if TYPE_CHECKING:
    from numpy.typing import NDArray

STATE_MEMORY, SPILLED_BYTES = "stateMemory", "spilledBytes"
"""Metrics: bytes of managed memory that are held, and bytes that were written to files so far."""

STEP_BYTES = 1 << 20
"""Memory is asked for in multiples of this."""

LEAST_BYTES = 16 << 20
"""Less than this is kept in memory without asking."""

MOST_PARTS = 4096
"""In this many parts at most a state is worked."""

Columns = list[pa.Array]


class FrameMemory:
    """The managed memory of one operator's state.

    Args:
        ctx: has the memory, and the folder of the files.
    """

    def __init__(self, ctx: OperatorContext) -> None:
        self._allowance, self._folder = ctx.managed_memory, ctx.spill_folder
        self._name = f"window-{ctx.operator_id}.arrow"
        self.max_parallelism = ctx.max_parallelism
        """Key groups in all."""
        self.reserved = 0
        """Bytes of managed memory that were granted."""
        self.limit: int | None = None
        """Bytes to keep at most, once more were refused; None: none were."""
        self._spilled = None if ctx.metrics is None else ctx.metrics.counter(SPILLED_BYTES)
        if ctx.metrics is not None:
            ctx.metrics.gauge(STATE_MEMORY, lambda: self.reserved)

    def reserve(self, wanted: int) -> bool:
        """Reserve memory for a number of bytes, or release the rest; returns whether it was granted."""
        if self._allowance is None or not self._folder:
            return True
        rounded = -(-wanted // STEP_BYTES) * STEP_BYTES
        if rounded < self.reserved // 2:
            self._allowance.release(self.reserved - rounded)
            self.reserved = rounded
        elif rounded > self.reserved:
            if not self._allowance.reserve(rounded - self.reserved):
                left = max(self._allowance.available, 0) // STEP_BYTES * STEP_BYTES
                self.reserved += left if self._allowance.reserve(left) else 0
                self.limit = max(self.reserved, LEAST_BYTES)
                return wanted <= self.limit
            self.reserved = rounded
        return True

    def parts(self, size: int) -> int:
        """Return the number of parts in which bytes are processed, so that each takes a share of the memory."""
        return 1 if self.limit is None else min(-(-size // max(self.limit // 2, 1)), MOST_PARTS) or 1

    def written(self, pieces: Iterable[Columns]) -> list[Columns]:
        """Pieces, with all columns in a file.

        Raises:
            OSError: it cannot be written.
        """
        folder = Path(self._folder)
        make_private(folder)
        path = folder / self._name
        batches = (pa.RecordBatch.from_arrays(list(piece), names=list(map(str, range(len(piece))))) for piece in pieces)
        first = next(batches)
        with pa.ipc.new_file(str(path), first.schema) as writer:
            writer.write_batch(first)
            for batch in batches:
                writer.write_batch(batch)
        if self._spilled is not None:
            self._spilled.inc(path.stat().st_size)
        with pa.memory_map(str(path)) as source:
            reader = pa.ipc.open_file(source)
            mapped = [list(reader.get_batch(number).columns) for number in range(reader.num_record_batches)]
        path.unlink()
        return mapped

    def mapped(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return an array of zeros that may be changed, in a file.

        Raises:
            OSError: it cannot be written.
        """
        folder = Path(self._folder)
        make_private(folder)
        path = folder / self._name
        with path.open("w+b") as file:
            file.truncate(int(np.prod(shape)) * np.dtype(dtype).itemsize)
            array: NDArray[Any] = np.asarray(np.memmap(file, dtype, "r+", shape=shape))
        path.unlink()
        if self._spilled is not None:
            self._spilled.inc(array.nbytes)
        return array

    def release(self) -> None:
        """Give all memory back."""
        if self._allowance is not None:
            self._allowance.release_all()
        self.reserved = 0


def divided(pieces: Sequence[Columns], width: int, parts: int) -> Iterable[list[Columns]]:
    """Pieces by parts, each with all rows of its keys; those of the key are the first `width` columns."""
    sorted_: list[tuple[Columns, NDArray[np.intp], NDArray[np.intp]]] = []
    for piece in pieces:
        numbers = (hash_columns(piece[:width]) % parts).astype(np.uint16)
        order = np.argsort(numbers, kind="stable")
        sorted_.append((piece, order, np.searchsorted(numbers[order], np.arange(parts + 1))))
    for part in range(parts):
        yield [
            [column.take(pa.array(order[bounds[part] : bounds[part + 1]])) for column in piece]
            for piece, order, bounds in sorted_
        ]


def size_of(columns: Columns) -> int:
    """Bytes of columns."""
    return sum(column.nbytes for column in columns)


__all__ = ["FrameMemory", "divided", "size_of"]
