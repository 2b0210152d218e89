"""Avro files, read as columns or records and written from both; several readers share a large file."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import IO, TYPE_CHECKING

from rayflink.common.connector_base.split_reader import SplitCursor, share_of
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.records.arrow_types import to_arrow_schema
from rayflink.common.records.batches import ArrowBatch, Batch, RowBatch, rows_of
from rayflink.common.records.row_kinds import has_kinds
from rayflink.common.serialization import BulkWriter, BulkWriterFactory
from rayflink.common.types import Row
from rayflink.user_types import TypeHint, UserRecord

from ..files.compression import open_bytes
from ..files.file_blocks import FileSplit
from ..files.file_source import BulkFormat, FileSource
from .avro_schema import AvroSchema
from .container_blocks import (
    CODECS,
    MARKER_BYTES,
    find_marker,
    read_block,
    read_header,
    write_block,
    write_header,
)
from .datum_columns import DatumColumns
from .datum_encoding import DatumEncoder
from .datum_records import DatumRecords
from .generic_type import GenericRecordAvroTypeInfo

if TYPE_CHECKING:
    pass

BLOCK_RECORDS = 4096
"""Records of a block that is written, at most."""
BLOCK_BYTES = 1 << 18
"""Bytes of records that are gathered before a block is written, at most about."""


class AvroFormat(BulkFormat):
    """The records of Avro files as columns.

    Args:
        row_type: columns to read, a RowTypeInfo, a ROW of `DataTypes` or a pyarrow Schema; None: all of each file.
    """

    divisible = True

    def __init__(self, row_type: TypeHint = None) -> None:
        self._wanted = None if row_type is None else to_arrow_schema(row_type)

    def open_split(self, split: FileSplit) -> SplitCursor:
        def decoder(schema: AvroSchema) -> Callable[[bytes, int], Batch]:
            columns = DatumColumns(schema, self._wanted)
            return lambda data, count: ArrowBatch(columns.of_block(data, count))

        return _ContainerCursor(split, decoder)


class AvroRecordFormat(BulkFormat):
    """The records of Avro files as dicts.

    Args:
        schema: of the records, by Avro's rules of schema resolution; None: that of each file.
    """

    divisible = True

    def __init__(self, schema: AvroSchema | None = None) -> None:
        self._schema = schema

    @property
    def produced_type(self) -> TypeInformation | None:
        return None if self._schema is None else GenericRecordAvroTypeInfo(self._schema)

    def open_split(self, split: FileSplit) -> SplitCursor:
        def decoder(schema: AvroSchema) -> Callable[[bytes, int], Batch]:
            records = DatumRecords(schema, None if schema == self._schema else self._schema)
            return lambda data, count: RowBatch(records.of_block(data, count))

        return _ContainerCursor(split, decoder)


class AvroInputFormat(FileSource[UserRecord]):
    """A source of the records of Avro files, which are dicts, under PyFlink's name; pass it to `from_source`.

    Args:
        path: of a file, a folder, or a pattern.
        schema: of the records.
    """

    def __init__(self, path: str | os.PathLike[str], schema: AvroSchema) -> None:
        super().__init__(AvroRecordFormat(schema), [path])
        self._type = GenericRecordAvroTypeInfo(schema)

    def get_produced_type(self) -> GenericRecordAvroTypeInfo:
        """Return the type of the records."""
        return self._type


class _ContainerCursor:
    """Reads the blocks of a file whose markers before them begin in the split; the position is that of a block.

    Args:
        split: what to read.
        decoder: schema of the file -> bytes of a block and number of its records -> batch.
    """

    def __init__(self, split: FileSplit, decoder: Callable[[AvroSchema], Callable[[bytes, int], Batch]]) -> None:
        self._split = split
        self._file = open_bytes(split.path)
        try:
            self._header = read_header(self._file)
            self._decode = decoder(self._header.schema)
            self._offset = self._first_block(split)
        except ValueError as error:
            self._file.close()
            raise ValueError(f"{split.path!r}: {error}; write it anew, or leave it out") from error
        except BaseException:
            self._file.close()
            raise
        self._next = self._offset
        self._skip = split.skip if split.offset is not None else 0
        self._batch: Batch = RowBatch([])
        self._given = 0

    def _first_block(self, split: FileSplit) -> int | None:
        """Return the position of the first block that is this split's; None: there is none."""
        if split.offset is not None:
            return None if split.offset < 0 else split.offset
        start = max(split.start, self._header.stop - MARKER_BYTES)
        return find_marker(self._file, start, self._header.marker)

    def read(self, max_records: int) -> Batch | None:
        while self._given >= len(self._batch):
            if not self._read_block():
                return None
        left = len(self._batch) - self._given
        stop = self._given + share_of(left, max_records)
        part = _part(self._batch, self._given, stop)
        self._given = stop
        return part

    def _read_block(self) -> bool:
        self._offset = self._next
        if self._offset is None or self._offset - MARKER_BYTES >= self._split.stop:
            self._offset = self._next = None
            return False
        try:
            self._file.seek(self._offset)
            block = read_block(self._file, self._header)
            if block is not None:
                self._batch = self._decode(block[1], block[0])
        except ValueError as error:
            problem = f"{self._split.path!r}, block at byte {self._offset}: {error}"
            raise ValueError(f"{problem}; write the file anew, or leave it out") from error
        if block is None:
            self._offset = self._next = None
            return False
        self._next = self._file.tell()
        self._given, self._skip = min(self._skip, len(self._batch)), 0
        return True

    def position(self) -> FileSplit:
        if self._offset is None:
            return replace(self._split, offset=-1, skip=0)
        if self._given >= len(self._batch) and self._next != self._offset:
            return replace(self._split, offset=self._next, skip=0)
        return replace(self._split, offset=self._offset, skip=self._given or self._skip)

    def close(self) -> None:
        self._file.close()


def _part(batch: Batch, start: int, stop: int) -> Batch:
    return batch.slice(start, stop) if isinstance(batch, ArrowBatch) else RowBatch(list(rows_of(batch)[start:stop]))


class AvroBulkWriters:
    """Makes writers of Avro files."""

    @staticmethod
    def for_generic_record(schema: AvroSchema, codec: str = "null") -> BulkWriterFactory:
        """Return a factory for dicts with the fields of a schema; `Row` objects and columns are taken, too.

        Args:
            schema: of the records.
            codec: null, deflate, snappy, bzip2, xz or zstandard.

        Raises:
            ValueError: there is no such codec.
        """
        return AvroWriterFactory(schema, codec)


class AvroWriterFactory(BulkWriterFactory):
    """Makes writers of Avro files.

    Args:
        schema: of the records.
        codec: by which blocks are packed.

    Raises:
        ValueError: there is no such codec.
    """

    def __init__(self, schema: AvroSchema, codec: str = "null") -> None:
        if codec not in CODECS:
            raise ValueError(f"the codec is {codec!r}, one of {', '.join(CODECS)} is wanted")
        self._schema, self._codec = schema, codec

    def create(self, file: IO[bytes]) -> BulkWriter:
        return _ContainerWriter(file, self._schema, self._codec)


class _ContainerWriter(BulkWriter):
    def __init__(self, file: IO[bytes], schema: AvroSchema, codec: str) -> None:
        self._file, self._schema, self._codec = file, schema, codec
        self._marker = os.urandom(MARKER_BYTES)
        self._records = DatumRecords(schema)
        self._columns: DatumEncoder | None = None
        self._parts: list[bytes] = []
        self._count = self._bytes = 0
        file.write(write_header(schema, codec, self._marker))

    def add_element(self, element: UserRecord) -> None:
        self._add(self._records.encoded_block([as_generic(element)]), 1)

    def add_batch(self, batch: Batch) -> None:
        for start in range(0, len(batch), BLOCK_RECORDS):
            part = _part(batch, start, min(start + BLOCK_RECORDS, len(batch)))
            if isinstance(part, ArrowBatch) and not has_kinds(part.data.schema):
                self._add(self._encoder().block_of(part.data), len(part))
            else:
                self._add(self._records.encoded_block(list(map(as_generic, rows_of(part)))), len(part))

    def _encoder(self) -> DatumEncoder:
        if self._columns is None:
            self._columns = DatumEncoder(self._schema)
        return self._columns

    def _add(self, data: bytes, count: int) -> None:
        self._parts.append(data)
        self._count += count
        self._bytes += len(data)
        if self._count >= BLOCK_RECORDS or self._bytes >= BLOCK_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._count:
            self._file.write(write_block(self._count, b"".join(self._parts), self._codec, self._marker))
            self._parts, self._count, self._bytes = [], 0, 0

    def finish(self) -> None:
        self.flush()


def as_generic(value: UserRecord) -> UserRecord:
    """Return a record as fastavro writes it: `Row` objects with names, also within others, become dicts."""
    if isinstance(value, Row):
        return {name: as_generic(item) for name, item in value.as_dict().items()}
    if isinstance(value, dict):
        return {name: as_generic(item) for name, item in value.items()}
    if isinstance(value, list):
        return [as_generic(item) for item in value]
    return value


__all__ = [
    "AvroBulkWriters", "AvroFormat", "AvroInputFormat", "AvroRecordFormat", "AvroWriterFactory", "as_generic",
]  # fmt: skip
