"""Watermarks of a table: by the expression that its definition gives."""

from __future__ import annotations

from typing import Any

from rayflink.common.batches import MIN_TIMESTAMP, Watermark
from rayflink.common.watermarks import WatermarkGenerator, WatermarkOutput, WatermarkStrategy

from ..typed import Evaluation, Expr, Session


class WatermarkValues:
    """The value of a watermark expression for each row, in epoch milliseconds.

    Args:
        expression: over the columns of the source.
        time: the time column, whose values must not be null.
        session: its zone says which instant a time of day is.
    """

    def __init__(self, expression: Expr, time: Expr, session: Session) -> None:
        self._expression, self._time, self._session = expression, time, session

    def __call__(self, batch: Any) -> Any:
        import pyarrow
        from pyarrow import compute

        found = Evaluation(batch.columns, batch.num_rows, self._session)
        if found.column(self._time).null_count:
            remedy = "filter such rows out where the table is written, or compute the column with COALESCE"
            raise ValueError(f"the time column {self._time} is NULL in a row; {remedy}")
        values = found.column(self._expression)
        stamps = values.cast(pyarrow.timestamp("ms", values.type.tz), safe=False).cast(pyarrow.int64())
        return compute.fill_null(stamps, MIN_TIMESTAMP).to_numpy(zero_copy_only=False)


class LargestValue(WatermarkGenerator):
    """The watermark is the largest value so far, itself, as in Flink's SQL."""

    def __init__(self) -> None:
        self._largest = MIN_TIMESTAMP

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        self._largest = max(self._largest, event_timestamp)

    def on_batch(self, timestamps: Any) -> None:
        """Take note of the timestamps of many records."""
        self._largest = max(self._largest, max(timestamps) if isinstance(timestamps, list) else int(timestamps.max()))

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        if self._largest > MIN_TIMESTAMP:
            output.emit_watermark(Watermark(self._largest))


def watermark_strategy(expression: Expr, time: Expr, session: Session) -> WatermarkStrategy:
    """The strategy of WATERMARK FOR time AS expression."""
    values = WatermarkValues(expression, time, session)
    return WatermarkStrategy.for_generator(LargestValue).with_batch_timestamp_assigner(values)
