"""Records as rows of an Iceberg table, each once: Parquet files, and one snapshot for each checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Protocol

from rayflink.common.connector_base.sink import CommitterContext, GlobalCommitter, Sink, SinkWriter, WriterContext
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.arrow_types import to_arrow_schema
from rayflink.common.records.batches import Batch
from rayflink.user_types import TypeHint, UserRecord

from ..formats.column_blocks import as_schema
from ..lakes.data_file_writing import DataFileWriter, WrittenFile
from ..lakes.lake_errors import LakeError, library
from ..lakes.partitioned_rows import PartitionValues
from .iceberg_committing import IcebergCommitter, IcebergFile
from .iceberg_partitions import partition_keys, represented
from .iceberg_table import NewTable, TableLoader, new_data_file, parsed_partitions

if TYPE_CHECKING:
    from pyiceberg.table import Table

FILE_BYTES = 512 << 20


class IcebergSink(Sink[UserRecord]):
    """Appends records to an Iceberg table, each once; made by `IcebergSink.for_row_data(...)`.

    Needs `pip install 'rayflink[iceberg]'`.

    Args:
        loader: of the table.
        new: how the table is created where it does not exist; None: it must exist.
        file_bytes: a file is closed at this size, and at each checkpoint; None: as the table says, or 512 MiB.
        properties: of each snapshot.
    """

    name = "Sink: Iceberg"

    def __init__(
        self,
        loader: TableLoader,
        new: NewTable | None = None,
        file_bytes: int | None = None,
        properties: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self._loader, self._new, self._file_bytes, self._properties = loader, new, file_bytes, properties

    @staticmethod
    def for_row_data(input: _Stream | None = None) -> IcebergSinkBuilder:
        """Return a builder of a sink.

        Args:
            input: the stream that `append()` of the builder ends with the sink.
        """
        return IcebergSinkBuilder(input)

    def __repr__(self) -> str:
        return f"IcebergSink({self._loader.identifier!r})"

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        return IcebergWriter(self._loader.load_or_create(self._new), self._file_bytes, ctx)

    def create_global_committer(self, ctx: CommitterContext) -> GlobalCommitter:
        return IcebergCommitter(self._loader, self._new, self._properties, ctx)


class _Step(Protocol):
    def set_parallelism(self, parallelism: int) -> _Step: ...

    def uid(self, uid: str) -> _Step: ...


class _Stream(Protocol):
    def sink_to(self, sink: IcebergSink) -> _Step: ...


class IcebergSinkBuilder:
    """Settles how an `IcebergSink` writes.

    Args:
        stream: that `append()` ends.
    """

    def __init__(self, stream: _Stream | None) -> None:
        self._stream = stream
        self._loader: TableLoader | None = None
        self._new: NewTable | None = None
        self._file_bytes: int | None = None
        self._parallelism: int | None = None
        self._uid: str | None = None
        self._properties: dict[str, str] = {}

    def table_loader(self, table_loader: TableLoader) -> IcebergSinkBuilder:
        """Write into this table."""
        self._loader = table_loader
        return self

    def create_table(
        self, row_type: TypeHint, partitioning: str = "", properties: Mapping[str, str] | None = None
    ) -> IcebergSinkBuilder:
        """Create the table if it does not exist.

        Args:
            row_type: names and types of the columns: a RowTypeInfo, a ROW of `DataTypes` or a pyarrow Schema.
            partitioning: such as `day(ts), bucket(16, id), room`.
            properties: of the table.

        Raises:
            LakeError: a partition field is malformed, or names no column.
        """
        schema = to_arrow_schema(row_type)
        fields = parsed_partitions(partitioning, schema.names)
        self._new = NewTable(schema, fields, tuple(sorted((properties or {}).items())))
        return self

    def target_file_size(self, file_bytes: int) -> IcebergSinkBuilder:
        """Close a file at this size in bytes; the default is `write.target-file-size-bytes` of the table, or 512 MiB.

        Raises:
            LakeError: it is below 1.
        """
        if file_bytes < 1:
            raise LakeError(f"the size of files is {file_bytes} bytes", "set at least 1")
        self._file_bytes = file_bytes
        return self

    def set_snapshot_property(self, property: str, value: str) -> IcebergSinkBuilder:
        """Set a property of each snapshot that the sink commits."""
        self._properties[property] = value
        return self

    def write_parallelism(self, parallelism: int) -> IcebergSinkBuilder:
        """Set the number of writers, for `append()`."""
        self._parallelism = parallelism
        return self

    def uid_suffix(self, uid: str) -> IcebergSinkBuilder:
        """Set the uid of the sink, for `append()`."""
        self._uid = uid
        return self

    def build(self) -> IcebergSink:
        """Return the sink, for `sink_to`.

        Raises:
            LakeError: no table was set.
        """
        if self._loader is None:
            raise LakeError("the Iceberg sink has no table", "call table_loader(...) before")
        return IcebergSink(self._loader, self._new, self._file_bytes, tuple(sorted(self._properties.items())))

    def append(self) -> _Step:
        """End the stream of `for_row_data` with the sink, and return its last step.

        Raises:
            LakeError: there is no stream or no table.
        """
        if self._stream is None:
            raise LakeError("the Iceberg sink has no stream", "pass it to for_row_data(stream), or call build()")
        step = self._stream.sink_to(self.build())
        if self._parallelism is not None:
            step = step.set_parallelism(self._parallelism)
        return step if self._uid is None else step.uid(self._uid)


class IcebergWriter(SinkWriter):
    """Writes the rows of one subtask to data files, which are closed at each checkpoint."""

    def __init__(self, table: Table, file_bytes: int | None, ctx: WriterContext) -> None:
        arrow = library("pyiceberg.io.pyarrow", "iceberg")
        self._table, self._spec, self._icebergs = table, table.spec(), arrow
        self._schema = arrow.schema_to_pyarrow(table.schema())
        self._plan = arrow.compute_statistics_plan(table.schema(), table.metadata.properties)
        self._ids = arrow.parquet_path_to_id_mapping(table.schema())
        self._provider = table.location_provider()
        self._locations: dict[str, str] = {}
        keys = partition_keys(table)
        if file_bytes is None:
            file_bytes = int(table.metadata.properties.get("write.target-file-size-bytes", FILE_BYTES))
        self._files = DataFileWriter(
            self._schema, keys, self._folder, self._open, file_bytes, f"{ctx.subtask:05d}-{ctx.attempt}"
        )  # fmt: skip
        metrics = ctx.metrics or MetricGroup()
        self._written, self._bytes = metrics.counter("numDataFiles"), metrics.counter("numDataFileBytes")
        self._prepared: list[IcebergFile] = []

    def write(self, batch: Batch) -> None:
        self._files.write(as_schema(batch, self._schema))

    def flush(self, end_of_input: bool) -> None:
        for file in self._files.finish():
            self._written.inc()
            self._bytes.inc(file.size)
            self._prepared.append(self._described(file))

    def prepare_commit(self) -> Sequence[object]:
        prepared, self._prepared = self._prepared, []
        return prepared

    def close(self) -> None:
        self._files.abandon()

    def _described(self, file: WrittenFile) -> IcebergFile:
        statistics = self._icebergs.data_file_statistics_from_parquet_metadata(
            parquet_metadata=file.footer, stats_columns=self._plan, parquet_column_mapping=self._ids
        )
        values = tuple(represented(value) for value in file.partition)
        location = self._locations.pop(file.path)
        return IcebergFile(location, file.size, values, self._spec.spec_id, statistics.to_serialized_dict())

    def _folder(self, values: PartitionValues) -> str:
        if not values:
            return ""
        record = library("pyiceberg.typedef", "iceberg").Record(*map(represented, values))
        return str(self._spec.partition_to_path(record, self._table.schema()))

    def _open(self, path: str) -> IO[bytes]:
        location = self._locations[path] = self._provider.new_data_location(path)
        return new_data_file(self._table, location)


__all__ = ["IcebergSink", "IcebergSinkBuilder"]
