"""Changes of one table from the log, collected and turned into columns."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rayflink.common.records.row_kinds import with_kinds
from rayflink.common.types import RowKind
from rayflink.connectors.cdc.chunks import ChunkMarks, surviving
from rayflink.connectors.cdc.table_changes import TableChanges

from .pgoutput import UNCHANGED, Delete, Insert, Relation, Update, Value, Values
from .postgres_cdc_tables import CapturedTable
from .postgres_session import PostgresError
from .postgres_values import decoded

Locate = Callable[[CapturedTable, Sequence[bytes], Sequence[str]], list[int]]
"""Computes the numbers of the chunks of some keys: table, keys, bounds of its chunks -> numbers."""


@dataclass(slots=True)
class LoggedChange:
    """A change as it is in the log.

    Args:
        kind: INSERT, DELETE, or UPDATE_AFTER for an update.
        old: values of the captured columns before; None: the log lacks them.
        old_is_key: `old` has values of the key only.
        new: values after; None: the row is deleted.
    """

    kind: RowKind
    old: Values | None
    old_is_key: bool
    new: Values | None
    commit: int
    xid: int
    moment_ms: int


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
        names = [column.name for column in table.columns]
        self._keys = [names.index(key) for key in table.keys if key in names]
        self._key_places = [places[key] for key in table.keys]
        self._chunk_place = places[table.chunk_key.name] if table.chunk_key is not None else -1
        self._is_full = relation.identity == "f"

    def collect(self, message: Insert | Update | Delete, commit: int, xid: int, moment_ms: int) -> LoggedChange:
        """Return the change that a message describes, with the values of all columns of the relation.

        Raises:
            PostgresError: a value was not changed and is not in the log.
        """
        if isinstance(message, Insert):
            return LoggedChange(RowKind.INSERT, None, False, message.new, commit, xid, moment_ms)
        if isinstance(message, Delete):
            return LoggedChange(RowKind.DELETE, message.old, message.old_is_key, None, commit, xid, moment_ms)
        new, old = message.new, message.old
        if UNCHANGED in new:
            new = self._completed(new, None if message.old_is_key else old)
        return LoggedChange(RowKind.UPDATE_AFTER, old, message.old_is_key, new, commit, xid, moment_ms)

    def _completed(self, new: Values, old: Values | None) -> Values:
        if old is not None:
            return [before if value is UNCHANGED else value for before, value in zip(old, new, strict=True)]
        for column, place in zip(self.table.columns, self._places, strict=True):
            if new[place] is UNCHANGED:
                problem = f"an update of {self.table.full_name} left column {column.name!r} as it was"
                remedy = f'run ALTER TABLE "{self.table.schema}"."{self.table.table}" REPLICA IDENTITY FULL'
                full = f"{remedy}, and start the job anew with a snapshot; or leave the column out"
                reason = "its value is stored out of line (TOAST), so the log lacks it"
                raise PostgresError(f"{problem}, and {reason}", full)
        return [None if value is UNCHANGED else value for value in new]

    def surviving(self, changes: Sequence[LoggedChange], locate: Locate) -> list[LoggedChange]:
        """Return the changes that the snapshots of the chunks do not contain."""
        marks = self._marks
        if marks is None or changes[0].commit >= marks.high:
            return list(changes)
        befores = self._chunks_of([change.new if change.old is None else change.old for change in changes], locate)
        afters = self._chunks_of([change.old if change.new is None else change.new for change in changes], locate)
        kept = []
        for change, before, after in zip(changes, befores, afters, strict=True):
            is_late = change.commit >= marks.high
            contained = (False, False) if is_late else (
                marks.contains(before, change.xid), marks.contains(after, change.xid))  # fmt: skip
            kind = surviving(change.kind, *contained)
            if kind is change.kind:
                kept.append(change)
            elif kind is not None:
                kept.append(_as(change, kind))
        return kept

    def _chunks_of(self, rows: Sequence[Values | None], locate: Locate) -> list[int]:
        marks = self._marks
        assert marks is not None
        if not marks.bounds:
            return [0] * len(rows)
        keys = [row[self._chunk_place] for row in rows if row is not None]
        plain = [key for key in keys if isinstance(key, bytes)]
        key_type = self.table.chunk_key
        assert key_type is not None and len(plain) == len(rows)
        if key_type.kind in ("int2", "int4", "int8"):
            bounds = list(map(int, marks.bounds))
            return [bisect_right(bounds, int(key)) for key in plain]
        return locate(self.table, plain, marks.bounds)

    def to_changes(self, changes: Sequence[LoggedChange], upserts: bool) -> TableChanges | None:
        """Return changes as columns; None: there are none.

        An update of the primary key is a deletion and an insertion, so that no row stays under the old key.

        Args:
            upserts: leave out the rows before updates.
        """
        import numpy
        import pyarrow

        rows: list[Values] = []
        kinds: list[int] = []
        moments: list[int] = []
        commits: list[int] = []
        for change in changes:
            steps = self._steps(change, upserts)
            for kind, row in steps:
                rows.append(row)
                kinds.append(kind.value)
                moments.append(change.moment_ms)
                commits.append(change.commit)
        if not rows:
            return None
        table = self.table
        every = list(zip(*rows, strict=True))
        columns = []
        for column, place in zip(table.columns, self._places, strict=True):
            strings = pyarrow.array(every[place], pyarrow.binary()).cast(pyarrow.string())
            columns.append(decoded(column.name, strings, column.kind, column.target))
        batch = pyarrow.RecordBatch.from_arrays(columns, schema=table.arrow_schema)
        return TableChanges(
            table.database, table.schema, table.table, with_kinds(batch, pyarrow.array(kinds, pyarrow.int8())),
            numpy.array(moments, numpy.int64), table.keys, numpy.array(commits, numpy.int64),
        )  # fmt: skip

    def _steps(self, change: LoggedChange, upserts: bool) -> list[tuple[RowKind, Values]]:
        kind, old, new = change.kind, change.old, change.new
        if kind is RowKind.INSERT:
            assert new is not None
            return [(kind, new)]
        if kind is RowKind.DELETE:
            assert old is not None
            return [(kind, old)]
        assert new is not None
        if old is None:
            return [(kind, new)]
        places = self._key_places
        if change.old_is_key or [old[place] for place in places] != [new[place] for place in places]:
            return [(RowKind.DELETE, old), (RowKind.INSERT, new)]
        return [(kind, new)] if upserts else [(RowKind.UPDATE_BEFORE, old), (kind, new)]


def _as(change: LoggedChange, kind: RowKind) -> LoggedChange:
    if kind is RowKind.INSERT:
        return LoggedChange(kind, None, False, change.new, change.commit, change.xid, change.moment_ms)
    return LoggedChange(kind, change.old, change.old_is_key, None, change.commit, change.xid, change.moment_ms)


__all__ = ["CapturedRelation", "Locate", "LoggedChange", "Value"]
