"""A table in PostgreSQL as a bounded source: its rows as columns, read in parallel, each once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rayflink.common.connector_base.source import (
    Boundedness,
    EnumeratorContext,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import ArrowBatch, Batch
from rayflink.common.types import Row
from rayflink.connectors.cdc.change_reader import ChangeReader
from rayflink.connectors.cdc.deserialization import ChangeDeserializationSchema
from rayflink.connectors.cdc.snapshot_enumeration import SnapshotEnumerator, SnapshotProgress
from rayflink.connectors.cdc.table_changes import TableChanges

from .postgres_scan import Partitions, ScanDatabase, ScannedTable, ScanSettings, ScanTables
from .postgres_session import place_of
from .postgres_tables import ensure_name, parts_of

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class _Columns(ChangeDeserializationSchema):
    """Emits rows as the columns that they are."""

    def deserialize_changes(self, changes: TableChanges) -> Batch:
        return ArrowBatch(changes.rows)


class PostgresSource(Source[Row]):
    """The rows of a table, a view or a materialized view in PostgreSQL; made by `PostgresSource.builder()`.

    It ends when all rows have been read. Rows are columns, which functions on records see as rows with names.

    Args:
        settings: of the scan.
    """

    def __init__(self, settings: ScanSettings) -> None:
        self._settings = settings

    @staticmethod
    def builder() -> PostgresSourceBuilder:
        """Return a builder without settings."""
        return PostgresSourceBuilder()

    def __repr__(self) -> str:
        return f"PostgresSource({place_of(self._settings.dsn)}, table={self._settings.table!r})"

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def check(self) -> None:
        ScanDatabase(self._settings).check()

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return SnapshotEnumerator(ctx, ScanDatabase(self._settings), reads_log=False)

    def restore_enumerator(self, ctx: EnumeratorContext, state: SnapshotProgress[ScannedTable]) -> SplitEnumerator:
        return SnapshotEnumerator(ctx, ScanDatabase(self._settings), False, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return ChangeReader(ctx, ScanTables(self._settings, ctx.metrics or MetricGroup()), _Columns(), reads_log=False)


class PostgresSourceBuilder:
    """Collects the settings of a `PostgresSource`; `dsn` and `table` are required."""

    def __init__(self) -> None:
        self._settings = ScanSettings("", "")

    def dsn(self, dsn: str) -> PostgresSourceBuilder:
        """Set the connection string, such as `postgresql://user:password@host:5432/database`.

        Raises:
            PostgresError: psycopg is missing, or it is no connection string.
        """
        place_of(dsn)
        self._settings = replace(self._settings, dsn=dsn)
        return self

    def table(self, table: str) -> PostgresSourceBuilder:
        """Set the table, with or without its schema; a part with points stands in double quotes.

        Raises:
            PostgresError: it is no name.
        """
        parts_of(table)
        self._settings = replace(self._settings, table=table)
        return self

    def columns(self, columns: Sequence[str] | Mapping[str, pyarrow.DataType | None]) -> PostgresSourceBuilder:
        """Set the columns to read, in this order; the default is all.

        Args:
            columns: names, or names with the Arrow types of their values; None: the type that fits the column.

        Raises:
            TypeError: it is one string.
            PostgresError: a name is none that PostgreSQL has.
        """
        if isinstance(columns, str):
            raise TypeError(f"columns is a list of names, found {columns!r}; write [{columns!r}]")
        for name in columns:
            ensure_name(name, "column")
        types = dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(columns)
        self._settings = replace(self._settings, columns=types)
        return self

    def where(self, condition: str) -> PostgresSourceBuilder:
        """Set a condition in SQL that the server evaluates, such as `price > 3`; it is part of the statement as it is.

        Never put values from outside the program into it.
        """
        self._settings = replace(self._settings, where=condition.strip())
        return self

    def partition_column(self, column: str) -> PostgresSourceBuilder:
        """Set the column whose ranges are read in parallel; the default is the first one of the primary key.

        A table without a key is divided by its blocks. An index on the column makes each range quick to find.
        """
        self._settings = replace(self._settings, partitions=replace(self._partitions, column=column))
        return self

    def partition_num(self, number: int) -> PostgresSourceBuilder:
        """Set how many ranges there are, at least; the default follows from the size of the table.

        Raises:
            ValueError: the number is less than 1.
        """
        self._settings = replace(self._settings, partitions=replace(self._partitions, number=_positive(number)))
        return self

    def partition_bounds(self, lower: object, upper: object) -> PostgresSourceBuilder:
        """Set the smallest and the largest value of the partition column; rows outside are not read."""
        partitions = replace(self._partitions, lower=str(lower), upper=str(upper))
        self._settings = replace(self._settings, partitions=partitions)
        return self

    def fetch_size(self, rows: int) -> PostgresSourceBuilder:
        """Set about how many rows are read at a time; the default is as many as have 16 MiB, at most 100,000.

        A reader has two such chunks in memory, and a checkpoint contains what has not been emitted of one.

        Raises:
            ValueError: the number is less than 1.
        """
        self._settings = replace(self._settings, fetch_size=_positive(rows))
        return self

    def consistent_snapshot(self, is_consistent: bool) -> PostgresSourceBuilder:
        """Set whether all ranges show the table at one moment; the default is True.

        The moment is that of a transaction which stays open until all has been read. Meanwhile the server cannot
        vacuum what was deleted. False: each chunk shows the table when it is read.
        """
        self._settings = replace(self._settings, is_consistent=is_consistent)
        return self

    @property
    def _partitions(self) -> Partitions:
        return self._settings.partitions or Partitions("")

    def build(self) -> PostgresSource:
        """Return the source.

        Raises:
            ValueError: a setting is missing.
        """
        settings = self._settings
        missing = [name for name in ("dsn", "table") if not getattr(settings, name)]
        if missing:
            raise ValueError(f"{missing[0]} is missing; call {missing[0]}(...) of the builder")
        if settings.partitions is not None and not settings.partitions.column:
            raise ValueError("partition_column is missing; call partition_column(...) of the builder")
        return PostgresSource(settings)


def _positive(number: int) -> int:
    if number < 1:
        raise ValueError(f"expected at least 1, found {number}")
    return number


__all__ = ["PostgresSource", "PostgresSourceBuilder"]
