"""The tables of a PostgreSQL sink: its target, the staging table beside it, and the ledger of what was staged.

Rows that wait for their checkpoint lie in the staging table, in chunks. The ledger has a row for each chunk, which says
how many rows it has and when it was committed, and one for each subtask, which says which attempt stages. One
transaction moves a chunk to the target and writes that down, so a chunk is committed once, however often and by
whomever that is tried.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from .postgres_session import PostgresError, driver

if TYPE_CHECKING:
    import psycopg

LEDGER = "rayflink_ledger"
CHUNK, ROW, DELETED = "rayflink_chunk", "rayflink_row", "rayflink_deleted"

_COLUMNS = """
SELECT n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
       a.attgenerated <> '' OR a.attidentity = 'a', a.attnotnull
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.oid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_UNIQUE = """
SELECT array_agg(a.attname::text)
FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey[0:i.indnkeyatts - 1])
WHERE i.indrelid = to_regclass(%s) AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL
      AND i.indexprs IS NULL GROUP BY i.indexrelid
"""
_CHECKS = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = to_regclass(%s) AND contype = 'c'"
_LEDGER_DDL = (
    """
    CREATE TABLE {ledger} (
        chunk uuid PRIMARY KEY, job_id text NOT NULL, operator_id text NOT NULL, subtask int NOT NULL,
        number bigint NOT NULL, staging text NOT NULL, target text NOT NULL, row_count bigint NOT NULL DEFAULT 0,
        staged_at timestamptz NOT NULL DEFAULT now(), committed_at timestamptz)
    """,
    "CREATE INDEX {waiting} ON {ledger} (job_id, operator_id, subtask) WHERE committed_at IS NULL",
    "CREATE INDEX {done} ON {ledger} (committed_at) WHERE committed_at IS NOT NULL",
)


@dataclass(frozen=True)
class Tables:
    """Names of one sink's tables, and the statements on them.

    Args:
        target: schema and name.
        columns: that the sink writes, in the order of its values.
        keys: columns by which a row replaces another; (): rows are added.
        schema: of ledger and staging table.
        staging: name of the staging table.
        has_deletes: whether a row may delete that of its keys.
    """

    target: tuple[str, str]
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    schema: str
    staging: str
    has_deletes: bool = False

    def statement(self, text: str, **more: psycopg.sql.Composable) -> psycopg.sql.Composed:
        """Return an SQL statement with the names of the tables and columns in it.

        Args:
            text: one with `%s` is executed with parameters.
        """
        from psycopg import sql

        quote = partial(identifier, has_parameters="%s" in text)
        comma = sql.SQL(", ")
        names = {
            "target": quote(*self.target),
            "staging": quote(self.schema, self.staging),
            "ledger": quote(self.schema, LEDGER),
            "columns": comma.join(map(quote, self.columns)),
            "keys": comma.join(map(quote, self.keys)),
            "chunk": quote(CHUNK),
            "row": quote(ROW),
            "deleted": quote(DELETED),
        }
        return sql.SQL(text).format(**names, **more)

    def on_conflict(self, has_parameters: bool = False) -> psycopg.sql.Composable:
        """Return the ON CONFLICT clause of an INSERT; empty without keys.

        Args:
            has_parameters: whether the INSERT is executed with parameters.
        """
        from psycopg import sql

        if not self.keys:
            return sql.SQL("")
        rest = [column for column in self.columns if column not in self.keys]
        keys = sql.SQL(", ").join([identifier(key, has_parameters=has_parameters) for key in self.keys])
        if not rest:
            return sql.SQL("ON CONFLICT ({}) DO NOTHING").format(keys)
        names = (identifier(column, has_parameters=has_parameters) for column in rest)
        changes = sql.SQL(", ").join([sql.SQL("{0} = excluded.{0}").format(name) for name in names])
        return sql.SQL("ON CONFLICT ({}) DO UPDATE SET {}").format(keys, changes)

    def move(self) -> psycopg.sql.Composed:
        """Move the rows of a chunk from the staging table to the target and return their number."""
        newest = "SELECT * FROM moved"
        if self.keys:
            newest = "SELECT DISTINCT ON ({keys}) * FROM moved ORDER BY {keys}, {row} DESC"
        remaining = "WHERE NOT {deleted}" if self.has_deletes else ""
        return self.statement(
            "WITH moved AS (DELETE FROM {staging} WHERE {chunk} = %s RETURNING *), "
            f"newest AS ({newest}), "
            f"written AS (INSERT INTO {{target}} ({{columns}}) SELECT {{columns}} FROM newest {remaining} "
            "ORDER BY {row} {on_conflict} RETURNING 1) SELECT count(*) FROM moved",
            on_conflict=self.on_conflict(has_parameters=True),
        )

    def delete(self, source: str, has_parameters: bool = False) -> psycopg.sql.Composed:
        """Return the statement that deletes from the target what the newest row of its keys deletes.

        A row of another key may then take its place in a unique index.

        Args:
            source: the rows, as a table or a subquery, with the names of `statement` in it.
            has_parameters: whether it is executed with parameters.
        """
        from psycopg import sql

        names = [identifier(key, has_parameters=has_parameters) for key in self.keys]
        same = sql.SQL(" AND ").join([sql.SQL("present.{0} = gone.{0}").format(name) for name in names])
        newest = f"SELECT DISTINCT ON ({{keys}}) {{keys}}, {{deleted}} FROM {source} ORDER BY {{keys}}, {{row}} DESC"
        text = f"DELETE FROM {{target}} AS present USING ({newest}) AS gone WHERE gone.{{deleted}} AND {{same}}"
        return self.statement(text, same=same)

    def copy_to_staging(self) -> psycopg.sql.Composed:
        """Return the statement that sends rows to the staging table."""
        deleted = "{deleted}, " if self.has_deletes else ""
        return self.statement(f"COPY {{staging}} ({{chunk}}, {{row}}, {deleted}{{columns}}) FROM STDIN")


def identifier(*names: str, has_parameters: bool = False) -> psycopg.sql.Identifier:
    """Return a name in a statement, quoted.

    Args:
        names: its parts, as schema and table.
        has_parameters: whether the statement is executed with parameters: then psycopg reads `%` in it, in names too.
    """
    from psycopg import sql

    return sql.Identifier(*(name.replace("%", "%%") if has_parameters else name for name in names))


def parts_of(table: str) -> tuple[str, ...]:
    """Return schema and name of a table: parts with points stand in double quotes, as PostgreSQL writes them.

    >>> parts_of('sales.Orders'), parts_of('"my.schema"."a "" b"')
    (('sales', 'Orders'), ('my.schema', 'a " b'))

    Raises:
        PostgresError: it is no name.
    """
    match = re.fullmatch(rf"({_PART})(?:\.({_PART}))?", table, re.DOTALL)
    if match is None:
        remedy = 'give "table" or "schema.table"; parts with points stand in double quotes, as in \'sales."a.b"\''
        raise PostgresError(f"{table!r} is no name of a table", remedy)
    parts = tuple(part[1:-1].replace('""', '"') if part[0] == '"' else part for part in match.groups() if part)
    for part in parts:
        ensure_name(part, "table")
    return parts


def ensure_name(name: str, what: str) -> None:
    """Raise PostgresError where PostgreSQL has no such name, or would cut it off and mean another.

    Args:
        what: kind of thing that it names.
    """
    size = len(name.encode("utf-8", "surrogatepass"))
    if not name or "\0" in name or any("\ud800" <= character <= "\udfff" for character in name):
        raise PostgresError(f"{name!r} is no name of a {what}", "give one that PostgreSQL can have")
    if size > LONGEST:
        problem = f"the name {name!r} of a {what} has {size} bytes, and PostgreSQL would cut it to {LONGEST}"
        raise PostgresError(problem, "give the name that the server has")


_PART = r'"(?:[^"]|"")+"|[^."][^.]*'
LONGEST = 63
"""Bytes of a name in PostgreSQL."""


def tables_of(
    cursor: psycopg.Cursor[Any], table: str, columns: Sequence[str] | None, keys: Sequence[str], schema: str,
    has_deletes: bool = False,
) -> Tables:  # fmt: skip
    """Look up the target of a sink.

    Args:
        table: with or without its schema.
        columns: to write; None: all that can be written.
        schema: of ledger and staging table; "": that of the target.
        has_deletes: whether a row may delete that of its keys.

    Raises:
        PostgresError: the table, a column or a unique index is missing.
    """
    from psycopg import sql

    name = sql.Identifier(*parts_of(table)).as_string(cursor)
    column_rows = cursor.execute(_COLUMNS, (name,)).fetchall()
    if not column_rows:
        raise missing_table(cursor, table)
    target, types = column_rows[0][:2], {row[2]: (row[3], row[5]) for row in column_rows}
    chosen = tuple(columns or (row[2] for row in column_rows if not row[4]))
    if missing := [column for column in (*chosen, *keys) if column not in types]:
        names = ", ".join(types)
        raise PostgresError(f"column {missing[0]!r} is not in table {table!r}, which has {names}", "correct columns=")
    if taken := [column for column in (CHUNK, ROW, DELETED) if column in types]:
        raise PostgresError(f"table {table!r} has a column {taken[0]!r}, as staged rows have", "rename it")
    if missing := [column for column in keys if column not in chosen]:
        raise PostgresError(f"key {missing[0]!r} is not among the columns {', '.join(chosen)}", "name it in columns=")
    if keys and sorted(keys) not in (sorted(row[0]) for row in cursor.execute(_UNIQUE, (name,))):
        remedy = f"CREATE UNIQUE INDEX ON {name} ({', '.join(identifier(key).as_string(cursor) for key in keys)})"
        problem = f"table {table!r} has no unique index on exactly ({', '.join(keys)}) that is valid and not deferrable"
        raise PostgresError(problem, remedy)
    checks = sorted(cursor.execute(_CHECKS, (name,)).fetchall())
    shape = (target, [(column, types[column]) for column in chosen], checks)
    kind = repr((*shape, "deletes", sorted(keys)) if has_deletes else shape)
    staging = "rayflink_staged_" + hashlib.sha256(kind.encode()).hexdigest()[:16]
    return Tables(tuple(target), chosen, tuple(keys), schema or target[0], staging, has_deletes)


def missing_table(cursor: psycopg.Cursor[tuple[object, ...]], table: str) -> PostgresError:
    """Return the error of a table that is not there; names some that are."""
    there = cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = ANY(current_schemas(false))")
    tables = sorted(str(row[0]) for row in there if not str(row[0]).startswith("rayflink_"))
    names = ", ".join(tables[:20]) or "no table"
    return PostgresError(f"table {table!r} is not there, found {names}", "create it, or correct the name")


def create_staging(cursor: psycopg.Cursor[Any], tables: Tables) -> None:
    """Make ledger and staging table where they are missing.

    The staging table has the types, checks and NOT NULLs of the target, so that a row that does not fit is refused
    when it is staged; where those change it is another table.

    Raises:
        PostgresError: they cannot be made.
    """
    from psycopg import sql

    try:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"rayflink {tables.schema}",))
        if not is_there(cursor, tables.schema, LEDGER):
            indexes = {kind: sql.Identifier(f"{LEDGER}_{kind}") for kind in ("waiting", "done")}
            for text in _LEDGER_DDL:
                cursor.execute(tables.statement(text, **indexes))
        if is_there(cursor, tables.schema, tables.staging):
            return
        own = "{chunk} uuid NOT NULL, {row} bigint NOT NULL"
        own += ", {deleted} boolean NOT NULL" if tables.has_deletes else ""
        cursor.execute(tables.statement(f"CREATE TABLE {{staging}} (LIKE {{target}} INCLUDING CONSTRAINTS, {own})"))
        name = tables.statement("{target}").as_string(cursor)
        for _, _, column, _, _, is_required in cursor.execute(_COLUMNS, (name,)).fetchall():
            each = sql.Identifier(column)
            if column not in tables.columns:
                cursor.execute(tables.statement("ALTER TABLE {staging} DROP COLUMN {each}", each=each))
            elif tables.has_deletes and is_required and column not in tables.keys:
                text = "ALTER TABLE {staging} ALTER COLUMN {each} DROP NOT NULL"  # a deletion may have its keys alone
                cursor.execute(tables.statement(text, each=each))
        cursor.execute(tables.statement("CREATE INDEX ON {staging} ({chunk})"))
    except (driver().errors.InsufficientPrivilege, driver().errors.InvalidSchemaName) as error:
        remedy = f"grant CREATE on schema {tables.schema!r}, or give with_staging_schema() another"
        raise PostgresError(f"the staging table cannot be made: {error.diag.message_primary}", remedy) from error


def delete_staged(cursor: psycopg.Cursor[Any], schema: str, chunks: Sequence[tuple[Any, str]]) -> None:
    """Delete the rows of chunks, given with the names of their staging tables."""
    from psycopg import sql

    for staging in {staging for _, staging in chunks}:
        text = sql.SQL("DELETE FROM {} WHERE {} = ANY(%s)")
        ids = [chunk for chunk, table in chunks if table == staging]
        name = identifier(schema, staging, has_parameters=True)
        cursor.execute(text.format(name, identifier(CHUNK)), (ids,))


def is_there(cursor: psycopg.Cursor[tuple[object, ...]], schema: str, name: str) -> bool:
    """Return whether a schema has a table of that name."""
    query = "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = %s"
    return cursor.execute(query, (schema, name)).fetchone() is not None


__all__ = [
    "CHUNK", "DELETED", "LEDGER", "ROW", "Tables", "create_staging", "delete_staged", "ensure_name", "identifier",
    "is_there", "missing_table", "parts_of", "tables_of",
]  # fmt: skip
