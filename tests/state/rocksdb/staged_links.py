"""RocksDB backends whose checkpoint files are made step by step, at the test's command."""

from __future__ import annotations

import tempfile
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import rocksdict

from rayflink.state.rocksdb import (
    column_family as rocksdb_column,
)
from rayflink.state.rocksdb import (
    dirty_rows as unwritten_rows,
)
from rayflink.state.rocksdb import (
    rocksdb_tables,
)
from rayflink.state.rocksdb.cache_budget import CacheLimits
from rayflink.state.rocksdb.column_family import ColumnFamily, DatabaseError
from rayflink.state.rocksdb.rocksdb_backend import RocksDBBackend, StateMemory
from rayflink.state.rocksdb.rocksdb_timers import RocksDBTimerQueue
from rayflink.state.snapshots import KeyedCapture

_of_thread = threading.local()


class Link(Future[Path]):
    """The result of a call that a thread of its own makes step by step; waiting for it runs it to its end."""

    def __init__(self, work: Callable[[], Path]) -> None:
        super().__init__()
        self._turn, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._work, self.breaks = work, False
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        _of_thread.link = self
        self._turn.acquire()
        try:
            self.set_result(self._work())
        except Exception as error:
            self.set_exception(error)
        self._back.release()

    def step(self) -> None:
        """Run to the next stop, or to the end."""
        if not self.done():
            self._turn.release()
            self._back.acquire()

    def stop(self) -> None:
        """Stop until the next step; called by its thread."""
        self._back.release()
        self._turn.acquire()
        if self.breaks:
            raise DatabaseError("make links to its files", "a test", "the disk is gone")

    def result(self, timeout: float | None = None) -> Path:
        self._end()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._end()
        return super().exception(timeout)

    def _end(self) -> None:
        while not self.done():
            self.step()


class StagedThreads:
    """An executor that makes links, like that of a `RocksDBMemory`."""

    def __init__(self) -> None:
        self.links: list[Link] = []

    def submit(self, work: Callable[..., Path], *given: Any) -> Link:
        """Return the future of a call."""
        self.links.append(Link(lambda: work(*given)))
        return self.links[-1]

    def shutdown(self) -> None:
        """Do nothing: all are done."""
        assert all(link.done() for link in self.links)


def stop() -> None:
    """Stop between two steps; do nothing in other threads."""
    link = getattr(_of_thread, "link", None)
    if link is not None:
        link.stop()


class StagedBackend(RocksDBBackend):
    """A RocksDB backend whose links are made in steps, with few near timers.

    Args:
        memory: bytes.
        is_open: whether it has a database from its first capture on, whatever fits the memory.
    """

    cache_limits = CacheLimits(evict_entries=3, growth_entries=4, max_tombstones=3, max_stored_namespaces=4)

    def __init__(
        self, key_groups: range, max_parallelism: int, operator_uid: str, memory: int = 20_000, is_open: bool = False
    ) -> None:
        folder = Path(tempfile.gettempdir(), f"rayflink-{uuid.uuid4().hex}")
        shared = StateMemory(memory)
        super().__init__(key_groups, max_parallelism, operator_uid, folder, shared)
        native = shared.native()
        native.linkers.shutdown()
        native.linkers = self.threads = StagedThreads()  # type: ignore[assignment]
        self._is_always_open = is_open

    def capture(self, checkpoint_id: int) -> KeyedCapture:
        assert not self._is_always_open or self.store.database is not None
        return super().capture(checkpoint_id)

    def _new_queue(self, name: str) -> RocksDBTimerQueue:
        return RocksDBTimerQueue(self.store.column(f"timers/{name}"), self._layout, self.key_groups, 8)


def in_steps(patched: pytest.MonkeyPatch) -> None:
    """Make links in small steps from now on, and lower every bound."""
    write_now, checkpoint_of = ColumnFamily.write_now, rocksdict.Checkpoint

    def stopping(puts: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
        for number, pair in enumerate(puts):
            if number % 4 == 0:
                stop()
            yield pair

    def write_in_steps(self: ColumnFamily, puts: Iterable[tuple[bytes, bytes]]) -> None:
        write_now(self, stopping(puts))
        stop()

    class Checkpoint:
        def __init__(self, database: Any) -> None:
            stop()
            self._made = checkpoint_of(database)

        def create_checkpoint(self, folder: str) -> None:
            self._made.create_checkpoint(folder)
            stop()

    patched.setattr(ColumnFamily, "write_now", write_in_steps)
    patched.setattr(rocksdict, "Checkpoint", Checkpoint)
    patched.setattr(rocksdb_column, "WRITE_ROWS", 3)
    patched.setattr(rocksdb_tables, "_SMALL_MAP", 3)
    patched.setattr(rocksdb_tables, "LIST_PART", 2)
    patched.setattr(rocksdb_tables, "_PART", 4)
    patched.setattr(unwritten_rows, "ENCODED_AT_ONCE", 3)


__all__ = ["Link", "StagedBackend", "StagedThreads", "in_steps", "stop"]
