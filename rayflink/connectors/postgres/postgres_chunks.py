"""Chunks of tables, read in one snapshot each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.connectors.cdc.change_reader import LoadedChunk, Tables
from rayflink.connectors.cdc.chunks import FinishedChunk
from rayflink.connectors.cdc.log_thread import LogCursor
from rayflink.connectors.cdc.snapshot_enumeration import ChunkSplit, LogSplit

from .pgoutput import position_of
from .postgres_cdc_preparation import CdcSettings
from .postgres_cdc_tables import CapturedTable
from .postgres_copying import copy_statement, key_conditions, read_copy, rows_of_csv
from .postgres_log import PostgresLog
from .postgres_session import PostgresError, Session, driver
from .snapshot_marks import PostgresMark

if TYPE_CHECKING:
    import psycopg


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

    def close(self) -> None:
        if self._session is not None:
            self._session.close()

    def _copy(self, cursor: psycopg.Cursor[Any], split: ChunkSplit[CapturedTable]) -> tuple[PostgresMark, bytes]:
        table, chunk = split.table, split.chunk
        self._running = cursor.connection
        try:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute("SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text")
            snapshot, position = cursor.fetchone() or ("", "")
            statement = copy_statement(table, key_conditions(table, chunk))
            return PostgresMark(snapshot, position_of(position)), read_copy(cursor, statement, table)
        finally:
            self._running = None


__all__ = ["PostgresTables"]
