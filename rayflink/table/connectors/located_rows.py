"""Columns that are not in a file but follow from where it lies: partition keys and metadata."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rayflink.common.connector_base.source import PENDING
from rayflink.common.connector_base.split_reader import SplitCursor
from rayflink.common.records.batches import ArrowBatch, Batch, Tagged
from rayflink.common.records.row_kinds import kinds_of, with_kinds
from rayflink.connectors.file_systems.object_paths import ObjectPath
from rayflink.connectors.files.file_blocks import FileSplit
from rayflink.connectors.files.file_source import FileFormat

from ..errors import SqlError
from ..plan.logical import Schema
from ..types import Root
from .partitions import Partitions

if TYPE_CHECKING:
    import pyarrow

METADATA: Mapping[str, tuple[Root, ...]] = {
    "file.path": (Root.VARCHAR,),
    "file.name": (Root.VARCHAR,),
    "file.size": (Root.BIGINT, Root.INT, Root.DOUBLE),
    "file.modification-time": (Root.TIMESTAMP_LTZ, Root.TIMESTAMP),
}
"""Property of a file -> the types that its column may have, Flink's first."""


def check_metadata_types(table: str, schema: Schema, metadata: Mapping[int, str]) -> None:
    """Check whether metadata columns are of types that hold their values.

    Raises:
        SqlError: one is not.
    """
    for index, key in metadata.items():
        if schema[index].type.root not in METADATA[key]:
            expected = " or ".join(root.value.replace("VARCHAR", "STRING") for root in METADATA[key])
            raise SqlError(f"{table} has {key!r} as {schema[index].type}", f"declare the column as {expected}")


@dataclass(frozen=True)
class LocatedFormat(FileFormat):
    """Adds columns to what another format reads.

    Args:
        inner: reads the columns that files have.
        schema: all columns, in order.
        partitions: gives those of its keys.
        metadata: name of a column -> the property of its file.
    """

    inner: FileFormat
    schema: Schema
    partitions: Partitions | None
    metadata: tuple[tuple[str, str], ...] = ()

    @property
    def divisible(self) -> bool:  # type: ignore[override]  # a property here, as it depends on the format within
        """Return whether several readers may read parts of one file."""
        return self.inner.divisible

    def counting(self, metrics: Any) -> FileFormat:
        return replace(self, inner=self.inner.counting(metrics))

    def open_split(self, split: FileSplit) -> SplitCursor:
        constants = self._known(split.path)
        return _LocatedCursor(self.inner.open_split(split), self.schema, constants)

    def _known(self, path: str) -> dict[str, pyarrow.Scalar]:
        """Return the columns that have one value in the whole file."""
        import pyarrow

        values: dict[str, Any] = {}
        if self.partitions is not None:
            names = [column.name for column in self.partitions.keys]
            values = dict(zip(names, self.partitions.values(path), strict=True))
        for name, key in self.metadata:
            values[name] = _read_value(path, key)
        types = {column.name: column.type.to_arrow() for column in self.schema}
        scalars = {}
        for name, kind in types.items():
            if name not in values:
                continue
            value = values[name]
            if isinstance(value, pyarrow.Scalar):
                scalars[name] = value.cast(kind)
            else:
                scalars[name] = pyarrow.array([value], kind)[0]
        return scalars


def _read_value(path: str, key: str) -> object:
    import pyarrow

    if isinstance(path, ObjectPath):
        return _read_object_value(path, key)
    path = os.path.abspath(path)
    if key == "file.path":
        return path
    if key == "file.name":
        return os.path.basename(path)
    there = os.stat(path)
    if key == "file.size":
        return there.st_size
    return pyarrow.scalar(there.st_mtime_ns // 1_000_000, pyarrow.timestamp("ms", "UTC"))


def _read_object_value(path: ObjectPath, key: str) -> object:
    import pyarrow

    if key == "file.path":
        return str(path)
    if key == "file.name":
        return path.key.rpartition("/")[2]
    if key == "file.size":
        return path.known().size
    return pyarrow.scalar(path.store.head(path.key).changed_ms, pyarrow.timestamp("ms", "UTC"))


class _LocatedCursor:
    def __init__(self, inner: SplitCursor, schema: Sequence[Any], constants: Mapping[str, pyarrow.Scalar]) -> None:
        import pyarrow

        self._inner, self._known = inner, constants
        self._schema = pyarrow.schema([(column.name, column.type.to_arrow()) for column in schema])

    def read(self, max_records: int) -> Any:
        batch = self._inner.read(max_records)
        if batch is None or batch is PENDING or isinstance(batch, Tagged):
            return batch
        assert isinstance(batch, ArrowBatch)
        return self._completed(batch)

    def _completed(self, batch: ArrowBatch) -> Batch:
        import pyarrow

        data = batch.data
        columns = [
            pyarrow.repeat(self._known[field.name], data.num_rows)
            if field.name in self._known
            else data.column(data.schema.get_field_index(field.name))
            for field in self._schema
        ]
        completed, kinds = pyarrow.RecordBatch.from_arrays(columns, schema=self._schema), kinds_of(data)
        return ArrowBatch(completed if kinds is None else with_kinds(completed, kinds))

    def position(self) -> Any:
        return self._inner.position()

    def close(self) -> None:
        self._inner.close()
