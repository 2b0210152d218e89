"""Joins of rows with the versions of a table that hold at their times: FOR SYSTEM_TIME AS OF an event time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .changelog import Change
from .joins import KeyedJoin


@dataclass(frozen=True)
class TemporalJoin(KeyedJoin):
    """Each row of the left side with the version of a row on the right that holds at its time.

    The keys are the primary key of the right side. Its rows are versions: each holds from its time on, until the next
    one of its key.

    Args:
        times: numbers of the columns with the event times of the left and the right side.
    """

    times: tuple[int, int]

    def takes_changes(self) -> Change:
        return Change.ALL

    def gives_changes(self, inputs: Sequence[Change]) -> Change:
        return Change.INSERT

    def requires_update_before(self, is_wanted: bool) -> bool:
        return False

    def explain_line(self) -> str:
        left, right = self.left.names[self.times[0]], self.right.names[self.times[1]]
        return f"TemporalJoin(leftTime=[{left}], rightTime=[{right}], {', '.join(self._shown())})"


__all__ = ["TemporalJoin"]
