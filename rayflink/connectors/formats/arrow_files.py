"""Arrow IPC files and streams (also Feather), read and written as columns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import IO, TYPE_CHECKING

from rayflink.common.connector_base.split_reader import SplitCursor
from rayflink.common.records.arrow_types import to_arrow_schema
from rayflink.common.serialization import BulkWriter, RowDataBulkWriterFactory
from rayflink.user_types import TypeHint

from ..file_systems.object_paths import ObjectPath
from ..files.compression import is_compressed, open_bytes
from ..files.file_blocks import FileSplit
from ..files.file_source import BulkFormat
from .column_blocks import ColumnCursor, ColumnShape, ColumnWriter, opening, reading

if TYPE_CHECKING:
    import pyarrow

_FILE_MAGIC = b"ARROW1"


class ArrowFormat(BulkFormat):
    """The record batches of Arrow IPC files or streams, as columns.

    Args:
        row_type: columns to read, a RowTypeInfo, a ROW of `DataTypes` or a pyarrow Schema; None: all as they are.
        rows: emit `Row` objects instead of columns.
    """

    def __init__(self, row_type: TypeHint = None, rows: bool = False) -> None:
        self._shape = ColumnShape(None if row_type is None else to_arrow_schema(row_type), rows)

    def open_split(self, split: FileSplit) -> SplitCursor:
        import pyarrow

        path = split.path
        with open_bytes(path) as head:
            is_file = head.read(len(_FILE_MAGIC)) == _FILE_MAGIC
        if is_compressed(path):
            with open_bytes(path) as packed:
                source = pyarrow.BufferReader(packed.read())
        elif isinstance(path, ObjectPath):
            source = pyarrow.PythonFile(open_bytes(path), "r")
        else:
            source = pyarrow.OSFile(path)  # no map: a file that is cut while it is read would end the process
        with opening(path, "Arrow file or stream", source.close):
            reader = (pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream)(source)
            names = self._shape.names_in(reader.schema.names, path)
        emitted = partial(self._shape.emitted, names=names, path=path)
        if is_file:
            blocks, read = list(range(reader.num_record_batches)), partial(_batch_of_file, reader, path)
        else:
            blocks, read = [0], partial(_batches_of_stream, reader, path)
        return ColumnCursor(split, blocks, read, emitted, source.close)


def _batch_of_file(reader: pyarrow.RecordBatchFileReader, path: str, number: int) -> Iterator[pyarrow.RecordBatch]:
    with reading(path, f"record batch {number}"):
        yield reader.get_batch(number)


def _batches_of_stream(reader: pyarrow.RecordBatchFileReader, path: str, _: int) -> Iterator[pyarrow.RecordBatch]:
    with reading(path, "the stream of batches"):
        yield from reader


class ArrowBulkWriters:
    """Makes writers of Arrow IPC files."""

    @staticmethod
    def for_row_type(row_type: TypeHint) -> RowDataBulkWriterFactory:
        """Return a factory for rows of a type, in record batches of 65,536.

        Args:
            row_type: a RowTypeInfo, a ROW of `DataTypes` or a pyarrow Schema.
        """
        return _ArrowFactory(to_arrow_schema(row_type))


class _ArrowFactory(RowDataBulkWriterFactory):
    def create(self, file: IO[bytes]) -> BulkWriter:
        return _ArrowWriter(file, self.get_row_type())


class _ArrowWriter(ColumnWriter):
    def __init__(self, file: IO[bytes], schema: pyarrow.Schema) -> None:
        import pyarrow

        super().__init__(schema, pyarrow.ipc.new_file(file, schema))
