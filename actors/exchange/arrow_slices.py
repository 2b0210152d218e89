"""Copies of parts of columnar batches that hold their own rows and none of their parent's buffers.

`take` copies the chosen rows; the IPC writer cuts most sliced columns to their rows by itself. What it does not cut are
dictionaries and the data behind view types: `compact` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rayflink.common.records.batches import ArrowBatch

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from rayflink.common.records.batches import ArrowBatch
    from rayflink.common.records.row_columns import RowColumns

_FEW = 4
"""Up to this number of parts, one `take` per part is cheaper than a sort, one `take` and slices of it."""


def partition_rows(
    batch: ArrowBatch | RowColumns, targets: NDArray[np.integer[Any]], width: int
) -> list[tuple[int, ArrowBatch | RowColumns]]:
    """Partition a batch by target: the non-empty parts, each with its target, rows of a part in their order.

    Args:
        targets: [n], in [0, width); fastest as uint8 or uint16.
    """
    import numpy as np

    rows = len(batch)
    if rows == 0:
        return []
    if width <= _FEW:
        parts: list[tuple[int, ArrowBatch | RowColumns]] = []
        for target in range(width):
            chosen = np.flatnonzero(targets == target)
            if len(chosen) == rows:
                return [(target, batch)]
            if len(chosen):
                parts.append((target, _take(batch, chosen)))
        return parts
    counts = np.bincount(targets, minlength=width)
    present = np.flatnonzero(counts).tolist()
    if len(present) == 1:
        return [(present[0], batch)]
    ordered = _take(batch, np.argsort(targets, kind="stable"))
    parts, start = [], 0
    for target in present:
        stop = start + int(counts[target])
        parts.append((target, ordered.slice(start, stop)))
        start = stop
    return parts


def _take(batch: ArrowBatch | RowColumns, rows: NDArray[np.integer[Any]]) -> ArrowBatch | RowColumns:
    return take_rows(batch, rows) if isinstance(batch, ArrowBatch) else batch.take(rows)


def take_rows(batch: ArrowBatch, rows: NDArray[np.integer[Any]]) -> ArrowBatch:
    """Return a copy of the rows with these numbers, each in [0, len(batch))."""
    import pyarrow as pa
    import pyarrow.compute as pc

    stamps = None if batch.timestamps is None else batch.timestamps[rows]
    indices = pa.array(rows)
    data = batch.data
    if all(_can_take(kind) for kind in data.schema.types):
        return ArrowBatch(pc.take(data, indices, boundscheck=False), stamps)
    columns = [_take_column(column, indices) for column in data.columns]
    return ArrowBatch(pa.RecordBatch.from_arrays(columns, schema=data.schema), stamps)


def _can_take(kind: pa.DataType) -> bool:
    """Return whether Arrow can take rows of such a column: not where views or run ends are inside."""
    import pyarrow as pa

    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind) or pa.types.is_run_end_encoded(kind):
        return False
    return all(_can_take(kind.field(i).type) for i in range(kind.num_fields))


def _take_column(column: pa.Array, indices: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if _can_take(kind):
        return column.take(indices)
    if pa.types.is_run_end_encoded(kind):
        return pc.run_end_encode(pc.run_end_decode(column).take(indices), run_end_type=kind.run_end_type)
    if kind.num_fields:
        return pa.concat_arrays([column.slice(0, 0), *(column.slice(row, 1) for row in indices.to_pylist())])
    return column.cast(_plain_type(kind)).take(indices).cast(kind)


def _plain_type(view: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    return pa.large_string() if pa.types.is_string_view(view) else pa.large_binary()


def compact(data: pa.RecordBatch) -> pa.RecordBatch:
    """Return an equal batch whose IPC form holds its own rows only; the batch itself where it does already.

    A dictionary inside a map, a union or a fixed-size list stays whole.
    """
    import pyarrow as pa

    columns = [_compact(column) for column in data.columns]
    if all(new is old for new, old in zip(columns, data.columns, strict=True)):
        return data
    return pa.RecordBatch.from_arrays(columns, schema=data.schema)


def _compact(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        return _compact_dictionary(column)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return column.cast(_plain_type(kind)).cast(kind)
    if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        return pa.concat_arrays([column])
    if pa.types.is_struct(kind):
        children = [column.field(i) for i in range(kind.num_fields)]
        parts = [_compact(child) for child in children]
        if all(new is old for new, old in zip(parts, children, strict=True)):
            return column
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=column.is_null())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _compact_list(column)
    return column


def _compact_dictionary(column: pa.DictionaryArray) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    if len(column.dictionary) <= len(column):
        return column
    indices = column.indices
    missing = np.asarray(indices.is_null())
    used, places = np.unique(indices.fill_null(0).to_numpy(zero_copy_only=False), return_inverse=True)
    new_indices = pa.array(places, mask=missing).cast(column.type.index_type)
    dictionary = _take_column(column.dictionary, pa.array(used))
    return pa.DictionaryArray.from_arrays(new_indices, dictionary, ordered=column.type.ordered)


def _compact_list(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    if not _holds_more(column.type.value_type):
        return column
    column = pa.concat_arrays([column])  # offsets start at 0
    stop = column.offsets[-1].as_py() if len(column) else 0
    values = _compact(column.values.slice(0, stop))
    return type(column).from_arrays(column.offsets, values, type=column.type, mask=column.is_null())


def _holds_more(kind: pa.DataType) -> bool:
    """Return whether a column of this type may drag along data that its rows do not use."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind) or not _can_take(kind):
        return True
    return any(_holds_more(kind.field(i).type) for i in range(kind.num_fields))
