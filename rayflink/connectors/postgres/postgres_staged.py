"""Rows that PostgreSQL sinks have staged and not committed yet, for inspection and deletion."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .postgres_session import Session
from .postgres_tables import CHUNK, LEDGER, delete_staged, identifier, is_there


@dataclass(frozen=True)
class StagedRows:
    """Rows that wait for their checkpoint, or for a restore of it.

    Args:
        target: schema and table they are for.
        rows: how many.
    """

    chunk: str
    job_id: str
    subtask: int
    target: str
    rows: int
    staged_at: datetime


def staged_rows(dsn: str, schema: str = "public") -> list[StagedRows]:
    """Return the rows staged in a schema, oldest first: of running jobs, and of ended ones that were not restored.

    Raises:
        PostgresError: there is no connection.
    """
    from psycopg import Cursor, sql

    session = Session(dsn)
    text = "SELECT chunk::text, job_id, subtask, target, row_count, staged_at FROM {} "
    text += "WHERE committed_at IS NULL ORDER BY staged_at"

    def work(cursor: Cursor[tuple[Any, ...]]) -> list[StagedRows]:
        if not is_there(cursor, schema, LEDGER):
            return []
        query = sql.SQL(text).format(sql.Identifier(schema, LEDGER))
        return [StagedRows(*row) for row in cursor.execute(query).fetchall()]

    try:
        return session.run(work)
    finally:
        session.close()


def discard_staged_rows(dsn: str, job_id: str, schema: str = "public") -> int:
    """Delete what a job has staged and not committed; gives how many rows. Only for a job that is never restored again.

    Raises:
        PostgresError: there is no connection.
    """
    from psycopg import Cursor, sql

    session = Session(dsn)
    text = "DELETE FROM {} WHERE job_id = %s AND committed_at IS NULL RETURNING chunk, staging, row_count"

    def work(cursor: Cursor[tuple[object, str, int]]) -> int:
        if not is_there(cursor, schema, LEDGER):
            return 0
        ledger = identifier(schema, LEDGER, has_parameters=True)
        gone = cursor.execute(sql.SQL(text).format(ledger), (job_id,)).fetchall()
        delete_staged(cursor, schema, [(chunk, staging) for chunk, staging, _ in gone])
        return sum(rows for _, _, rows in gone)

    try:
        return session.run(work)
    finally:
        session.close()


def drop_staging_tables(dsn: str, schema: str = "public") -> list[str]:
    """Drop the staging tables of a schema in which no row waits; gives their names.

    Tables with rows that wait for their checkpoint stay. A job that runs and has staged nothing loses its table, too:
    its next attempt makes another.

    Raises:
        PostgresError: there is no connection.
    """
    from psycopg import Cursor, sql

    session = Session(dsn)
    own = (
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON "
        "a.attrelid = c.oid WHERE n.nspname = %s AND c.relkind = 'r' AND c.relname ~ '^rayflink_staged_[0-9a-f]{16}$' "
        "AND a.attname = %s ORDER BY c.relname"
    )

    def work(cursor: Cursor[tuple[Any, ...]]) -> list[str]:
        dropped = []
        for (name,) in cursor.execute(own, (schema, CHUNK)).fetchall():
            table = identifier(schema, name)
            cursor.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(table))
            if cursor.execute(sql.SQL("SELECT 1 FROM {} LIMIT 1").format(table)).fetchone() is None:
                cursor.execute(sql.SQL("DROP TABLE {}").format(table))
                dropped.append(str(name))
        return dropped

    try:
        return session.run(work)
    finally:
        session.close()


__all__ = ["StagedRows", "discard_staged_rows", "drop_staging_tables", "staged_rows"]
