"""`delta`: Delta tables."""

from __future__ import annotations

from collections.abc import Mapping

from rayflink.common.options.option_types import DURATION, MEMORY
from rayflink.connectors.delta.delta_plan import DeltaPlan
from rayflink.connectors.delta.delta_sink import DeltaSink
from rayflink.connectors.delta.delta_source import MONITOR_MS
from rayflink.connectors.delta.delta_table import DeltaPlace
from rayflink.connectors.lakes.data_file_writing import FILE_BYTES
from rayflink.connectors.lakes.lake_errors import LakeError

from ...errors import SqlError
from ..contract import Connected, Connector, Option, TableSink, TableSource
from ..option_values import typed, whole_from
from ..print_and_blackhole import truth
from .lake_columns import check_types, lake_schema
from .lake_tables import LakeTableSink, LakeTableSource, epoch_ms

STORAGE = "storage."
"""Options that begin so are passed to the library without it."""


class DeltaTables(Connector):
    """Delta tables, in folders and in object stores."""

    name = "delta"
    options: Mapping[str, Option] = {
        "table-path": Option(str, required=True, about="a folder, or a URL such as s3://bucket/table"),
        "streaming": Option(truth, False),
        "monitor-interval": Option(typed(DURATION)),
        "version-as-of": Option(whole_from(0)),
        "timestamp-as-of": Option(epoch_ms),
        "starting-version": Option(whole_from(0)),
        "ignore-deletes": Option(truth, False),
        "skip-change-commits": Option(truth, False),
        "merge-schema": Option(truth, False),
        "sink.file-size": Option(typed(MEMORY)),
        "sink.compaction.every-commits": Option(whole_from(1)),
    }
    prefixes = ("s3.", STORAGE)

    def source(self, table: Connected) -> TableSource:
        options = table.options
        for name in ("version-as-of", "timestamp-as-of"):
            if options["streaming"] and options[name] is not None:
                raise SqlError(f"{table.table} is read as a stream, and has the option {name!r}", "leave one out")
        if not options["streaming"] and options["starting-version"] is not None:
            raise SqlError(f"{table.table} has a starting-version, and is no stream", "set 'streaming' = 'true'")
        plan = DeltaPlan(
            _place(table),
            version=options["version-as-of"],
            timestamp_ms=options["timestamp-as-of"],
            starting_version=options["starting-version"],
            ignore_deletes=options["ignore-deletes"],
            skip_change_commits=options["skip-change-commits"],
        )
        try:
            check_types(table.table, table.schema, plan.schema(), str(plan.place))
        except LakeError as error:
            raise SqlError(f"{table.table}: {error.problem}", error.remedy) from error
        names = tuple(column.name for column in table.schema)
        interval = options["monitor-interval"]
        monitor_ms = MONITOR_MS if interval is None else max(1, interval.to_millis())
        return LakeTableSource(table.schema, names, plan, monitor_ms if options["streaming"] else None)

    def sink(self, table: Connected) -> TableSink:
        options = table.options
        size = options["sink.file-size"]
        sink = DeltaSink(
            _place(table),
            lake_schema(table.table, table.schema, "Delta", has_times=False),
            table.partition_keys,
            options["merge-schema"],
            FILE_BYTES if size is None else max(1, size.get_bytes()),
            options["sink.compaction.every-commits"],
        )
        return LakeTableSink(sink)


def _place(table: Connected) -> DeltaPlace:
    options = {key.removeprefix(STORAGE): value for key, value in table.formats.items()}
    try:
        return DeltaPlace.at(table.options["table-path"], options)
    except LakeError as error:
        raise SqlError(f"{table.table}: {error.problem}", error.remedy) from error


__all__ = ["DeltaTables"]
