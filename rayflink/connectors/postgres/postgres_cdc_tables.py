"""The tables whose changes are captured: as they are in the catalog of PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .postgres_session import PostgresError
from .postgres_values import arrow_type_of, is_readable_as

if TYPE_CHECKING:
    import psycopg
    import pyarrow

_TABLES = """
SELECT c.oid, n.nspname, c.relname, c.relreplident, c.relkind, c.reltuples::bigint, current_database()
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname = ANY(%s)
ORDER BY n.nspname, c.relname
"""
_COLUMNS = """
WITH RECURSIVE bases AS (
    SELECT a.attnum, a.atttypid AS oid, a.atttypmod AS modifier FROM pg_attribute a
    WHERE a.attrelid = %(oid)s AND a.attnum > 0 AND NOT a.attisdropped AND (a.attgenerated = '' OR %(generated)s)
    UNION ALL
    SELECT b.attnum, t.typbasetype, t.typtypmod FROM bases b JOIN pg_type t ON t.oid = b.oid WHERE t.typtype = 'd'
)
SELECT a.attname, a.atttypid::bigint, a.atttypmod, b.kind, b.modifier, format_type(a.atttypid, a.atttypmod),
    CASE WHEN a.attcollation <> 0 AND l.collname <> 'default'
         THEN quote_ident(m.nspname) || '.' || quote_ident(l.collname) END,
    array_position(k.indkey::int2[], a.attnum)
FROM pg_attribute a
JOIN (SELECT s.attnum, s.modifier, t.typname AS kind FROM bases s JOIN pg_type t ON t.oid = s.oid
      WHERE t.typtype <> 'd') b USING (attnum)
LEFT JOIN pg_collation l ON l.oid = a.attcollation LEFT JOIN pg_namespace m ON m.oid = l.collnamespace
LEFT JOIN pg_index k ON k.indrelid = a.attrelid AND k.indisprimary
WHERE a.attrelid = %(oid)s AND a.attnum > 0 AND NOT a.attisdropped AND (a.attgenerated = '' OR %(generated)s)
ORDER BY a.attnum
"""
IDENTITIES = {"d": "DEFAULT", "n": "NOTHING", "f": "FULL", "i": "USING INDEX"}


@dataclass(frozen=True)
class CapturedColumn:
    """A column of a captured table.

    Args:
        type_oid: number of its type, as the log has it.
        kind: name of its type, of the base type where that is a domain.
        shown_type: as SQL writes it.
        collation: quoted, where it is not the database's; None: it is, or the type has none.
        target: the type of its values in batches.
    """

    name: str
    type_oid: int
    modifier: int
    kind: str
    shown_type: str
    collation: str | None
    target: pyarrow.DataType


@dataclass(frozen=True)
class CapturedTable:
    """A table whose changes are captured.

    Args:
        oid: number of the table.
        columns: those that are read, in order.
        keys: columns of the primary key, in its order; none where there is no primary key.
        chunk_key: the column whose values divide the chunks; None: the table is one chunk.
        identity: letter of the replica identity.
        rows: the planner's estimate of their number; -1: unknown.
    """

    oid: int
    database: str
    schema: str
    table: str
    columns: tuple[CapturedColumn, ...]
    keys: tuple[str, ...]
    chunk_key: CapturedColumn | None
    identity: str
    rows: int = -1

    @property
    def full_name(self) -> str:
        """Return schema and table, such as `public.orders`."""
        return f"{self.schema}.{self.table}"

    @property
    def arrow_schema(self) -> pyarrow.Schema:
        """Return names and types of the columns."""
        import pyarrow

        return pyarrow.schema([(column.name, column.target) for column in self.columns])


@dataclass(frozen=True)
class TableChoice:
    """The tables and columns that a source captures.

    Args:
        schemas: their names; none: all but those of the system.
        tables: names with their schemas, or regular expressions that match such names as a whole; none: all.
        columns: name -> the type of its values; None: all columns in types of their own.
        chunk_key: name of the column of the primary key that divides chunks; None: the first one.
        needs_before: updates and deletions must include the row before: the replica identity has to be FULL.
        needs_log: the changes are read, too, and the replica identity matters.
        upsert_key: columns by which readers find the row that a change replaces; none: they do not look for it.
    """

    schemas: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    columns: Mapping[str, pyarrow.DataType] | None = None
    chunk_key: str | None = None
    needs_before: bool = False
    needs_log: bool = True
    upsert_key: tuple[str, ...] = ()

    def find(self, cursor: psycopg.Cursor[tuple[object, ...]]) -> dict[str, CapturedTable]:
        """Return the tables by their full names.

        Raises:
            PostgresError: there is none, or one cannot be captured; the remedy says why.
        """
        schemas = list(self.schemas)
        if not schemas:
            own = "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'"
            cursor.execute(own)
            schemas = [str(name) for (name,) in cursor.fetchall()]
        cursor.execute(_TABLES, (schemas,))
        rows = cursor.fetchall()
        names = [f"{row[1]}.{row[2]}" for row in rows]
        chosen = [row for row, name in zip(rows, names, strict=True) if self._matches(name)]
        for pattern in self.tables:
            if not any(_is_match(pattern, name) for name in names):
                problem = f"no table matches {pattern!r} in schema {', '.join(schemas)}"
                there = ", ".join(names[:20]) or "none"
                raise PostgresError(problem, f"write schema.table; the tables there are {there}")
        if not chosen:
            raise PostgresError(f"schema {', '.join(schemas)} has no tables", "create them before the job starts")
        tables = [self._table(cursor, row) for row in chosen]
        return {table.full_name: table for table in tables}

    def _matches(self, name: str) -> bool:
        return not self.tables or any(_is_match(pattern, name) for pattern in self.tables)

    def _table(self, cursor: psycopg.Cursor[tuple[object, ...]], row: Sequence[object]) -> CapturedTable:
        oid, schema, name, identity, _, estimate, database = row
        columns, ordered = read_columns(cursor, int(str(oid)))
        full_name = f"{schema}.{name}"
        chunk_key = self._chunk_key(full_name, ordered)
        table = CapturedTable(
            int(str(oid)), str(database), str(schema), str(name), self._wanted(full_name, columns),
            tuple(column.name for column in ordered), chunk_key, str(identity), int(str(estimate)),
        )  # fmt: skip
        self._check_identity(table)
        if self.upsert_key and self.needs_log:
            check_upsert_key(table, self.upsert_key)
        return table

    def _chunk_key(self, full_name: str, keys: list[CapturedColumn]) -> CapturedColumn | None:
        if self.chunk_key is None:
            return keys[0] if keys else None
        chunk_key = next((column for column in keys if column.name == self.chunk_key), None)
        if chunk_key is None:
            problem = f"the chunk key {self.chunk_key!r} is no column of the primary key of {full_name}"
            names = ", ".join(column.name for column in keys) or "nothing: there is no primary key"
            raise PostgresError(problem, f"choose one of {names}")
        return chunk_key

    def _wanted(self, full_name: str, columns: list[CapturedColumn]) -> tuple[CapturedColumn, ...]:
        if self.columns is None:
            return tuple(columns)
        return columns_in_types(full_name, columns, self.columns, "generated columns are not in the log")

    def _check_identity(self, table: CapturedTable) -> None:
        full = f'ALTER TABLE "{table.schema}"."{table.table}" REPLICA IDENTITY FULL'
        description = f"table {table.full_name} has the replica identity {IDENTITIES[table.identity]}"
        if table.identity == "f" or not self.needs_log:
            return
        if self.needs_before:
            problem = f"{description}, so the log lacks the row before an update or a deletion"
            remedy = f"run {full}, or set 'changelog-mode' = 'upsert' if the table has a primary key"
            raise PostgresError(problem, remedy)
        if table.identity == "i":
            raise PostgresError(f"{description}", f"run {full}, or ALTER TABLE ... REPLICA IDENTITY DEFAULT")
        if table.identity == "n" or not table.keys:
            problem = description if table.keys else f"{description} and no primary key"
            raise PostgresError(f"{problem}, so PostgreSQL refuses updates once it is published", f"run {full}")


def check_upsert_key(table: CapturedTable, key: Sequence[str]) -> None:
    """See that changes of a table have the key by which readers find the row that one replaces.

    The log has the primary key of a deleted row, and of a row whose primary key is updated; by other columns such rows
    would stay for ever.

    Raises:
        PostgresError: it is not the primary key.
    """
    if set(key) == set(table.keys):
        return
    own = f"PRIMARY KEY ({', '.join(table.keys)})" if table.keys else "no primary key"
    problem = f"updates are found by PRIMARY KEY ({', '.join(key)}), and table {table.full_name} has {own}"
    remedy = f"declare {own} NOT ENFORCED, or set" if table.keys else "add one, or set"
    raise PostgresError(problem, f"{remedy} 'changelog-mode' = 'all' and run REPLICA IDENTITY FULL for the table")


def read_columns(
    cursor: psycopg.Cursor[tuple[object, ...]], oid: int, has_generated: bool = False
) -> tuple[list[CapturedColumn], list[CapturedColumn]]:
    """Return the columns of a table, and those of its primary key in the order of that.

    Args:
        oid: number of the table.
        has_generated: whether generated columns are among them.
    """
    cursor.execute(_COLUMNS, {"oid": oid, "generated": has_generated})
    columns, keys = [], {}
    for column, type_oid, modifier, kind, base_modifier, shown, collation, place in cursor.fetchall():
        modifier_of_type = int(str(modifier)) if modifier != -1 else int(str(base_modifier))
        target = arrow_type_of(str(kind), modifier_of_type)
        own = CapturedColumn(
            str(column), int(str(type_oid)), int(str(modifier)), str(kind), str(shown),
            None if collation is None else str(collation), target,
        )  # fmt: skip
        columns.append(own)
        if place is not None:
            keys[int(str(place))] = own
    return columns, [keys[place] for place in sorted(keys)]


def columns_in_types(
    full_name: str, columns: Sequence[CapturedColumn], wanted: Mapping[str, pyarrow.DataType | None], note: str = ""
) -> tuple[CapturedColumn, ...]:
    """Return some columns of a table with the types in which their values are wanted.

    Args:
        columns: all of the table.
        wanted: name -> type; None: the column's own.
        note: stands behind the names of the columns, where one is missing.

    Raises:
        PostgresError: a column is missing, or cannot be read in the type.
    """
    known = {column.name: column for column in columns}
    chosen = []
    for name, target in wanted.items():
        if name not in known:
            remedy = "; ".join(filter(None, (f"its columns are {', '.join(known)}", note)))
            raise PostgresError(f"table {full_name} has no column {name!r}", remedy)
        column = known[name]
        if target is not None and not is_readable_as(column.kind, target):
            problem = f"column {name!r} of {full_name} is of type {column.shown_type}, not readable as {target}"
            raise PostgresError(problem, f"declare it in a type like {column.target}, or as STRING")
        chosen.append(column if target is None else replace(column, target=target))
    return tuple(chosen)


def _is_match(pattern: str, name: str) -> bool:
    return pattern == name or re.fullmatch(pattern, name) is not None


__all__ = ["CapturedColumn", "CapturedTable", "TableChoice", "check_upsert_key", "columns_in_types", "read_columns"]
