"""Rows of a table by `COPY`: the statement, its bytes, and the columns that they are."""

from __future__ import annotations

import select
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rayflink.connectors.cdc.chunks import Chunk
from rayflink.connectors.cdc.table_changes import TableChanges

from .postgres_cdc_tables import CapturedTable
from .postgres_session import PostgresError, driver
from .postgres_values import arrays_of_csv

if TYPE_CHECKING:
    import psycopg

MOST_BYTES = 512 << 20
"""Bytes of one chunk, which a reader has in memory, and a checkpoint may contain."""


def key_conditions(table: CapturedTable, chunk: Chunk) -> list[psycopg.sql.Composable]:
    """Return the conditions of the rows whose chunk key is in [lower, upper)."""
    sql = driver().sql
    conditions: list[psycopg.sql.Composable] = []
    key = table.chunk_key
    for bound, sign in ((chunk.lower, ">="), (chunk.upper, "<")):
        if bound is not None and key is not None:
            condition = sql.SQL("{} " + sign + " {}::{}")
            shown = sql.SQL(key.shown_type)
            conditions.append(condition.format(sql.Identifier(key.name), sql.Literal(bound), shown))
    return conditions


def copy_statement(
    table: CapturedTable, conditions: Sequence[psycopg.sql.Composable], limit: int | None = None
) -> psycopg.sql.Composed:
    """Return the statement that copies the columns of a table out, as `arrays_of_csv` reads them.

    Args:
        conditions: all of them hold.
        limit: rows at most; None: all.
    """
    sql = driver().sql
    parts = [
        sql.SQL("SELECT {}").format(sql.SQL(", ").join(sql.Identifier(column.name) for column in table.columns)),
        sql.SQL("FROM {}").format(sql.Identifier(table.schema, table.table)),
    ]
    if conditions:
        parts.append(sql.SQL("WHERE ") + sql.SQL(" AND ").join(conditions))
    if limit is not None:
        parts.append(sql.SQL("LIMIT {}").format(sql.Literal(limit)))
    statement: psycopg.sql.Composed = sql.SQL("COPY ({}) TO STDOUT (FORMAT csv)").format(sql.SQL(" ").join(parts))
    return statement


def read_copy(
    cursor: psycopg.Cursor[tuple[object, ...]], statement: psycopg.sql.Composed, table: CapturedTable
) -> bytes:
    """Return the bytes that a `COPY` sends.

    They are taken from PostgreSQL's library row by row without psycopg's objects in between, in a third of the time.

    Args:
        table: where they are from, for the error.

    Raises:
        PostgresError: they are more than `MOST_BYTES`.
        psycopg.Error: the server refuses, or the connection is lost.
    """
    connection = cursor.connection
    library, blocks, size = connection.pgconn, [], 0
    library.send_query(statement.as_bytes(connection))
    try:
        _check(_next_result(library), cursor)
        next_block = library.get_copy_data
        while True:
            length, block = next_block(1)
            if length > 0:
                blocks.append(bytes(block))
                size += length
                if size > MOST_BYTES:
                    raise _too_large(table)
            elif length == 0:
                _wait(library, select.POLLIN)
            else:
                break
        _check(_next_result(library), cursor)
        while _next_result(library) is not None:
            pass
    except BaseException:
        if library.transaction_status == driver().pq.TransactionStatus.ACTIVE:
            connection.close()  # what the server still sends belongs to no other statement
        raise
    return b"".join(blocks)


def _wait(library: psycopg.pq.abc.PGconn, event: int) -> None:
    """Wait until the server has sent something, or takes something."""
    poll = select.poll()
    poll.register(library.socket, event)
    poll.poll()
    if event == select.POLLIN:
        library.consume_input()


def _next_result(library: psycopg.pq.abc.PGconn) -> psycopg.pq.abc.PGresult | None:
    while library.flush():
        _wait(library, select.POLLOUT)
    while library.is_busy():
        _wait(library, select.POLLIN)
    return library.get_result()


def _check(result: psycopg.pq.abc.PGresult | None, cursor: psycopg.Cursor[tuple[object, ...]]) -> None:
    """Raise the error of a result, if it is one, after those behind it have been read."""
    psycopg = driver()
    status = psycopg.pq.ExecStatus
    if result is None or result.status not in (status.COPY_OUT, status.COMMAND_OK):
        library = cursor.connection.pgconn
        while _next_result(library) is not None:
            pass
        if result is None:
            raise psycopg.OperationalError("the server sends no result of a COPY")
        raise psycopg.errors.error_from_result(result, encoding="utf-8")


def _too_large(table: CapturedTable) -> PostgresError:
    key = table.chunk_key
    by = "has no primary key" if key is None else f"is divided by {key.name!r}"
    problem = f"{table.full_name} {by}, and one chunk has more than {MOST_BYTES >> 20} MiB"
    remedy = "give it a primary key, or set another column of it as chunk key, or a smaller split size"
    return PostgresError(problem, remedy)


def rows_of_csv(data: bytes, table: CapturedTable) -> TableChanges:
    """Return rows of a table as `COPY` has written them."""
    import pyarrow

    batch = pyarrow.RecordBatch.from_arrays(arrays_of_csv(data, table.columns), schema=table.arrow_schema)
    return TableChanges(table.database, table.schema, table.table, batch, keys=table.keys)


__all__ = ["copy_statement", "key_conditions", "read_copy", "rows_of_csv"]
