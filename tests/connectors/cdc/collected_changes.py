"""Jobs that capture changes, run in a thread of the test, and what is derived from their records."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rayflink.common import Types, WatermarkStrategy
from rayflink.datastream import StreamExecutionEnvironment

WAIT_S = 60


def environment(parallelism: int = 1, interval: str = "100 ms", **options: str) -> StreamExecutionEnvironment:
    settings = {"execution.target": "local", "parallelism.default": str(parallelism), "pipeline.max-parallelism": "16"}
    settings |= {"execution.checkpointing.interval": interval} if interval else {}
    settings |= {"restart-strategy.type": "none", **options}
    return StreamExecutionEnvironment.get_execution_environment(settings)


class Collected:
    """The records of a job that runs in another thread."""

    def __init__(self, env: StreamExecutionEnvironment, source: Any) -> None:
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "changes")
        self.records: list[dict[str, Any]] = []
        self.error: BaseException | None = None
        self._drawn = stream.map(str, Types.STRING()).execute_and_collect()
        self._thread = threading.Thread(target=self._draw, daemon=True)
        self._thread.start()

    def _draw(self) -> None:
        try:
            for record in self._drawn:
                self.records.append(json.loads(record))
        except BaseException as error:
            self.error = error

    def wait(self, condition: Callable[[list[dict[str, Any]]], bool], within_s: float = WAIT_S) -> list[dict[str, Any]]:
        """Wait until a condition is true of the records, and return them."""
        eventually(lambda: self.error is not None or condition(self.records), within_s, lambda: self.records[-3:])
        if self.error is not None:
            raise self.error
        return list(self.records)

    def fails(self, within_s: float = WAIT_S) -> str:
        """Wait until the job fails, and return how."""
        eventually(lambda: self.error is not None, within_s, lambda: self.records[-3:])
        return str(self.error)

    def close(self) -> None:
        self._drawn.close()
        self._thread.join(WAIT_S)


@contextmanager
def collecting(env: StreamExecutionEnvironment, source: Any) -> Iterator[Collected]:
    job = Collected(env, source)
    try:
        yield job
    finally:
        job.close()


def eventually(condition: Callable[[], Any], within_s: float = WAIT_S, shown: Callable[[], Any] = str) -> None:
    """Wait for a condition with a deadline."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {within_s} s: {shown()}"
        time.sleep(0.02)


def derived(records: list[dict[str, Any]], keys: tuple[str, ...] = ("id",)) -> dict[Any, dict[str, Any]]:
    """The rows that the changes add up to; each change must fit what was there before."""
    rows: dict[Any, dict[str, Any]] = {}
    for record in records:
        before, after = record["before"], record["after"]
        if before is not None:
            key = tuple(before[name] for name in keys)
            there = rows.pop(key, None)
            assert there is not None, f"{record} changes a row that is not there"
            assert there == before, f"{record} has another row before: {there}"
        if after is not None:
            key = tuple(after[name] for name in keys)
            assert key not in rows, f"{record} adds a row that is there already: {rows[key]}"
            rows[key] = after
    return rows
