"""Columns of rows, and changes of them, as rows of a table in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rayflink.common.connector_base.sink import Committer, Sink, SinkWriter, UnwritableRecord, WriterContext
from rayflink.common.errors import shorten
from rayflink.common.metrics.metric_group import Counter, MetricGroup
from rayflink.common.records.batches import ArrowBatch, Batch
from rayflink.common.records.row_kinds import kinds_of, without_kinds
from rayflink.common.types import Row, RowKind

from .postgres_cdc_tables import CapturedColumn, read_columns
from .postgres_csv_rows import csv_of, is_writable_as, row_at_line
from .postgres_moving import Mover
from .postgres_session import PostgresError, Session, driver, place_of
from .postgres_tables import Tables, create_staging, parts_of, tables_of
from .postgres_writing import DirectWriter, Rows, Stager, refused_line

if TYPE_CHECKING:
    import psycopg
    import pyarrow
    from numpy.typing import NDArray

_BEFORE, _DELETE, _INSERT = RowKind.UPDATE_BEFORE.value, RowKind.DELETE.value, RowKind.INSERT.value
_PRIVILEGES = """
SELECT unnest(%s::text[]) AS wanted EXCEPT
SELECT wanted FROM unnest(%s::text[]) AS wanted
WHERE has_table_privilege(to_regclass(%s), wanted)
      OR wanted <> 'DELETE' AND has_any_column_privilege(to_regclass(%s), wanted)
"""


@dataclass(frozen=True)
class Flushing:
    """The moments at which rows are sent to the server.

    Args:
        most_rows: that are collected, about.
        interval_ms: for which a row waits for others; 0: until a checkpoint, or until there are enough.
        retries: how often a transaction is repeated when the connection is lost, or after a deadlock.
    """

    most_rows: int = 5_000
    interval_ms: int = 1_000
    retries: int = 3

    @property
    def pauses_s(self) -> tuple[float, ...]:
        """Return the seconds before each further try."""
        return tuple(min(0.1 * 4**number, 2.0) for number in range(self.retries))


class PostgresChangesSink(Sink[Row]):
    """Writes Arrow batches, with the kinds of their changes, into a table.

    Args:
        dsn: connection string.
        table: with or without its schema.
        columns: names -> types of their values.
        keys: columns of a unique index, by which rows are replaced and deleted; (): rows are added.
        flushing: when rows are sent.
        exactly_once: rows become visible when their checkpoint is complete, each once; else soon, and those after the
            last checkpoint again after a failure, which leaves no trace where there are keys.
    """

    name = "Sink: PostgreSQL"

    def __init__(
        self, dsn: str, table: str, columns: Mapping[str, pyarrow.DataType], keys: Sequence[str] = (),
        flushing: Flushing | None = None, exactly_once: bool = False,
    ) -> None:  # fmt: skip
        place_of(dsn)
        parts_of(table)
        self._dsn, self._table, self._columns, self._keys = dsn, table, dict(columns), tuple(keys)
        self._flushing, self._exactly_once = flushing or Flushing(), exactly_once
        self._reconnects = Counter()

    @property
    def shows_with_checkpoints(self) -> bool:
        return self._exactly_once

    def __repr__(self) -> str:
        return f"PostgresChangesSink({place_of(self._dsn)}, table={self._table!r})"

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        session = Session(self._dsn, (ctx.metrics or MetricGroup()).counter("numReconnects", self._reconnects))
        rows = session.run(self._rows)
        if self._exactly_once:
            return ColumnStager(ctx, session, rows)
        return ColumnWriter(ctx, session, rows, self._flushing)

    def create_committer(self) -> Committer | None:
        return Mover(Session(self._dsn, self._reconnects)) if self._exactly_once else None

    def _rows(self, cursor: psycopg.Cursor[tuple[object, ...]]) -> ColumnRows:
        names = list(self._columns)
        tables = tables_of(cursor, self._table, names, self._keys, "", has_deletes=bool(self._keys))
        shown = driver().sql.Identifier(*tables.target).as_string(cursor)
        (oid,) = cursor.execute("SELECT to_regclass(%s)::oid", (shown,)).fetchone() or (0,)
        full_name = ".".join(tables.target)
        own = {column.name: column for column in read_columns(cursor, int(str(oid)), has_generated=True)[0]}
        for name, source in self._columns.items():
            if not is_writable_as(own[name].kind, source):
                problem = f"column {name!r} of {full_name} is of type {own[name].shown_type}, and {source} is written"
                raise PostgresError(problem, f"declare it in a type like {own[name].target}, or CAST it in the query")
        wanted = ["INSERT", *(("UPDATE", "DELETE") if self._keys else ())]
        lacking = cursor.execute(_PRIVILEGES, (wanted, wanted, shown, shown)).fetchall()
        if lacking:
            kinds = ", ".join(sorted(str(kind) for (kind,) in lacking))
            raise PostgresError(f"{place_of(self._dsn)} lacks {kinds} on {full_name}", f"GRANT {kinds} ON {full_name}")
        required = cursor.execute(_REQUIRED, (oid, names)).fetchall()
        if self._exactly_once:
            create_staging(cursor, tables)
        return ColumnRows(tables, [own[name] for name in names], frozenset(str(name) for (name,) in required))


_REQUIRED = """
SELECT attname FROM pg_attribute
WHERE attrelid = %s::oid AND attname = ANY(%s) AND attnotnull AND attgenerated = '' AND NOT attisdropped
"""


class HeldColumns:
    """Rows that wait to be sent, as columns."""

    def __init__(self) -> None:
        self._batches: list[pyarrow.RecordBatch] = []
        self._deleted: list[NDArray[np.bool_]] = []
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def add(self, rows: pyarrow.RecordBatch, deleted: NDArray[np.bool_]) -> None:
        """Collect further rows.

        Args:
            deleted: bool[n], whether a row deletes that of its keys.
        """
        self._batches.append(rows)
        self._deleted.append(deleted)
        self._rows += rows.num_rows

    @property
    def has_deletions(self) -> bool:
        """Return whether a row deletes that of its keys."""
        return any(bool(deleted.any()) for deleted in self._deleted)

    def columns(self) -> list[pyarrow.Array]:
        """Return the columns of all rows, and behind them whether each row deletes."""
        import pyarrow

        table = pyarrow.Table.from_batches(self._batches)
        whole = [pyarrow.concat_arrays(column.chunks) for column in table.columns]
        return [*whole, pyarrow.array(np.concatenate(self._deleted))]


class ColumnRows(Rows):
    """Turns batches of columns into CSV, and says which row the database refused.

    Args:
        columns: of the table, in the order in which batches have them.
        required: those without NULL.
    """

    def __init__(self, tables: Tables, columns: Sequence[CapturedColumn], required: frozenset[str]) -> None:
        super().__init__(tables, None)
        self._kinds = [column.kind for column in columns]
        self._required = [number for number, column in enumerate(columns) if column.name in required]
        self._key_numbers = [number for number, column in enumerate(columns) if column.name in tables.keys]

    def nothing(self) -> HeldColumns:
        return HeldColumns()

    def add(self, buffer: HeldColumns, batch: Batch) -> None:
        """Collect the rows of a batch.

        Raises:
            UnwritableRecord: a value is NULL that must not be, or a change comes where there are no keys.
        """
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        kinds = kinds_of(batch.data)
        rows = batch.data if kinds is None else without_kinds(batch.data)
        deleted = np.zeros(rows.num_rows, np.bool_) if kinds is None else (kinds == _BEFORE) | (kinds == _DELETE)
        if kinds is not None and not self.tables.keys and (kinds != _INSERT).any():
            first = int(np.argmax(kinds != _INSERT))
            problem = f"table {'.'.join(self.tables.target)!r} has no key, and a change of a row came"
            self._refuse(rows, first, PostgresError(problem, "declare PRIMARY KEY (...) NOT ENFORCED"))
        for number in {*self._required, *self._key_numbers}:
            null = rows.column(number).is_null().to_numpy(zero_copy_only=False)
            if number not in self._key_numbers:
                null = null & ~deleted
            if null.any():
                name = self.tables.columns[number]
                problem = f"column {name!r} of table {'.'.join(self.tables.target)!r} has no NULL"
                self._refuse(rows, int(np.argmax(null)), PostgresError(problem, "filter such rows out, or COALESCE"))
        buffer.add(rows, deleted)

    def copy(
        self, cursor: psycopg.Cursor[tuple[object, ...]], into: psycopg.sql.Composed, buffer: HeldColumns,
        prefix: tuple[str, ...] = (), first: int | None = None,
    ) -> None:  # fmt: skip
        import pyarrow

        *columns, deleted = buffer.columns()
        own = [pyarrow.repeat(pyarrow.scalar(value), len(buffer)) for value in prefix]
        if first is not None:
            own.append(pyarrow.array(np.arange(first, first + len(buffer))))
        own += [deleted] if self.tables.has_deletes else []
        kinds = [*["text"] * len(own), *self._kinds]
        errors = driver().errors
        try:
            with cursor.copy(into + driver().sql.SQL(" (FORMAT csv)")) as copy:
                copy.write(csv_of([*own, *columns], kinds))
        except (errors.DataError, errors.IntegrityError, errors.ProgrammingError) as error:
            line, refusal = refused_line(error, self.tables)
            number = None if line is None else row_at_line(columns, line)
            if number is None:
                raise refusal from error
            refusal.__cause__ = error
            batch = pyarrow.RecordBatch.from_arrays(columns, list(self.tables.columns))
            self._refuse(batch, number, refusal)

    def _refuse(self, rows: pyarrow.RecordBatch, number: int, refusal: PostgresError) -> None:
        values = [column[number].as_py() for column in rows.columns]
        raise UnwritableRecord(shorten(tuple(values))) from refusal


class _Columnar(DirectWriter):
    """The part of a writer that collects columns."""

    _rows: ColumnRows
    most_rows = 5_000

    def write(self, batch: Batch) -> None:
        self._rows.add(self._held, batch)
        if len(self._held) >= self.most_rows:
            self._send()
        elif len(self._held) and self._due_ms is None and self.held_ms is not None:
            self._due_ms = self._ctx.now_ms() + self.held_ms


class ColumnWriter(_Columnar):
    """Writes changes to their table soon, and before each checkpoint.

    Args:
        flushing: when they are sent.
    """

    def __init__(self, ctx: WriterContext, session: Session, rows: ColumnRows, flushing: Flushing) -> None:
        super().__init__(ctx, session, rows)
        self.most_rows, self.held_ms = flushing.most_rows, flushing.interval_ms or None
        self.pauses_s = flushing.pauses_s

    def _insert(self, cursor: psycopg.Cursor[tuple[object, ...]], rows: HeldColumns) -> None:
        tables = self._rows.tables
        if not tables.keys:
            self._rows.copy(cursor, tables.statement("COPY {target} ({columns}) FROM STDIN"), rows)
            return
        errors = driver().errors
        own = "SELECT 0::bigint AS {row}, false AS {deleted}, {columns} FROM {target} WITH NO DATA"
        try:
            cursor.execute(tables.statement("CREATE TEMP TABLE rayflink_rows ON COMMIT DROP AS " + own))
        except errors.InsufficientPrivilege as error:
            remedy = "GRANT TEMPORARY ON the database TO the user"
            raise PostgresError(f"changes cannot be collected: {error.diag.message_primary}", remedy) from error
        into = tables.statement("COPY rayflink_rows ({row}, {deleted}, {columns}) FROM STDIN")
        self._rows.copy(cursor, into, rows, first=0)
        newest = "SELECT DISTINCT ON ({keys}) * FROM rayflink_rows ORDER BY {keys}, {row} DESC"
        insert = f"INSERT INTO {{target}} ({{columns}}) SELECT {{columns}} FROM ({newest}) AS newest "
        insert += "WHERE NOT {deleted} ORDER BY {keys} {on_conflict}"
        try:
            if rows.has_deletions:
                cursor.execute(tables.delete("rayflink_rows"))
            cursor.execute(tables.statement(insert, on_conflict=tables.on_conflict()))
        except (errors.DataError, errors.IntegrityError, errors.ProgrammingError, errors.RaiseException) as error:
            reason = f"{error.diag.message_primary or error}. {error.diag.message_detail or ''}".strip()
            problem = f"table {'.'.join(tables.target)!r} refuses one of {len(rows)} changes: {reason}"
            raise PostgresError(problem, "filter such rows out before the sink, or correct the table") from error


class ColumnStager(_Columnar, Stager):
    """Stages changes until their checkpoint is complete."""


__all__ = ["Flushing", "PostgresChangesSink"]
