"""`iceberg`: Iceberg tables in their catalogs."""

from __future__ import annotations

from collections.abc import Mapping

from rayflink.common.options.option_types import DURATION, MEMORY
from rayflink.connectors.iceberg.iceberg_plan import IcebergPlan, StreamingStartingStrategy
from rayflink.connectors.iceberg.iceberg_sink import IcebergSink
from rayflink.connectors.iceberg.iceberg_source import MONITOR_MS
from rayflink.connectors.iceberg.iceberg_table import CatalogLoader, NewTable, TableLoader, parsed_partitions
from rayflink.connectors.lakes.lake_errors import LakeError

from ...errors import SqlError
from ..contract import Connected, Connector, Option, TableSink, TableSource
from ..option_values import one_of, typed, whole_from
from ..print_and_blackhole import truth
from .lake_columns import check_types, lake_schema
from .lake_tables import LakeTableSink, LakeTableSource, epoch_ms

CATALOG, TABLE = "catalog.", "table."
"""Options that begin so are passed without it to the catalog, and to a table that is created."""


class IcebergTables(Connector):
    """Iceberg tables; one that does not exist is created by the first INSERT."""

    name = "iceberg"
    options: Mapping[str, Option] = {
        "catalog-name": Option(str, required=True),
        "catalog-type": Option(str, "rest", about="rest, sql, hive, glue, dynamodb or bigquery"),
        "uri": Option(str),
        "warehouse": Option(str),
        "catalog-database": Option(str, "default_database"),
        "catalog-table": Option(str),
        "partitioning": Option(str, "", about="such as day(ts), bucket(16, id)"),
        "sink.file-size": Option(typed(MEMORY)),
        "sink.compaction.every-commits": Option(whole_from(1)),
        "streaming": Option(truth, False),
        "monitor-interval": Option(typed(DURATION)),
        "starting-strategy": Option(one_of(*(strategy.name for strategy in StreamingStartingStrategy))),
        "start-snapshot-id": Option(whole_from(0)),
        "start-snapshot-timestamp": Option(epoch_ms),
        "snapshot-id": Option(whole_from(0)),
        "as-of-timestamp": Option(epoch_ms),
        "branch": Option(str),
        "tag": Option(str),
        "skip-overwrite-snapshots": Option(truth, False),
        "skip-delete-snapshots": Option(truth, False),
    }
    prefixes = ("s3.", "gcs.", "adls.", CATALOG, TABLE)

    def source(self, table: Connected) -> TableSource:
        options = table.options
        of_snapshots = ("snapshot-id", "as-of-timestamp", "branch", "tag")
        of_streams = ("starting-strategy", "start-snapshot-id", "start-snapshot-timestamp")
        for name in of_snapshots if options["streaming"] else of_streams:
            if options[name] is not None:
                kind = "is read as a stream" if options["streaming"] else "is not read as a stream"
                raise SqlError(
                    f"{table.table} {kind}, and has the option {name!r}", "leave it out, or change 'streaming'"
                )
        try:
            plan = IcebergPlan(
                _loader(table),
                snapshot_id=options["snapshot-id"],
                timestamp_ms=options["as-of-timestamp"],
                reference=options["branch"] or options["tag"],
                start=_strategy(options),
                start_snapshot_id=options["start-snapshot-id"],
                start_timestamp_ms=options["start-snapshot-timestamp"],
                skip_overwrites=options["skip-overwrite-snapshots"],
                skip_deletes=options["skip-delete-snapshots"],
            )
            check_types(table.table, table.schema, plan.schema(), str(plan.loader))
        except LakeError as error:
            raise SqlError(f"{table.table}: {error.problem}", error.remedy) from error
        names = tuple(column.name for column in table.schema)
        interval = options["monitor-interval"]
        monitor_ms = MONITOR_MS if interval is None else max(1, interval.to_millis())
        return LakeTableSource(table.schema, names, plan, monitor_ms if options["streaming"] else None)

    def sink(self, table: Connected) -> TableSink:
        schema = lake_schema(table.table, table.schema, "Iceberg", has_times=True)
        partitions = tuple(("identity", name) for name in table.partition_keys)
        if partitions and table.options["partitioning"]:
            raise SqlError(f"{table.table} has PARTITIONED BY and the option 'partitioning'", "leave one out")
        try:
            partitions = partitions or parsed_partitions(table.options["partitioning"], schema.names)
            properties = {
                key.removeprefix(TABLE): value for key, value in table.formats.items() if key.startswith(TABLE)
            }
            new = NewTable(schema, partitions, tuple(sorted(properties.items())))
            size = table.options["sink.file-size"]
            file_bytes = None if size is None else max(1, size.get_bytes())
            every_commits = table.options["sink.compaction.every-commits"]
            return LakeTableSink(IcebergSink(_loader(table), new, file_bytes, compact_every=every_commits))
        except LakeError as error:
            raise SqlError(f"{table.table}: {error.problem}", error.remedy) from error


def _strategy(options: Mapping[str, object]) -> StreamingStartingStrategy:
    if options["starting-strategy"] is not None:
        return StreamingStartingStrategy[str(options["starting-strategy"])]
    if options["start-snapshot-id"] is not None:
        return StreamingStartingStrategy.INCREMENTAL_FROM_SNAPSHOT_ID
    if options["start-snapshot-timestamp"] is not None:
        return StreamingStartingStrategy.INCREMENTAL_FROM_SNAPSHOT_TIMESTAMP
    return StreamingStartingStrategy.TABLE_SCAN_THEN_INCREMENTAL


def _loader(table: Connected) -> TableLoader:
    options = table.options
    properties = {key.removeprefix(CATALOG): value for key, value in table.formats.items() if not key.startswith(TABLE)}
    properties |= {name: options[name] for name in ("uri", "warehouse") if options[name] is not None}
    catalog = CatalogLoader.custom(options["catalog-name"], {**properties, "type": options["catalog-type"]})
    name = options["catalog-table"] or table.table.rpartition(".")[2]
    return TableLoader.from_catalog(catalog, f"{options['catalog-database']}.{name}")


__all__ = ["IcebergTables"]
