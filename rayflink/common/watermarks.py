"""How a stream gets its event time: timestamps of records, and watermarks, with PyFlink's names."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from .batches import MIN_TIMESTAMP, Watermark
from .callables import ensure_takes
from .time import Duration, to_millis


class TimestampAssigner(ABC):
    """Reads the event time of a record."""

    @abstractmethod
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Epoch milliseconds of `value`; `record_timestamp` is what it carried before, or `MIN_TIMESTAMP`."""


class WatermarkOutput(ABC):
    """Where a generator sends its watermarks."""

    @abstractmethod
    def emit_watermark(self, watermark: Watermark) -> None:
        """Send a watermark, and end idleness; one that is not above the last one is dropped."""

    @abstractmethod
    def mark_idle(self) -> None:
        """Consumers need not wait for this stream's watermarks until the next one is sent."""

    @abstractmethod
    def mark_active(self) -> None:
        """Consumers wait for this stream's watermarks again."""


class WatermarkGenerator(ABC):
    """Makes watermarks of the records it sees, one instance a subtask."""

    @abstractmethod
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Called for each record, with its timestamp in epoch milliseconds; what is sent here follows it at once."""

    @abstractmethod
    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        """Called every `pipeline.auto-watermark-interval`, 200 ms where nothing sets it."""


class BoundedOutOfOrdernessWatermarks(WatermarkGenerator):
    """The greatest timestamp seen, less the bound, less 1: a record may lie `bound_ms` behind the greatest.

    Args:
        bound_ms: milliseconds, at least 0.

    Raises:
        ValueError: the bound is negative.
    """

    def __init__(self, bound_ms: int) -> None:
        if bound_ms < 0:
            raise ValueError(f"the bound of out-of-orderness must be at least 0, got {bound_ms} ms")
        self._bound_ms = bound_ms
        self.max_timestamp = MIN_TIMESTAMP + bound_ms + 1

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if event_timestamp > self.max_timestamp:
            self.max_timestamp = event_timestamp

    def on_batch(self, timestamps: list[int]) -> None:
        """The same as `on_event` for each of a batch's timestamps, which are at least one."""
        greatest = max(timestamps)
        if greatest > self.max_timestamp:
            self.max_timestamp = greatest

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        output.emit_watermark(Watermark(self.max_timestamp - self._bound_ms - 1))


class AscendingTimestampsWatermarks(BoundedOutOfOrdernessWatermarks):
    """For timestamps that never fall: the greatest seen less 1."""

    def __init__(self) -> None:
        super().__init__(0)


class NoWatermarks(WatermarkGenerator):
    """Never sends a watermark."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        pass

    def on_batch(self, timestamps: list[int]) -> None:
        """Nothing to see."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class Idleness:
    """Notices that no record has come for a while; pure, time is given.

    The while begins at the first check without a record since the check before.

    Args:
        timeout_ms: milliseconds, more than 0.
    Source: apache/flink WatermarksWithIdleness.IdlenessTimer.
    """

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._active = False
        self._quiet_since: int | None = None

    def active(self) -> None:
        """A record came."""
        self._active = True

    def check(self, now_ms: int) -> bool:
        """True when no record has come for longer than the timeout."""
        if self._active:
            self._active, self._quiet_since = False, None
            return False
        if self._quiet_since is None:
            self._quiet_since = now_ms
            return False
        return now_ms - self._quiet_since > self._timeout_ms


class WatermarkStrategy:
    """Says how records get timestamps and how watermarks are made of them; an immutable value.

    Programs make one by the methods `for_...` and `no_watermarks`.

    Args:
        generator: makes the watermark generator of a subtask.
        timestamp_assigner: gives a record's epoch milliseconds; None: records keep the timestamps they have.
        idle_timeout_ms: milliseconds without records after which a subtask is idle; None: never.

    >>> strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(5))
    >>> strategy = strategy.with_timestamp_assigner(lambda value, previous: value["at_ms"])
    """

    def __init__(
        self,
        generator: Callable[[], WatermarkGenerator],
        timestamp_assigner: Callable[[Any, int], int] | None = None,
        idle_timeout_ms: int | None = None,
    ) -> None:
        self.create_generator = generator
        self.timestamp_assigner = timestamp_assigner
        self.idle_timeout_ms = idle_timeout_ms

    @staticmethod
    def for_monotonous_timestamps() -> WatermarkStrategy:
        """For timestamps that never fall within one subtask of the source."""
        return WatermarkStrategy(AscendingTimestampsWatermarks)

    @staticmethod
    def for_bounded_out_of_orderness(max_out_of_orderness: Duration | timedelta) -> WatermarkStrategy:
        """For records that come at most `max_out_of_orderness` later than one with a greater timestamp.

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
        """For streams that use processing time only."""
        return WatermarkStrategy(NoWatermarks)

    @staticmethod
    def for_generator(generator: Callable[[], WatermarkGenerator]) -> WatermarkStrategy:
        """With generators of the user's own.

        Args:
            generator: called once a subtask; the class itself serves.

        Raises:
            TypeError: an instance was given, which all subtasks would share.
        """
        if isinstance(generator, WatermarkGenerator) or not callable(generator):
            raise TypeError(f"for_generator needs a class or a function that makes a generator, got {generator!r}")
        return WatermarkStrategy(generator)

    def with_timestamp_assigner(self, timestamp_assigner: Any) -> WatermarkStrategy:
        """The same strategy with timestamps read from the records.

        Args:
            timestamp_assigner: a TimestampAssigner, or a callable of the record and its timestamp so far, which gives
                epoch milliseconds.

        Raises:
            TypeError: it is neither, or (`InvalidFunction`) does not take two arguments.
        """
        extract = getattr(timestamp_assigner, "extract_timestamp", timestamp_assigner)
        if not callable(extract) or inspect.isclass(timestamp_assigner):
            raise TypeError(f"a TimestampAssigner instance or a callable is wanted, got {timestamp_assigner!r}")
        ensure_takes(2, extract, "with_timestamp_assigner")
        return WatermarkStrategy(self.create_generator, extract, self.idle_timeout_ms)

    def with_idleness(self, idle_timeout: Duration | timedelta) -> WatermarkStrategy:
        """The same strategy; a subtask without records for longer than the timeout does not hold back the others.

        Args:
            idle_timeout: a Duration or timedelta above 0, compared in milliseconds of processing time.

        Raises:
            ValueError: the timeout is not above 0.
        """
        timeout_ms = to_millis(idle_timeout)
        if timeout_ms <= 0:
            raise ValueError(f"an idle timeout must be above 0, got {timeout_ms} ms")
        return WatermarkStrategy(self.create_generator, self.timestamp_assigner, timeout_ms)


class _Bounded:
    """Makes generators of one bound; unlike a lambda it can be pickled."""

    def __init__(self, bound_ms: int) -> None:
        self._bound_ms = bound_ms

    def __call__(self) -> WatermarkGenerator:
        return BoundedOutOfOrdernessWatermarks(self._bound_ms)


__all__ = [
    "AscendingTimestampsWatermarks", "BoundedOutOfOrdernessWatermarks", "Idleness", "NoWatermarks", "TimestampAssigner",
    "Watermark", "WatermarkGenerator", "WatermarkOutput", "WatermarkStrategy",
]  # fmt: skip
