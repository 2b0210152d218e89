"""Rows of a batch, divided by the values of a partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from rayflink.user_types import UserValue

if TYPE_CHECKING:
    import pyarrow

PartitionValues = tuple[UserValue, ...]


def divided(
    data: pyarrow.RecordBatch, keys: Sequence[tuple[str, Callable[[pyarrow.Array], pyarrow.Array]]]
) -> Iterator[tuple[PartitionValues, pyarrow.RecordBatch]]:
    """Yield the rows of each partition in their order, with the partition's values; each partition comes once.

    Args:
        keys: name of a column, and the function from the column to the values of the partition.

    >>> import pyarrow
    >>> rows = pyarrow.RecordBatch.from_pydict({"room": ["hall", None, "hall"], "n": [1, 2, 3]})
    >>> [(values, part["n"].to_pylist()) for values, part in divided(rows, [("room", lambda column: column)])]
    [(('hall',), [1, 3]), ((None,), [2])]
    """
    import numpy
    import pyarrow

    if not keys or not data.num_rows:
        if data.num_rows:
            yield (), data
        return
    codes = numpy.zeros(data.num_rows, numpy.int64)
    values: list[list[UserValue]] = []
    for name, transform in keys:
        encoded = transform(data.column(name)).dictionary_encode(null_encoding="encode")
        values.append(encoded.dictionary.to_pylist())
        codes = codes * len(values[-1]) + encoded.indices.to_numpy(zero_copy_only=False)
    unique_codes, first, inverse = numpy.unique(codes, return_index=True, return_inverse=True)
    if len(unique_codes) == 1:
        yield _values(int(unique_codes[0]), values), data
        return
    order = numpy.argsort(inverse, kind="stable")
    rows = data.take(pyarrow.array(order))
    ends = numpy.cumsum(numpy.bincount(inverse))
    for group in numpy.argsort(first, kind="stable"):
        start = int(ends[group - 1]) if group else 0
        yield _values(int(unique_codes[group]), values), rows.slice(start, int(ends[group]) - start)


def _values(code: int, values: Sequence[Sequence[UserValue]]) -> PartitionValues:
    parts: list[UserValue] = []
    for column in reversed(values):
        code, index = divmod(code, len(column))
        parts.append(column[index])
    return tuple(reversed(parts))


__all__ = ["PartitionValues", "divided"]
