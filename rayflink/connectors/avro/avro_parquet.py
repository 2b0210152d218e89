"""Parquet files whose columns are those of an Avro schema, under PyFlink's names."""

from __future__ import annotations

from rayflink.common.connector_base.split_reader import SplitCursor
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.records.batches import ArrowBatch, Batch, RowBatch, rows_of
from rayflink.common.serialization import BulkWriterFactory
from rayflink.user_types import UserRecord

from ..files.file_blocks import FileSplit
from ..files.file_source import StreamFormat
from ..formats.parquet_files import ParquetBulkWriters, ParquetFormat
from .arrow_mapping import arrow_schema_of
from .avro_schema import AvroSchema, SchemaNode
from .generic_type import GenericRecordAvroTypeInfo


class AvroParquetReaders:
    """Makes formats that read Parquet files as records of an Avro schema."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> StreamFormat[UserRecord]:
        """Return a format whose records are dicts with the fields of a schema.

        Args:
            schema: a record; the file must have its fields as columns.

        Raises:
            BadAvroSchema: it is no record, or has a union of several types.
        """
        return _AvroParquetFormat(schema)


class AvroParquetWriters:
    """Makes writers of Parquet files for records of an Avro schema."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """Return a factory for dicts with the fields of a schema, or columns of the same names.

        Raises:
            BadAvroSchema: it is no record, or has a union of several types.
        """
        return ParquetBulkWriters.for_row_type(arrow_schema_of(schema.root))


class _AvroParquetFormat(StreamFormat[UserRecord]):
    divisible = True

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema
        self._columns = ParquetFormat(arrow_schema_of(schema.root))

    @property
    def produced_type(self) -> TypeInformation:
        return GenericRecordAvroTypeInfo(self._schema)

    def open_split(self, split: FileSplit) -> SplitCursor:
        return _RecordCursor(self._columns.open_split(split), self._schema.root.value)


class _RecordCursor:
    def __init__(self, columns: SplitCursor, root: SchemaNode) -> None:
        self._columns, self._root = columns, root

    def read(self, max_records: int) -> Batch | None:
        batch = self._columns.read(max_records)
        if not isinstance(batch, ArrowBatch):
            return batch if batch is None else RowBatch(rows_of(batch))  # type: ignore[arg-type]
        return RowBatch([with_dicts(row, self._root) for row in batch.data.to_pylist()])

    def position(self) -> FileSplit:
        split: FileSplit = self._columns.position()
        return split

    def close(self) -> None:
        self._columns.close()


def with_dicts(value: UserRecord, node: SchemaNode) -> UserRecord:
    """Return a value as Arrow gives it with dicts for maps, which Arrow gives as lists of pairs."""
    kind = node.value
    if value is None:
        return None
    if kind.kind == "record":
        return {field.name: with_dicts(value[field.name], field.node) for field in kind.fields}
    if kind.kind == "array":
        return [with_dicts(item, kind.items[0]) for item in value]
    if kind.kind == "map":
        return {key: with_dicts(item, kind.items[0]) for key, item in dict(value).items()}
    return value


__all__ = ["AvroParquetReaders", "AvroParquetWriters"]
