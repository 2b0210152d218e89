"""Rows on their way from the last task of a job to the program that draws them while the job runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from ..common.batches import Batch, rows_of
from ..common.sink import Sink, SinkWriter, WriterContext

_here = threading.local()


class RowOutlet(Protocol):
    """The way from this thread to the program."""

    def put(self, rows: Sequence[Any]) -> None:
        """Send rows, in order; waits while the program has drawn too few of those before."""

    def flush(self) -> None:
        """Return when all rows have arrived."""


@contextmanager
def rows_go_to(outlet: RowOutlet) -> Iterator[None]:
    """Within the block, writers of `DrawnSink` that this thread opens send their rows there."""
    before = getattr(_here, "outlet", None)
    _here.outlet = outlet
    try:
        yield
    finally:
        _here.outlet = before


class DrawnSink(Sink):
    """Gives its records to the program while the job runs; the runner says by `rows_go_to` on which way.

    Records of one subtask keep their order.
    """

    name = "Sink: Collect"

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        outlet = getattr(_here, "outlet", None)
        assert outlet is not None, "a runner that opens a DrawnSink says where its rows go"
        return _DrawnWriter(outlet)


class _DrawnWriter(SinkWriter):
    def __init__(self, outlet: RowOutlet) -> None:
        self._outlet = outlet

    def write(self, batch: Batch) -> None:
        rows = rows_of(batch)
        if rows:
            self._outlet.put(rows)

    def flush(self, end_of_input: bool) -> None:
        self._outlet.flush()

    def close(self) -> None:
        pass


__all__ = ["DrawnSink", "RowOutlet", "rows_go_to"]
