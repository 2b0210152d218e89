"""Records as rows of a Delta table, each once: Parquet files, and one commit for each checkpoint."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rayflink.common.connector_base.sink import (
    CommitterContext,
    GlobalCommitter,
    Sink,
    SinkWriter,
    WriterContext,
)  # fmt: skip
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.arrow_types import to_arrow_schema
from rayflink.common.records.batches import Batch
from rayflink.user_types import TypeHint, UserRecord

from ..formats.column_blocks import as_schema
from ..lakes.data_file_writing import FILE_BYTES, DataFileWriter
from ..lakes.lake_errors import LakeError
from .delta_committing import DeltaCommitter, DeltaFile, missing_columns
from .delta_table import DeltaPlace
from .delta_values import partition_folder, partition_values, statistics_json

if TYPE_CHECKING:
    import pyarrow


class DeltaSink(Sink[UserRecord]):
    """Appends records to a Delta table, each once; made by `DeltaSink.for_row_data(...).build()`.

    Needs `pip install 'rayflink[delta]'`.

    Args:
        place: of the table, which is created with the first commit if it does not exist.
        schema: names and types of the columns.
        partition_columns: by which the files are divided into folders.
        merge_schema: columns that the table lacks are added to it.
        file_bytes: a file is closed at this size, and at each checkpoint.
        compact_every: commits after which small files are merged; None: never.
    """

    name = "Sink: Delta"

    def __init__(
        self,
        place: DeltaPlace,
        schema: pyarrow.Schema,
        partition_columns: Sequence[str] = (),
        merge_schema: bool = False,
        file_bytes: int = FILE_BYTES,
        compact_every: int | None = None,
    ) -> None:
        self._place, self._schema, self._partition_columns = place, schema, tuple(partition_columns)
        self._merge_schema, self._file_bytes, self._compact_every = merge_schema, file_bytes, compact_every

    @staticmethod
    def for_row_data(
        base_path: str | os.PathLike[str], row_type: TypeHint, options: Mapping[str, str] | None = None
    ) -> RowDataDeltaSinkBuilder:
        """Return a builder of a sink.

        Args:
            base_path: a folder, or a URL such as `s3://bucket/table`.
            row_type: names and types of the columns: a RowTypeInfo, a ROW of `DataTypes` or a pyarrow Schema.
            options: of the object store: the `s3.` options of rayflink, or those of the library deltalake.
        """
        return RowDataDeltaSinkBuilder(DeltaPlace.at(os.fspath(base_path), options), to_arrow_schema(row_type))

    def __repr__(self) -> str:
        return f"DeltaSink({self._place.path!r})"

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        return DeltaWriter(
            self._place, self._schema, self._partition_columns, self._merge_schema, self._file_bytes, ctx
        )  # fmt: skip

    def create_global_committer(self, ctx: CommitterContext) -> GlobalCommitter:
        return DeltaCommitter(
            self._place, self._schema, self._partition_columns, self._merge_schema, self._compact_every, ctx
        )  # fmt: skip


class RowDataDeltaSinkBuilder:
    """Settles how a `DeltaSink` writes.

    Args:
        place: of the table.
        schema: names and types of the columns.
    """

    def __init__(self, place: DeltaPlace, schema: pyarrow.Schema) -> None:
        self._place, self._schema = place, schema
        self._partition_columns: tuple[str, ...] = ()
        self._merge_schema = False
        self._file_bytes = FILE_BYTES
        self._compact_every: int | None = None

    def with_partition_columns(self, *partition_columns: str) -> RowDataDeltaSinkBuilder:
        """Divide the files by the values of columns, into folders as Hive names them.

        Raises:
            LakeError: there is no such column, or all columns are named.
        """
        missing = [name for name in partition_columns if name not in self._schema.names]
        if missing:
            names = ", ".join(self._schema.names)
            raise LakeError(f"there is no column {missing[0]!r} to partition by", f"the columns are {names}")
        if len(set(partition_columns)) == len(self._schema):
            raise LakeError("all columns are partition columns", "leave at least one that the files contain")
        self._partition_columns = partition_columns
        return self

    def with_merge_schema(self, merge_schema: bool) -> RowDataDeltaSinkBuilder:
        """Add columns that the table lacks to it, instead of failing."""
        self._merge_schema = merge_schema
        return self

    def with_file_size(self, file_bytes: int) -> RowDataDeltaSinkBuilder:
        """Close a file at this size in bytes; the default is 512 MiB.

        Raises:
            LakeError: it is below 1.
        """
        if file_bytes < 1:
            raise LakeError(f"the size of files is {file_bytes} bytes", "set at least 1")
        self._file_bytes = file_bytes
        return self

    def with_compaction(self, every_commits: int) -> RowDataDeltaSinkBuilder:
        """Merge small files of the table after each time this many commits, beside the job.

        Raises:
            LakeError: it is below 1.
        """
        if every_commits < 1:
            raise LakeError(f"the interval of compactions is {every_commits} commits", "set at least 1")
        self._compact_every = every_commits
        return self

    def build(self) -> DeltaSink:
        """Return the sink."""
        return DeltaSink(
            self._place, self._schema, self._partition_columns, self._merge_schema, self._file_bytes,
            self._compact_every,
        )  # fmt: skip


class DeltaWriter(SinkWriter):
    """Writes the rows of one subtask to data files, which are closed at each checkpoint.

    Raises:
        LakeError: the table is there and has other columns or partitions.
    """

    def __init__(
        self,
        place: DeltaPlace,
        schema: pyarrow.Schema,
        partition_columns: tuple[str, ...],
        merge_schema: bool,
        file_bytes: int,
        ctx: WriterContext,
    ) -> None:
        import pyarrow

        if place.exists():
            _check(place, schema, partition_columns, merge_schema)
        self._schema, self._partition_columns = schema, partition_columns
        self._stored = pyarrow.schema([field for field in schema if field.name not in partition_columns])
        self._files = DataFileWriter(
            self._stored,
            [(name, _unchanged) for name in partition_columns],
            lambda values: partition_folder(partition_columns, values),
            place.new_file,
            file_bytes,
            f"part-{ctx.subtask:05d}",
        )
        self._files.compression = "snappy"  # which all readers of Delta know
        metrics = ctx.metrics or MetricGroup()
        self._written, self._bytes = metrics.counter("numDataFiles"), metrics.counter("numDataFileBytes")
        self._prepared: list[DeltaFile] = []

    def write(self, batch: Batch) -> None:
        self._files.write(as_schema(batch, self._schema))

    def flush(self, end_of_input: bool) -> None:
        for file in self._files.finish():
            self._written.inc()
            self._bytes.inc(file.size)
            values = partition_values(self._partition_columns, file.partition)
            statistics = statistics_json(file.footer, self._stored)
            self._prepared.append(DeltaFile(file.path, file.size, file.rows, tuple(values.items()), statistics))

    def prepare_commit(self) -> Sequence[object]:
        prepared, self._prepared = self._prepared, []
        return prepared

    def close(self) -> None:
        self._files.abandon()


def _unchanged(column: pyarrow.Array) -> pyarrow.Array:
    return column


def _check(place: DeltaPlace, schema: pyarrow.Schema, partition_columns: Sequence[str], merge_schema: bool) -> None:
    """Check that a table takes the rows of a sink.

    Raises:
        LakeError: it has other columns or partitions, or rules that are not checked here.
    """
    table = place.open()
    place.check_writable(table)
    table_partitions = tuple(table.metadata().partition_columns)
    if table_partitions != tuple(partition_columns):
        problem = (
            f"{place} is partitioned by ({', '.join(table_partitions)}), the sink by ({', '.join(partition_columns)})"
        )
        raise LakeError(problem, "use the partition columns of the table, in their order")
    missing_columns(place, table, schema, merge_schema)


__all__ = ["DeltaSink", "RowDataDeltaSinkBuilder"]
