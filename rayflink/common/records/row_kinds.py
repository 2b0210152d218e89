"""The change that each row of columns stands for: an int8 column at their end.

The column is named `ROW_KIND`, has no nulls, and holds the values of `RowKind`. A batch without it holds insertions
alone, and batches with and without may follow one another in a stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..types import RowKind

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from numpy.typing import NDArray

ROW_KIND = "$row_kind"
KINDS = tuple(RowKind)
"""The kinds by their numbers."""


def has_kinds(schema: pyarrow.Schema) -> bool:
    """Return whether its last column says what the rows do."""
    names = schema.names
    return bool(names) and names[-1] == ROW_KIND


def kinds_of(data: pyarrow.RecordBatch) -> NDArray[np.int8] | None:
    """Return the number of each row's kind, int8[n]; None: all are insertions."""
    if not has_kinds(data.schema):
        return None
    kinds: NDArray[np.int8] = data.column(data.num_columns - 1).to_numpy()
    return kinds


def without_kinds(data: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    """Return the columns of the rows alone."""
    return data.select(list(range(data.num_columns - 1))) if has_kinds(data.schema) else data


def with_kinds(data: pyarrow.RecordBatch, kinds: pyarrow.Array) -> pyarrow.RecordBatch:
    """Return columns of rows with the kind of each row.

    >>> import pyarrow
    >>> changed = with_kinds(pyarrow.record_batch({"n": [1, 2]}), RowKind.UPDATE_AFTER)
    >>> kinds_of(changed).tolist(), without_kinds(changed).schema.names
    ([2, 2], ['n'])

    Args:
        kinds: int8[n], or one kind for all.
    """
    import numpy
    import pyarrow

    if isinstance(kinds, RowKind):
        kinds = numpy.full(data.num_rows, kinds.value, numpy.int8)
    field = pyarrow.field(ROW_KIND, pyarrow.int8(), nullable=False)
    schema = data.schema.append(field)
    return pyarrow.RecordBatch.from_arrays([*data.columns, pyarrow.array(kinds, pyarrow.int8())], schema=schema)


__all__ = ["KINDS", "ROW_KIND", "has_kinds", "kinds_of", "with_kinds", "without_kinds"]
