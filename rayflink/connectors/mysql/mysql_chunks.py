"""Chunks of tables, read in one snapshot each."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.connectors.cdc.change_reader import LoadedChunk, Tables
from rayflink.connectors.cdc.chunks import FinishedChunk
from rayflink.connectors.cdc.log_thread import LogCursor
from rayflink.connectors.cdc.snapshot_enumeration import ChunkSplit, LogSplit
from rayflink.connectors.cdc.table_changes import TableChanges

from .binlog_positions import PositionMark
from .mysql_cdc_preparation import MySqlSettings, literal_of
from .mysql_cdc_tables import CapturedTable
from .mysql_log import MySqlLog
from .mysql_session import MySqlError, Session, driver, line_of
from .mysql_values import arrays_of_csv, quoted, selected
from .snapshot_positions import open_snapshot

if TYPE_CHECKING:
    import pymysql

MOST_BYTES = 512 << 20
"""Bytes of one chunk, which a reader has in memory, and a checkpoint may contain."""
_AT_A_TIME = 2000
_TRIES = 5
_CHANGED = 1412
"""Number of the error of a table that was altered after the snapshot was taken."""


class MySqlTables(Tables[CapturedTable]):
    """Reads chunks of tables, and the log.

    Args:
        settings: of the source.
        subtask: of the reader.
        metrics: counts `numZeroDates`.
    """

    def __init__(self, settings: MySqlSettings, subtask: int, metrics: MetricGroup) -> None:
        self._settings, self._subtask = settings, subtask
        self._zeros = metrics.counter("numZeroDates")
        self._session: Session | None = None
        self._is_loading = False

    def load(self, split: ChunkSplit[CapturedTable]) -> LoadedChunk[CapturedTable]:
        """Read a chunk in one snapshot, and mark which part of the log the snapshot shows.

        Raises:
            MySqlError: there is no connection, or the chunk is too large.
        """
        if self._session is None:
            self._session = Session(self._settings.address)
        errors, table = driver().err, split.table
        self._is_loading = True
        try:
            for left in reversed(range(_TRIES)):
                try:
                    mark, data = self._session.run(lambda cursor: self._read(cursor, split))
                    break
                except errors.MySQLError as error:
                    if error.args[0] != _CHANGED or not left:
                        raise
                    time.sleep(0.1)
        except errors.MySQLError as error:
            problem = f"table {table.full_name} cannot be read: {line_of(error)}"
            raise MySqlError(problem, "if it was altered, start the job anew, without its checkpoint") from error
        finally:
            self._is_loading = False
        rows = self._rows_of(data, table)
        return LoadedChunk(split, FinishedChunk(split.chunk, mark), (rows,) if len(rows) else ())

    def open_log(self, split: LogSplit[CapturedTable], metrics: MetricGroup) -> LogCursor:
        return MySqlLog(self._settings, self._settings.server_id + self._subtask, split, metrics)

    def interrupt(self) -> None:
        session = self._session
        number = None if session is None or not self._is_loading else session.thread_id
        if number is not None:
            killer = Session(self._settings.address)
            try:
                killer.run(lambda cursor: cursor.execute(f"KILL QUERY {number}"), ())
            except (MySqlError, driver().err.MySQLError):
                return  # it has ended by itself, or the server is gone
            finally:
                killer.close()

    def close(self) -> None:
        if self._session is not None:
            self._session.close()

    def _read(self, cursor: pymysql.cursors.Cursor, split: ChunkSplit[CapturedTable]) -> tuple[PositionMark, bytes]:
        position = open_snapshot(cursor)
        stream = driver().cursors.SSCursor(cursor.connection)
        try:
            stream.execute(statement_of(cursor, split))
            blocks, size = [], 0
            while rows := stream.fetchmany(_AT_A_TIME):
                lines = [line for (line,) in rows]
                if None in lines:
                    problem = f"a row of {split.table.full_name} is longer than max_allowed_packet of the server"
                    raise MySqlError(problem, "raise it (up to 1 GiB), or leave the column out")
                blocks.append(b"\n".join(lines))
                size += len(blocks[-1]) + 1
                if size > MOST_BYTES:
                    cursor.connection.close()  # what the server still sends belongs to no other statement
                    raise _too_large(split.table)
        finally:
            if cursor.connection.open:
                stream.close()
        cursor.execute("COMMIT")
        return PositionMark(position), b"\n".join([*blocks, b""]) if blocks else b""

    def _rows_of(self, data: bytes, table: CapturedTable) -> TableChanges:
        import pyarrow

        arrays, zeros = arrays_of_csv(data, table.columns)
        self._zeros.inc(zeros)
        batch = pyarrow.RecordBatch.from_arrays(arrays, schema=table.arrow_schema)
        return TableChanges(table.database, "", table.table, batch, keys=table.keys, connector="mysql")


def statement_of(cursor: pymysql.cursors.Cursor, split: ChunkSplit[CapturedTable]) -> str:
    """Return the query of a chunk's rows, each as a line of CSV."""
    table, key = split.table, split.table.chunk_key
    columns = ", ',', ".join(map(selected, table.columns))
    conditions = []
    for bound, sign in ((split.chunk.lower, ">="), (split.chunk.upper, "<")):
        if bound is not None and key is not None:
            conditions.append(f"{quoted(key.name)} {sign} {literal_of(cursor, key, bound)}")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT CAST(CONCAT({columns}) AS BINARY) FROM {quoted(table.database)}.{quoted(table.table)}{where}"


def _too_large(table: CapturedTable) -> MySqlError:
    key = table.chunk_key
    by = "has no primary key that divides it" if key is None else f"is divided by {key.name!r}"
    problem = f"{table.full_name} {by}, and one chunk has more than {MOST_BYTES >> 20} MiB"
    remedy = "give it a primary key, or set another column of it as chunk key, or a smaller split size"
    return MySqlError(problem, remedy)


__all__ = ["MySqlTables", "statement_of"]
