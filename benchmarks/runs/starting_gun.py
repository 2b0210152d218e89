"""Sources that hold back until all subtasks run, so that a rate is measured with everybody at work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rayflink.common.connector_base.source import (
    PENDING,
    Boundedness,
    EnumeratorContext,
    Polled,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.options import registry as options
from rayflink.common.options.registry import Target

_POLL_MS = 5


class StartingGun:
    """A file whose coming into being lets the sources go; all of them see the same file system.

    Args:
        path: where the file will be.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fired = 0.0
        """Epoch seconds at which the sources were let go."""

    def run(self, env: Any, name: str) -> Any:
        """Run the program, its sources let go when every subtask is RUNNING; its result.

        In this process, where a job goes on only while somebody waits for it, they are let go at once.

        Raises:
            RuntimeError: the subtasks are not RUNNING in time, or one has ended.
        """
        client = env.execute_async(name)
        if env.get_configuration().get(options.TARGET) is not Target.LOCAL:
            self._wait_until_all_run(client)
        self.fired = time.time()
        self.path.touch()
        return client.get_job_execution_result().result()

    def _wait_until_all_run(self, client: Any, limit_seconds: float = 180.0) -> None:
        since = time.monotonic()
        while True:
            states = [task["state"] for vertex in client.status()["vertices"] for task in vertex["subtasks"]]
            if states and set(states) == {"RUNNING"}:
                break
            if time.monotonic() - since > limit_seconds or set(states) & {"FAILED", "CANCELED"}:
                raise RuntimeError(f"not all subtasks are RUNNING after {time.monotonic() - since:.0f} s: {states}")
            time.sleep(0.05)


@contextmanager
def starting_gun() -> Iterator[StartingGun]:
    """A gun in a folder of its own, which is deleted in the end."""
    with TemporaryDirectory(prefix="rayflink-bench-") as folder:
        yield StartingGun(Path(folder) / "go")


class HeldBack(Source):
    """A source that gives nothing before `gun` has been fired.

    Args:
        source: what is read then.
        gun: the file.
    """

    def __init__(self, source: Source, gun: Path) -> None:
        self._source, self._gun = source, gun

    @property
    def boundedness(self) -> Boundedness:
        return self._source.boundedness

    @property
    def max_parallelism(self) -> int | None:
        return self._source.max_parallelism

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return self._source.create_enumerator(ctx)

    def restore_enumerator(self, ctx: EnumeratorContext, state: Any) -> SplitEnumerator:
        return self._source.restore_enumerator(ctx, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return _HeldBackReader(self._source.create_reader(ctx), self._gun, ctx)


class _HeldBackReader(SourceReader):
    def __init__(self, reader: SourceReader, gun: Path, ctx: ReaderContext) -> None:
        self._reader, self._gun, self._ctx = reader, gun, ctx
        self._go = False

    def start(self) -> None:
        self._reader.start()

    def add_splits(self, splits: list[Any]) -> None:
        self._reader.add_splits(splits)

    def notify_no_more_splits(self) -> None:
        self._reader.notify_no_more_splits()

    def poll(self, max_records: int) -> Polled:
        if not self._go:
            self._go = self._gun.exists()
        return self._reader.poll(max_records) if self._go else PENDING

    def needs_split(self) -> bool:
        return self._reader.needs_split()

    def next_poll_ms(self) -> int | None:
        return self._reader.next_poll_ms() if self._go else self._ctx.now_ms() + _POLL_MS

    def snapshot_state(self) -> list[Any]:
        return self._reader.snapshot_state()

    def close(self) -> None:
        self._reader.close()
