"""Rows of a table of PostgreSQL by key, for lookup joins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rayflink.common.functions.function_classes import RuntimeContext
from rayflink.connectors.postgres.postgres_conditions import Comparison
from rayflink.connectors.postgres.postgres_key_rows import PostgresKeyRows

from ...runtime.lookups.lookup_function import LookupFunction, LookupRows

if TYPE_CHECKING:
    import pyarrow


class JdbcLookupFunction(LookupFunction):
    """Asks the server for the rows of all keys of a batch by one query.

    Args:
        dsn: connection string.
        table: name in the database.
        keys: names of the key columns.
        columns: (name, type) of the columns that are asked for.
        comparisons: conditions that the server evaluates, too.
    """

    is_async = True

    def __init__(
        self, dsn: str, table: str, keys: Sequence[str], columns: Sequence[tuple[str, pyarrow.DataType]],
        comparisons: Sequence[Comparison],
    ) -> None:  # fmt: skip
        self._settings = dsn, table, tuple(keys), dict(columns), tuple(comparisons)
        self._rows: PostgresKeyRows | None = None

    def open(self, context: RuntimeContext) -> None:
        self._rows = PostgresKeyRows(*self._settings)
        self._rows.prepare()

    def close(self) -> None:
        rows, self._rows = self._rows, None
        if rows is not None:
            rows.close()

    def look_up(self, keys: pyarrow.RecordBatch) -> LookupRows:
        assert self._rows is not None, "the function was not opened"
        return LookupRows(*self._rows.load(keys))


__all__ = ["JdbcLookupFunction"]
