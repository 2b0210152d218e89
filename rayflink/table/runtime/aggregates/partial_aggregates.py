"""Partial rows: keys and accumulators as columns, made from rows, merged with one another, and turned into results."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from pyarrow import types

from .accumulators import Accumulator, Count, Ordered
from .aggregate_results import accumulators, result
from .aggregates import Aggregate
from .grouping import Groups
from .reductions import combine_chunks, to_arrow
from .window_spec import WindowAggregation

if TYPE_CHECKING:
    from numpy.typing import NDArray


class PartialRows(Protocol):
    """Rows that represent others: made before rows are partitioned by key, and merged with one another behind that."""

    schema: pa.Schema
    """The key first, and the start of the window where rows bring it."""
    partition_width: int
    """Number of the columns by which rows are partitioned, the first ones."""
    rows_column: int
    """Index of the column with the number of rows that a partial row represents."""

    @property
    def width(self) -> int:
        """Return the number of columns in the key of partial rows, the first ones."""
        ...

    def describe(self) -> str:
        """Describe the purpose of the partial rows."""
        ...

    def weight(self, columns: Sequence[pa.Array]) -> int:
        """Return the size of partial rows, in rows and listed values."""
        ...

    def merge(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        """Merge partial rows by key, in the order of their groups; `groups` has the rows of one key together."""
        ...


class PartialAggregates:
    """The partial rows of an aggregation: keys, then the columns of accumulators, the first of which counts rows.

    Args:
        aggregation: what is computed.
        has_arrival: whether rows come with the numbers of their arrival; then partial rows may be merged in any order.
    """

    def __init__(self, aggregation: WindowAggregation, has_arrival: bool = False) -> None:
        start = aggregation.window.start_column
        self._state_identity = aggregation.state_identity
        self.partition_width = len(aggregation.keys)
        """Number of the columns by which rows are partitioned, the first ones."""
        self._keys = aggregation.keys if start is None else (*aggregation.keys, start)
        fields = aggregation.input.fields
        slots: dict[Accumulator, None] = {Count(None, None): None}
        self._aggregates: list[tuple[Aggregate, tuple[Accumulator, ...]]] = []
        for aggregate in aggregation.aggregates:
            parts = accumulators(aggregate, has_arrival)
            self._aggregates.append((aggregate, parts))
            slots.update(dict.fromkeys(parts))
        self._slots = list(slots)
        kinds = [slot.types(None if slot.argument is None else fields[slot.argument].type.to_arrow()) for slot in slots]
        bounds = list(accumulate((len(kind) for kind in kinds), initial=len(self._keys)))
        self._spans = {slot: span for slot, span in zip(self._slots, pairwise(bounds), strict=True)}
        names = [*aggregation.key_names, *(() if start is None else ("start",))]
        keys = zip(names, self._keys, strict=True)
        columns = [pa.field(name, fields[key].type.to_arrow()) for name, key in keys]
        columns += [pa.field(f"v{i}", kind) for i, kind in enumerate(kind for slot in kinds for kind in slot)]
        self.schema: pa.Schema = pa.schema(columns)
        self._lists = [index for index, kind in enumerate(self.schema.types) if types.is_large_list(kind)]
        self.rows_column = len(self._keys)
        """Index of the column with the number of rows that a partial row represents."""

    def describe(self) -> str:
        """Describe the aggregates and their accumulators without column numbers, which differ between plans."""
        slots = ", ".join(slot.describe() for slot in self._slots)
        return f"{self._state_identity}: {slots}" if self._state_identity else slots

    def keys_of(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Return the columns of the key in rows that come in."""
        return [batch.column(key) for key in self._keys]

    def from_rows(self, batch: pa.RecordBatch, groups: Groups, arrived: Any = None) -> list[pa.Array]:
        """Return the columns of partial rows, one for each group of rows.

        Args:
            arrived: numbers of the rows' arrival, int64[n], where they have any.
        """
        columns = list(groups.keys)
        chosen: dict[tuple[int | None, int | None, bool, bool], tuple[Any, Any]] = {}
        for slot in self._slots:
            numbered = isinstance(slot, Ordered) and slot.has_arrival
            values = slot.argument, slot.filter, numbered, slot.keeps_nulls
            if values not in chosen:
                chosen[values] = _chosen(batch, groups, slot, arrived if numbered else None)
            columns += slot.from_rows(*chosen[values], groups.count)
        return columns

    def weight(self, columns: Sequence[pa.Array]) -> int:
        """Return the number of partial rows and of the values that they list."""
        return len(columns[0]) + sum(len(columns[index].flatten()) for index in self._lists)

    def merge(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        """Return the columns of partial rows, one for each group of partial rows, which have these columns."""
        merged = list(groups.keys)
        for slot in self._slots:
            first, stop = self._spans[slot]
            merged += slot.merge(list(columns[first:stop]), groups.codes, groups.count)
        return merged

    def results(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """Return the keys and the results of aggregates, for each of the partial rows that have these columns."""
        results = list(columns[: self.partition_width])
        for aggregate, slots in self._aggregates:
            spans = [self._spans[slot] for slot in slots]
            results.append(result(aggregate, slots, [list(columns[first:stop]) for first, stop in spans]))
        return results

    @property
    def width(self) -> int:
        """Return the number of columns in the key."""
        return len(self._keys)


def _chosen(batch: pa.RecordBatch, groups: Groups, slot: Accumulator, arrived: Any) -> tuple[Any, Any]:
    """Return the values that count for an accumulator, and their groups."""
    codes = groups.codes
    values = None if slot.argument is None else batch.column(slot.argument)
    keep: NDArray[np.bool_] | None = None
    if slot.filter is not None:
        keep = batch.column(slot.filter).fill_null(False).to_numpy(zero_copy_only=False)
    if values is not None and values.null_count and not slot.keeps_nulls:
        is_valid = values.is_valid().to_numpy(zero_copy_only=False)
        keep = is_valid if keep is None else keep & is_valid
    if keep is not None:
        codes = codes[keep]
        values = None if values is None else values.filter(pa.array(keep))
        arrived = None if arrived is None else arrived[keep]
    if arrived is not None:
        values = pa.StructArray.from_arrays([to_arrow(arrived, pa.int64()), values], ["arrival", "value"])
    return values, codes


def concatenated(pieces: Sequence[Sequence[pa.Array]]) -> list[pa.Array]:
    """Return the columns of pieces, one piece after the other."""
    if len(pieces) == 1:
        return list(pieces[0])
    return [combine_chunks(pa.chunked_array(list(column))) for column in zip(*pieces, strict=True)]


__all__ = ["PartialRows", "PartialAggregates", "concatenated"]
