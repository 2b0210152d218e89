"""`postgres-cdc`: the rows of a table in PostgreSQL and their changes, with the options of Flink CDC's connector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rayflink.common.options.option_types import DURATION
from rayflink.common.time import Duration
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.postgres.postgres_cdc_source import PostgresCdcSource, StartupOptions

from ...errors import SqlError
from ...plan.changelog import Change
from ..contract import Connected, Connector, Option, TableSource
from ..option_values import one_of, typed, whole_from
from ..print_and_blackhole import truth
from .column_changes import METADATA, ColumnChanges, check_metadata

if TYPE_CHECKING:
    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.datastream.streams.stream import DataStream

_STARTS = {"initial": "initial", "latest-offset": "latest", "committed-offset": "committed", "snapshot": "snapshot"}


@dataclass(frozen=True, eq=False)
class PostgresChanges(TableSource):
    """The rows of a table and their changes.

    Args:
        table: the definition.
    """

    table: Connected

    @property
    def changes(self) -> Change:  # type: ignore[override]
        """Return the kinds of change of the rows."""
        return Change.INSERT if self.is_bounded else Change.ALL

    @property
    def is_bounded(self) -> bool:  # type: ignore[override]  # a property here, as it depends on an option
        """Return whether the rows end."""
        return bool(self.table.options["scan.startup.mode"] == "snapshot")

    @property
    def produces_update_before(self) -> bool:  # type: ignore[override]
        """Return whether updates include the row before."""
        return bool(self.table.options["changelog-mode"] == "all")

    @property
    def key(self) -> tuple[str, ...]:  # type: ignore[override]
        """Return the columns by which updates find the row that they replace."""
        return self.table.primary_key

    def stream(self, env: StreamExecutionEnvironment, strategy: WatermarkStrategy | None, name: str) -> DataStream:
        return env.from_source(self.build(), strategy or WatermarkStrategy.no_watermarks(), name)

    def build(self) -> PostgresCdcSource[object]:
        """Return the source of a stream program."""
        table, options = self.table, self.table.options
        builder = PostgresCdcSource.builder()
        builder.hostname(options["hostname"]).port(options["port"]).database(options["database-name"])
        builder.username(options["username"]).password(options["password"]).slot_name(options["slot.name"])
        builder.table_list(f"{options['schema-name']}.{options['table-name']}")
        builder.publication_name(options["publication.name"] or options["debezium.publication.name"])
        builder.startup_options(StartupOptions(_STARTS[options["scan.startup.mode"]]))
        builder.split_size(options["scan.incremental.snapshot.chunk.size"])
        if options["scan.incremental.snapshot.chunk.key-column"]:
            builder.split_key_column(options["scan.incremental.snapshot.chunk.key-column"])
        builder.heartbeat_interval(options["heartbeat.interval.ms"])
        builder.connect_max_retries(options["connect.max-retries"])
        if options["scan.truncate.skip"]:
            builder.skip_truncates()
        columns = {
            column.name: column.type.to_arrow()
            for number, column in enumerate(table.schema)
            if number not in table.metadata
        }
        builder.with_columns(columns, () if self.produces_update_before else table.primary_key)
        return builder.deserializer(ColumnChanges(table.schema, tuple(table.metadata.items()))).build()


class PostgresCdc(Connector):
    """Tables of PostgreSQL with their changes."""

    name = "postgres-cdc"
    options: Mapping[str, Option] = {
        "hostname": Option(str, required=True),
        "port": Option(whole_from(1), 5432),
        "username": Option(str, required=True),
        "password": Option(str, ""),
        "database-name": Option(str, required=True),
        "schema-name": Option(str, required=True),
        "table-name": Option(str, required=True),
        "slot.name": Option(str, required=True),
        "decoding.plugin.name": Option(one_of("pgoutput"), "pgoutput"),
        "publication.name": Option(str, ""),
        "debezium.publication.name": Option(str, ""),
        "changelog-mode": Option(one_of("all", "upsert"), "all"),
        "scan.startup.mode": Option(one_of(*_STARTS), "initial"),
        "scan.incremental.snapshot.chunk.size": Option(whole_from(1), 8096),
        "scan.incremental.snapshot.chunk.key-column": Option(str, ""),
        "heartbeat.interval.ms": Option(typed(DURATION), Duration.of_seconds(30)),
        "connect.max-retries": Option(whole_from(0), 3),
        "scan.truncate.skip": Option(truth, False),
    }
    metadata_keys = frozenset(METADATA)

    def source(self, table: Connected) -> TableSource:
        check_metadata(table)
        if table.options["changelog-mode"] == "upsert" and not table.primary_key:
            problem = f"{table.table} has 'changelog-mode' = 'upsert' and no primary key"
            raise SqlError(problem, "declare PRIMARY KEY (...) NOT ENFORCED")
        source = PostgresChanges(table)
        try:
            source.build()
        except ValueError as error:
            problem, _, remedy = str(error).partition("; ")
            raise SqlError(f"{table.table}: {problem}", remedy or "correct the options of the table") from error
        return source


__all__ = ["PostgresCdc", "PostgresChanges"]
