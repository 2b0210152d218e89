"""`mysql-cdc`: the rows of a table in MySQL or MariaDB and their changes, with the options of Flink CDC's connector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rayflink.common.options.option_types import DURATION
from rayflink.common.time import Duration
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.mysql.mysql_cdc_source import MySqlSource, StartupOptions

from ...errors import SqlError
from ...plan.changelog import Change
from ..contract import Connected, Connector, Option, TableSource
from ..option_values import one_of, typed, whole_from
from ..print_and_blackhole import truth
from .column_changes import METADATA, ColumnChanges, check_metadata

if TYPE_CHECKING:
    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.datastream.streams.stream import DataStream

_STARTS = ("initial", "latest-offset", "earliest-offset", "specific-offset", "timestamp", "snapshot")


def startup_of(options: Mapping[str, object]) -> StartupOptions:
    """Return where a table with some options begins.

    Raises:
        ValueError: an option is missing, or wrong.
    """
    mode = str(options["scan.startup.mode"])
    if mode == "specific-offset":
        gtids, file = (str(options[f"scan.startup.specific-offset.{name}"]) for name in ("gtid-set", "file"))
        if not gtids and not file:
            problem = "'scan.startup.mode' = 'specific-offset' has no offset"
            raise ValueError(f"{problem}; set 'scan.startup.specific-offset.file' and '.pos', or '.gtid-set'")
        offset = int(str(options["scan.startup.specific-offset.pos"]))
        return StartupOptions.specific_offset(gtids or file, offset)
    if mode == "timestamp":
        moment_ms = int(str(options["scan.startup.timestamp-millis"]))
        if not moment_ms:
            raise ValueError("'scan.startup.mode' = 'timestamp' has no time; set 'scan.startup.timestamp-millis'")
        return StartupOptions.timestamp(moment_ms)
    return StartupOptions(mode.removesuffix("-offset"))


@dataclass(frozen=True, eq=False)
class MySqlChanges(TableSource):
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
        return True

    @property
    def key(self) -> tuple[str, ...]:  # type: ignore[override]
        """Return the columns by which updates find the row that they replace."""
        return self.table.primary_key

    def stream(self, env: StreamExecutionEnvironment, strategy: WatermarkStrategy | None, name: str) -> DataStream:
        return env.from_source(self.build(), strategy or WatermarkStrategy.no_watermarks(), name)

    def build(self) -> MySqlSource[object]:
        """Return the source of a stream program."""
        table, options = self.table, self.table.options
        builder = MySqlSource.builder().hostname(options["hostname"]).port(options["port"])
        builder.username(options["username"]).password(options["password"])
        builder.database_list(options["database-name"])
        builder.table_list(f"{options['database-name']}.{options['table-name']}")
        if options["server-id"]:
            builder.server_id(options["server-id"])
        builder.server_time_zone(options["server-time-zone"]).startup_options(startup_of(options))
        builder.split_size(options["scan.incremental.snapshot.chunk.size"])
        if options["scan.incremental.snapshot.chunk.key-column"]:
            builder.chunk_key_column(options["scan.incremental.snapshot.chunk.key-column"])
        builder.heartbeat_interval(options["heartbeat.interval"])
        builder.connect_max_retries(options["connect.max-retries"])
        if options["scan.truncate.skip"]:
            builder.skip_truncates()
        columns = {
            column.name: column.type.to_arrow()
            for number, column in enumerate(table.schema)
            if number not in table.metadata
        }
        builder.with_columns(columns, upserts=False)
        return builder.deserializer(ColumnChanges(table.schema, tuple(table.metadata.items()))).build()


class MySqlCdc(Connector):
    """Tables of MySQL and MariaDB with their changes."""

    name = "mysql-cdc"
    options: Mapping[str, Option] = {
        "hostname": Option(str, required=True),
        "port": Option(whole_from(1), 3306),
        "username": Option(str, required=True),
        "password": Option(str, ""),
        "database-name": Option(str, required=True),
        "table-name": Option(str, required=True),
        "server-id": Option(str, ""),
        "server-time-zone": Option(str, "UTC"),
        "scan.startup.mode": Option(one_of(*_STARTS), "initial"),
        "scan.startup.specific-offset.file": Option(str, ""),
        "scan.startup.specific-offset.pos": Option(whole_from(4), 4),
        "scan.startup.specific-offset.gtid-set": Option(str, ""),
        "scan.startup.timestamp-millis": Option(whole_from(0), 0),
        "scan.incremental.snapshot.enabled": Option(one_of("true"), "true"),
        "scan.incremental.snapshot.chunk.size": Option(whole_from(1), 8096),
        "scan.incremental.snapshot.chunk.key-column": Option(str, ""),
        "heartbeat.interval": Option(typed(DURATION), Duration.of_seconds(30)),
        "connect.max-retries": Option(whole_from(0), 3),
        "scan.truncate.skip": Option(truth, False),
    }
    metadata_keys = frozenset(METADATA) - {"schema_name"}

    def source(self, table: Connected) -> TableSource:
        check_metadata(table)
        source = MySqlChanges(table)
        try:
            source.build()
        except ValueError as error:
            problem, _, remedy = str(error).partition("; ")
            raise SqlError(f"{table.table}: {problem}", remedy or "correct the options of the table") from error
        return source


__all__ = ["MySqlCdc", "MySqlChanges", "startup_of"]
