"""Watermarks of a table: by the expression that its definition gives."""

from __future__ import annotations

from typing import Any

from rayflink.common.records.batches import MIN_TIMESTAMP, Watermark
from rayflink.common.watermarks import WatermarkGenerator, WatermarkOutput, WatermarkStrategy

from ..plan.typed import Call, Evaluation, Expr, Literal, Session, named
from ..types import Root


class WatermarkValues:
    """The value of a watermark expression for each row, in epoch milliseconds.

    Args:
        expression: over the columns of the source.
        time: the time column, whose values must not be null.
        session: its zone says which instant a time of day is.
    """

    def __init__(self, expression: Expr, time: Expr, session: Session) -> None:
        self._expression, self._time, self._session = expression, time, session
        self._delay_ms = _delay_ms(expression, time)

    def __call__(self, batch: Any) -> Any:
        from pyarrow import compute

        evaluation = Evaluation(batch.columns, batch.num_rows, self._session)
        times = evaluation.column(self._time)
        if times.null_count:
            remedy = "filter such rows out where the table is written, or compute the column with COALESCE"
            raise ValueError(f"the time column {self._time} is NULL in a row; {remedy}")
        if self._delay_ms is not None and times.type.unit == "ms":
            stamps = _milliseconds(times).to_numpy()
            return stamps - self._delay_ms if self._delay_ms else stamps
        values = _milliseconds(evaluation.column(self._expression))
        return compute.fill_null(values, MIN_TIMESTAMP).to_numpy(zero_copy_only=False)


def _milliseconds(values: Any) -> Any:
    """Epoch milliseconds, int64[n]."""
    import pyarrow

    return values.cast(pyarrow.timestamp("ms", values.type.tz), safe=False).view(pyarrow.int64())


def _delay_ms(expression: Expr, time: Expr) -> int | None:
    """Return how much the expression is less than the time, where that is the same for all rows."""
    if expression == time:
        return 0
    if isinstance(expression, Call) and expression.function is named("-") and expression.args[0] == time:
        delay = expression.args[1]
        if isinstance(delay, Literal) and delay.type.root is Root.INTERVAL_DAY_TIME and delay.value is not None:
            return int(delay.value)
    return None


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
    """Return the strategy of WATERMARK FOR time AS expression."""
    values = WatermarkValues(expression, time, session)
    return WatermarkStrategy.for_generator(LargestValue).with_batch_timestamp_assigner(values)
