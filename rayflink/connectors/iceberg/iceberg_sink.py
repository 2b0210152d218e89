"""Records as rows of an Iceberg table, each once: Parquet files, and one snapshot for each checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from rayflink.common.connector_base.sink import CommitterContext, GlobalCommitter, Sink, SinkWriter, WriterContext
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.arrow_types import to_arrow_schema
from rayflink.common.records.batches import Batch
from rayflink.user_types import TypeHint, UserRecord

from ..lakes.background_compaction import BackgroundCompaction
from ..lakes.lake_errors import LakeError
from .iceberg_committing import IcebergCommitter, IcebergFile
from .iceberg_compaction import IcebergCompaction
from .iceberg_table import NewTable, TableLoader, parsed_partitions
from .iceberg_writing import IcebergDataFiles, wanted_file_bytes

if TYPE_CHECKING:
    from pyiceberg.table import Table


class IcebergSink(Sink[UserRecord]):
    """Appends records to an Iceberg table, each once; made by `IcebergSink.for_row_data(...)`.

    Needs `pip install 'rayflink[iceberg]'`.

    Args:
        loader: of the table.
        new: how the table is created where it does not exist; None: it must exist.
        file_bytes: a file is closed at this size, and at each checkpoint; None: as the table says, or 512 MiB.
        properties: of each snapshot.
        compact_every: commits after which small files are merged; None: never.
    """

    name = "Sink: Iceberg"

    def __init__(
        self,
        loader: TableLoader,
        new: NewTable | None = None,
        file_bytes: int | None = None,
        properties: tuple[tuple[str, str], ...] = (),
        compact_every: int | None = None,
    ) -> None:
        self._loader, self._new, self._file_bytes, self._properties = loader, new, file_bytes, properties
        self._compact_every = compact_every

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
        merge = IcebergCompaction(self._loader, self._file_bytes).merge
        compaction = BackgroundCompaction(str(self._loader), merge, self._compact_every, ctx.metrics)
        return IcebergCommitter(self._loader, self._new, self._properties, compaction, ctx)


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
        self._compact_every: int | None = None

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

    def with_compaction(self, every_commits: int) -> IcebergSinkBuilder:
        """Merge small files of the table after each time this many commits, beside the job.

        Raises:
            LakeError: it is below 1.
        """
        if every_commits < 1:
            raise LakeError(f"the interval of compactions is {every_commits} commits", "set at least 1")
        self._compact_every = every_commits
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
        properties = tuple(sorted(self._properties.items()))
        return IcebergSink(self._loader, self._new, self._file_bytes, properties, self._compact_every)

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
        self._files = IcebergDataFiles(table, wanted_file_bytes(table, file_bytes), f"{ctx.subtask:05d}-{ctx.attempt}")
        metrics = ctx.metrics or MetricGroup()
        self._written, self._bytes = metrics.counter("numDataFiles"), metrics.counter("numDataFileBytes")
        self._prepared: list[IcebergFile] = []

    def write(self, batch: Batch) -> None:
        self._files.write(batch)

    def flush(self, end_of_input: bool) -> None:
        for file in self._files.finish():
            self._written.inc()
            self._bytes.inc(file.size)
            self._prepared.append(file)

    def prepare_commit(self) -> Sequence[object]:
        prepared, self._prepared = self._prepared, []
        return prepared

    def close(self) -> None:
        self._files.abandon()


__all__ = ["IcebergSink", "IcebergSinkBuilder"]
