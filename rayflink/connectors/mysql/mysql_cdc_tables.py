"""The tables whose changes are captured: as the server's information_schema describes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .mysql_session import MySqlError, driver
from .mysql_values import BYTES, DATES, KINDS, WHOLE, MySqlColumn, arrow_type_of, is_readable_as, members_of

if TYPE_CHECKING:
    import pyarrow
    import pymysql

_TABLES = """
SELECT t.TABLE_SCHEMA, t.TABLE_NAME, t.TABLE_ROWS, t.ENGINE,
    (SELECT e.TRANSACTIONS FROM information_schema.ENGINES e WHERE e.ENGINE = t.ENGINE)
FROM information_schema.TABLES t
WHERE t.TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')
    AND t.TABLE_SCHEMA NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
ORDER BY t.TABLE_SCHEMA, t.TABLE_NAME
"""
_COLUMNS = """
SELECT c.COLUMN_NAME, c.DATA_TYPE, c.COLUMN_TYPE, c.NUMERIC_PRECISION, c.NUMERIC_SCALE, c.DATETIME_PRECISION,
    c.CHARACTER_MAXIMUM_LENGTH, c.CHARACTER_SET_NAME, c.COLLATION_NAME, k.ORDINAL_POSITION
FROM information_schema.COLUMNS c LEFT JOIN information_schema.KEY_COLUMN_USAGE k
    ON k.TABLE_SCHEMA = c.TABLE_SCHEMA AND k.TABLE_NAME = c.TABLE_NAME AND k.COLUMN_NAME = c.COLUMN_NAME
    AND k.CONSTRAINT_NAME = 'PRIMARY'
WHERE c.TABLE_SCHEMA = %s AND c.TABLE_NAME = %s ORDER BY c.ORDINAL_POSITION
"""
_CHUNK_KEYS = frozenset(WHOLE) | frozenset({"decimal", "date", "datetime", "timestamp", "char", "varchar"})
"""Types whose values can be compared as the server compares them."""


@dataclass(frozen=True)
class CapturedTable:
    """A table whose changes are captured.

    Args:
        columns: those that are read, in order.
        all_columns: all of the table that are in the log, in its order.
        keys: columns of the primary key, in its order; none where there is no primary key.
        chunk_key: the column whose values divide the chunks; None: the table is one chunk.
        rows: the server's estimate of their number; -1: unknown.
        has_snapshots: its engine has transactions.
    """

    database: str
    table: str
    columns: tuple[MySqlColumn, ...]
    all_columns: tuple[MySqlColumn, ...]
    keys: tuple[str, ...]
    chunk_key: MySqlColumn | None
    rows: int = -1
    engine: str = ""
    has_snapshots: bool = True

    @property
    def full_name(self) -> str:
        """Return database and table, such as `shop.orders`."""
        return f"{self.database}.{self.table}"

    @property
    def arrow_schema(self) -> pyarrow.Schema:
        """Return names and types of the columns."""
        import pyarrow

        return pyarrow.schema([(column.name, column.target) for column in self.columns])


@dataclass(frozen=True)
class TableChoice:
    """The tables and columns that a source captures.

    Args:
        databases: their names, or regular expressions that match names as a whole; none: all but the system's.
        tables: names with their databases, or regular expressions that match such names as a whole; none: all.
        columns: name -> the type of its values; None: all columns in types of their own.
        chunk_key: name of the column of the primary key that divides chunks; None: the first one.
        zone: time zone in which the values of `timestamp` columns are shown where their type has none.
    """

    databases: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    columns: Mapping[str, pyarrow.DataType] | None = None
    chunk_key: str | None = None
    zone: str = "UTC"

    def find(self, cursor: pymysql.cursors.Cursor) -> dict[str, CapturedTable]:
        """Return the tables by their full names.

        Raises:
            MySqlError: there is none, or one cannot be captured; the remedy says why.
        """
        cursor.execute(_TABLES)
        rows = [row for row in cursor.fetchall() if self._has_database(str(row[0]))]
        names = [f"{row[0]}.{row[1]}" for row in rows]
        there = ", ".join(names[:20]) or "none that the user may read (GRANT SELECT)"
        for pattern in self.tables:
            if not any(is_match(pattern, name) for name in names):
                problem = f"no table matches {pattern!r}"
                raise MySqlError(problem, f"write database.table; the tables there are {there}")
        chosen = [row for row, name in zip(rows, names, strict=True) if self._has_table(name)]
        if not chosen:
            shown = ", ".join(self.databases) or "of the server"
            remedy = "create them before the job starts, or GRANT SELECT ON them TO the user"
            raise MySqlError(f"database {shown} has no tables", remedy)
        tables = [self._table(cursor, row) for row in chosen]
        return {table.full_name: table for table in tables}

    def _has_database(self, name: str) -> bool:
        return not self.databases or any(is_match(pattern, name) for pattern in self.databases)

    def _has_table(self, name: str) -> bool:
        return not self.tables or any(is_match(pattern, name) for pattern in self.tables)

    def _table(self, cursor: pymysql.cursors.Cursor, row: Sequence[object]) -> CapturedTable:
        database, name, estimate, engine, transactions = row
        full_name = f"{database}.{name}"
        columns, keys = read_columns(cursor, str(database), str(name), self.zone)
        chosen = self._wanted(full_name, columns)
        for column in chosen:
            if column.kind not in KINDS:
                problem = f"column {column.name!r} of {full_name} has the type {column.shown_type}, which is not read"
                raise MySqlError(problem, "leave the table out, or declare in SQL only the columns that you need")
        return CapturedTable(
            str(database), str(name), chosen, columns, tuple(key.name for key in keys),
            self._chunk_key(full_name, keys), -1 if estimate is None else int(str(estimate)), str(engine),
            transactions == "YES",
        )  # fmt: skip

    def _chunk_key(self, full_name: str, keys: list[MySqlColumn]) -> MySqlColumn | None:
        if self.chunk_key is None:
            return keys[0] if keys and keys[0].kind in _CHUNK_KEYS else None
        key = next((column for column in keys if column.name == self.chunk_key), None)
        if key is None:
            problem = f"the chunk key {self.chunk_key!r} is no column of the primary key of {full_name}"
            names = ", ".join(column.name for column in keys) or "nothing: there is no primary key"
            raise MySqlError(problem, f"choose one of {names}")
        if key.kind not in _CHUNK_KEYS:
            problem = f"the chunk key {self.chunk_key!r} of {full_name} has the type {key.shown_type}"
            raise MySqlError(problem, f"choose a column of a type like {', '.join(sorted(_CHUNK_KEYS))}")
        return key

    def _wanted(self, full_name: str, columns: tuple[MySqlColumn, ...]) -> tuple[MySqlColumn, ...]:
        if self.columns is None:
            return columns
        known = {column.name.lower(): column for column in columns}
        chosen = []
        for name, target in self.columns.items():
            if name.lower() not in known:
                names = ", ".join(column.name for column in columns)
                raise MySqlError(f"table {full_name} has no column {name!r}", f"its columns are {names}")
            column = known[name.lower()]
            if column.kind in KINDS and not is_readable_as(column, target):
                problem = f"column {name!r} of {full_name} is of type {column.shown_type}, not readable as {target}"
                other = "BYTES" if column.kind in BYTES else "STRING"
                raise MySqlError(problem, f"declare it in a type like {column.target}, or as {other}")
            chosen.append(replace(column, name=name, target=target))
        return tuple(chosen)


def read_columns(
    cursor: pymysql.cursors.Cursor, database: str, table: str, zone: str
) -> tuple[tuple[MySqlColumn, ...], list[MySqlColumn]]:
    """Return the columns of a table that the log has, and those of its primary key in the order of that."""
    cursor.execute(_COLUMNS, (database, table))
    columns, keys = [], {}
    for row in cursor.fetchall():
        column = _column(row, zone)
        columns.append(column)
        if row[9] is not None:
            keys[int(row[9])] = column
    return tuple(columns), [keys[place] for place in sorted(keys)]


def _column(row: Sequence[object], zone: str) -> MySqlColumn:
    name, kind, shown_type, precision, scale, fsp, length, charset, collation = row[:9]
    kind, shown_type = str(kind).lower(), str(shown_type).lower() if kind not in ("enum", "set") else str(shown_type)
    digits, places, most = (0 if value is None else int(str(value)) for value in (precision, scale, length))
    if kind in DATES or kind == "time":
        places = int(str(fsp or 0))
    if kind == "bit":
        most = digits
    encoding = _encoding_of(str(name), "" if charset is None else str(charset))
    return MySqlColumn(
        str(name), kind, shown_type, digits, places, most, encoding, str(charset or ""), str(collation or ""),
        members_of(shown_type) if kind in ("enum", "set") else (),
        arrow_type_of(kind, shown_type, digits, places, most), zone,
    )  # fmt: skip


def _encoding_of(name: str, charset: str) -> str:
    import codecs

    if not charset:
        return ""
    known = driver().charset.charset_by_name(charset) if charset != "utf8mb3" else None
    encoding = "utf8" if known is None and charset.startswith("utf8") else getattr(known, "encoding", charset)
    encoding = {"ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}.get(
        charset, encoding)  # fmt: skip
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        problem = f"column {name!r} has the character set {charset!r}, which Python does not know"
        raise MySqlError(problem, "convert the table to utf8mb4, or leave it out") from None


def is_match(pattern: str, name: str) -> bool:
    """Return whether a name is a pattern, or matches it as a whole."""
    return pattern == name or re.fullmatch(pattern, name) is not None


__all__ = ["CapturedTable", "TableChoice", "is_match", "read_columns"]
