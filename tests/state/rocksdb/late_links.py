"""RocksDB backends whose checkpoint files are made as late as they may be: all writes until then are held back."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from rayflink.state.rocksdb.rocksdb_backend import StateMemory


class LateThread:
    """Runs what it is given when somebody waits for it."""

    def submit(self, work: Callable[..., Path], *given: Any) -> Future[Path]:
        """The result of a call to come."""
        return _Late(lambda: work(*given))

    def shutdown(self) -> None:
        """It has no thread."""


class _Late(Future[Path]):
    def __init__(self, work: Callable[[], Path]) -> None:
        super().__init__()
        self._work: Callable[[], Path] | None = work

    def _run(self) -> None:
        work, self._work = self._work, None
        if work is not None:
            try:
                self.set_result(work())
            except Exception as error:
                self.set_exception(error)

    def result(self, timeout: float | None = None) -> Path:
        self._run()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        if not self.done():
            self._run()
        return super().exception(timeout)


def late(memory: StateMemory) -> StateMemory:
    """The memory, with no thread that makes links."""
    native = memory.native()
    native.linkers.shutdown()
    native.linkers = LateThread()  # type: ignore[assignment]
    return memory


__all__ = ["late"]
