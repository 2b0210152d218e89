"""ORDER BY processing time and further columns: rows that came at the same time are put into the order of these.

Source: apache/flink ProcTimeSortOperator.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Batch, Element
from rayflink.operators.base import Operator

from .ordering import OrderKey, order_numbers, order_of

__all__ = ["ArrivalSortOperator"]


class ArrivalSortOperator(Operator):
    """Passes rows as they come, those of a batch in an order: they came at one time.

    Args:
        keys: the order of rows of one time; none: as they come.
    """

    def __init__(self, keys: Sequence[OrderKey]) -> None:
        self._keys = tuple(keys)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        if not self._keys:
            return (batch,)
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        order = order_of(order_numbers(batch.data.columns, self._keys), len(batch))
        return (ArrowBatch(batch.data.take(pa.array(order))),)
