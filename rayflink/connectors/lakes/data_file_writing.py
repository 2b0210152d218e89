"""Parquet files of a table, written by one subtask: one for each partition, closed by size and at each checkpoint."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from .partitioned_rows import PartitionValues, divided

if TYPE_CHECKING:
    import pyarrow

BLOCK_ROWS = 1 << 17
"""Rows of a row group."""
BLOCK_BYTES = 64 << 20
"""Bytes in memory of the rows that wait for their row group."""
MOST_OPEN = 64
"""Files that a subtask writes at the same time; beyond, the one that was written to least recently is closed."""
FILE_BYTES = 512 << 20
SAMPLED_ROWS = 8192
"""Rows by which a column's repetition is estimated."""

OpenFile = Callable[[str], IO[bytes]]


@dataclass(frozen=True)
class WrittenFile:
    """A closed data file.

    Args:
        path: as `DataFileWriter` passed it to `open_file`.
        size: in bytes.
        partition: its values, in the order of the partition's columns.
        footer: pyarrow's metadata of the file, with statistics of each row group.
    """

    path: str
    size: int
    rows: int
    partition: PartitionValues
    footer: pyarrow.parquet.FileMetaData


class DataFileWriter:
    """Writes columns to Parquet files, which no reader sees until a commit names them.

    No name is used twice: each contains a random number of 128 bits that is drawn for the file.

    Args:
        schema: of the files, without columns that the partition alone has.
        keys: columns of the partition, see `divided`.
        folder: partition values -> the folder of its files, relative, "" for the root.
        open_file: path -> a new file.
        file_bytes: a file of this size is closed.
        prefix: of the names of files.
    """

    compression = "zstd"
    """The codec of Parquet files: zstd, snappy, gzip or none."""

    def __init__(
        self,
        schema: pyarrow.Schema,
        keys: Sequence[tuple[str, Callable[[pyarrow.Array], pyarrow.Array]]],
        folder: Callable[[PartitionValues], str],
        open_file: OpenFile,
        file_bytes: int = FILE_BYTES,
        prefix: str = "part",
    ) -> None:
        self._schema, self._keys, self._folder, self._open_file = schema, keys, folder, open_file
        self._file_bytes, self._prefix = file_bytes, prefix
        self._open: dict[PartitionValues, _OpenDataFile] = {}
        self._written: list[WrittenFile] = []

    def write(self, data: pyarrow.RecordBatch) -> None:
        """Write rows, which have the columns of the schema and those of the partition."""
        for values, rows in divided(data, self._keys):
            file = self._open.pop(values, None) or self._new_file(values)
            self._open[values] = file  # the last one is the one written to most recently
            file.add(rows.select(self._schema.names))
            if file.size >= self._file_bytes:
                self._finish(values)

    def finish(self) -> list[WrittenFile]:
        """Close all files, and return those that were closed since the last call."""
        for values in list(self._open):
            self._finish(values)
        written, self._written = self._written, []
        return written

    def abandon(self) -> None:
        """Release open files, which nothing will name."""
        for file in self._open.values():
            file.abandon()
        self._open.clear()

    def _finish(self, values: PartitionValues) -> None:
        self._written.append(self._open.pop(values).finish())

    def _new_file(self, values: PartitionValues) -> _OpenDataFile:
        while len(self._open) >= MOST_OPEN:
            self._finish(next(iter(self._open)))
        name = f"{self._prefix}-{uuid.uuid4().hex}.parquet"
        folder = self._folder(values)
        path = f"{folder}/{name}" if folder else name
        return _OpenDataFile(path, values, self._schema, self._open_file(path), self.compression)


class _OpenDataFile:
    def __init__(
        self, path: str, values: PartitionValues, schema: pyarrow.Schema, file: IO[bytes], compression: str
    ) -> None:
        import pyarrow

        self._path, self._values, self._schema, self._file = path, values, schema, file
        self._compression = compression
        self._sink = pyarrow.PythonFile(file, mode="w")
        self._writer: pyarrow.parquet.ParquetWriter | None = None
        self._waiting: list[pyarrow.RecordBatch] = []
        self._rows = self._bytes = self._total = 0

    @property
    def size(self) -> int:
        return int(self._sink.tell())

    def add(self, rows: pyarrow.RecordBatch) -> None:
        self._waiting.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows >= BLOCK_ROWS or self._bytes >= BLOCK_BYTES:
            self._flush()

    def finish(self) -> WrittenFile:
        self._flush()
        assert self._writer is not None, "a file is opened for its first row"
        self._writer.close()
        size = self.size
        self._sink.close()
        self._file.close()
        return WrittenFile(self._path, size, self._total, self._values, self._writer.writer.metadata)

    def abandon(self) -> None:
        abort = getattr(self._file, "abort", None)
        if abort is not None:
            abort()
            return
        if self._writer is not None:
            self._writer.close()
        self._sink.close()
        self._file.close()

    def _flush(self) -> None:
        import pyarrow
        from pyarrow import parquet

        if self._rows:
            table = pyarrow.Table.from_batches(self._waiting, self._schema)
            if self._writer is None:
                # Timestamps without INT96, and statistics of all columns, as the formats of lakes want them.
                self._writer = parquet.ParquetWriter(
                    self._sink,
                    self._schema,
                    compression=self._compression,
                    use_dictionary=repetitive_columns(table),
                    coerce_timestamps="us",
                    allow_truncated_timestamps=True,
                )
            self._writer.write_table(table, row_group_size=BLOCK_ROWS)
            self._total += self._rows
        self._waiting, self._rows, self._bytes = [], 0, 0


def repetitive_columns(table: pyarrow.Table) -> list[str]:
    """Return the Parquet paths of the columns whose values repeat, for which a dictionary is worth its time.

    Args:
        table: its first rows decide; nested columns always have dictionaries.

    >>> import pyarrow
    >>> repetitive_columns(pyarrow.table({"id": [1, 2, 3, 4], "room": ["hall", "hall", "attic", "hall"]}))
    ['room']
    """
    import pyarrow
    import pyarrow.compute as pc

    paths = []
    for field in table.schema:
        if pyarrow.types.is_nested(field.type):
            paths += _leaves(field.name, field.type)
            continue
        sample = table[field.name].slice(0, SAMPLED_ROWS)
        if pc.count_distinct(sample).as_py() * 2 <= len(sample):
            paths.append(field.name)
    return paths


def _leaves(path: str, kind: pyarrow.DataType) -> list[str]:
    """Return the Parquet paths of the columns that a type consists of."""
    from pyarrow import types

    if types.is_struct(kind):
        return [leaf for field in kind for leaf in _leaves(f"{path}.{field.name}", field.type)]
    if types.is_map(kind):
        inner = _leaves(f"{path}.key_value.value", kind.item_type)
        return _leaves(f"{path}.key_value.key", kind.key_type) + inner
    return _leaves(f"{path}.list.element", kind.value_type) if types.is_nested(kind) else [path]


class LocalDataFile:
    """A new local file, whose bytes and name are on the disk once it is closed.

    Args:
        path: must not exist; missing folders are made.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self._file = open(path, "xb")  # closed by close
        self.write = self._file.write
        self.tell = self._file.tell
        self.flush = self._file.flush

    @property
    def closed(self) -> bool:
        """Return whether it is closed."""
        return self._file.closed

    def close(self) -> None:
        """Write everything to the disk and close the file."""
        if self._file.closed:
            return
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        folder = os.open(os.path.dirname(self._path), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def abort(self) -> None:
        """Close and delete the file."""
        self._file.close()
        if os.path.exists(self._path):
            os.unlink(self._path)


def local_path(address: str) -> str | None:
    """Return the local path that an address names; None: it names a place in an object store.

    >>> local_path("file:///data/t"), local_path("/data/t"), local_path("s3://bucket/t")
    ('/data/t', '/data/t', None)
    """
    scheme, separator, rest = address.partition("://")
    if separator:
        return rest if scheme == "file" else None
    return address.removeprefix("file:")


__all__ = ["FILE_BYTES", "DataFileWriter", "LocalDataFile", "WrittenFile", "local_path"]
