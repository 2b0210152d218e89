"""Rows on their way from the last task of a job to the program that draws them while the job runs.

With checkpoints a row leaves its task when the checkpoint that holds it is complete, and each block says how many rows
came before it, so that what is sent again after a restart is dropped where the program draws. Without them rows leave
at once, and a restart whose rows would repeat earlier ones ends the job.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from rayflink.common.connector_base.commits import CommitRequest
from rayflink.common.connector_base.sink import Committer, Sink, SinkWriter, WriterContext
from rayflink.common.errors import JobExecutionError
from rayflink.common.records.batches import Batch, rows_of
from rayflink.common.user_code.value_bytes import from_bytes, to_bytes

BLOCK_ROWS = 1024
"""Rows that wait for a checkpoint are packed when they reach this number, or the checkpoint comes."""

_here = threading.local()


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Rows of one subtask that follow one another.

    Args:
        origin: the operator and the subtask.
        first: how many rows of the origin came before.
        attempt: of a task that sends its rows at once, and each attempt counts from 0; None: the rows' checkpoint is
            complete, and the count goes on over restarts.
        rows: themselves, or packed.
    """

    origin: str
    first: int
    attempt: int | None
    rows: Sequence[Any] | bytes

    def unpacked(self) -> list[Any]:
        """Return the rows. Raises: whatever unpacking a user's class raises."""
        return from_bytes(self.rows) if isinstance(self.rows, bytes) else list(self.rows)


class RowOutlet(Protocol):
    """The way from this thread to the program."""

    def put(self, block: RowBlock) -> None:
        """Send rows, in order; waits while the program has drawn too few of those before."""

    def flush(self) -> None:
        """Return when all rows have arrived."""


@contextmanager
def rows_go_to(outlet: RowOutlet) -> Iterator[None]:
    """Send to the outlet the rows of the `DrawnSink` writers that this thread opens within the block."""
    before = getattr(_here, "outlet", None)
    _here.outlet = outlet
    try:
        yield
    finally:
        _here.outlet = before


class DrawnSink(Sink):
    """Gives its records to the program while the job runs; the runner says by `rows_go_to` on which way.

    Records of one subtask keep their order. With checkpoints those since the last one wait packed in the memory of
    their subtask, and are part of the next one.
    """

    name = "Sink: Collect"
    shows_with_checkpoints = False
    max_parallelism = 1

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        return _Withheld(ctx) if ctx.checkpointing else _AtOnce(ctx, _outlet())

    def create_committer(self) -> Committer:
        return _Sending(_outlet())


def _outlet() -> RowOutlet:
    outlet: RowOutlet | None = getattr(_here, "outlet", None)
    assert outlet is not None, "a runner that opens a DrawnSink says where its rows go"
    return outlet


def _origin(ctx: WriterContext) -> str:
    return f"{ctx.operator_id}#{ctx.subtask}"


class _AtOnce(SinkWriter):
    def __init__(self, ctx: WriterContext, outlet: RowOutlet) -> None:
        self._origin, self._attempt, self._outlet = _origin(ctx), ctx.attempt, outlet
        self._sent = 0

    def write(self, batch: Batch) -> None:
        rows = rows_of(batch)
        if rows:
            self._outlet.put(RowBlock(self._origin, self._sent, self._attempt, rows))
            self._sent += len(rows)

    def flush(self, end_of_input: bool) -> None:
        self._outlet.flush()

    def close(self) -> None:
        pass


class _Withheld(SinkWriter):
    """Keeps rows until their checkpoint is complete."""

    def __init__(self, ctx: WriterContext) -> None:
        self._origin = _origin(ctx)
        self._first: int = max(ctx.restored, default=0)
        self._rows: list[Any] = []
        self._blocks: list[RowBlock] = []

    def write(self, batch: Batch) -> None:
        self._rows += rows_of(batch)
        if len(self._rows) >= BLOCK_ROWS:
            self._pack()

    def flush(self, end_of_input: bool) -> None:
        if self._rows:
            self._pack()

    def prepare_commit(self) -> Sequence[RowBlock]:
        blocks, self._blocks = self._blocks, []
        return blocks

    def snapshot_state(self) -> int:
        return self._first

    def close(self) -> None:
        pass

    def _pack(self) -> None:
        rows, self._rows = self._rows, []
        self._blocks.append(RowBlock(self._origin, self._first, None, to_bytes(rows)))
        self._first += len(rows)


class _Sending(Committer):
    """Sends blocks; one that was sent before is recognised where the program draws."""

    def __init__(self, outlet: RowOutlet) -> None:
        self._outlet = outlet

    def commit(self, requests: Sequence[CommitRequest[RowBlock]]) -> None:
        for request in requests:
            self._outlet.put(request.get_committable())
        self._outlet.flush()


class DrawnOnce:
    """Says which rows are new to the program.

    Args:
        job_id: for errors.
        starts_anew: whether the first row of the job is its first ever, so that rows that are lost before it are seen.

    >>> once = DrawnOnce("7" * 32)
    >>> once.new([RowBlock("sink#0", 0, None, ["a", "b"])])
    ['a', 'b']
    >>> once.new([RowBlock("sink#0", 0, None, ["a", "b"]), RowBlock("sink#0", 2, None, ["c"])])
    ['c']
    """

    def __init__(self, job_id: str, starts_anew: bool = False) -> None:
        self._job_id, self._starts_anew = job_id, starts_anew
        self._drawn: dict[str, int] = {}
        self._at_once: dict[str, tuple[int, int]] = {}

    def new(self, blocks: Iterable[RowBlock]) -> list[Any]:
        """Return the rows that were not there before.

        Raises:
            JobExecutionError: the job has begun anew without checkpoints, or rows are missing.
        """
        return [row for block in blocks for row in self._new(block)]

    def _new(self, block: RowBlock) -> list[Any]:
        rows = block.unpacked()
        if block.attempt is not None:
            return self._new_at_once(block.origin, block.attempt, block.first, rows)
        drawn = self._drawn.get(block.origin, 0 if self._starts_anew else block.first)
        if block.first > drawn:
            raise self._lost(drawn, block.first)
        self._drawn[block.origin] = max(drawn, block.first + len(rows))
        return rows[drawn - block.first :]

    def _new_at_once(self, origin: str, attempt: int, first: int, rows: list[Any]) -> list[Any]:
        known, drawn = self._at_once.get(origin, (attempt, 0))
        if attempt < known:
            return []  # of one that was believed dead
        if (attempt > known and drawn) or first < drawn:
            raise JobExecutionError(
                self._job_id,
                f"has begun anew without checkpoints, and would repeat {drawn} rows that were collected before",
                "set execution.checkpointing.interval, so that each row comes once, when its checkpoint is complete; "
                "or restart-strategy.type: none",
            )
        if first > drawn:
            raise self._lost(drawn, first)
        self._at_once[origin] = attempt, drawn + len(rows)
        return rows

    def _lost(self, drawn: int, first: int) -> JobExecutionError:
        reason = f"has lost {first - drawn} rows on their way to the program, from row {drawn} on"
        cause = "its coordinator or its dispatcher died with rows that had not been drawn"
        remedy = f"{cause}: run the program again, or write to a sink"
        return JobExecutionError(self._job_id, reason, remedy)


__all__ = ["BLOCK_ROWS", "DrawnOnce", "DrawnSink", "RowBlock", "RowOutlet", "rows_go_to"]
