"""Each row beside the rows that its collection holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from rayflink.common.records.batches import ArrowBatch, Batch, Element
from rayflink.common.records.row_kinds import kinds_of, with_kinds
from rayflink.common.types import RowKind
from rayflink.operators.base import Operator, OperatorContext
from rayflink.operators.user_function import UserCode

from ..plan.typed import Evaluation, Expr, Session
from .function_calls import OwnFunctions

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_ROWS = 65_536
"""Rows that are given together at most."""
_AS_COMING_AND_GOING: NDArray[np.int8] = np.array(
    [(RowKind.INSERT if kind in (RowKind.INSERT, RowKind.UPDATE_AFTER) else RowKind.DELETE).value for kind in RowKind],
    dtype=np.int8,
)
"""The kind of an element for each kind of a row."""


class UnnestOperator(Operator):
    """Gives columns of a row beside each element of a collection, in the order of its elements.

    Args:
        collection: an array, a map or a multiset; elements that are rows become columns.
        columns: numbers of the input's columns that are given, before those of elements.
        is_left: a row without elements is given with nulls.
        is_multiset: an element stands in it as often as its number says.
        has_ordinality: the last column is the number of the element, from 1.
        schema: of the result.
        session: what evaluation depends on in addition to rows.
        without_updates: elements of a row before an update are removed, and those behind it come.
    """

    def __init__(
        self, collection: Expr, columns: Sequence[int], is_left: bool, is_multiset: bool, has_ordinality: bool,
        schema: pa.Schema, session: Session, without_updates: bool = False,
    ) -> None:  # fmt: skip
        self._collection, self._columns, self._schema, self._session = collection, tuple(columns), schema, session
        self._is_left, self._is_multiset, self._has_ordinality = is_left, is_multiset, has_ordinality
        self._without_updates = without_updates
        self._functions = OwnFunctions([collection])

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._session = self._functions.set_up(ctx, self._session)

    def open(self) -> None:
        self._functions.open()

    def close(self) -> None:
        self._functions.close()

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        if not len(batch):
            return ()
        with UserCode(self.ctx, "the query"):
            collection = Evaluation(batch.data.columns, batch.data.num_rows, self._session).column(self._collection)
        return self._unnest(batch.data, collection)

    def _unnest(self, data: pa.RecordBatch, collection: pa.Array) -> Iterator[ArrowBatch]:
        firsts, lengths, elements = elements_of(collection, self._is_multiset)
        counts = np.maximum(lengths, 1) if self._is_left else lengths
        stops = np.cumsum(counts)
        total = int(stops[-1])
        kinds = kinds_of(data)
        if kinds is not None and self._without_updates:
            kinds = _AS_COMING_AND_GOING[kinds]
        columns = [data.column(index) for index in self._columns]
        for start in range(0, total, MOST_ROWS):
            numbers = np.arange(start, min(start + MOST_ROWS, total))
            rows = np.searchsorted(stops, numbers, side="right")
            ordinals = numbers - (stops[rows] - counts[rows])
            absent = lengths[rows] == 0
            taken = pa.array(firsts[rows] + ordinals, mask=absent if absent.any() else None)
            input_rows = pa.array(rows)
            results = [column.take(input_rows) for column in columns] + [column.take(taken) for column in elements]
            if self._has_ordinality:
                results.append(pa.array(ordinals + 1, pa.int32(), mask=absent))
            results = [_cast(column, kind) for column, kind in zip(results, self._schema.types, strict=True)]
            result = pa.RecordBatch.from_arrays(results, schema=self._schema)
            yield ArrowBatch(result if kinds is None else with_kinds(result, kinds[rows]))


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind, safe=False)


def elements_of(
    collection: Any, is_multiset: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[pa.Array]]:
    """Return where each row's elements begin, int64[n], their number, int64[n], and a column for each of their parts.

    >>> firsts, lengths, [elements] = elements_of(pa.array([[3, 4], None, [], [5]]))
    >>> firsts.tolist(), lengths.tolist(), elements.to_pylist()
    ([0, 2, 2, 2], [2, 0, 0, 1], [3, 4, 5])
    """
    offsets = collection.offsets.to_numpy().astype(np.int64)
    if types.is_map(collection.type) and not is_multiset:
        parts = [collection.keys, collection.items]
    else:
        elements = collection.keys if is_multiset else collection.values
        if is_multiset:
            times = collection.items.fill_null(0).to_numpy(zero_copy_only=False)
            elements = elements.take(pa.array(np.repeat(np.arange(len(times)), times)))
            offsets = np.concatenate([[0], np.cumsum(times, dtype=np.int64)])[offsets]
        parts = [elements]
        if types.is_struct(elements.type):
            if elements.null_count:  # a row that is null is none
                is_valid = elements.is_valid()
                offsets = np.concatenate([[0], np.cumsum(is_valid.to_numpy(zero_copy_only=False))])[offsets]
                elements = elements.filter(is_valid)
            parts = list(elements.flatten())
    lengths = np.diff(offsets)
    if collection.null_count:  # something may lie behind a null
        lengths[collection.is_null().to_numpy(zero_copy_only=False)] = 0
    return offsets[:-1], lengths, parts


__all__ = ["MOST_ROWS", "UnnestOperator", "elements_of"]
