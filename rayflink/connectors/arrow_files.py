"""Arrow IPC files and streams (also Feather), read and written as columns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from ..common.arrow_types import to_arrow_schema
from ..common.serialization import BulkWriter, RowDataBulkWriterFactory
from ..common.split_reader import SplitCursor
from .column_blocks import ColumnCursor, ColumnShape, ColumnWriter
from .compression import is_compressed, open_bytes
from .file_blocks import FileSplit
from .file_source import BulkFormat

if TYPE_CHECKING:
    import pyarrow

_FILE_MAGIC = b"ARROW1"


class ArrowFormat(BulkFormat):
    """The record batches of Arrow IPC files or streams, as columns.

    Args:
        row_type: columns to read, a RowTypeInfo or pyarrow Schema; None: all as they are.
        rows: emit `Row` objects instead of columns.
    """

    def __init__(self, row_type: Any = None, rows: bool = False) -> None:
        self._shape = ColumnShape(None if row_type is None else to_arrow_schema(row_type), rows)

    def open_split(self, split: FileSplit) -> SplitCursor:
        import pyarrow

        path = split.path
        with open_bytes(path) as head:
            is_file = head.read(len(_FILE_MAGIC)) == _FILE_MAGIC
        if is_compressed(path):
            with open_bytes(path) as packed:
                source = pyarrow.BufferReader(packed.read())
        else:
            source = pyarrow.OSFile(path)  # no map: a file that is cut while it is read would end the process
        try:
            reader = (pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream)(source)
            names = self._shape.names_in(reader.schema.names, path)
        except (pyarrow.ArrowException, OSError) as error:
            source.close()
            found = f"{path!r} is no whole Arrow file or stream ({str(error).strip()})"
            raise ValueError(f"{found}; write it anew") from error
        except ValueError:
            source.close()
            raise
        emitted = partial(self._shape.emitted, names=names, path=path)
        if is_file:
            blocks, read = list(range(reader.num_record_batches)), partial(_batch_of_file, reader, path)
        else:
            blocks, read = [0], partial(_batches_of_stream, reader, path)
        return ColumnCursor(split, blocks, read, emitted, source.close)


def _batch_of_file(reader: Any, path: str, number: int) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow

    try:
        yield reader.get_batch(number)
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path!r}: record batch {number} cannot be read ({error}); write the file anew") from error


def _batches_of_stream(reader: Any, path: str, _: int) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow

    try:
        yield from reader
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path!r}: the stream of batches cannot be read ({error}); write the file anew") from error


class ArrowBulkWriters:
    """Makes writers of Arrow IPC files."""

    @staticmethod
    def for_row_type(row_type: Any) -> RowDataBulkWriterFactory:
        """A factory for rows of a type, in record batches of 65,536.

        Args:
            row_type: a RowTypeInfo or pyarrow Schema.
        """
        return _ArrowFactory(to_arrow_schema(row_type))


class _ArrowFactory(RowDataBulkWriterFactory):
    def create(self, file: IO[bytes]) -> BulkWriter:
        return _ArrowWriter(file, self.get_row_type())


class _ArrowWriter(ColumnWriter):
    def __init__(self, file: IO[bytes], schema: pyarrow.Schema) -> None:
        import pyarrow

        super().__init__(schema)
        self._writer = pyarrow.ipc.new_file(file, schema)

    def write_block(self, table: pyarrow.Table) -> None:
        self._writer.write_table(table)

    def finish(self) -> None:
        self.flush()
        self._writer.close()

    def abandon(self) -> None:
        self._writer.close()
