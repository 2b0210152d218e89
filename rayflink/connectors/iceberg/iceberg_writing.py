"""Data files of an Iceberg table: rows in, described files out, which no snapshot names yet."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from rayflink.common.records.batches import Batch

from ..formats.column_blocks import as_schema
from ..lakes.data_file_writing import DataFileWriter, WrittenFile
from ..lakes.lake_errors import library
from ..lakes.partitioned_rows import PartitionValues
from .iceberg_committing import IcebergFile
from .iceberg_partitions import partition_keys, represented
from .iceberg_table import new_data_file

if TYPE_CHECKING:
    from pyiceberg.table import Table

FILE_BYTES = 512 << 20


def wanted_file_bytes(table: Table, file_bytes: int | None) -> int:
    """Return the size at which files are closed: a sink's, else the table's, else 512 MiB."""
    if file_bytes is not None:
        return file_bytes
    return int(table.metadata.properties.get("write.target-file-size-bytes", FILE_BYTES))


class IcebergDataFiles:
    """Writes rows to Parquet files of a table, by its current partition spec.

    Args:
        file_bytes: a file is closed at this size.
        prefix: of the names of files.
    """

    def __init__(self, table: Table, file_bytes: int, prefix: str) -> None:
        arrow = library("pyiceberg.io.pyarrow", "iceberg")
        self._table, self._spec, self._icebergs = table, table.spec(), arrow
        self._schema = arrow.schema_to_pyarrow(table.schema())
        self._plan = arrow.compute_statistics_plan(table.schema(), table.metadata.properties)
        self._ids = arrow.parquet_path_to_id_mapping(table.schema())
        self._provider = table.location_provider()
        self._locations: dict[str, str] = {}
        self._files = DataFileWriter(
            self._schema, partition_keys(table), self._folder, self._open, file_bytes, prefix
        )  # fmt: skip

    def write(self, batch: Batch) -> None:
        """Write rows, which have the columns of the table."""
        self._files.write(as_schema(batch, self._schema))

    def finish(self) -> list[IcebergFile]:
        """Close all files, and return those that were closed since the last time."""
        return [self._described(file) for file in self._files.finish()]

    def abandon(self) -> None:
        """Close all files without a use for them."""
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


__all__ = ["IcebergDataFiles", "wanted_file_bytes"]
