"""The metrics of a Kafka reader, under Flink's names."""

from __future__ import annotations

from collections.abc import Callable

from rayflink.common.metrics.metric_group import Counter, MetricGroup

READER = "KafkaSourceReader"
COMMITS_SUCCEEDED = "commitsSucceeded"
COMMITS_FAILED = "commitsFailed"
CURRENT_OFFSET = "currentOffset"
COMMITTED_OFFSET = "committedOffset"
PENDING_RECORDS = "pendingRecords"
RECORDS_LAG_MAX = "records-lag-max"
BYTES_CONSUMED = "bytes-consumed-total"
TOMBSTONES = "numTombstonesSkipped"
"""Not Flink's: records without a value that a schema of values left out."""
OFFSET_RESETS = "numOffsetResets"
"""Not Flink's: partitions that went on elsewhere because their offset did not exist, as `auto.offset.reset` says."""
OUTAGES = "numBrokerOutages"
"""Not Flink's: times at which no broker could be reached."""


class ReaderMetrics:
    """The counters and gauges of one reader.

    Args:
        group: of the source; None: nothing is reported.
        lags: returns the number of records behind the end, partition by partition, as far as they are known.
    """

    def __init__(
        self, group: MetricGroup | None, lags: Callable[[], list[int]], tombstones: Counter, consumed: Counter
    ) -> None:
        group = MetricGroup() if group is None else group
        self._reader = reader = group.add_group(READER)
        self.commits_succeeded = reader.counter(COMMITS_SUCCEEDED)
        self.commits_failed = reader.counter(COMMITS_FAILED)
        self.offset_resets = reader.counter(OFFSET_RESETS)
        self.outages = reader.counter(OUTAGES)
        reader.gauge(TOMBSTONES, tombstones.get_count)
        client = reader.add_group("KafkaConsumer")
        client.gauge(BYTES_CONSUMED, consumed.get_count)
        client.gauge(RECORDS_LAG_MAX, lambda: max(lags(), default=0))
        group.gauge(PENDING_RECORDS, lambda: sum(lags()))

    def add_partition(
        self, topic: str, partition: int, current: Callable[[], int], committed: Callable[[], int]
    ) -> None:
        """Report the offset of the newest record of a partition, and the last one committed; -1: there is none."""
        group = self._reader.add_group("topic", topic).add_group("partition", str(partition))
        group.gauge(CURRENT_OFFSET, current)
        group.gauge(COMMITTED_OFFSET, committed)


__all__ = ["ReaderMetrics"]
