"""Rows distributed to the folders of their partitions, by columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rayflink.common.records.batches import ArrowBatch, Batch
from rayflink.common.records.float_columns import float_strings
from rayflink.connectors.files.buckets import BucketAssigner

from ..types import DataType, Root
from .partitions import Partitions, escape

if TYPE_CHECKING:
    import pyarrow


class PartitionBuckets(BucketAssigner):
    """The bucket is the path of the partition; its columns are left out of what is written.

    Args:
        partitions: keys and their types.
        kept: names of the columns that are written, in order.
    """

    def __init__(self, partitions: Partitions, stored: Sequence[str]) -> None:
        self._partitions, self._kept = partitions, list(stored)

    def divided(self, batch: Batch, now_ms: int) -> Iterator[tuple[str, Batch]]:
        import numpy
        import pyarrow

        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        data, written = batch.data, batch.data.select(self._kept)
        folders = self._folders(data).dictionary_encode()
        if len(folders.dictionary) == 1:
            yield folders.dictionary[0].as_py(), ArrowBatch(written)
            return
        codes = folders.indices.to_numpy(zero_copy_only=False)
        order = numpy.argsort(codes, kind="stable")
        bounds = numpy.searchsorted(codes[order], numpy.arange(len(folders.dictionary) + 1))
        sorted_rows = written.take(pyarrow.array(order))
        for index, folder in enumerate(folders.dictionary.to_pylist()):
            start, stop = int(bounds[index]), int(bounds[index + 1])
            yield folder, ArrowBatch(sorted_rows.slice(start, stop - start))

    def _folders(self, data: pyarrow.RecordBatch) -> pyarrow.Array:
        """Return the path of each row's partition."""
        from pyarrow import compute

        parts = [self._names(data.column(data.schema.get_field_index(key.name)), key.type, key.name)
                 for key in self._partitions.keys]  # fmt: skip
        return parts[0] if len(parts) == 1 else compute.binary_join_element_wise(*parts, "/")

    def _names(self, column: pyarrow.Array, kind: DataType, name: str) -> pyarrow.Array:
        """Return the names of folders of one key, made once for each value."""
        import pyarrow

        coded = column.dictionary_encode("encode")
        strings = partition_strings(coded.dictionary, kind)
        default = self._partitions.default_name
        names = [f"{escape(name)}={escape(text) if text else default}" for text in strings]
        return pyarrow.array(names, pyarrow.string()).take(coded.indices)


def partition_folder(partitions: Partitions, values: Mapping[str, Any]) -> str:
    """Return the path of a partition.

    Args:
        values: pyarrow's scalars, by key.
    """
    import pyarrow

    row = pyarrow.RecordBatch.from_pydict({key.name: pyarrow.repeat(values[key.name], 1) for key in partitions.keys})
    return str(PartitionBuckets(partitions, ())._folders(row)[0])


def partition_strings(values: pyarrow.Array, kind: DataType) -> list[str | None]:
    """Format values as Flink writes them into names of folders."""
    root = kind.root
    if root in (Root.FLOAT, Root.DOUBLE):
        values = float_strings(values)
    if root is not Root.TIMESTAMP:
        import pyarrow

        strings: list[Any] = values.cast(pyarrow.string()).to_pylist()
        return strings
    return [None if text is None else _moment(text) for text in values.cast("string").to_pylist()]


def _moment(text: str) -> str:
    """Format a time as Java's LocalDateTime does: no seconds where they are 0, fractions of 3, 6 or 9 digits."""
    whole, _, fraction = text.replace(" ", "T").partition(".")
    fraction = fraction.rstrip("0")
    if fraction:
        return f"{whole}.{fraction.ljust(-(-len(fraction) // 3) * 3, '0')}"
    return whole.removesuffix(":00")
