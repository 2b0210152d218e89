"""`postgres-cdc`: the rows of a table in PostgreSQL and their changes, with the options of Flink CDC's connector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rayflink.common.options.option_types import DURATION
from rayflink.common.records.batches import ArrowBatch, Batch
from rayflink.common.records.row_kinds import ROW_KIND, has_kinds
from rayflink.common.time import Duration
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.cdc.deserialization import ChangeDeserializationSchema
from rayflink.connectors.cdc.table_changes import TableChanges
from rayflink.connectors.postgres.postgres_cdc_source import PostgresCdcSource, StartupOptions

from ...errors import SqlError
from ...plan.changelog import Change
from ...plan.logical import Schema
from ...types import Root
from ..contract import Connected, Connector, Option, TableSource
from ..option_values import one_of, typed, whole_from
from ..print_and_blackhole import truth

if TYPE_CHECKING:
    import pyarrow

    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.datastream.streams.stream import DataStream

_STARTS = {"initial": "initial", "latest-offset": "latest", "committed-offset": "committed", "snapshot": "snapshot"}
_METADATA: Mapping[str, tuple[Root, ...]] = {
    "table_name": (Root.VARCHAR,),
    "schema_name": (Root.VARCHAR,),
    "database_name": (Root.VARCHAR,),
    "op_ts": (Root.TIMESTAMP_LTZ,),
}
"""Key of metadata -> the types that its column may have."""


@dataclass(frozen=True)
class ColumnChanges(ChangeDeserializationSchema):
    """Makes columns of changes, with their metadata and the kinds of the changes.

    Args:
        schema: the columns of the table.
        metadata: their numbers -> key of the metadata.
    """

    schema: Schema
    metadata: tuple[tuple[int, str], ...]

    def deserialize_changes(self, changes: TableChanges) -> Batch:
        import pyarrow

        rows, keys = changes.rows, dict(self.metadata)
        columns, fields = [], []
        for number, column in enumerate(self.schema):
            target = column.type.to_arrow()
            if number in keys:
                columns.append(_metadata_of(changes, keys[number], target))
            else:
                columns.append(rows.column(column.name))
            fields.append(pyarrow.field(column.name, target))
        if has_kinds(rows.schema):
            columns.append(rows.column(rows.num_columns - 1))
            fields.append(pyarrow.field(ROW_KIND, pyarrow.int8(), nullable=False))
        return ArrowBatch(pyarrow.RecordBatch.from_arrays(columns, schema=pyarrow.schema(fields)))


def _metadata_of(changes: TableChanges, key: str, target: pyarrow.DataType) -> pyarrow.Array:
    import pyarrow

    if key != "op_ts":
        names = {"table_name": changes.table, "schema_name": changes.schema, "database_name": changes.database}
        return pyarrow.repeat(pyarrow.scalar(names[key], target), len(changes))
    moment = pyarrow.timestamp("ms", "UTC")
    if changes.op_ms is None:
        return pyarrow.repeat(pyarrow.scalar(0, moment), len(changes)).cast(target)
    return pyarrow.array(changes.op_ms).cast(moment).cast(target, safe=False)


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
        builder.with_columns(columns, upserts=not self.produces_update_before)
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
    metadata_keys = frozenset(_METADATA)

    def source(self, table: Connected) -> TableSource:
        for number, key in table.metadata.items():
            if table.schema[number].type.root not in _METADATA[key]:
                expected = "TIMESTAMP_LTZ(3)" if key == "op_ts" else "STRING"
                found = f"{table.table} has {key!r} as {table.schema[number].type}"
                raise SqlError(found, f"declare the column as {expected}")
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


__all__ = ["ColumnChanges", "PostgresCdc", "PostgresChanges"]
