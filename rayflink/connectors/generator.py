"""Made-up records: sequences of numbers, functions of numbers at a given rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rayflink.common.connector_base.source import (
    PENDING,
    Boundedness,
    EnumeratorContext,
    PendingSplits,
    Polled,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.connector_base.split_reader import OneByOneReader, SplitCursor
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.functions.callables import as_map
from rayflink.common.functions.function_classes import MapFunction
from rayflink.common.functions.type_variables import Output
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.metrics.metric_names import PENDING_RECORDS
from rayflink.common.records.batches import RowBatch
from rayflink.common.typeinfo import Types
from rayflink.user_types import EnumeratorState

_ENDLESS = 2**63 - 1


@dataclass(frozen=True)
class NumberSplit:
    """The numbers position, position + step, ... below `stop`."""

    position: int
    stop: int
    step: int = 1

    @property
    def split_id(self) -> str:
        """Return its last number, or which of the endless ones it is; the same at all positions."""
        if self.stop == _ENDLESS:
            return f"numbers {self.position % self.step} mod {self.step}"
        return f"numbers below {self.stop}"


class DataGeneratorSource(Source[Output]):
    """Emits `function(0)`, `function(1)`, ... up to `count` of them, shared out over the readers.

    Args:
        function: a MapFunction or a callable of the index; None emits the indices themselves.
        count: how many records in all; None: no end.
        records_per_second: limit for all readers together; None: as fast as they are taken.
        first: index of the first record.

    Raises:
        ValueError: count is negative or the rate is not above zero.
    """

    def __init__(
        self,
        function: Callable[[int], Output] | MapFunction[int, Output] | None = None,
        count: int | None = None,
        records_per_second: float | None = None,
        first: int = 0,
    ) -> None:
        if count is not None and count < 0:
            raise ValueError(f"count must be >= 0 or None for no end, found {count}")
        if records_per_second is not None and not records_per_second > 0:
            raise ValueError(f"records_per_second must be > 0 or None for no limit, found {records_per_second}")
        if function is not None:
            as_map(function, "DataGeneratorSource")  # refuses what is no function here, in the user's line
        self._function, self._count, self._rate, self._first = function, count, records_per_second, first

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED if self._count is None else Boundedness.BOUNDED

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        first, count, readers = self._first, self._count, ctx.current_parallelism()
        if count is None:
            return PendingSplits(ctx, [NumberSplit(first + index, _ENDLESS, readers) for index in range(readers)])
        bounds = [first + count * index // readers for index in range(readers + 1)]
        splits = [NumberSplit(start, stop) for start, stop in zip(bounds, bounds[1:], strict=False) if start < stop]
        return PendingSplits(ctx, splits)

    def restore_enumerator(self, ctx: EnumeratorContext, state: EnumeratorState) -> SplitEnumerator:
        return PendingSplits(ctx, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        rate = None if self._rate is None else self._rate / ctx.parallelism
        call = None if self._function is None else as_map(self._function, "DataGeneratorSource").call
        return _GeneratorReader(call, None if rate is None else RateLimit(rate, ctx.now_ms), ctx.metrics)


class NumberSequenceSource(DataGeneratorSource[int]):
    """Emits the integers from `start` to `end`, both included; each reader's in ascending order.

    Raises:
        ValueError: `start` is above `end`.
    """

    def __init__(self, start: int, end: int) -> None:
        if not (hasattr(start, "__index__") and hasattr(end, "__index__")):
            raise TypeError(f"a sequence goes from one int to another, found {start!r} and {end!r}; give two ints")
        if start > end:
            raise ValueError(f"start must not be above end, found {start} and {end}")
        super().__init__(None, end - start + 1, None, start)

    @property
    def produced_type(self) -> TypeInformation:
        return Types.LONG()


class RateLimit:
    """Says how many records may go out by now so that record n goes out n / rate seconds after the first.

    Args:
        per_second: above zero.
        now_ms: the clock.
    """

    def __init__(self, per_second: float, now_ms: Callable[[], int]) -> None:
        self._per_second, self._now_ms = per_second, now_ms
        self._start: int | None = None
        self._given = 0

    def take(self, wanted: int) -> int:
        """Return how many of `wanted` records may go out now; they count as gone."""
        now = self._now_ms()
        if self._start is None:
            self._start = now
        due = int((now - self._start) * self._per_second / 1000) + 1 - self._given
        granted = max(0, min(wanted, due))
        self._given += granted
        return granted

    def pending(self) -> int:
        """Return how many records may go out now and have not been taken."""
        if self._start is None:
            return 0
        return max(0, int((self._now_ms() - self._start) * self._per_second / 1000) + 1 - self._given)

    def next_ms(self) -> int | None:
        """Return the epoch milliseconds at which the next record may go out; None before the first."""
        if self._start is None:
            return None
        return self._start + -int(-self._given * 1000 // self._per_second)


class _GeneratorReader(OneByOneReader):
    def __init__(
        self, call: Callable[[int], Any] | None, limit: RateLimit | None, metrics: MetricGroup | None
    ) -> None:
        super().__init__()
        self._call, self._limit = call, limit
        if metrics is not None and limit is not None:
            metrics.gauge(PENDING_RECORDS, limit.pending)

    def open_split(self, split: NumberSplit) -> SplitCursor:
        return _NumberCursor(split, self._call, self._limit)

    def poll(self, max_records: int) -> Polled:
        answer = super().poll(max_records)
        if len(self._splits) > 1 and self._splits[0].stop == _ENDLESS and self._cursor is not None:
            self.put_back()  # endless splits take turns
        return answer

    def next_poll_ms(self) -> int | None:
        return None if self._limit is None or not self._splits else self._limit.next_ms()


class _NumberCursor:
    def __init__(self, split: NumberSplit, call: Callable[[int], Any] | None, limit: RateLimit | None) -> None:
        self._split, self._call, self._limit = split, call, limit

    def read(self, max_records: int) -> Polled | None:
        split = self._split
        left = len(range(split.position, split.stop, split.step))
        if not left:
            return None
        count = min(left, max_records)
        if self._limit is not None:
            count = self._limit.take(count)
            if not count:
                return PENDING
        stop = split.position + count * split.step
        numbers = range(split.position, stop, split.step)
        values = list(numbers) if self._call is None else list(map(self._call, numbers))
        if len(values) != count:  # to map, a StopIteration from within is the end of the numbers
            failed_at = numbers[len(values)]
            raise RuntimeError(f"the function let a StopIteration out at {failed_at}; give next() a default")
        self._split = replace(split, position=stop)
        return RowBatch(values)

    def position(self) -> NumberSplit:
        return self._split

    def close(self) -> None:
        pass
