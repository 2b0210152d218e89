"""The writers of PostgreSQL sinks: records become rows, of their table at once or of the staging table."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rayflink.common.connector_base.sink import SinkWriter, UnwritableRecord, WriterContext
from rayflink.common.errors import shorten
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import Batch, rows_of
from rayflink.common.types import Row
from rayflink.user_types import UserRecord

from .postgres_session import PAUSES_S, PostgresError, Session, driver, wait_at_most
from .postgres_tables import Tables, delete_staged

if TYPE_CHECKING:
    import psycopg

BATCH_ROWS = 5_000
"""Rows that are written in one go, and most that a writer holds."""
CHUNK_ROWS = 100_000
"""Most rows that are committed in one transaction."""
HELD_MS = 1_000
"""Time for which a row that is written to its table at once waits for others."""
TAKE_OVER_S = 60
"""Time for which an attempt waits for the writes of an earlier one to end; the server notices a lost node sooner."""
_LINE = re.compile(r"^COPY .*?, line (\d+)(?:, column ([^:\n]+))?", re.MULTILINE)
"""The server's position; lines above it are of functions that a trigger or a check has called."""
_NOT_NULL = "SELECT attname FROM pg_attribute WHERE attrelid = 'rayflink_rows'::regclass AND attnotnull AND attnum > 0"


@dataclass(frozen=True)
class Chunk:
    """Staged rows of one subtask that are committed in one transaction.

    Args:
        id: never used again.
        number: rises from chunk to chunk of a subtask, also over restores.
        staged_s: epoch seconds.
    """

    id: str
    tables: Tables
    job_id: str
    operator_id: str
    subtask: int
    number: int
    rows: int
    staged_s: float

    def __repr__(self) -> str:
        return f"{self.rows} rows for table {'.'.join(self.tables.target)!r} (chunk {self.id})"


class Rows:
    """Turns records into rows, and says which of them the database refused.

    Args:
        values: record -> values, or None.
    """

    def __init__(self, tables: Tables, values: Callable[[Any], Sequence[Any]] | None) -> None:
        self.tables, self._values, self._columns = tables, values, tables.columns
        self._keys = [(tables.columns.index(key), key) for key in tables.keys]

    def of(self, record: UserRecord) -> tuple[Any, ...]:
        """Return the values of a record.

        Raises:
            UnwritableRecord: it has not those that are wanted.
        """
        try:
            values = self._of(record)
        except Exception as error:
            raise UnwritableRecord(shorten(record)) from error
        if len(values) != len(self._columns):
            wanted = f"{len(self._columns)} for columns {', '.join(self._columns)}"
            refusal = PostgresError(f"found {len(values)} values, wanted {wanted}", "give columns=, values= or a map()")
            raise UnwritableRecord(shorten(record)) from refusal
        for index, key in self._keys:
            if values[index] is None:
                problem = f"key {key!r} is NULL, which equals nothing, so the row would replace none and be added again"
                refusal = PostgresError(problem, "filter such records out, or give them a value there")
                raise UnwritableRecord(shorten(record)) from refusal
        return values

    def _of(self, record: UserRecord) -> tuple[Any, ...]:
        if self._values is not None:
            return tuple(self._values(record))
        return fields_of(record, self._columns)

    def nothing(self) -> Any:
        """Return what is collected until it is sent, without rows; its length is the number of rows."""
        return []

    def copy(
        self, cursor: psycopg.Cursor[Any], into: psycopg.sql.Composed, buffer: Any, prefix: tuple[str, ...] = (),
        first: int | None = None,
    ) -> None:
        """Send rows to a table in one go.

        Args:
            into: the COPY statement.
            buffer: the rows, see `nothing`.
            prefix: values of the first columns, the same in each row.
            first: the number of the first row, which is the next column; None: rows have no numbers.

        Raises:
            UnwritableRecord: one of them does not fit.
        """
        rows, extra = buffer, len(prefix) + (first is not None)
        if first is not None:
            rows = [(*prefix, number, *row) for number, row in enumerate(buffer, first)]
        errors, index = driver().errors, -1
        wrong = (errors.DataError, errors.IntegrityError, errors.ProgrammingError, ValueError, TypeError, OverflowError)
        try:
            with cursor.copy(into) as copy:
                for index, row in enumerate(rows):  # noqa: B007 - read where it fails
                    copy.write_row(row)
        except wrong as error:
            line, refusal = refused_line(error, self.tables)
            if line is None and _is_servers(error):
                raise
            row = rows[index if line is None else line - 1][extra:]
            refusal.__cause__ = error
            raise UnwritableRecord(shorten(row)) from refusal


def fields_of(record: UserRecord, names: Sequence[str]) -> tuple[Any, ...]:
    """Return the fields of some names, of a Row with names, a dict or a named tuple; else all values of a record.

    Raises: what the record raises where it has no such field.
    """
    if isinstance(record, dict):
        return tuple(record[name] for name in names)
    if isinstance(record, Row):
        return tuple(record if record._names is None else record.get_fields_by_names(list(names)))
    if hasattr(record, "_fields"):
        return tuple(getattr(record, name) for name in names)
    return tuple(record) if isinstance(record, tuple | list) else (record,)


def refused_line(error: Exception, tables: Tables) -> tuple[int | None, PostgresError]:
    """Return the line of a `COPY` that the server refuses, counted from one, and the error; None: it names none."""
    line = _LINE.search(_context(error))
    name = ".".join(tables.target)
    where = f"column {line[2]!r} of table {name!r}" if line and line[2] else f"table {name!r}"
    refusal = PostgresError(f"{where} refuses the row: {_primary(error)}", "make it fit in a map() before the sink")
    return None if line is None else int(line[1]), refusal


def _context(error: Exception) -> str:
    """Return the context that the server reports for an error, or an empty string."""
    diagnosis = getattr(error, "diag", None)
    return "" if diagnosis is None else diagnosis.context or ""


def _is_servers(error: Exception) -> bool:
    return getattr(error, "sqlstate", None) is not None


def _primary(error: Exception) -> str:
    diagnosis = getattr(error, "diag", None)
    return (diagnosis.message_primary if diagnosis is not None else None) or str(error).strip()


class DirectWriter(SinkWriter):
    """Writes rows to their table at once, or soon."""

    held_ms: int | None = HELD_MS
    pauses_s: tuple[float, ...] = PAUSES_S

    def __init__(self, ctx: WriterContext, session: Session, rows: Rows) -> None:
        self._ctx, self._session, self._rows = ctx, session, rows
        self._held = rows.nothing()
        self._due_ms: int | None = None
        self._sent = (ctx.metrics or MetricGroup()).counter("numRecordsSend")

    def write(self, batch: Batch) -> None:
        for record in rows_of(batch):
            self._held.append(self._rows.of(record))
            if len(self._held) >= BATCH_ROWS:
                self._send()
        if self._held and self._due_ms is None and self.held_ms is not None:
            self._due_ms = self._ctx.now_ms() + self.held_ms

    def next_time_ms(self) -> int | None:
        return self._due_ms

    def on_time(self, now_ms: int) -> None:
        self.flush(end_of_input=False)

    def flush(self, end_of_input: bool) -> None:
        if self._held:
            self._send()

    def close(self) -> None:
        self._session.close()

    def _send(self) -> None:
        rows = self._held
        self._session.run(lambda cursor: self._insert(cursor, rows), self.pauses_s)
        self._held, self._due_ms = self._rows.nothing(), None
        self._sent.inc(len(rows))

    def _insert(self, cursor: psycopg.Cursor[Any], rows: Any) -> None:
        tables = self._rows.tables
        if not tables.keys:
            self._rows.copy(cursor, tables.statement("COPY {target} ({columns}) FROM STDIN"), rows)
            return
        from psycopg import sql

        text = "CREATE TEMP TABLE rayflink_rows (LIKE {target}, {row} bigint) ON COMMIT DROP"
        cursor.execute(tables.statement(text))
        for (name,) in cursor.execute(_NOT_NULL).fetchall():
            if name not in tables.columns:
                text = "ALTER TABLE rayflink_rows DROP COLUMN {unused}"
                cursor.execute(tables.statement(text, unused=sql.Identifier(name)))
        into = tables.statement("COPY rayflink_rows ({row}, {columns}) FROM STDIN")
        self._rows.copy(cursor, into, rows, first=0)
        newest = "SELECT DISTINCT ON ({keys}) {columns} FROM rayflink_rows ORDER BY {keys}, {row} DESC"
        insert = f"INSERT INTO {{target}} ({{columns}}) {newest} {{on_conflict}}"
        cursor.execute(tables.statement(insert, on_conflict=tables.on_conflict()))


class Stager(DirectWriter):
    """Writes rows to the staging table, in chunks; its state is the number of the next chunk.

    In the ledger stands which attempt stages for a subtask, since its last chunk for as long as what is committed: a
    later one takes that over, and one that is believed to be dead, and is not, then begins no chunk any more.
    """

    state_mode = "union"
    held_ms = None

    def __init__(self, ctx: WriterContext, session: Session, rows: Rows) -> None:
        super().__init__(ctx, session, rows)
        self._number = max((number for _, number in ctx.restored), default=0)
        self._chunk: Chunk | None = None
        self._whole: list[Chunk] = []
        session.run(self._take_over)

    def flush(self, end_of_input: bool) -> None:
        super().flush(end_of_input)
        self._end_chunk()

    def prepare_commit(self) -> Sequence[Chunk]:
        whole, self._whole = self._whole, []
        return whole

    def snapshot_state(self) -> tuple[int, int]:
        return self._ctx.subtask, self._number

    def _end_chunk(self) -> None:
        if self._chunk is not None:
            self._whole.append(self._chunk)
            self._chunk = None

    def _send(self) -> None:
        if self._chunk is None:
            ctx, own = self._ctx, (str(uuid.uuid4()), self._rows.tables)
            self._chunk = Chunk(*own, ctx.job_id, ctx.operator_id, ctx.subtask, self._number, 0, time.time())
            self._number += 1
        rows = self._chunk.rows + len(self._held)
        super()._send()
        self._chunk = replace(self._chunk, rows=rows)
        if rows >= CHUNK_ROWS:
            self._end_chunk()

    def _insert(self, cursor: psycopg.Cursor[Any], rows: Sized) -> None:
        chunk, tables = self._chunk, self._rows.tables
        assert chunk is not None
        staged = chunk.rows + len(rows)
        if chunk.rows == 0:
            self._take(cursor, chunk.subtask)
            text = "INSERT INTO {ledger} (chunk, job_id, operator_id, subtask, number, staging, target) VALUES "
            own = (chunk.id, chunk.job_id, chunk.operator_id, chunk.subtask, chunk.number, tables.staging)
            text += "(%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
            cursor.execute(tables.statement(text), (*own, ".".join(tables.target)))
        known = tables.statement("SELECT row_count FROM {ledger} WHERE chunk = %s FOR UPDATE")
        row = cursor.execute(known, (chunk.id,)).fetchone()
        if row is None:
            problem = f"chunk {chunk.id} of subtask {chunk.subtask} is no longer in the ledger"
            raise PostgresError(problem, "a newer attempt of the job has taken over, or its rows were discarded")
        if row[0] == staged:
            return  # the connection was lost after the commit of this very transaction
        self._rows.copy(cursor, tables.copy_to_staging(), rows, (chunk.id,), chunk.rows)
        count = tables.statement("UPDATE {ledger} SET row_count = %s WHERE chunk = %s")
        cursor.execute(count, (staged, chunk.id))

    def _take_over(self, cursor: psycopg.Cursor[Any]) -> None:
        """Stage in place of earlier attempts of this subtask, and of subtasks that no longer exist.

        What they have staged and no checkpoint knows is deleted. Numbers rise over all subtasks, so chunks of a subtask
        that the checkpoint does not name came behind it where they have at least the highest number that it does name.

        Raises:
            PostgresError: a later attempt has done so.
        """
        wait_at_most(cursor, TAKE_OVER_S)
        ctx, tables = self._ctx, self._rows.tables
        behind = max((number for _, number in ctx.restored), default=0)
        waiting = "SELECT DISTINCT subtask FROM {ledger} WHERE job_id = %s AND operator_id = %s "
        waiting += "AND committed_at IS NULL AND subtask >= %s AND mod(subtask, %s) = %s"
        mine = (ctx.job_id, ctx.operator_id, ctx.parallelism, ctx.parallelism, ctx.subtask)
        gone = [subtask for (subtask,) in cursor.execute(tables.statement(waiting), mine).fetchall()]
        firsts = dict.fromkeys([ctx.subtask, *gone], behind)
        for subtask, number in ctx.restored:
            if subtask == ctx.subtask or (subtask >= ctx.parallelism and subtask % ctx.parallelism == ctx.subtask):
                firsts[subtask] = number
        text = "DELETE FROM {ledger} WHERE job_id = %s AND operator_id = %s AND subtask = %s AND number >= %s "
        text += "AND committed_at IS NULL RETURNING chunk, staging"
        for subtask, first in firsts.items():
            self._take(cursor, subtask)
            if first is not None:
                own = (ctx.job_id, ctx.operator_id, subtask, first)
                delete_staged(cursor, tables.schema, cursor.execute(tables.statement(text), own).fetchall())

    def _take(self, cursor: psycopg.Cursor[Any], subtask: int) -> None:
        """Write down that this attempt stages for a subtask; no other attempt does until the transaction has ended.

        Raises:
            PostgresError: a later attempt does.
        """
        ctx = self._ctx
        place = uuid.uuid5(uuid.NAMESPACE_OID, f"{ctx.job_id} {ctx.operator_id} {subtask}")
        text = "INSERT INTO {ledger} AS known (chunk, job_id, operator_id, subtask, number, staging, target, "
        text += "committed_at) VALUES (%s, %s, %s, %s, %s, '', '', now()) ON CONFLICT (chunk) DO UPDATE SET "
        text += "number = excluded.number, committed_at = now() WHERE known.number <= excluded.number RETURNING 1"
        own = (place, ctx.job_id, ctx.operator_id, subtask, (ctx.epoch << 32) + ctx.attempt)
        if cursor.execute(self._rows.tables.statement(text), own).fetchone() is None:
            problem = f"a later attempt of the job stages the rows of subtask {subtask}"
            raise PostgresError(problem, "this one was believed to be dead, and ends here; nothing is to be done")


__all__ = ["Chunk", "DirectWriter", "Rows", "Stager", "fields_of", "refused_line"]
