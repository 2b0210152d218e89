"""How much of a state of columns is kept in memory, and where the rest goes: files of Arrow's format, read by mapping.

A file has no name once it is mapped, and is gone when its last column is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.operators.base import OperatorContext
from rayflink.state.key_columns import hash_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

STEP_BYTES = 1 << 20
"""Memory is asked for in multiples of this."""

Columns = list[pa.Array]


class FrameMemory:
    """The managed memory of one operator's state.

    Args:
        ctx: has the memory, and the folder of the files.
    """

    def __init__(self, ctx: OperatorContext) -> None:
        self._allowance, self._folder = ctx.managed_memory, ctx.spill_folder
        self._name = f"window-{ctx.operator_id}.arrow"
        self.held = 0
        """Bytes that were granted."""
        self.limit: int | None = None
        """Bytes to keep at most, once more were refused; None: none were."""

    def hold(self, wanted: int) -> bool:
        """Whether so many bytes may be in memory; what is not wanted any more is given back."""
        if self._allowance is None or not self._folder:
            return True
        rounded = -(-wanted // STEP_BYTES) * STEP_BYTES
        if rounded < self.held // 2:
            self._allowance.release(self.held - rounded)
            self.held = rounded
        elif rounded > self.held:
            if not self._allowance.reserve(rounded - self.held):
                self.limit = max(self.held, STEP_BYTES)
                return wanted <= self.limit
            self.held = rounded
        return True

    def parts(self, size: int) -> int:
        """In how many parts so many bytes are to be worked, that each takes a share of the memory."""
        return 1 if self.limit is None else -(-size // max(self.limit // 2, 1))

    def written(self, pieces: Iterable[Columns]) -> list[Columns]:
        """Pieces, with all columns in a file.

        Raises:
            OSError: it cannot be written.
        """
        folder = Path(self._folder)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / self._name
        batches = (pa.RecordBatch.from_arrays(one, names=list(map(str, range(len(one))))) for one in pieces)
        first = next(batches)
        with pa.ipc.new_file(str(path), first.schema) as writer:
            writer.write_batch(first)
            for batch in batches:
                writer.write_batch(batch)
        with pa.memory_map(str(path)) as source:
            reader = pa.ipc.open_file(source)
            found = [list(reader.get_batch(at).columns) for at in range(reader.num_record_batches)]
        path.unlink()
        return found

    def release(self) -> None:
        """Give all memory back."""
        if self._allowance is not None:
            self._allowance.release_all()
        self.held = 0


def divided(pieces: Sequence[Columns], width: int, parts: int) -> Iterable[list[Columns]]:
    """Pieces by parts, each with all rows of its keys; those of the key are the first `width` columns."""
    numbers: list[NDArray[np.uint16]] = [(hash_columns(one[:width]) % parts).astype(np.uint16) for one in pieces]
    for part in range(parts):
        chosen = [pa.array(own == part) for own in numbers]
        yield [[one.filter(keep) for one in piece] for piece, keep in zip(pieces, chosen, strict=True)]


def size_of(columns: Columns) -> int:
    """Bytes of columns."""
    return sum(one.nbytes for one in columns)


__all__ = ["FrameMemory", "divided", "size_of"]
