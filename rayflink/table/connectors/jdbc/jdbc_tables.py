"""`jdbc`: a table in PostgreSQL as a source and as a sink of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rayflink.common.options.option_types import DURATION
from rayflink.common.text_output.logs import get_logger
from rayflink.common.time import Duration
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.jdbc.jdbc_url import dsn_of
from rayflink.connectors.postgres.postgres_changes_sink import Flushing, PostgresChangesSink
from rayflink.connectors.postgres.postgres_conditions import Comparison
from rayflink.connectors.postgres.postgres_scan import Partitions, ScanSettings
from rayflink.connectors.postgres.postgres_session import PostgresError
from rayflink.connectors.postgres.postgres_source import PostgresSource
from rayflink.connectors.postgres.postgres_tables import parts_of

from ...conversion.arrow_columns import arrow_schema
from ...errors import SqlError
from ...plan.logical import Schema
from ...plan.typed import Expr
from ...runtime.lookups.lookup_function import TableLookup
from ..contract import Connected, Connector, Option, OptionValues, TableSink, TableSource
from ..formats import column_named
from ..lookups.lookup_options import (
    PARTIAL_OPTIONS,
    RELOAD_OPTIONS,
    LookupOptions,
    check_lookup_options,
    lookup_options,
)
from ..lookups.whole_tables import BoundedTable, whole_lookup
from ..option_values import one_of, typed, whole_from
from ..print_and_blackhole import truth
from ..row_conditions import wanted
from .jdbc_lookup import JdbcLookupFunction

if TYPE_CHECKING:
    import pyarrow

    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.datastream.streams.step import Step
    from rayflink.datastream.streams.stream import DataStream

log = get_logger(__name__)

_PARTITION = ("column", "num", "lower-bound", "upper-bound")


@dataclass(frozen=True)
class JdbcTableSource(TableSource):
    """Reads a table as it is.

    Args:
        schema: all columns of the table.
        names: those that are read.
        dsn: connection string.
        table: name in the database.
        partitions: None: by the primary key.
        fetch_size: rows that are read at a time; 0: by their size.
        parallelism: readers; None: as the query has.
        comparisons: conditions of the query that the server evaluates, too.
        limit: rows that suffice; None: all.
        lookups: how rows are found by key.
    """

    schema: Schema
    names: tuple[str, ...]
    dsn: str = field(repr=False)
    table: str
    partitions: Partitions | None = None
    fetch_size: int = 0
    parallelism: int | None = None
    comparisons: tuple[Comparison, ...] = ()
    limit: int | None = None
    lookups: LookupOptions = LookupOptions()

    def projected(self, names: Sequence[str]) -> TableSource:
        return replace(self, names=tuple(names) or (self.schema[0].name,))

    def filtered(self, conditions: Sequence[Expr]) -> tuple[TableSource, Sequence[Expr]] | None:
        comparisons = []
        for condition in conditions:
            comparison = wanted(condition)
            if comparison is not None:
                target = column_named(self.schema, comparison.column).type.to_arrow()
                comparisons.append(Comparison(comparison.column, comparison.sign, comparison.values, target))
        if not comparisons:
            return None
        return replace(self, comparisons=(*self.comparisons, *comparisons)), conditions  # the server may leave some out

    def limited(self, rows: int) -> TableSource:
        return replace(self, limit=rows if self.limit is None else min(rows, self.limit))

    def pushed(self) -> tuple[str, ...]:
        whole = list(self.names) == [column.name for column in self.schema]
        shown = {
            "filter": tuple(map(str, self.comparisons)), "project": () if whole else self.names,
            "limit": () if self.limit is None else (str(self.limit),),
        }  # fmt: skip
        return tuple(f"{what}=[{', '.join(parts)}]" for what, parts in shown.items() if parts)

    def lookup(self, keys: Sequence[str]) -> TableLookup:
        options, names = self.lookups, tuple(dict.fromkeys([*self.names, *keys]))
        if options.cache == "FULL":
            fields = arrow_schema(tuple(column_named(self.schema, name) for name in names))
            return whole_lookup(BoundedTable(replace(self, names=names, limit=None)._source(), fields), keys, options)
        columns = [(name, column_named(self.schema, name).type.to_arrow()) for name in self.names]
        function = JdbcLookupFunction(self.dsn, self.table, keys, columns, self.comparisons)
        return TableLookup(function, options.limits, options.max_retries)

    def stream(self, env: StreamExecutionEnvironment, strategy: WatermarkStrategy | None, name: str) -> DataStream:
        stream = env.from_source(self._source(), strategy or WatermarkStrategy.no_watermarks(), name)
        return stream if self.parallelism is None else stream.set_parallelism(self.parallelism)

    def _source(self) -> PostgresSource:
        columns = {column: column_named(self.schema, column).type.to_arrow() for column in self.names}
        settings = ScanSettings(
            self.dsn, self.table, columns, comparisons=self.comparisons, partitions=self.partitions,
            fetch_size=self.fetch_size, limit=self.limit,
        )  # fmt: skip
        return PostgresSource(settings)


@dataclass(frozen=True)
class JdbcTableSink(TableSink):
    """Writes rows, and changes of rows where the table has a key.

    Args:
        columns: names and types of the columns.
        dsn: connection string.
        table: name in the database.
        key: names of the columns of the primary key; (): rows are added.
        parallelism: subtasks that write; None: as the query has.
    """

    columns: tuple[tuple[str, pyarrow.DataType], ...]
    dsn: str = field(repr=False)
    table: str
    key: tuple[str, ...] = ()
    flushing: Flushing = Flushing()
    exactly_once: bool = False
    parallelism: int | None = None
    reads_watermarks = False
    instead = "declare PRIMARY KEY (...) NOT ENFORCED in the table, by which rows are replaced and deleted"

    @property
    def is_append_only(self) -> bool:  # type: ignore[override]  # it depends on the key
        """Return whether it takes new rows only."""
        return not self.key

    @property
    def requires_update_before(self) -> bool:  # type: ignore[override]
        """Return whether updates must include the row before."""
        return not self.key

    @property
    def row_key(self) -> tuple[str, ...]:  # type: ignore[override]
        """Return the columns of the primary key."""
        return self.key

    def attach(self, stream: DataStream, name: str) -> Step:
        sink = PostgresChangesSink(
            self.dsn, self.table, dict(self.columns), self.key, self.flushing, self.exactly_once
        )  # fmt: skip
        step = stream.sink_to(sink).name(name)
        return step if self.parallelism is None else step.set_parallelism(self.parallelism)


class Jdbc(Connector):
    """Tables of PostgreSQL, with the options of Flink's connector."""

    name = "jdbc"
    options: Mapping[str, Option] = {
        "url": Option(str, required=True, about="jdbc:postgresql://host:port/database"),
        "table-name": Option(str, required=True),
        "username": Option(str, ""),
        "password": Option(str, ""),
        "driver": Option(str, "", about="ignored: it follows from the URL"),
        "connection.max-retry-timeout": Option(typed(DURATION), about="how long to wait for a connection, 10 s"),
        "scan.partition.column": Option(str),
        "scan.partition.num": Option(whole_from(1)),
        "scan.partition.lower-bound": Option(str),
        "scan.partition.upper-bound": Option(str),
        "scan.fetch-size": Option(whole_from(0), 0),
        "scan.auto-commit": Option(truth, True),
        "scan.parallelism": Option(whole_from(1)),
        "lookup.cache": Option(one_of("NONE", "PARTIAL", "FULL"), "NONE"),
        **PARTIAL_OPTIONS,
        **RELOAD_OPTIONS,
        "sink.buffer-flush.max-rows": Option(whole_from(0), 100),
        "sink.buffer-flush.interval": Option(typed(DURATION), Duration.of_seconds(1)),
        "sink.max-retries": Option(whole_from(0), 3),
        "sink.parallelism": Option(whole_from(1)),
        "sink.delivery-guarantee": Option(one_of("at-least-once", "exactly-once"), "at-least-once"),
    }

    def parsed(self, table: str, options: Mapping[str, str]) -> tuple[OptionValues, dict[str, str]]:
        values, passed = super().parsed(table, options)
        partition_options = [name for name in _PARTITION if values[f"scan.partition.{name}"] is not None]
        if partition_options and len(partition_options) < len(_PARTITION):
            missing = next(name for name in _PARTITION if name not in partition_options)
            problem = f"{table} has 'scan.partition.{partition_options[0]}' and no 'scan.partition.{missing}'"
            raise SqlError(problem, f"give all of scan.partition.{{{', '.join(_PARTITION)}}}, or none")
        check_lookup_options(table, values)
        if values["driver"]:
            log.info("option 'driver' of %s is ignored: rayflink has no Java, and the URL names the database", table)
        return values, passed

    def check(self, table: Connected) -> None:
        _dsn(table)
        try:
            parts_of(table.options["table-name"])
        except PostgresError as error:
            raise SqlError(f"{table.table}: {error.problem}", error.remedy) from error

    def source(self, table: Connected) -> TableSource:
        options = table.options
        partitions = None
        if options["scan.partition.column"] is not None:
            number, lower, upper = (options[f"scan.partition.{name}"] for name in _PARTITION[1:])
            partitions = Partitions(options["scan.partition.column"], number, lower, upper)
        return JdbcTableSource(
            table.schema,
            tuple(column.name for column in table.schema),
            _dsn(table),
            options["table-name"],
            partitions,
            options["scan.fetch-size"],
            options["scan.parallelism"],
            lookups=lookup_options(options),
        )

    def sink(self, table: Connected) -> TableSink:
        options = table.options
        interval = options["sink.buffer-flush.interval"].to_millis()
        flushing = Flushing(max(1, options["sink.buffer-flush.max-rows"]), interval, options["sink.max-retries"])
        return JdbcTableSink(
            tuple((column.name, column.type.to_arrow()) for column in table.schema),
            _dsn(table),
            options["table-name"],
            table.primary_key,
            flushing,
            options["sink.delivery-guarantee"] == "exactly-once",
            options["sink.parallelism"],
        )


def _dsn(table: Connected) -> str:
    """Return the connection string of a table.

    Raises:
        SqlError: its URL is none of PostgreSQL.
    """
    options = table.options
    timeout = options["connection.max-retry-timeout"]
    more = {} if timeout is None else {"connect_timeout": str(max(1, timeout.to_millis() // 1000))}
    try:
        return dsn_of(options["url"], options["username"], options["password"], more)
    except PostgresError as error:
        raise SqlError(f"{table.table}: {error.problem}", error.remedy) from error


__all__ = ["Jdbc", "JdbcTableSink", "JdbcTableSource"]
