"""The rows of many keys of a table by one query, as columns."""

from __future__ import annotations

import queue
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from .postgres_cdc_tables import CapturedColumn, CapturedTable, columns_in_types, read_columns
from .postgres_conditions import Comparison, rendered
from .postgres_copying import read_copy
from .postgres_scan import ScanSettings
from .postgres_session import PostgresError, Session, driver
from .postgres_tables import missing_table, parts_of
from .postgres_values import arrays_of_csv

if TYPE_CHECKING:
    import numpy
    import psycopg
    import pyarrow
    from numpy.typing import NDArray

T = TypeVar("T")
MOST_KEYS = 16_384
"""Keys of one query, at most."""
_OID = """
SELECT c.oid::bigint, n.nspname, c.relname, current_database()
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)
"""


class PostgresOutage(PostgresError, ConnectionError):
    """The server did not answer; it may at another time."""


class PostgresKeyRows:
    """Finds rows by key columns; several threads may ask at once, each with a connection of its own.

    Args:
        dsn: connection string.
        table: with or without its schema.
        keys: names of the key columns.
        columns: of the rows -> the types in which they are wanted.
        comparisons: further conditions; those that the server would decide in another way are left out.
    """

    def __init__(
        self,
        dsn: str,
        table: str,
        keys: Sequence[str],
        columns: Mapping[str, pyarrow.DataType],
        comparisons: Sequence[Comparison] = (),
    ) -> None:
        self._dsn = ScanSettings(dsn, table).reading_dsn
        self._table, self._keys, self._columns, self._comparisons = table, tuple(keys), dict(columns), comparisons
        self._idle: queue.SimpleQueue[Session] = queue.SimpleQueue()
        self._is_closed = False
        self._captured: CapturedTable | None = None
        self._key_types: list[str] = []
        self._conditions: list[str] = []

    def prepare(self) -> None:
        """Look the table up.

        Raises:
            PostgresError: it or a column is missing, or there is no connection.
        """
        self._with_session(lambda session: session.run(self._find, ()))

    def load(self, keys: pyarrow.RecordBatch) -> tuple[pyarrow.Table, NDArray[numpy.int64]]:
        """Return the rows of keys, and for each the number of its key, int64[n].

        Raises:
            PostgresOutage: there is no connection.
            PostgresError: a key does not fit, or the table was altered.
        """
        import numpy
        import pyarrow

        blocks: list[pyarrow.RecordBatch] = []
        for first in range(0, len(keys), MOST_KEYS):
            block = self._load(keys.slice(first, MOST_KEYS))
            numbers = block.column(0).to_numpy() + (first - 1)
            blocks.append(block.set_column(0, "$key", pyarrow.array(numbers, pyarrow.int64())))
        rows = pyarrow.Table.from_batches(blocks)
        numbers = rows.column(0).to_numpy().astype(numpy.int64)
        return rows.drop_columns(["$key"]), numbers

    def close(self) -> None:
        """Close the connections that no thread uses; the others are closed when their query has ended."""
        self._is_closed = True
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return

    def _load(self, keys: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        import pyarrow

        errors, captured = driver().errors, self._captured
        assert captured is not None, "the table was not looked up"
        statement = self._statement(captured, keys)
        try:
            data = self._with_session(
                lambda session: session.run(lambda cursor: read_copy(cursor, statement, captured), ())
            )
        except (errors.DataError, errors.ProgrammingError) as error:
            problem = f"lookup in {self._table!r} by {', '.join(self._keys)}: {' '.join(str(error).split())}"
            remedy = "give keys of the types of these columns, and start the job again if the table was altered"
            raise PostgresError(problem, remedy) from error
        columns = (_place(), *captured.columns)
        schema = pyarrow.schema([(column.name, column.target) for column in columns])
        return pyarrow.RecordBatch.from_arrays(arrays_of_csv(data, columns), schema=schema)

    def _statement(self, table: CapturedTable, keys: pyarrow.RecordBatch) -> psycopg.sql.Composed:
        sql = driver().sql
        names = [sql.Identifier(f"$key{number}") for number in range(len(self._keys))]
        arrays = [
            sql.SQL("{}::text[]::" + kind + "[]").format(sql.Literal(_notations(column)))
            for column, kind in zip(keys.columns, self._key_types, strict=True)
        ]
        same = [
            sql.SQL("present.{} = asked.{}").format(sql.Identifier(key), name)
            for key, name in zip(self._keys, names, strict=True)
        ]
        rows = sql.SQL("(SELECT * FROM {} AS present{}) AS present").format(
            sql.Identifier(table.schema, table.table),
            sql.SQL(" WHERE " + " AND ".join(f"({condition})" for condition in self._conditions))
            if self._conditions else sql.SQL(""),
        )  # fmt: skip
        query = sql.SQL(
            'SELECT asked."$place", {} FROM unnest({}) WITH ORDINALITY AS asked ({}, "$place") JOIN {} ON {}'
        ).format(
            sql.SQL(", ").join(sql.SQL("present.{}").format(sql.Identifier(column.name)) for column in table.columns),
            sql.SQL(", ").join(arrays),
            sql.SQL(", ").join(names),
            rows,
            sql.SQL(" AND ").join(same),
        )
        statement: psycopg.sql.Composed = sql.SQL("COPY ({}) TO STDOUT (FORMAT csv)").format(query)
        return statement

    def _with_session(self, work: Callable[[Session], T]) -> T:
        """Do work with a connection that no other thread uses."""
        try:
            session = self._idle.get_nowait()
        except queue.Empty:
            session = Session(self._dsn)
        lost = driver().OperationalError, driver().InterfaceError
        try:
            return work(session)
        except PostgresError as error:
            if isinstance(error.__cause__, lost):
                raise PostgresOutage(error.problem, error.remedy) from error
            raise
        except lost as error:
            raise PostgresOutage(" ".join(str(error).split()), "check the server") from error
        finally:
            self._idle.put(session)
            if self._is_closed:
                self.close()

    def _find(self, cursor: psycopg.Cursor[tuple[object, ...]]) -> None:
        sql = driver().sql
        shown = sql.Identifier(*parts_of(self._table)).as_string(cursor)
        row = cursor.execute(_OID, (shown,)).fetchone()
        if row is None:
            raise missing_table(cursor, self._table)
        oid, schema, table, database = int(str(row[0])), *map(str, row[1:])
        columns, _ = read_columns(cursor, oid, has_generated=True)
        full_name = f"{schema}.{table}"
        chosen = columns_in_types(full_name, columns, self._columns)
        keys = columns_in_types(full_name, columns, dict.fromkeys(self._keys))
        self._key_types = [_key_type(key) for key in keys]
        conditions = (rendered(comparison, columns, cursor) for comparison in self._comparisons)
        self._conditions = [condition for condition in conditions if condition]
        self._captured = CapturedTable(oid, database, schema, table, chosen, (), None, "n", 0)


def _place() -> CapturedColumn:
    """Return the column with the number of the key, from 1."""
    import pyarrow

    return CapturedColumn("$place", 20, -1, "int8", "bigint", None, pyarrow.int64())


def _key_type(column: CapturedColumn) -> str:
    """Return the type of keys without limits, which would cut a value that has no row to one that has."""
    kind = "bpchar" if column.kind == "bpchar" else re.sub(r"\([^)]*\)", "", column.shown_type)
    return kind.replace("{", "{{").replace("}", "}}")  # it is part of a template


def _notations(column: pyarrow.Array) -> list[str]:
    """Return the values of a column of keys as PostgreSQL reads them."""
    import pyarrow

    kind = column.type
    if pyarrow.types.is_integer(kind) or pyarrow.types.is_string(kind):
        return list(column.cast(pyarrow.string()).to_pylist())
    return ["\\x" + value.hex() if isinstance(value, bytes) else str(value) for value in column.to_pylist()]


__all__ = ["PostgresKeyRows", "PostgresOutage"]
