"""ORC files, read and written as columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import IO, TYPE_CHECKING

from rayflink.common.configuration import Configuration
from rayflink.common.connector_base.split_reader import SplitCursor
from rayflink.common.records.arrow_types import to_arrow_schema
from rayflink.common.serialization import BulkWriter, RowDataBulkWriterFactory
from rayflink.user_types import TypeHint

from ..files.compression import open_bytes
from ..files.file_blocks import FileSplit
from ..files.file_source import BulkFormat
from .column_blocks import ColumnCursor, ColumnShape, ColumnWriter, opening, reading
from .parquet_files import refuse_hadoop

if TYPE_CHECKING:
    import pyarrow

_COMPRESS = "orc.compress"
_CODECS = {"NONE": "UNCOMPRESSED", "SNAPPY": "SNAPPY", "ZLIB": "ZLIB", "LZ4": "LZ4", "ZSTD": "ZSTD"}


class OrcFormat(BulkFormat):
    """Stripes, as columns.

    Args:
        row_type: columns to read, a RowTypeInfo, a ROW of `DataTypes` or a pyarrow Schema; None: all as they are.
        rows: emit `Row` objects instead of columns.
    """

    def __init__(self, row_type: TypeHint = None, rows: bool = False) -> None:
        self._shape = ColumnShape(None if row_type is None else to_arrow_schema(row_type), rows)

    def open_split(self, split: FileSplit) -> SplitCursor:
        from pyarrow import orc

        raw = open_bytes(split.path)
        with opening(split.path, "ORC file", raw.close):
            file = orc.ORCFile(raw)
            names = self._shape.names_in(file.schema.names, split.path)
        emitted = partial(self._shape.emitted, names=names, path=split.path)
        read = partial(_stripe, file, names, split.path)
        return ColumnCursor(split, list(range(file.nstripes)), read, emitted, raw.close)


def _stripe(
    file: pyarrow.orc.ORCFile, names: list[str] | None, path: str, number: int
) -> Iterator[pyarrow.RecordBatch]:
    with reading(path, f"stripe {number}"):
        yield file.read_stripe(number, columns=names)


class OrcBulkWriters:
    """Makes writers of ORC files."""

    @staticmethod
    def for_row_type(
        row_type: TypeHint,
        writer_properties: Configuration | Mapping[str, str] | None = None,
        hadoop_config: Configuration | None = None,
    ) -> RowDataBulkWriterFactory:
        """Return a factory for rows of a type.

        Args:
            row_type: a RowTypeInfo, a ROW of `DataTypes` or a pyarrow Schema.
            writer_properties: `orc.compress` is known: NONE, SNAPPY, ZLIB, LZ4 or ZSTD.
            hadoop_config: None or empty, as there is no Hadoop.

        Raises:
            ValueError: a property, or its value, is unknown.
        """
        refuse_hadoop(hadoop_config)
        said = writer_properties.to_dict() if isinstance(writer_properties, Configuration) else writer_properties or {}
        properties = dict(said)
        codec = properties.pop(_COMPRESS, "NONE").upper()
        if properties or codec not in _CODECS:
            wanted = f"{_COMPRESS} is known: {', '.join(_CODECS)}"
            raise ValueError(f"ORC writer properties {dict(said)}; {wanted}; leave others out")
        return _OrcFactory(to_arrow_schema(row_type), _CODECS[codec])


class _OrcFactory(RowDataBulkWriterFactory):
    def __init__(self, row_type: TypeHint, codec: str) -> None:
        super().__init__(row_type)
        self._codec = codec

    def create(self, file: IO[bytes]) -> BulkWriter:
        return _OrcWriter(file, self.get_row_type(), self._codec)


class _OrcWriter(ColumnWriter):
    def __init__(self, file: IO[bytes], schema: pyarrow.Schema, codec: str) -> None:
        from pyarrow import orc

        self._file = _Calm(file)
        super().__init__(schema, orc.ORCWriter(self._file, compression=codec))
        self._empty = True

    def write_block(self, table: pyarrow.Table) -> None:
        self._writer.write(table)
        self._empty = False
        self._file.tell_error()

    def finish(self) -> None:
        super().finish()
        self._file.tell_error()

    def abandon(self) -> None:
        if self._empty:
            self._writer.write(self._schema.empty_table())
        super().abandon()


class _Calm:
    """A file that accepts everything and reports errors afterwards: Arrow's ORC ends the process at an error."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._error: OSError | None = None

    def write(self, data: bytes) -> int:
        """Write, unless something went wrong before."""
        if self._error is None:
            try:
                self._file.write(data)
            except OSError as error:
                self._error = error
        return len(data)

    def flush(self) -> None:
        """Do nothing; the sink flushes."""

    def tell_error(self) -> None:
        """Raise what went wrong."""
        if self._error is not None:
            raise self._error
