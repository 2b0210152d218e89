"""The limit to which a source may read ahead of those it is aligned with. Pure, time is passed in."""

from __future__ import annotations

from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP
from rayflink.common.watermarks import WatermarkAlignment


class AlignedReading:
    """The reports of a source subtask's watermark, and the limit that its group allows.

    Args:
        alignment: group, drift and interval.
        now_ms: the first report is due at once.
    Source: apache/flink SourceOperator, FLIP-182.
    """

    def __init__(self, alignment: WatermarkAlignment, now_ms: int) -> None:
        self.alignment = alignment
        self.next_ms: int | None = now_ms
        self.max_allowed = MIN_TIMESTAMP
        """The greatest watermark with which it may read on; before the group has said it, none."""

    def is_due(self, now_ms: int) -> bool:
        """Return whether a report is due; the next one is then due an interval later."""
        if self.next_ms is None or now_ms < self.next_ms:
            return False
        self.next_ms = now_ms + self.alignment.update_ms
        return True

    def ended(self) -> None:
        """Stop reporting."""
        self.next_ms = None

    def must_wait(self, watermark: int) -> bool:
        """Return whether a watermark is too far ahead."""
        return watermark > self.max_allowed

    def drift(self, watermark: int) -> int | None:
        """Return the milliseconds by which a watermark is ahead of the slowest of the group; None where that is not
        known.
        """
        slowest = self.max_allowed - self.alignment.max_drift_ms
        is_told = MIN_TIMESTAMP < slowest and self.max_allowed < MAX_TIMESTAMP
        return watermark - slowest if is_told and MIN_TIMESTAMP < watermark < MAX_TIMESTAMP else None
