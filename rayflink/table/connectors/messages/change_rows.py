"""The rows that messages of change data capture stand for, put together by columns.

A message says that rows were inserted, updated or deleted. An insertion or deletion gives one row, an update two: the
row before and the row after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from rayflink.common.records.row_kinds import with_kinds
from rayflink.common.types import RowKind

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from numpy.typing import NDArray

    Operations: TypeAlias = NDArray[np.int8]
    """For each message what it does: one of the numbers below."""
    Positions: TypeAlias = NDArray[np.int64]

NOTHING, INSERT, UPDATE, DELETE = range(4)
"""The operations of messages, by their numbers."""


def operations_of(names: pyarrow.Array, known: dict[str, int]) -> tuple[Operations, list[int]]:
    """Return the operation of each message, and the positions of those whose name is unknown or null.

    >>> import pyarrow
    >>> operations_of(pyarrow.array(["c", "d", "x"]), {"c": INSERT, "d": DELETE})
    (array([1, 3, 0], dtype=int8), [2])
    """
    import numpy
    import pyarrow
    from pyarrow import compute

    places = compute.index_in(names, value_set=pyarrow.array(list(known), pyarrow.string()))
    places = places.fill_null(len(known)).to_numpy(zero_copy_only=False)
    numbers = numpy.array([*known.values(), NOTHING], numpy.int8)
    return numbers[places], numpy.flatnonzero(places == len(known)).tolist()


def struct_columns(rows: pyarrow.StructArray, names: Sequence[str]) -> list[pyarrow.Array]:
    """Return fields of rows as columns; where a row is null, so are its fields."""
    columns = dict(zip([field.name for field in rows.type], rows.flatten(), strict=True))
    return [columns[name] for name in names]


def chosen(first: pyarrow.Array, second: pyarrow.Array, is_second: NDArray[np.bool_]) -> pyarrow.Array:
    """Return a column with values of the second column where `is_second` says so, else of the first; of any type."""
    import numpy
    import pyarrow

    if not is_second.any():
        return first
    positions = numpy.arange(len(first)) + numpy.where(is_second, len(first), 0)
    return pyarrow.concat_arrays([first, second]).take(pyarrow.array(positions))


def unfold(
    before: Sequence[pyarrow.Array], after: Sequence[pyarrow.Array], operations: Operations
) -> tuple[list[pyarrow.Array], NDArray[np.int8], Positions]:
    """Return the columns of the rows of n operations, the kinds of the rows, and the operation that each belongs to.

    >>> import numpy, pyarrow
    >>> columns, kinds, origins = unfold(
    ...     [pyarrow.array([None, 1])], [pyarrow.array([5, 2])], numpy.array([INSERT, UPDATE], numpy.int8))
    >>> columns[0].to_pylist(), kinds.tolist(), origins.tolist()
    ([5, 1, 2], [0, 1, 2], [0, 1, 1])

    Args:
        before: columns of n rows, what deletions and updates found.
        after: columns of n rows, what insertions and updates left.
        operations: int8[n].
    """
    import numpy
    import pyarrow

    counts = numpy.array([0, 1, 2, 1])[operations]
    origins = numpy.repeat(numpy.arange(len(operations)), counts)
    operation = operations[origins]
    is_second = numpy.zeros(len(origins), bool)
    is_second[1:] = origins[1:] == origins[:-1]
    is_after = is_second | (operation == INSERT)
    positions = pyarrow.array(origins + numpy.where(is_after, len(operations), 0))
    first_kinds = numpy.array([0, RowKind.INSERT.value, RowKind.UPDATE_BEFORE.value, RowKind.DELETE.value], numpy.int8)
    kinds = numpy.where(is_second, numpy.int8(RowKind.UPDATE_AFTER.value), first_kinds[operation]).astype(numpy.int8)
    columns = [pyarrow.concat_arrays(pair).take(positions) for pair in zip(before, after, strict=True)]
    return columns, kinds, origins


def change_batch(
    names: Sequence[str], columns: Sequence[pyarrow.Array], types: Sequence[pyarrow.DataType], kinds: NDArray[np.int8]
) -> pyarrow.RecordBatch:
    """Return columns of rows with their kinds, cast to types."""
    import pyarrow

    schema = pyarrow.schema(list(zip(names, types, strict=True)))
    cast = [_typed(column, kind) for column, kind in zip(columns, types, strict=True)]
    return with_kinds(pyarrow.RecordBatch.from_arrays(cast, schema=schema), kinds)


def _typed(column: pyarrow.Array, kind: pyarrow.DataType) -> pyarrow.Array:
    return column if column.type == kind else column.cast(kind)


__all__ = [
    "DELETE", "INSERT", "NOTHING", "UPDATE", "change_batch", "chosen", "operations_of", "struct_columns", "unfold",
]  # fmt: skip
