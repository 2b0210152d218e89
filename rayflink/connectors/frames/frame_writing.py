"""A stream's result as blocks of columns in a store, from which Spark or Ray Data read it.

The operator has no state: before each barrier, and at the end, it passes on what it has put into the store since the
last one. Who collects that exactly once knows which blocks count; those of attempts that failed are given up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rayflink.common.errors import TypeMismatch
from rayflink.common.records.batches import Batch, Element, RowBatch
from rayflink.operators.base import Operator
from rayflink.operators.capabilities import PreBarrier
from rayflink.operators.user_function import UserCode

from ..formats.inferred_columns import InferredColumns, fitted, joined
from .frame_source import FramePart, FrameStore

if TYPE_CHECKING:
    import pyarrow

BLOCK_BYTES = 8 << 20
"""About the size of one block."""
BLOCK_ROWS = 1 << 18
"""Rows of one block at most, but for a batch that has more."""
PART_BYTES = 64 << 20
"""About the size of one part, which is read by one task."""


@dataclass(frozen=True)
class WrittenPart:
    """A part that is in the store.

    Args:
        part: its partition is the subtask that wrote it, its attempt like no other of that.
        schema: of which the columns of its blocks are at most.
        is_open: whether other parts may have more columns.
    """

    part: FramePart
    schema: pyarrow.Schema
    is_open: bool


@dataclass(frozen=True)
class Frame:
    """The result of a stream in a store.

    Args:
        parts: in the order in which each subtask wrote them.
        schema: into which all blocks fit.
    """

    store: FrameStore
    parts: tuple[FramePart, ...]
    schema: pyarrow.Schema

    def block(self, part: FramePart, number: int) -> pyarrow.RecordBatch:
        """Return a block of a part, in the columns of the schema.

        Raises:
            FrameLost: it is gone.
        """
        return fitted(self.store.read(part, number), self.schema)

    def groups(self) -> list[list[FramePart]]:
        """Return the parts, those of a subtask that follow one another together up to `PART_BYTES`."""
        groups: list[list[FramePart]] = []
        for part in self.parts:
            last = groups[-1] if groups else []
            is_next = bool(last) and last[0].partition == part.partition
            if is_next and sum(member.size for member in last) + part.size <= PART_BYTES:
                last.append(part)
            else:
                groups.append([part])
        return groups


class FrameOperator(Operator, PreBarrier):
    """Puts all records into a store and emits a `WrittenPart` for each part of them.

    Args:
        store: where to.
        schema: the wanted columns; None: as the records have them.
    """

    def __init__(self, store: FrameStore, schema: pyarrow.Schema | None = None) -> None:
        self._store, self._columns = store, InferredColumns(schema)
        self._held: list[pyarrow.RecordBatch] = []
        self._rows = self._bytes = 0
        self._written: list[FramePart] = []
        self._number = 0
        self._part: FramePart | None = None
        self._reports_schema = True

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        with UserCode(self.ctx, "columns"):
            columns = self._columns.of(batch)
        if self._held and self._rows + columns.num_rows > BLOCK_ROWS:
            self._put()
        self._held.append(columns)
        self._rows, self._bytes = self._rows + columns.num_rows, self._bytes + columns.nbytes
        if self._bytes >= BLOCK_BYTES:
            self._put()
        return ()

    def prepare_snapshot(self, checkpoint_id: int) -> Iterable[Element]:
        return self._written_parts()

    def finish(self) -> Iterable[Element]:
        return self._written_parts()

    def _written_parts(self) -> Iterable[Element]:
        if self._rows:
            self._put()
        self._close_part()
        schema = self._columns.schema
        if schema is None:
            return ()
        if not self._written and self._reports_schema:
            self._written.append(self._new_part(""))
        self._reports_schema = False
        parts, self._written = self._written, []
        return (RowBatch([WrittenPart(part, schema, self._columns.is_open) for part in parts]),) if parts else ()

    def _put(self) -> None:
        import pyarrow

        schema = self._columns.schema
        assert schema is not None, "the schema is known with the first record"
        with UserCode(self.ctx, "columns"):
            block = pyarrow.concat_batches([fitted(batch, schema) for batch in self._held])
        if not schema.names:  # only columns keep the number of rows on their way
            block = pyarrow.RecordBatch.from_arrays([pyarrow.nulls(self._rows)], names=[""])
        self._held, self._rows, self._bytes = [], 0, 0
        if self._part is None:
            self._part = self._new_part("")
        part = self._part
        place = self._store.append(part.partition, part.attempt, part.blocks, block)
        rows, size = part.rows + block.num_rows, part.size + block.nbytes
        self._part = replace(part, place=place, blocks=part.blocks + 1, rows=rows, size=size)
        if size >= PART_BYTES:
            self._close_part()

    def _new_part(self, place: str) -> FramePart:
        self._number += 1
        attempt = self.ctx.epoch << 44 | self.ctx.attempt << 24 | self._number
        return FramePart(self.ctx.subtask, attempt, place, 0, 0, 0)

    def _close_part(self) -> None:
        if self._part is not None:
            self._written.append(self._part)
            self._part = None


def frame_of(store: FrameStore, written: Sequence[WrittenPart], line: str = "") -> Frame:
    """Return a frame of everything a stream has put into a store; other blocks are discarded.

    Args:
        line: of the program, which wants it.

    Raises:
        TypeMismatch: there is nothing that says which columns there are, or subtasks have found types that do not go
            together.
    """
    remedy = "give it schema=..., which says the names and types"
    if not written:
        raise TypeMismatch("the columns of the stream", "", "no record", "a record or a schema", remedy, line)
    try:
        schema = joined([part.schema for part in written], all(part.is_open for part in written))
    except (TypeError, ValueError) as error:
        raise TypeMismatch("the columns of the stream", "", str(error), "records of one form", remedy, line) from error
    parts = [written_part.part for written_part in written if written_part.part.rows]
    if parts and not schema.names:
        actual = "records without a field"
        raise TypeMismatch("the columns of the stream", "", actual, "a field in some record, or a schema", remedy, line)
    store.keep(parts)
    return Frame(store, tuple(sorted(parts, key=lambda part: part.partition)), schema)


__all__ = ["Frame", "FrameOperator", "WrittenPart", "frame_of"]
