"""A blocking subpartition: complete before it is read, a bounded part of it in memory, the rest in one file.

The part in memory is managed memory; when that is short it is smaller, down to nothing. Writes are of one block, and
return when the system has taken it, which brings it to the disk later; reads are of one block when it is asked for.

File format: frames of kind (1 byte: 0 buffer, 1 event), size (uint64), rows (uint32) and the bytes; an event is
pickled.

Source: apache/flink SpillableSubpartition, IOManager.
"""

from __future__ import annotations

import pickle
import struct
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from rayflink.common.managed_memory import Allowance
from rayflink.common.records.batches import CheckpointBarrier, Event

from .exchange_statistics import SpillStatistics
from .frames import Frame
from .subpartition import Buffer, ExchangeError, Subpartition, SubpartitionState

_FRAME = struct.Struct("<BQI")
_BUFFER, _EVENT = 0, 1


class SpillError(ExchangeError):
    """A spill file could not be written, or does not hold what was written."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path, self.problem = path, problem

    def __str__(self) -> str:
        return f"spill file {self.path}: {self.problem}; free space there, or set io.tmp.dirs to a larger disk"


class SpillQueue:
    """First in, first out: the first entries in memory while `memory` has room, the others in a file, the newest held.

    All entries are appended before the first is read. The file is made when there is no room, removed by `clear`.
    """

    def __init__(self, path: Path, memory: Allowance) -> None:
        self._path, self._memory = path, memory
        self._head: deque[Buffer | Event] = deque()
        self._newest: Buffer | Event | None = None
        self._front: Buffer | Event | None = None
        self._file: BinaryIO | None = None
        self._in_file = 0
        self._reading = False
        self.spilled_bytes = 0

    def append(self, entry: Buffer | Event) -> None:
        """Put an entry last.

        Raises:
            SpillError: the file cannot be written.
        """
        if self._newest is not None:
            self._settle(self._newest)
        self._newest = entry

    def appendleft(self, entry: Buffer | Event) -> None:
        """Refuse: nothing overtakes in a blocking subpartition."""
        raise ExchangeError(f"{entry} cannot overtake what is in a blocking subpartition")

    def popleft(self) -> Buffer | Event:
        """Take the first entry.

        Raises:
            SpillError: the file is damaged.
        """
        entry = self[0]
        if self._head:
            self._head.popleft()
            self._memory.release(_size(entry))
        elif self._front is not None:
            self._front = None
            self._in_file -= 1
        else:
            self._newest = None
        return entry

    def clear(self) -> None:
        """Forget all entries and remove the file."""
        self._head.clear()
        self._newest = self._front = None
        self._in_file = 0
        self._memory.release_all()
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # what a full disk did not take is not wanted any more
                file.close()
            self._path.unlink(missing_ok=True)

    @property
    def memory_used(self) -> int:
        """Return the bytes in memory now, the newest entry not counted."""
        return self._memory.used

    def statistics(self) -> SpillStatistics:
        """Return the present counts."""
        return SpillStatistics(len(self), self.memory_used, self._in_file, self.spilled_bytes)

    def __len__(self) -> int:
        return len(self._head) + self._in_file + (self._newest is not None)

    def __getitem__(self, place: int) -> Buffer | Event:
        if place == -1 and self._newest is not None:
            return self._newest
        if place != 0 or not len(self):
            raise IndexError(f"only the first and the newest entry are at hand, asked for {place} of {len(self)}")
        if self._head:
            return self._head[0]
        if self._in_file and self._front is None:
            self._front = self._read()
        first = self._front if self._front is not None else self._newest
        assert first is not None
        return first

    def __setitem__(self, place: int, entry: Buffer | Event) -> None:
        if place != -1 or self._newest is None:
            raise IndexError(f"only the newest entry can be replaced, asked for {place} of {len(self)}")
        self._newest = entry

    def _settle(self, entry: Buffer | Event) -> None:
        if self._file is None and self._memory.reserve(_size(entry)):
            self._head.append(entry)
        else:
            self._write(entry)

    def _write(self, entry: Buffer | Event) -> None:
        assert not self._reading, "a spill file is written before it is read"
        if isinstance(entry, Buffer):
            kind, body, rows = _BUFFER, entry.body, entry.rows
        else:
            kind, body, rows = _EVENT, pickle.dumps(entry, 5), 0
        try:
            if self._file is None:
                self._file = self._path.open("x+b")
            self._file.write(_FRAME.pack(kind, len(body), rows))
            self._file.write(body)
        except OSError as error:
            raise SpillError(str(self._path), f"cannot be written ({error})") from error
        self._in_file += 1
        self.spilled_bytes += len(body)

    def _read(self) -> Buffer | Event:
        assert self._file is not None
        try:
            if not self._reading:
                self._file.seek(0)  # writes what is still buffered
                self._reading = True
            head = self._file.read(_FRAME.size)
            kind, size, rows = _FRAME.unpack(head) if len(head) == _FRAME.size else (-1, 0, 0)
            body = self._file.read(size)
        except OSError as error:
            raise SpillError(str(self._path), f"cannot be read ({error})") from error
        if kind not in (_BUFFER, _EVENT) or len(body) != size:
            raise SpillError(str(self._path), f"ends early or is damaged, {self._in_file} entries are missing")
        if kind == _BUFFER:
            return Buffer(body, rows)
        event: Event = pickle.loads(body)
        return event


class SpilledSubpartition(Subpartition):
    """A subpartition that is read only when it is complete; what does not fit in memory waits in a file.

    A consumer may ask for it before and gets nothing until the producer has finished.

    Args:
        index: which of its partition's.
        path: the file, which must not exist; made when needed, removed at release and when all has been sent.
        memory: for buffers kept in memory, in addition to the newest.
    """

    def __init__(self, index: int, path: Path, memory: Allowance) -> None:
        self._spill = SpillQueue(path, memory)
        super().__init__(index, self._spill)

    @property
    def memory_bytes(self) -> int:
        """Return the bytes of buffers in memory now, the newest not counted."""
        return self._spill.memory_used

    @property
    def spilled_bytes(self) -> int:
        """Return the bytes written to the file in all."""
        return self._spill.spilled_bytes

    @property
    def available(self) -> bool:
        """Return whether `poll` would return something: never before the producer has finished."""
        return self._finished and super().available

    def poll(self) -> Frame | None:
        """Return the next buffer or event to send; with the last one the file is removed."""
        frame = super().poll()
        if self.state is SubpartitionState.CONSUMED:
            self._spill.clear()
        return frame

    def overtake(self, barrier: CheckpointBarrier) -> tuple[Buffer, ...]:
        """Refuse: there are no checkpoints in batch mode."""
        raise ExchangeError(f"{barrier} cannot overtake what is in a blocking subpartition")


def _size(entry: Buffer | Event) -> int:
    return len(entry.body) if isinstance(entry, Buffer) else 64
