"""RocksDB backends whose checkpoint files are made as late as possible: all writes until then stay in the
overlay.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from rayflink.state.rocksdb.rocksdb_backend import StateMemory


class LateThread:
    """An executor that runs a call when somebody waits for its result."""

    def submit(self, work: Callable[..., Path], *given: Any) -> Future[Path]:
        """Return the future of a call."""
        return _Late(lambda: work(*given))

    def shutdown(self) -> None:
        """Do nothing: it has no thread."""


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
    """Return the memory, with no thread that makes links."""
    native = memory.native()
    native.linkers.shutdown()
    native.linkers = LateThread()  # type: ignore[assignment]
    return memory


__all__ = ["late"]
