"""Records as rows of a PostgreSQL table, each once.

Rows are staged while they come and moved to their table when their checkpoint is complete. PREPARE TRANSACTION would be
the shorter way, but needs a server setting (`max_prepared_transactions` is 0 by default), and a transaction
that is never finished holds its locks and keeps the whole database from being vacuumed. What lingers here is rows
that `staged_rows` lists and `discard_staged_rows` deletes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rayflink.common.connector_base.sink import Committer, SinkWriter, TwoPhaseCommittingSink, WriterContext
from rayflink.common.metrics.metric_group import Counter, MetricGroup

from .postgres_moving import Mover
from .postgres_session import PostgresError, Session, place_of
from .postgres_tables import Tables, create_staging, ensure_name, parts_of, tables_of
from .postgres_writing import DirectWriter, Rows, Stager

if TYPE_CHECKING:
    import psycopg


class PostgresSink(TwoPhaseCommittingSink):
    """Writes records as rows of a table in PostgreSQL; needs `pip install 'rayflink[postgres]'`.

    Args:
        dsn: connection string, `postgresql://user:password@host:5432/database`.
        table: with or without its schema, `sales.orders`; it must be there. A part with points stands in double quotes.
        columns: to write, in the order of a record's values; None: all but those the database generates.
        values: record -> its values in the order of `columns`; None: tuples and lists as they are, and the fields of
            Rows with names, dicts and named tuples by the names of the columns.
        keys: columns of a unique index: a row replaces that with the same values there.
        exactly_once: rows become visible when their checkpoint is complete, each once; else at once, and those after
            the last checkpoint again after a failure, which leaves no trace where there are keys.

    Raises:
        PostgresError: psycopg is missing, or the connection string is none, or a name is none that PostgreSQL has.
        TypeError: columns or keys are one text.
    """

    name = "Sink: PostgreSQL"

    def __init__(
        self,
        dsn: str,
        table: str,
        columns: Sequence[str] | None = None,
        values: Callable[[Any], Sequence[Any]] | None = None,
        keys: Sequence[str] = (),
        exactly_once: bool = True,
    ) -> None:
        place_of(dsn)
        for what, names in (("columns", columns), ("keys", keys)):
            if isinstance(names, str):
                raise TypeError(f"{what} is a list of names, found {names!r}; write [{names!r}]")
            for name in names or ():
                ensure_name(name, "column")
        parts_of(table)
        self._dsn, self._table, self._values = dsn, table, values
        self._columns, self._keys = None if columns is None else tuple(columns), tuple(keys)
        self._exactly_once, self._schema = exactly_once, ""
        self._reconnects = Counter()

    def with_staging_schema(self, staging_schema: str) -> PostgresSink:
        """Let rows wait for their checkpoint in this schema, not in that of the table.

        Raises:
            PostgresError: PostgreSQL has no such name.
        """
        ensure_name(staging_schema, "schema")
        self._schema = staging_schema
        return self

    @property
    def shows_with_checkpoints(self) -> bool:
        return self._exactly_once

    def __repr__(self) -> str:
        return f"PostgresSink({place_of(self._dsn)}, table={self._table!r})"

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        session = Session(self._dsn, (ctx.metrics or MetricGroup()).counter("numReconnects", self._reconnects))
        tables = session.run(self._tables)
        rows = Rows(tables, self._values)
        return Stager(ctx, session, rows) if self._exactly_once else DirectWriter(ctx, session, rows)

    def create_committer(self) -> Committer:
        return Mover(Session(self._dsn, self._reconnects))

    def _tables(self, cursor: psycopg.Cursor[Any]) -> Tables:
        tables = tables_of(cursor, self._table, self._columns, self._keys, self._schema)
        if self._exactly_once:
            create_staging(cursor, tables)
        return tables


__all__ = ["PostgresError", "PostgresSink"]
