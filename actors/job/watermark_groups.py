"""Watermark alignment: the watermarks of aligned sources by group. No clock, no messages.

Source: apache/flink SourceCoordinator, FLIP-182.
"""

from __future__ import annotations

from collections.abc import Collection

from rayflink.common.records.batches import MAX_TIMESTAMP
from rayflink.common.watermarks import WatermarkAlignment

from ..exchange.frames import TaskAddress


class WatermarkGroups:
    """The last watermark of each subtask of each aligned source.

    A subtask counts from its first report on, which it sends when it opens, before it has a watermark: until each has
    one, no source reads further than the drift. An idle, ended or lost subtask holds no other back.
    """

    def __init__(self) -> None:
        self._groups: dict[str, dict[tuple[TaskAddress, str], int | None]] = {}

    def reported(
        self, attempt: TaskAddress, operator_id: str, alignment: WatermarkAlignment, watermark: int | None
    ) -> int:
        """Record a report; return the greatest watermark with which that subtask may read on."""
        group = self._groups.setdefault(alignment.group, {})
        group[attempt, operator_id] = watermark
        slowest = min((mark for mark in group.values() if mark is not None), default=MAX_TIMESTAMP)
        return min(slowest + alignment.max_drift_ms, MAX_TIMESTAMP)

    def keep(self, live: Collection[TaskAddress]) -> None:
        """Keep these attempts only: all others have ended, or were replaced."""
        for group in self._groups.values():
            for member in [member for member in group if member[0] not in live]:
                del group[member]
