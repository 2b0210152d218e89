"""Changes of one table from the log, as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rayflink.common.records.row_kinds import with_kinds
from rayflink.connectors.cdc.chunks import ChunkMarks
from rayflink.connectors.cdc.logged_changes import LoggedChanges
from rayflink.connectors.cdc.table_changes import TableChanges

from .logged_rows import LoggedRows
from .pgoutput import Begin, Relation
from .postgres_cdc_tables import CapturedTable
from .postgres_session import PostgresError
from .postgres_values import decoded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Locate = Callable[[CapturedTable, Sequence[bytes], Sequence[str]], list[int]]
"""Computes the numbers of the chunks of some keys: table, keys, bounds of its chunks -> numbers."""


class CapturedRelation:
    """A captured table with the columns that it has in the log at present.

    Args:
        table: as it was when the job started.
        relation: the description in the log.
        marks: of the chunks of the snapshot; None: there was none, or it is over.

    Raises:
        PostgresError: the table was altered, and a captured column is gone or has another type.
    """

    def __init__(self, table: CapturedTable, relation: Relation, marks: ChunkMarks | None) -> None:
        self.table, self._marks = table, marks
        places = {column.name: index for index, column in enumerate(relation.columns)}
        for column in table.columns:
            place = places.get(column.name)
            remedy = "start the job anew, without its checkpoint and with the new columns"
            if place is None:
                problem = f"column {column.name!r} of {table.full_name} was dropped or renamed while changes were read"
                raise PostgresError(problem, remedy)
            now = relation.columns[place]
            if now.type_oid != column.type_oid:
                problem = f"column {column.name!r} of {table.full_name} is {column.shown_type} no longer"
                raise PostgresError(problem, remedy)
        self._places = [places[column.name] for column in table.columns]
        self._key_places = [places[key] for key in table.keys]
        self._chunk_place = places[table.chunk_key.name] if table.chunk_key is not None else -1
        self._width = len(relation.columns)

    def changes(
        self, frames: Sequence[bytes], begins: Sequence[Begin], locate: Locate, upserts: bool
    ) -> TableChanges | None:
        """Return the changes of messages without those that the snapshots of chunks contain; None: there are none.

        An update of the primary key is a deletion and an insertion, so that no row stays under the old key.

        Args:
            frames: of messages I, U and D of this relation, in order.
            begins: of the transaction of each.
            upserts: leave out the rows before updates.

        Raises:
            PostgresError: a value was not changed and is not in the log.
            ProtocolError: a frame is no such message.
        """
        logged = self._parse(frames, begins)
        marks = self._marks
        if marks is not None:
            logged = logged.without_snapshot(marks, lambda rows: self._chunks_of(logged.rows, rows, marks, locate))
        return self._to_changes(logged, upserts) if logged.kinds.size else None

    def _parse(self, frames: Sequence[bytes], begins: Sequence[Begin]) -> LoggedChanges[LoggedRows]:
        import numpy

        rows = LoggedRows(frames, self._width)
        for column, place in zip(self.table.columns, self._places, strict=True):
            if rows.lacks_values(place):
                problem = f"an update of {self.table.full_name} left column {column.name!r} as it was"
                remedy = f'run ALTER TABLE "{self.table.schema}"."{self.table.table}" REPLICA IDENTITY FULL'
                full = f"{remedy}, and start the job anew with a snapshot; or leave the column out"
                reason = "its value is stored out of line (TOAST), so the log lacks it"
                raise PostgresError(f"{problem}, and {reason}", full)
        transactions = [(begin.commit, begin.xid, begin.moment_ms) for begin in begins]
        commits, xids, moments_ms = numpy.array(transactions, numpy.int64).reshape(-1, 3).T
        return LoggedChanges(rows, rows.kinds, rows.old, rows.old_is_key, rows.new, commits, xids, moments_ms)

    def _chunks_of(self, rows: LoggedRows, chosen: NDArray[np.int64], marks: ChunkMarks, locate: Locate) -> list[int]:
        import numpy
        import pyarrow

        keys, key_type = rows.column(self._chunk_place, chosen), self.table.chunk_key
        assert key_type is not None and not keys.null_count, "a key is NULL"
        if key_type.kind in ("int2", "int4", "int8"):
            bounds = numpy.array(list(map(int, marks.bounds)), numpy.int64)
            numbers = keys.cast(pyarrow.string()).cast(pyarrow.int64()).to_numpy()
            chunks: list[int] = numpy.searchsorted(bounds, numbers, "right").tolist()
            return chunks
        return locate(self.table, keys.to_pylist(), marks.bounds)

    def _to_changes(self, logged: LoggedChanges[LoggedRows], upserts: bool) -> TableChanges:
        import pyarrow

        table, logged_rows = self.table, logged.rows
        emitted = logged.emitted(upserts, lambda rows: [logged_rows.column(place, rows) for place in self._key_places])
        columns = []
        for column, place in zip(table.columns, self._places, strict=True):
            strings = logged_rows.column(place, emitted.rows).cast(pyarrow.string())
            columns.append(decoded(column.name, strings, column.kind, column.target))
        batch = pyarrow.RecordBatch.from_arrays(columns, schema=table.arrow_schema)
        return TableChanges(
            table.database, table.schema, table.table, with_kinds(batch, pyarrow.array(emitted.kinds)),
            emitted.moments_ms, table.keys, emitted.commits,
        )  # fmt: skip


__all__ = ["CapturedRelation", "Locate"]
