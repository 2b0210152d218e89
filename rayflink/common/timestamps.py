"""Sources of the timestamps of records: values that a `WatermarkStrategy` carries, each for a whole batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import date, datetime, timezone
from typing import Any

from rayflink.user_types import UserValue

from .records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, ArrowBatch, Batch
from .time import Instant

WANTED = "a timestamp is an int of epoch milliseconds"


class BatchTimestamps(ABC):
    """Gives a batch its timestamps at once."""

    step = ""
    """The method of the strategy that made it, for errors."""

    @abstractmethod
    def of(self, batch: Batch) -> Any:
        """Return one timestamp a record: a sequence, or an array of numpy or Arrow; None, null or NaT for none."""


class FunctionOfBatch(BatchTimestamps):
    """The timestamps that a user's function gives for a list of records, or for a `pyarrow.RecordBatch`.

    Args:
        function: takes the batch's records.
    """

    step = "with_batch_timestamp_assigner"

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def of(self, batch: Batch) -> Any:
        return self._function(batch.data if isinstance(batch, ArrowBatch) else batch.values)


class FieldOfRecords(BatchTimestamps):
    """A column of Arrow batches, a field of rows.

    Args:
        column: its name, or its number from 0.
    """

    step = "with_timestamp_column"

    def __init__(self, column: str | int) -> None:
        self.column = column

    def of(self, batch: Batch) -> Any:
        if not isinstance(batch, ArrowBatch):
            return list(map(self._of_row, batch.values))
        names = batch.data.schema.names
        if isinstance(self.column, int):
            if self.column >= len(names):
                raise IndexError(f"no column {self.column}; there are {len(names)}: {names}")
            return batch.data.column(self.column)
        if names.count(self.column) != 1:
            raise KeyError(f"{names.count(self.column)} columns are named {self.column!r}; there are {names}")
        return batch.data.column(names.index(self.column))

    def _of_row(self, value: UserValue) -> Any:
        try:
            return epoch_ms_of(value[self.column])
        except (LookupError, TypeError, ValueError) as error:
            raise LookupError(f"a record has no field {self.column!r}") from error


class IngestionTime(BatchTimestamps):
    """The clock of the subtask that reads the records; never falls."""

    step = "for_ingestion_time"

    def of(self, batch: Batch) -> Any:
        raise AssertionError("the operator reads its own clock")


def epoch_ms_of(value: UserValue) -> Any:
    """Return the epoch milliseconds of a datetime, date or Instant, in UTC if it has no zone; others unchanged."""
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=timezone.utc)
        since = aware - datetime(1970, 1, 1, tzinfo=timezone.utc)
        return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
    if isinstance(value, Instant):
        return value.to_epoch_milli()
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days * 86_400_000
    return value


def checked(stamp: UserValue) -> int:
    """Return a timestamp as an int of 64 bits.

    Raises:
        TypeError: it is no integer.
        ValueError: it is out of range.
    """
    if hasattr(stamp, "__index__") and not isinstance(stamp, bool):
        if MIN_TIMESTAMP <= stamp <= MAX_TIMESTAMP:
            return int(stamp)
        bits = int(stamp).bit_length()
        raise ValueError(f"a timestamp must be in [-2^63, 2^63) epoch milliseconds, found a number of {bits} bits")
    remedy = ""
    if isinstance(stamp, datetime):
        remedy = "; give int(value.timestamp() * 1000)"
    elif stamp is None:
        remedy = "; filter such records before, or drop and count them by with_null_timestamps_dropped()"
    raise TypeError(f"{WANTED}, found {stamp!r} of type {type(stamp).__name__}{remedy}")


__all__ = ["BatchTimestamps", "FieldOfRecords", "FunctionOfBatch", "IngestionTime", "checked", "epoch_ms_of"]
