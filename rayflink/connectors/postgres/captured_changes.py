"""Changes of one table from the log, as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rayflink.common.records.row_kinds import with_kinds
from rayflink.common.types import RowKind
from rayflink.connectors.cdc.chunks import ChunkMarks
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
_INSERT, _BEFORE, _AFTER, _DELETE = (
    kind.value for kind in (RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE)
)


@dataclass(frozen=True, slots=True, eq=False)
class LoggedChanges:
    """Changes as they are in the log, by columns.

    Args:
        rows: of all changes.
        kinds: int8[n]: INSERT, DELETE, or UPDATE_AFTER for an update.
        old: numbers of the rows before, int64[n]; -1: the log lacks it.
        old_is_key: bool[n]: the row before has values of the key only.
        new: numbers of the rows after, int64[n]; -1: the row is deleted.
        commits: positions of the transactions' commits, int64[n].
        xids: numbers of the transactions, int64[n].
        moments_ms: when they were committed, int64[n] of epoch milliseconds.
    """

    rows: LoggedRows
    kinds: NDArray[np.int8]
    old: NDArray[np.int64]
    old_is_key: NDArray[np.bool_]
    new: NDArray[np.int64]
    commits: NDArray[np.int64]
    xids: NDArray[np.int64]
    moments_ms: NDArray[np.int64]

    def select(self, chosen: NDArray[np.bool_], kinds: NDArray[np.int8]) -> LoggedChanges:
        """Return some of the changes, bool[n], of other kinds, int8[n]."""
        return LoggedChanges(
            self.rows, kinds[chosen], self.old[chosen], self.old_is_key[chosen], self.new[chosen],
            self.commits[chosen], self.xids[chosen], self.moments_ms[chosen],
        )  # fmt: skip


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
            found = places.get(column.name)
            remedy = "start the job anew, without its checkpoint and with the new columns"
            if found is None:
                problem = f"column {column.name!r} of {table.full_name} was dropped or renamed while changes were read"
                raise PostgresError(problem, remedy)
            now = relation.columns[found]
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
        logged = self._without_snapshot(self._parse(frames, begins), locate)
        return self._to_changes(logged, upserts) if logged.kinds.size else None

    def _parse(self, frames: Sequence[bytes], begins: Sequence[Begin]) -> LoggedChanges:
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

    def _without_snapshot(self, logged: LoggedChanges, locate: Locate) -> LoggedChanges:
        """Leave out what the snapshots of the chunks contain; see `surviving` of `rayflink.connectors.cdc.chunks`."""
        import numpy

        marks = self._marks
        if marks is None or logged.commits[0] >= marks.high:
            return logged
        old, new = logged.old, logged.new
        before = self._contained(logged, numpy.where(old < 0, new, old), marks, locate)
        after = self._contained(logged, numpy.where(new < 0, old, new), marks, locate)
        is_update = logged.kinds == _AFTER
        kinds = numpy.where(is_update & before, _INSERT, logged.kinds)
        kinds = numpy.where(is_update & after, _DELETE, kinds).astype(numpy.int8)
        gone = numpy.where(is_update, before & after, numpy.where(logged.kinds == _INSERT, after, before))
        return logged.select(~gone, kinds)

    def _contained(
        self, logged: LoggedChanges, rows: NDArray[np.int64], marks: ChunkMarks, locate: Locate
    ) -> NDArray[np.bool_]:
        """Return whether the snapshot of each row's chunk contains the change's transaction, bool[n]."""
        import numpy

        pairs = list(zip(self._chunks_of(logged.rows, rows, marks, locate), logged.xids.tolist(), strict=True))
        contained = {pair: marks.contains(*pair) for pair in set(pairs)}
        found = numpy.fromiter((contained[pair] for pair in pairs), bool, len(pairs))
        return found & (logged.commits < marks.high)

    def _chunks_of(self, rows: LoggedRows, chosen: NDArray[np.int64], marks: ChunkMarks, locate: Locate) -> list[int]:
        import numpy
        import pyarrow

        if not marks.bounds:
            return [0] * len(chosen)
        keys, key_type = rows.column(self._chunk_place, chosen), self.table.chunk_key
        assert key_type is not None and not keys.null_count, "a key is NULL"
        if key_type.kind in ("int2", "int4", "int8"):
            bounds = numpy.array(list(map(int, marks.bounds)), numpy.int64)
            numbers = keys.cast(pyarrow.string()).cast(pyarrow.int64()).to_numpy()
            chunks: list[int] = numpy.searchsorted(bounds, numbers, "right").tolist()
            return chunks
        return locate(self.table, keys.to_pylist(), marks.bounds)

    def _to_changes(self, logged: LoggedChanges, upserts: bool) -> TableChanges:
        import numpy
        import pyarrow

        kinds, old, new = logged.kinds, logged.old, logged.new
        has_both = (kinds == _AFTER) & (old >= 0)
        moves = has_both & (logged.old_is_key | self._other_keys(logged, has_both & ~logged.old_is_key))
        is_two = has_both if not upserts else moves
        counts = 1 + is_two
        first = numpy.cumsum(counts) - counts
        rows = numpy.empty(int(counts.sum()), numpy.int64)
        row_kinds = numpy.empty(rows.size, numpy.int8)
        rows[first] = numpy.where(is_two | (kinds == _DELETE), old, new)
        row_kinds[first] = numpy.where(moves, _DELETE, numpy.where(is_two, _BEFORE, kinds))
        rows[first[is_two] + 1] = new[is_two]
        row_kinds[first[is_two] + 1] = numpy.where(moves, _INSERT, _AFTER)[is_two]
        table = self.table
        columns = []
        for column, place in zip(table.columns, self._places, strict=True):
            strings = logged.rows.column(place, rows).cast(pyarrow.string())
            columns.append(decoded(column.name, strings, column.kind, column.target))
        batch = pyarrow.RecordBatch.from_arrays(columns, schema=table.arrow_schema)
        return TableChanges(
            table.database, table.schema, table.table, with_kinds(batch, pyarrow.array(row_kinds)),
            numpy.repeat(logged.moments_ms, counts), table.keys, numpy.repeat(logged.commits, counts),
        )  # fmt: skip

    def _other_keys(self, logged: LoggedChanges, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which of the chosen updates change the primary key, bool[n]."""
        import numpy
        import pyarrow.compute as compute

        found = numpy.zeros(chosen.size, bool)
        for place in self._key_places:
            before = logged.rows.column(place, logged.old[chosen])
            after = logged.rows.column(place, logged.new[chosen])
            differs = compute.fill_null(compute.not_equal(before, after), False)
            one_is_null = compute.xor(before.is_null(), after.is_null())
            found[chosen] |= compute.or_(differs, one_is_null).to_numpy(zero_copy_only=False)
        return found


__all__ = ["CapturedRelation", "Locate", "LoggedChanges"]
