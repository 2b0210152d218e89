"""Assigns timestamps to the records of a batch, a whole batch at once if the strategy allows; columns stay columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import repeat
from typing import TYPE_CHECKING, Any

from rayflink.common.records.batches import MIN_TIMESTAMP, ArrowBatch, Batch, RowBatch
from rayflink.common.timestamps import WANTED, BatchTimestamps, IngestionTime, checked
from rayflink.common.watermarks import WatermarkStrategy

from ..base import OperatorContext, UserCodeError, shortened
from ..list_loops import ensure_all_taken, record_at
from ..user_function import list_of, timestamps_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NULL_TIMESTAMPS_DROPPED = "numNullTimestampsDropped"


class BatchTimestampAssigner:
    """Assigns the timestamps of a watermark strategy to batches.

    A record whose timestamp is None, null or NaT is an error, or is dropped and counted if the strategy says so.

    Args:
        ctx: the operator's context.
        strategy: its assigner computes the timestamps; without an assigner records keep those they have.
    """

    def __init__(self, ctx: OperatorContext, strategy: WatermarkStrategy) -> None:
        self._ctx = ctx
        self._assigner = strategy.timestamp_assigner
        self._dropped = ctx.metrics.counter(NULL_TIMESTAMPS_DROPPED) if strategy.drops_null_timestamps else None
        self.now_ms = MIN_TIMESTAMP
        """Ingestion time, which follows the clock and never falls."""

    @property
    def by_clock(self) -> bool:
        """Return whether records get their time of arrival (ingestion time)."""
        return isinstance(self._assigner, IngestionTime)

    def tick(self) -> int:
        """Advance ingestion time to the clock, and return it."""
        self.now_ms = max(self.now_ms, int(self._ctx.clock.now_ms()))
        return self.now_ms

    def assign(self, batch: Batch) -> Batch:
        """Return the same records with timestamps: a list for rows, an int64 array for columns."""
        assigner = self._assigner
        if assigner is None or isinstance(assigner, IngestionTime):
            if assigner is None and batch.timestamps is not None:
                return batch
            stamp = MIN_TIMESTAMP if assigner is None else self.tick()
            return _with(batch, [stamp] * len(batch) if isinstance(batch, RowBatch) else _full(len(batch), stamp))
        if isinstance(assigner, BatchTimestamps):
            return self._by_batch(batch, assigner)
        return self._by_record(batch, assigner)

    def _by_record(self, batch: Batch, extract: Any) -> Batch:
        values, previous = list_of(batch), timestamps_of(batch)
        iterator: Iterator[Any] = iter(values)
        try:
            stamps = list(map(extract, iterator, repeat(MIN_TIMESTAMP) if previous is None else previous))
            ensure_all_taken(iterator)
        except Exception as error:
            raise self._failure(record_at(values, iterator), "extract_timestamp") from error
        return self._with_list(batch, stamps, "extract_timestamp")

    def _by_batch(self, batch: Batch, assigner: BatchTimestamps) -> Batch:
        if not len(batch):
            return _with(batch, [] if isinstance(batch, RowBatch) else _full(0, 0))
        try:
            result = assigner.of(batch)
        except Exception as error:
            raise self._failure(self._culprit(batch, assigner), assigner.step) from error
        if isinstance(result, str | bytes) or not hasattr(result, "__len__"):
            wrong = TypeError(f"a timestamp for each of {len(batch)} records is wanted, found {shortened(result, 80)}")
            raise self._failure("", assigner.step) from wrong
        if len(result) != len(batch):
            raise self._failure("", assigner.step) from ValueError(
                f"a timestamp for each of {len(batch)} records is wanted, found {len(result)}"
            )
        if isinstance(result, list | tuple):
            return self._with_list(batch, list(result), assigner.step)
        try:
            stamps, missing = _as_int64(result)
        except (TypeError, ValueError) as error:  # Arrow's errors are ValueErrors
            raise self._failure(f"{self._shown(batch, 0)} and those after it", assigner.step) from error
        if missing is not None and missing.any():
            return self._without(batch, stamps, missing, assigner.step)
        return _with(batch, stamps if isinstance(batch, ArrowBatch) else stamps.tolist())

    def _with_list(self, batch: Batch, stamps: list[Any], step: str) -> Batch:
        """Check timestamps that are Python values."""
        if set(map(type, stamps)) <= {int}:
            try:
                whole = array("q", stamps)
                return _with(batch, stamps if isinstance(batch, RowBatch) else _frozen(whole))
            except OverflowError:
                pass  # the record is named below
        valid, missing = [], []
        for row, stamp in enumerate(stamps):
            is_missing = stamp is None and self._dropped is not None
            missing.append(is_missing)
            try:
                valid.append(MIN_TIMESTAMP if is_missing else checked(stamp))
            except (TypeError, ValueError) as error:
                raise self._failure(self._shown(batch, row), step) from error
        if any(missing):
            import numpy as np

            return self._without(batch, np.array(valid, np.int64), np.array(missing), step)
        return _with(batch, valid if isinstance(batch, RowBatch) else _frozen(array("q", valid)))

    def _without(self, batch: Batch, stamps: NDArray[np.int64], missing: NDArray[np.bool_], step: str) -> Batch:
        """Leave out the records without a timestamp, or fail."""
        if self._dropped is None:
            row = int(missing.argmax())
            try:
                checked(None)
            except TypeError as error:
                raise self._failure(self._shown(batch, row), step) from error
        else:
            self._dropped.inc(int(missing.sum()))
        present = ~missing
        if isinstance(batch, ArrowBatch):
            import pyarrow as pa

            return ArrowBatch(batch.data.filter(pa.array(present)), stamps[present])
        values = [value for value, is_present in zip(batch.values, present.tolist(), strict=True) if is_present]
        return RowBatch(values, stamps[present].tolist())

    def _culprit(self, batch: Batch, assigner: BatchTimestamps) -> str:
        """Return the first record that fails by itself, or "" if none does."""
        if isinstance(batch, RowBatch):
            for row in range(len(batch)):
                try:
                    assigner.of(batch.slice(row, row + 1))
                except Exception:  # the error of the whole batch is the one to show
                    return self._shown(batch, row)
        return ""

    @staticmethod
    def _shown(batch: Batch, row: int) -> str:
        return shortened(list_of(batch.slice(row, row + 1))[0])

    def _failure(self, record: str, where: str) -> UserCodeError:
        return UserCodeError(self._ctx.operator_name, self._ctx.call_site, record, where)


def _with(batch: Batch, stamps: Any) -> Batch:
    return ArrowBatch(batch.data, stamps) if isinstance(batch, ArrowBatch) else RowBatch(batch.values, stamps)


def _full(count: int, stamp: int) -> NDArray[np.int64]:
    import numpy as np

    return np.full(count, stamp, np.int64)


def _frozen(stamps: array[int]) -> NDArray[np.int64]:
    import numpy as np

    return np.frombuffer(stamps, np.int64)


def _as_int64(result: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """Convert an array of numpy, pandas or Arrow to epoch milliseconds, with a mask of its missing values.

    Raises:
        TypeError: it holds neither integers nor times.
        ValueError: a number does not fit 64 bits.
    """
    import numpy as np
    import pyarrow as pa

    if isinstance(result, pa.Array | pa.ChunkedArray):
        return _arrow_to_int64(result)
    values = np.asarray(result)
    if values.ndim != 1:
        raise TypeError(f"timestamps are an array of one dimension, found one of {values.ndim}")
    if values.dtype.kind == "M":
        return values.astype("datetime64[ms]").astype(np.int64), np.isnat(values)
    if values.dtype.kind not in "iu":
        raise TypeError(f"{WANTED}, found an array of {values.dtype}; give int64 or datetime64")
    if values.dtype.kind == "u" and len(values) and int(values.max()) >= 2**63:
        raise ValueError(f"a timestamp is in [-2^63, 2^63) epoch milliseconds, found {values.max()}")
    return values.astype(np.int64, copy=False), None


def _arrow_to_int64(column: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    import pyarrow as pa

    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if types.is_null(kind):
        column = column.cast(pa.int64())
    elif types.is_date(kind):
        column = column.cast(pa.timestamp("ms")).cast(pa.int64())
    elif types.is_timestamp(kind):
        column = column.cast(pa.timestamp("ms", kind.tz), safe=False).cast(pa.int64())
    elif types.is_integer(kind):
        column = column.cast(pa.int64())
    else:
        raise TypeError(f"{WANTED}, found a column of {kind}; give one of integers, timestamps or dates")
    missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return (column.fill_null(0) if column.null_count else column).to_numpy(), missing
