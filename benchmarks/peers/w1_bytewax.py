# mypy: disable-error-code="import-not-found, misc"
"""W1 on Bytewax: `FileSource`, `flat_map`, a `stateful_batch` count, a sink that discards."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.connectors.files import FileSource
from bytewax.dataflow import Dataflow
from bytewax.operators import StatefulBatchLogic
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.run import cli_main

_LINES_A_BATCH = 1000


class _Count(StatefulBatchLogic[int, int, int]):
    """The running count of one word; every update is emitted."""

    def __init__(self, count: int | None) -> None:
        self.count = count or 0

    def on_batch(self, values: list[int]) -> tuple[Iterable[int], bool]:
        before = self.count
        self.count = before + len(values)
        return range(before + 1, self.count + 1), False

    def snapshot(self) -> int:
        return self.count


class _Discard(StatelessSinkPartition[Any], DynamicSink[Any]):
    """Counts what it throws away."""

    def __init__(self) -> None:
        self.rows = 0

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Discard:
        return self

    def write_batch(self, items: list[Any]) -> None:
        self.rows += len(items)


def run(data_path: str, workers: int = 1) -> dict[str, Any]:
    """Count the words of `data_path` with `workers` threads of one process."""
    entered = time.monotonic()
    first: list[float] = []

    def split(line: str) -> list[tuple[str, int]]:
        if not first:
            first.append(time.monotonic())
        return [(word, 1) for word in line.split()]

    sink = _Discard()
    flow = Dataflow("w1")
    lines = op.input("lines", flow, FileSource(Path(data_path), batch_size=_LINES_A_BATCH))
    words = op.flat_map("split", lines, split)
    op.output("discard", op.stateful_batch("count", words, _Count), sink)
    cli_main(flow, workers_per_process=workers)
    return {"rows": sink.rows, "seconds_total": time.monotonic() - entered, "seconds_startup": first[0] - entered}
