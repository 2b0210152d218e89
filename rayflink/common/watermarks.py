"""The event time of a stream: timestamps of records, and watermarks, with PyFlink's names."""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from rayflink.user_types import UserCode, UserRecord

from .errors import shorten
from .functions.callables import ensure_takes
from .records.batches import MIN_TIMESTAMP, Watermark
from .time import Duration, to_millis
from .timestamps import BatchTimestamps, FieldOfRecords, FunctionOfBatch, IngestionTime


class TimestampAssigner(ABC):
    """Reads the event time of a record."""

    @abstractmethod
    def extract_timestamp(self, value: UserRecord, record_timestamp: int) -> int:
        """Return the epoch milliseconds of `value`; `record_timestamp` is what it had before, or `MIN_TIMESTAMP`."""


class WatermarkOutput(ABC):
    """The output to which a generator sends its watermarks."""

    @abstractmethod
    def emit_watermark(self, watermark: Watermark) -> None:
        """Send a watermark, and end idleness; one that is not above the last one is dropped."""

    @abstractmethod
    def mark_idle(self) -> None:
        """Let consumers not wait for this stream's watermarks until the next one is sent."""

    @abstractmethod
    def mark_active(self) -> None:
        """Let consumers wait for this stream's watermarks again."""


class WatermarkGenerator(ABC):
    """Makes watermarks of the records it sees, one instance a subtask, in a source one for each split."""

    @abstractmethod
    def on_event(self, event: UserRecord, event_timestamp: int, output: WatermarkOutput) -> None:
        """Note a record with its timestamp in epoch milliseconds; what is sent here follows the record at once."""

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Send what is due; called every `pipeline.auto-watermark-interval`, 200 ms where nothing sets it."""


class BoundedOutOfOrdernessWatermarks(WatermarkGenerator):
    """The greatest timestamp seen, less the bound, less 1: a record may lie `bound_ms` behind the greatest.

    Args:
        bound_ms: milliseconds, at least 0.

    Raises:
        ValueError: the bound is negative.
    """

    def __init__(self, bound_ms: int) -> None:
        if bound_ms < 0:
            raise ValueError(f"the bound of out-of-orderness must be at least 0 ms, found {bound_ms} ms")
        self._bound_ms = bound_ms
        self.max_timestamp = MIN_TIMESTAMP + bound_ms + 1

    def on_event(self, event: UserRecord, event_timestamp: int, output: WatermarkOutput) -> None:
        if event_timestamp > self.max_timestamp:
            self.max_timestamp = event_timestamp

    def on_batch(self, timestamps: Any) -> None:
        """Note each of a batch's timestamps as `on_event` does: at least one, in a list or an int64 array."""
        greatest = max(timestamps) if isinstance(timestamps, list) else int(timestamps.max())
        if greatest > self.max_timestamp:
            self.max_timestamp = greatest

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        output.emit_watermark(Watermark(self.max_timestamp - self._bound_ms - 1))


class AscendingTimestampsWatermarks(BoundedOutOfOrdernessWatermarks):
    """A generator for timestamps that never fall: the greatest seen less 1."""

    def __init__(self) -> None:
        super().__init__(0)


class NoWatermarks(WatermarkGenerator):
    """Never sends a watermark."""

    def on_event(self, event: UserRecord, event_timestamp: int, output: WatermarkOutput) -> None:
        pass

    def on_batch(self, timestamps: Any) -> None:
        """Do nothing, as there are no watermarks."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class Idleness:
    """Notices that no record has come for a while; pure, time is given.

    The while begins at the first check without a record since the check before. Time between two checks that lie far
    apart counts as `longest_ms`: the task was held up, and no record could come.

    Args:
        timeout_ms: milliseconds, more than 0.
        longest_ms: what counts at most between two checks; None: all.
    Source: apache/flink WatermarksWithIdleness.IdlenessTimer.
    """

    def __init__(self, timeout_ms: int, longest_ms: int | None = None) -> None:
        self._timeout_ms, self._longest_ms = timeout_ms, longest_ms
        self._active = False
        self._checked_ms: int | None = None
        self._quiet_ms = 0

    def active(self) -> None:
        """Note that a record came."""
        self._active = True

    def check(self, now_ms: int) -> bool:
        """Return whether no record has come for longer than the timeout."""
        if self._active:
            self._active, self._checked_ms, self._quiet_ms = False, None, 0
            return False
        if self._checked_ms is not None:
            since = now_ms - self._checked_ms
            self._quiet_ms += since if self._longest_ms is None else min(since, self._longest_ms)
        self._checked_ms = now_ms
        return self._quiet_ms > self._timeout_ms


@dataclass(frozen=True)
class WatermarkAlignment:
    """The distance that a source may be ahead of those it is aligned with.

    Args:
        group: name of the group; all sources of a job that name it are in it.
        max_drift_ms: milliseconds of event time, at least 0.
        update_ms: milliseconds of processing time between two reports, more than 0.
    """

    group: str
    max_drift_ms: int
    update_ms: int


@dataclass(frozen=True)
class EmitEvery:
    """The emission of watermarks in addition to those that records bring.

    Args:
        records: after this number of records, at least 1.
        interval_ms: and after these milliseconds, at least 0, 0 never; None: `pipeline.auto-watermark-interval`.
    """

    records: int
    interval_ms: int | None


class WatermarkStrategy:
    """Says how records get timestamps and how watermarks are made of them; an immutable value.

    Programs make one by the methods `for_...` and `no_watermarks`.

    Args:
        generator: makes the watermark generator of a subtask, or of each split that a source reads.

    >>> strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    >>> strategy = strategy.with_timestamp_assigner(lambda value, previous: value["at_ms"])
    """

    timestamp_assigner: Callable[[Any, int], int] | BatchTimestamps | None = None
    """Gives epoch milliseconds; None: records keep the timestamps they have."""
    idle_timeout_ms: int | None = None
    """Milliseconds without records after which a subtask or split is idle; None: never."""
    drops_null_timestamps = False
    """True if a record without a timestamp is dropped and counted; else it is an error."""
    emit_every: EmitEvery | None = None
    """Emission by count and time together; None: by time alone."""
    alignment: WatermarkAlignment | None = None
    """The alignment with other sources; None: with none."""

    def __init__(self, generator: Callable[[], WatermarkGenerator]) -> None:
        self.create_generator = generator

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """Return a strategy for timestamps that never fall within one subtask of the source, or within each split.

        The split counts where the source has splits.
        """
        return WatermarkStrategy(AscendingTimestampsWatermarks)

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration | timedelta) -> WatermarkStrategy:
        """Return a strategy for records at most `max_out_of_orderness` later than one with a greater timestamp.

        Args:
            max_out_of_orderness: a Duration or timedelta, at least 0.

        Raises:
            ValueError: the bound is negative.
        """
        bound_ms = to_millis(max_out_of_orderness)
        BoundedOutOfOrdernessWatermarks(bound_ms)  # refuses a negative bound here, in the user's line
        return WatermarkStrategy(_Bounded(bound_ms))

    @staticmethod
    def no_watermarks() -> WatermarkStrategy:
        """Return a strategy for streams that use processing time only."""
        return WatermarkStrategy(NoWatermarks)

    @staticmethod
    def for_ingestion_time() -> WatermarkStrategy:
        """Return a strategy by which records carry the time of reading, or of arrival; watermarks follow the clock.

        Timestamps of one subtask never fall, also where its clock is put back, so no record is late before the streams
        of several subtasks meet.
        """
        return WatermarkStrategy(AscendingTimestampsWatermarks)._with(timestamp_assigner=IngestionTime())

    @staticmethod
    def for_generator(generator: Callable[[], WatermarkGenerator]) -> WatermarkStrategy:
        """Return a strategy with generators of the user's own.

        Args:
            generator: called once a subtask, in a source once a split; the class itself serves.

        Raises:
            TypeError: an instance was given, which all subtasks would share.
        """
        if isinstance(generator, WatermarkGenerator) or not callable(generator):
            raise TypeError(f"for_generator needs a class or a function that returns a generator, found {generator!r}")
        return WatermarkStrategy(generator)

    def with_timestamp_assigner(self, timestamp_assigner: UserCode) -> WatermarkStrategy:
        """Return the same strategy with timestamps read from the records.

        Args:
            timestamp_assigner: a TimestampAssigner, or a callable of the record and its timestamp so far, which gives
                epoch milliseconds.

        Raises:
            TypeError: it is neither, or (`InvalidFunction`) does not take two arguments.
        """
        extract = getattr(timestamp_assigner, "extract_timestamp", timestamp_assigner)
        if not callable(extract) or inspect.isclass(timestamp_assigner):
            raise TypeError(
                f"with_timestamp_assigner needs a TimestampAssigner or a callable, found {timestamp_assigner!r}"
            )
        ensure_takes(2, extract, "with_timestamp_assigner")
        return self._with(timestamp_assigner=extract)

    def with_timestamp_column(self, column: str | int) -> WatermarkStrategy:
        """Return the same strategy with timestamps from a column; Arrow batches stay columns.

        Integers are epoch milliseconds; timestamps, dates and datetimes are taken too, in UTC where they carry no time
        zone, and cut to milliseconds.

        Args:
            column: name of the column, or of the field of a Row or dict; or the number of the field, from 0.

        Raises:
            TypeError: it is neither text nor int.
            ValueError: it is a negative number.

        >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_column("at")
        """
        if not isinstance(column, str | int) or isinstance(column, bool):
            raise TypeError(f"a column must be a name or a number, found {column!r} of type {type(column).__name__}")
        if isinstance(column, int) and column < 0:
            raise ValueError(f"the number of a column must be at least 0, found {column}")
        return self._with(timestamp_assigner=FieldOfRecords(column))

    def with_batch_timestamp_assigner(self, function: Callable[[Any], Any]) -> WatermarkStrategy:
        """Return the same strategy with timestamps of a whole batch at once; Arrow batches stay columns.

        Batches are of any size, so each timestamp must depend on its own record alone.

        Args:
            function: takes a `pyarrow.RecordBatch`, or the list of records where the stream is of rows, and gives as
                many epoch milliseconds: a list, or an array of numpy or Arrow of integers or times.

        Raises:
            TypeError: it is no function, or (`InvalidFunction`) does not take one argument.

        >>> strategy = WatermarkStrategy.for_monotonous_timestamps().with_batch_timestamp_assigner(
        ...     lambda columns: columns["seconds"].to_numpy() * 1000)
        """
        if not callable(function):
            raise TypeError(f"a function of a batch is wanted, found {function!r}")
        ensure_takes(1, function, "with_batch_timestamp_assigner")
        return self._with(timestamp_assigner=FunctionOfBatch(function))

    def with_null_timestamps_dropped(self) -> WatermarkStrategy:
        """Return the same strategy; a record for which the assigner gives None is dropped and counted, it is no error.

        The count is the metric `numNullTimestampsDropped`.
        """
        return self._with(drops_null_timestamps=True)

    def with_emit_every(self, records: int, interval: Duration | timedelta | None = None) -> WatermarkStrategy:
        """Return the same strategy with watermarks after a number of records or an interval, whichever comes first.

        Each emission begins both counts anew. By time alone a fast stream gets few watermarks for its records, by count
        alone a slow one waits long for its next.

        Args:
            records: of one subtask, at least 1.
            interval: processing time, at least 0, 0 never; None: `pipeline.auto-watermark-interval`.

        Raises:
            TypeError, ValueError: the number is no int of at least 1, or the interval is negative.
        """
        if not isinstance(records, int) or isinstance(records, bool):
            raise TypeError(f"records must be a whole number, found {records!r} of type {type(records).__name__}")
        interval_ms = None if interval is None else to_millis(interval)
        if records < 1 or (interval_ms is not None and interval_ms < 0):
            raise ValueError(
                f"at least 1 record and an interval of at least 0 ms are wanted, found {records} and {interval_ms}"
            )
        return self._with(emit_every=EmitEvery(records, interval_ms))

    def with_idleness(self, idle_timeout: Duration | timedelta) -> WatermarkStrategy:
        """Return the same strategy; a subtask or split without records for longer than the timeout holds back no other.

        Args:
            idle_timeout: a Duration or timedelta above 0, compared in milliseconds of processing time.

        Raises:
            ValueError: the timeout is not above 0.
        """
        timeout_ms = to_millis(idle_timeout)
        if timeout_ms <= 0:
            raise ValueError(f"an idle timeout must be above 0 ms, found {timeout_ms} ms")
        return self._with(idle_timeout_ms=timeout_ms)

    def with_watermark_alignment(
        self,
        watermark_group: str,
        max_allowed_watermark_drift: Duration | timedelta,
        update_interval: Duration | timedelta | None = None,
    ) -> WatermarkStrategy:
        """Return the same strategy; the source pauses while it is further ahead of its group's slowest than the drift.

        Give it to `from_source`; in batch mode it has no effect.

        Args:
            watermark_group: sources of the job that name it are aligned with each other.
            max_allowed_watermark_drift: event time, at least 0.
            update_interval: how often each subtask reports its watermark and learns how far it may go; None: 1 s.

        Raises:
            TypeError, ValueError: no group, a negative drift, an interval not above 0, or no watermarks to align.
        """
        if not isinstance(watermark_group, str) or not watermark_group:
            raise TypeError(f"a watermark group must be a string that is not empty, found {watermark_group!r}")
        drift_ms = to_millis(max_allowed_watermark_drift)
        update_ms = 1000 if update_interval is None else to_millis(update_interval)
        if drift_ms < 0 or update_ms <= 0:
            actual = f"got {drift_ms} ms and {update_ms} ms"
            raise ValueError(f"a drift of at least 0 and an update interval above 0 are wanted, {actual}")
        if self.create_generator is NoWatermarks:
            raise ValueError(
                "a source without watermarks would hold back its group for ever; "
                "use for_bounded_out_of_orderness(...) or for_monotonous_timestamps()"
            )
        return self._with(alignment=WatermarkAlignment(watermark_group, drift_ms, update_ms))

    def _with(self, **changes: object) -> WatermarkStrategy:
        changed = copy.copy(self)
        vars(changed).update(changes)
        return changed


def ensure_strategy(strategy: object) -> None:
    """Check that a value is a watermark strategy.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(strategy, WatermarkStrategy):
        remedy = "make one by WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))"
        raise TypeError(f"a WatermarkStrategy is wanted, found {shorten(strategy, 80)}; {remedy}")


class _Bounded:
    """Makes generators of one bound; unlike a lambda it can be pickled."""

    def __init__(self, bound_ms: int) -> None:
        self._bound_ms = bound_ms

    def __call__(self) -> WatermarkGenerator:
        return BoundedOutOfOrdernessWatermarks(self._bound_ms)


__all__ = [
    "AscendingTimestampsWatermarks", "BoundedOutOfOrdernessWatermarks", "EmitEvery", "Idleness", "NoWatermarks",
    "TimestampAssigner", "Watermark", "WatermarkAlignment", "WatermarkGenerator", "WatermarkOutput",
    "WatermarkStrategy",
]  # fmt: skip
