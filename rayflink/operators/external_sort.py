"""Sorts more entries than memory holds: sorted runs on disk, merged block by block.

Source: apache/flink PushSorter, ExternalSorter (sorted runs spilled under memory pressure, then merged).
"""

from __future__ import annotations

import heapq
import pickle
from collections.abc import Iterable, Iterator
from itertools import count, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO

from rayflink.common.configuration import reading
from rayflink.common.managed_memory import Allowance
from rayflink.common.options import registry as options
from rayflink.common.user_code.value_bytes import to_bytes
from rayflink.state.private_folders import make_private

from .base import OperatorContext

Entry = tuple[bytes, int, int, Any]
"""(sort key, then this, order of arrival, payload)."""

BLOCK_ROWS = 1024
"""Entries of a run that are read at a time."""
MOST_RUNS = 64
"""Runs merged at a time; more are first merged to fewer."""
_STEP_BYTES = 1 << 20
_ENTRY_BYTES = 220
"""Bytes of an entry in memory in addition to its payload: a tuple, a key, two numbers."""
_GROWN = 3
"""Bytes an object takes in memory for one in its pickle, about."""
_SAMPLE = 64

_order = itemgetter(0, 1, 2)


def input_sort(ctx: OperatorContext) -> ExternalSort:
    """Return a sort for one input of an operator, which keeps in memory what the options grant an input."""
    memory = ctx.managed_memory
    if memory is not None:
        memory = memory.limited(reading(ctx.config).get(options.SORTED_INPUTS_MEMORY).bytes)
    return ExternalSort(memory, Path(ctx.spill_folder))


class ExternalSort:
    """Takes entries in any order and gives them sorted by key, then number, then arrival.

    It keeps them in memory as long as `memory` grants it; then it writes what it has to disk, sorted. One block is kept
    whatever is granted.

    Args:
        memory: what it may keep; None: everything.
        folder: where runs are written; made when it is needed, and removed by `close` when nothing else is in it.
    """

    def __init__(self, memory: Allowance | None, folder: Path) -> None:
        self._memory, self._folder = memory, folder
        self._buffered: list[Entry] = []
        self._buffered_bytes = 0
        self._arrival = count()
        self._runs: list[Path] = []
        self._names = count()
        self._open: list[BinaryIO] = []
        self.spilled_bytes = 0

    def add(self, keys: Iterable[bytes], numbers: Iterable[int], payloads: list[Any]) -> None:
        """Take entries that belong together: `payloads[i]` has the i-th key and number."""
        size = self._estimate(payloads)
        if not self._has_room_for(size):
            self._spill()
            self._has_room_for(size)
        self._buffered += zip(keys, numbers, self._arrival, payloads, strict=False)
        self._buffered_bytes += size
        if self._memory is not None and self._buffered_bytes > self._memory.used and len(self._buffered) >= BLOCK_ROWS:
            self._spill()

    def sorted(self) -> Iterator[Entry]:
        """Yield all entries in order; none may be added any more."""
        if not self._runs:
            buffered, self._buffered = self._buffered, []
            buffered.sort(key=_order)
            yield from buffered
            return
        if self._buffered:
            self._spill()
        while len(self._runs) > MOST_RUNS:
            group, self._runs = self._runs[:MOST_RUNS], self._runs[MOST_RUNS:]
            self._runs.append(self._write(self._merge(group)))
            for run in group:
                run.unlink()
        yield from self._merge(self._runs)

    def close(self) -> None:
        """Give the memory back and remove the files."""
        for file in self._open:
            file.close()
        self._open.clear()
        for run in self._runs:
            run.unlink(missing_ok=True)
        self._runs.clear()
        self._buffered.clear()
        if self._memory is not None:
            self._memory.release_all()
        if self._folder.is_dir() and not any(self._folder.iterdir()):
            self._folder.rmdir()

    def _estimate(self, payloads: list[Any]) -> int:
        sample = payloads[:: max(1, len(payloads) // _SAMPLE)]
        pickled = len(to_bytes(sample)) if sample else 0
        return len(payloads) * (_ENTRY_BYTES + _GROWN * pickled // max(1, len(sample)))

    def _has_room_for(self, size: int) -> bool:
        memory, wanted = self._memory, self._buffered_bytes + size
        if memory is None:
            return True
        while memory.used < wanted:
            if not memory.reserve(max(_STEP_BYTES, wanted - memory.used)) and not memory.reserve(wanted - memory.used):
                return False
        return True

    def _spill(self) -> None:
        if not self._buffered:
            return
        buffered, self._buffered = self._buffered, []
        buffered.sort(key=_order)
        self._runs.append(self._write(buffered))
        self._buffered_bytes = 0

    def _write(self, entries: Iterable[Entry]) -> Path:
        path = self._folder / f"sort-{id(self):x}-{next(self._names)}.run"
        rest = iter(entries)
        try:
            make_private(self._folder)
            with path.open("xb") as file:
                while block := list(islice(rest, BLOCK_ROWS)):
                    file.write(to_bytes(block))
                self.spilled_bytes += file.tell()
        except OSError as error:
            path.unlink(missing_ok=True)
            remedy = "free space there, or set io.tmp.dirs to a larger disk"
            raise OSError(f"sorted input {path} cannot be written ({error}); {remedy}") from error
        return path

    def _merge(self, runs: list[Path]) -> Iterator[Entry]:
        return heapq.merge(*map(self._read, runs), key=_order)

    def _read(self, run: Path) -> Iterator[Entry]:
        with run.open("rb") as file:
            self._open.append(file)
            while True:
                try:
                    block = pickle.load(file)
                except EOFError:
                    self._open.remove(file)
                    return
                yield from block


__all__ = ["BLOCK_ROWS", "Entry", "ExternalSort", "input_sort"]
