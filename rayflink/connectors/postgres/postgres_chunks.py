"""Chunks of tables, read in one snapshot each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.connectors.cdc.change_reader import LoadedChunk, Tables
from rayflink.connectors.cdc.chunks import FinishedChunk
from rayflink.connectors.cdc.log_thread import LogCursor
from rayflink.connectors.cdc.snapshot_enumeration import ChunkSplit, LogSplit
from rayflink.connectors.cdc.table_changes import TableChanges

from .pgoutput import position_of
from .postgres_cdc_preparation import CdcSettings
from .postgres_cdc_tables import CapturedTable
from .postgres_log import PostgresLog
from .postgres_session import PostgresError, Session, driver
from .postgres_values import columns_of_csv, decoded
from .snapshot_marks import PostgresMark

if TYPE_CHECKING:
    import psycopg

_MOST_BYTES = 512 << 20
"""Bytes of one chunk, which a reader has in memory, and a checkpoint may contain."""


class PostgresTables(Tables[CapturedTable]):
    """Reads chunks of tables, and the log.

    Args:
        settings: of the source.
    """

    def __init__(self, settings: CdcSettings) -> None:
        self._settings = settings
        self._session: Session | None = None
        self._running: psycopg.Connection[Any] | None = None

    def load(self, split: ChunkSplit[CapturedTable]) -> LoadedChunk[CapturedTable]:
        """Read a chunk in one snapshot, and mark which transactions the snapshot shows.

        Raises:
            PostgresError: there is no connection, or the chunk is too large.
        """
        if self._session is None:
            self._session = Session(self._settings.dsn)
        try:
            mark, data = self._session.run(lambda cursor: self._copy(cursor, split))
        except driver().errors.UndefinedTable as error:
            raise PostgresError(f"table {split.table.full_name} is gone", "create it, or start the job anew") from error
        except driver().errors.UndefinedColumn as error:
            problem = f"table {split.table.full_name} was altered: {' '.join(str(error).split())}"
            raise PostgresError(problem, "start the job anew, without its checkpoint") from error
        rows = rows_of_csv(data, split.table)
        done = FinishedChunk(split.chunk, mark)
        return LoadedChunk(split, done, (rows,) if len(rows) else ())

    def open_log(self, split: LogSplit[CapturedTable], metrics: MetricGroup) -> LogCursor:
        return PostgresLog(self._settings, split, metrics)

    def interrupt(self) -> None:
        connection = self._running
        if connection is not None:
            connection.cancel_safe(timeout=5)

    def _copy(self, cursor: psycopg.Cursor[Any], split: ChunkSplit[CapturedTable]) -> tuple[PostgresMark, bytes]:
        table, chunk, sql = split.table, split.chunk, driver().sql
        self._running = cursor.connection
        try:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute("SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text")
            snapshot, position = cursor.fetchone() or ("", "")
            conditions = [sql.SQL("true")]
            key = table.chunk_key
            for bound, sign in ((chunk.lower, ">="), (chunk.upper, "<")):
                if bound is not None and key is not None:
                    condition = sql.SQL("{} " + sign + " {}::{}")
                    shown = sql.SQL(key.shown_type)
                    conditions.append(condition.format(sql.Identifier(key.name), sql.Literal(bound), shown))
            query = sql.SQL("COPY (SELECT {} FROM {} WHERE {}) TO STDOUT (FORMAT csv, FORCE_QUOTE *)").format(
                sql.SQL(", ").join(sql.Identifier(column.name) for column in table.columns),
                sql.Identifier(table.schema, table.table),
                sql.SQL(" AND ").join(conditions),
            )
            return PostgresMark(snapshot, position_of(position)), self._drain(cursor, query, split)
        finally:
            self._running = None

    def _drain(
        self, cursor: psycopg.Cursor[Any], query: psycopg.sql.Composed, split: ChunkSplit[CapturedTable]
    ) -> bytes:
        blocks, size = [], 0
        with cursor.copy(query) as copy:
            for block in copy:
                size += len(block)
                if size > _MOST_BYTES:
                    key = split.table.chunk_key
                    by = "has no primary key" if key is None else f"is divided by {key.name!r}"
                    problem = f"{split.table.full_name} {by}, and one chunk has more than {_MOST_BYTES >> 20} MiB"
                    remedy = "give it a primary key, or set another column of it as chunk key, or a smaller split size"
                    raise PostgresError(problem, remedy)
                blocks.append(bytes(block))
        return b"".join(blocks)


def rows_of_csv(data: bytes, table: CapturedTable) -> TableChanges:
    """Return rows of a table as `COPY` has written them."""
    import pyarrow

    raw = columns_of_csv(data, [column.name for column in table.columns])
    columns = [
        decoded(column.name, values.combine_chunks(), column.kind, column.target)
        for column, values in zip(table.columns, raw.columns, strict=True)
    ]
    plain = [values.combine_chunks() if isinstance(values, pyarrow.ChunkedArray) else values for values in columns]
    batch = pyarrow.RecordBatch.from_arrays(plain, schema=table.arrow_schema)
    return TableChanges(table.database, table.schema, table.table, batch, keys=table.keys)


__all__ = ["PostgresTables", "rows_of_csv"]
