"""Parquet files, read and written as columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from rayflink.common.configuration import Configuration
from rayflink.common.connector_base.split_reader import SplitCursor
from rayflink.common.records.arrow_types import to_arrow_schema
from rayflink.common.serialization import BulkWriter, RowDataBulkWriterFactory
from rayflink.user_types import TypeHint

from ..file_systems.object_paths import ObjectPath
from ..files.compression import open_bytes
from ..files.file_blocks import FileSplit
from ..files.file_source import BulkFormat
from .column_blocks import ColumnCursor, ColumnShape, ColumnWriter, opening, reading

if TYPE_CHECKING:
    import pyarrow

BATCH_ROWS = 2048


class ParquetFormat(BulkFormat):
    """Row groups, as columns; a row group is read by the reader of the bytes in which it begins.

    Args:
        row_type: columns to read, a RowTypeInfo, a ROW of `DataTypes` or a pyarrow Schema; None: all as they are. Of a
            row column only the fields that the type has are read.
        batch_size: most records at a time.
        is_case_sensitive: False finds columns whose names differ in case alone.
        rows: emit `Row` objects instead of columns.

    Raises:
        ValueError: the batch size is below 1.
    """

    divisible = True

    def __init__(
        self, row_type: TypeHint = None, batch_size: int = 1 << 16, is_case_sensitive: bool = True, rows: bool = False
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be >= 1, found {batch_size}")
        schema = None if row_type is None else to_arrow_schema(row_type)
        self._shape, self._batch_size = ColumnShape(schema, rows, is_case_sensitive), batch_size
        self._groups: Callable[[Any], bool] | None = None

    def of_groups(self, wanted: Callable[[Any], bool]) -> ParquetFormat:
        """Return this format, extended to skip some row groups.

        Args:
            wanted: whether a row group, as pyarrow's metadata describe it, is read.
        """
        parquet_format = copy(self)
        parquet_format._groups = wanted
        return parquet_format

    def open_split(self, split: FileSplit) -> SplitCursor:
        from pyarrow import parquet

        raw = open_bytes(split.path)
        with opening(split.path, "Parquet file", raw.close):
            file = parquet.ParquetFile(raw, pre_buffer=isinstance(split.path, ObjectPath))
            names = self._shape.names_in(file.schema_arrow.names, split.path)
            paths = self._shape.paths_in(file.schema_arrow, names)
        groups = [group for group in range(file.num_row_groups) if split.start <= _begin(file, group) < split.stop]
        if self._groups is not None:
            groups = [group for group in groups if self._groups(file.metadata.row_group(group))]
        emitted = partial(self._shape.emitted, names=names, path=split.path)
        return ColumnCursor(split, groups, partial(self._group, file, paths, split.path), emitted, raw.close)

    def _group(
        self, file: pyarrow.parquet.ParquetFile, paths: list[str] | None, path: str, group: int
    ) -> Iterator[pyarrow.RecordBatch]:
        with reading(path, f"row group {group}"):
            yield from file.iter_batches(self._batch_size, row_groups=[group], columns=paths)


class ParquetColumnarRowInputFormat(ParquetFormat):
    """Parquet under PyFlink's name: columns of a row type, which row functions see as `Row` objects.

    Args:
        row_type: columns to read, a ROW of `DataTypes`, a RowTypeInfo or a pyarrow Schema.
        hadoop_config: None or empty, as there is no Hadoop.
        batch_size: most records at a time.
        is_utc_timestamp: taken for PyFlink's sake: times are those that Arrow reads.
        is_case_sensitive: False finds columns whose names differ in case alone.
    """

    def __init__(
        self,
        row_type: TypeHint,
        hadoop_config: Configuration | None = None,
        batch_size: int = BATCH_ROWS,
        is_utc_timestamp: bool = False,
        is_case_sensitive: bool = True,
    ) -> None:
        refuse_hadoop(hadoop_config)
        del is_utc_timestamp
        super().__init__(to_arrow_schema(row_type), batch_size, is_case_sensitive)


class ParquetBulkWriters:
    """Makes writers of Parquet files."""

    @staticmethod
    def for_row_type(
        row_type: TypeHint, hadoop_config: Configuration | None = None, utc_timestamp: bool = False
    ) -> RowDataBulkWriterFactory:
        """Return a factory for rows of a type, in row groups of 65,536 records, packed with snappy.

        Args:
            row_type: a RowTypeInfo, a ROW of `DataTypes` or a pyarrow Schema.
            hadoop_config: None or empty, as there is no Hadoop.
            utc_timestamp: times without a zone are marked as UTC.
        """
        refuse_hadoop(hadoop_config)
        schema = to_arrow_schema(row_type)
        return _ParquetFactory(_in_utc(schema) if utc_timestamp else schema)


class _ParquetFactory(RowDataBulkWriterFactory):
    def create(self, file: IO[bytes]) -> BulkWriter:
        return _ParquetWriter(file, self.get_row_type())


class _ParquetWriter(ColumnWriter):
    def __init__(self, file: IO[bytes], schema: pyarrow.Schema) -> None:
        from pyarrow import parquet

        super().__init__(schema, parquet.ParquetWriter(file, schema))


def refuse_hadoop(hadoop_config: Configuration | None) -> None:
    """Check that a Hadoop configuration says nothing.

    Raises:
        ValueError: it does.
    """
    if hadoop_config is None:
        return
    said = hadoop_config.to_dict() if isinstance(hadoop_config, Configuration) else {"no Configuration": hadoop_config}
    if said:
        problem = f"hadoop_config has {', '.join(said)}"
        raise ValueError(f"{problem}; files are read and written by Arrow, without Hadoop: leave it out, or empty")


def _begin(file: pyarrow.parquet.ParquetFile, group: int) -> int:
    column = file.metadata.row_group(group).column(0)
    offset = column.data_page_offset
    return int(offset if column.dictionary_page_offset is None else min(offset, column.dictionary_page_offset))


def _in_utc(schema: pyarrow.Schema) -> pyarrow.Schema:
    import pyarrow

    def marked(field: pyarrow.Field) -> pyarrow.Field:
        if pyarrow.types.is_timestamp(field.type) and field.type.tz is None:
            return field.with_type(pyarrow.timestamp(field.type.unit, "UTC"))
        return field

    return pyarrow.schema([marked(field) for field in schema])
