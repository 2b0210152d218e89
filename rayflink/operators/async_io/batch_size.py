"""The number of records in a batch for a model."""

from __future__ import annotations


class AdaptiveBatchSize:
    """Doubles while that makes a record cheaper and a batch takes less than its time; halves when it takes more.

    >>> size = AdaptiveBatchSize(target_ms=100, largest=64)
    >>> for took_ms in (10, 11, 12):  # a batch costs 10 ms, whatever is in it
    ...     size.measured(size.records, took_ms / 1000)
    >>> size.records
    8
    >>> size.measured(8, 0.2); size.records
    4

    Args:
        target_ms: what a batch may take.
        largest: records, at least 1.
    """

    GAIN = 0.9
    """A larger batch must bring the cost of a record down to this part of it to be worth a larger one still."""

    def __init__(self, target_ms: float, largest: int) -> None:
        self._target_s, self._largest = target_ms / 1000, largest
        self._cheapest_s: float | None = None
        self.records = 1
        """The size of the next batch."""

    def measured(self, records: int, seconds: float) -> None:
        """Learn from a batch that has come back; one of another size than the current one is ignored."""
        if records != self.records:
            return
        if seconds > self._target_s:
            self._largest = max(1, min(self._largest, records - 1))
            self.records = max(1, records // 2)
            return
        cost_s = seconds / records
        if self._cheapest_s is None or cost_s <= self._cheapest_s * self.GAIN:
            self._cheapest_s = cost_s
            self.records = min(self._largest, records * 2)


class FixedBatchSize:
    """A size that never changes.

    Args:
        records: at least 1.
    """

    def __init__(self, records: int) -> None:
        self.records = records

    def measured(self, records: int, seconds: float) -> None:
        """Learn nothing: the size is fixed."""


__all__ = ["AdaptiveBatchSize", "FixedBatchSize"]
