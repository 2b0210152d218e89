"""Rows that follow from their numbers, and their watermarks, which are made for each range of numbers that is read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rayflink.common.connector_base.source import Source
from rayflink.common.records.batches import ArrowBatch, Batch, Element, rows_of
from rayflink.common.timestamps import BatchTimestamps
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.operators.base import Operator
from rayflink.operators.factory import Factory

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from numpy.typing import NDArray

    from rayflink.datastream import StreamExecutionEnvironment
    from rayflink.datastream.streams.stream import DataStream


class NumberedRows(ABC):
    """Makes rows of their numbers."""

    depends_on_clock = False
    """True if the same numbers give other rows at another time."""

    @abstractmethod
    def rows(self, numbers: NDArray[np.int64], now_ms: int) -> pyarrow.RecordBatch:
        """Return the rows with these numbers, of which there is one at least.

        Args:
            now_ms: processing time.
        """

    def stream(self, env: StreamExecutionEnvironment, source: Source, strategy: WatermarkStrategy | None, name: str,
               step: str) -> DataStream:  # fmt: skip
        """Return the rows of the numbers that a source gives.

        Args:
            step: name of the operator that makes them.
        """
        from rayflink.datastream.streams.stream_builder import StreamBuilder  # tasks make rows without it

        by_numbers = None if strategy is None or self.depends_on_clock else _of_numbers(strategy, self)
        numbers = env.from_source(source, by_numbers, name)
        rows = StreamBuilder(numbers).add_operator(step, Factory(NumberedRowsOperator, self)).stream
        return rows if strategy is None or by_numbers is not None else rows.assign_timestamps_and_watermarks(strategy)


class NumberedRowsOperator(Operator):
    """Gives the rows of the numbers that come in."""

    def __init__(self, numbered: NumberedRows) -> None:
        self._made = numbered

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        import numpy

        numbers = numpy.array(rows_of(batch), numpy.int64)
        if len(numbers):
            yield ArrowBatch(self._made.rows(numbers, int(self.ctx.clock.now_ms())), batch.timestamps)


class _TimestampsOfNumbers:
    """The timestamps that a watermark strategy assigns to rows made from numbers."""

    def __init__(self, of_rows: BatchTimestamps, numbered: NumberedRows) -> None:
        self._of_rows, self._made = of_rows, numbered

    def __call__(self, numbers: Sequence[int]) -> Any:
        import numpy

        return self._of_rows.of(ArrowBatch(self._made.rows(numpy.array(numbers, numpy.int64), 0)))


def _of_numbers(strategy: WatermarkStrategy, numbered: NumberedRows) -> WatermarkStrategy:
    assigner = strategy.timestamp_assigner
    assert isinstance(assigner, BatchTimestamps), assigner
    return strategy.with_batch_timestamp_assigner(_TimestampsOfNumbers(assigner, numbered))


__all__ = ["NumberedRows", "NumberedRowsOperator"]
