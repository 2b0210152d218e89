"""The room in a task's outputs: whether they are full, and how many records may be taken for the room left."""

from __future__ import annotations

from collections.abc import Sequence

from .writer import RecordWriter

_FORGET = 0.75
"""The factor by which a slice reduces the weight of those before it."""
_RARE = 0.01
"""A channel that got less of a record lately bounds nothing."""
_MOST_DROPPED = 1000
"""Records taken for one record of output at most, however few an operator passed on lately."""


class _OutputShares:
    """The shares of one output and its channels in the records that the task took lately."""

    def __init__(self, writer: RecordWriter) -> None:
        self._subpartitions = writer.partition.subpartitions
        self._seen: list[int] = []
        self._recent = [0.0] * len(self._subpartitions)

    def rows(self, taken: float) -> float | None:
        """Return how many records may be taken, by the fullest channel; None: any number.

        Args:
            taken: records taken lately, weighed like those of the channels.
        """
        least: float | None = None
        shares, seen = self._recent, self._seen
        if not seen:  # what was restored is no result of what is taken now
            seen = self._seen = [sub.rows_written for sub in self._subpartitions]
        for place, sub in enumerate(self._subpartitions):
            written = sub.rows_written
            recent = shares[place] = shares[place] * _FORGET + written - seen[place]
            seen[place] = written
            window = sub.window
            if window is None or not sub.is_windowed:
                continue
            room = window + sub.rows_worked - written
            if taken:
                if recent < _RARE:
                    continue
                room_in = room * min(taken / recent, _MOST_DROPPED)
            else:
                room_in = float(room)
            if least is None or room_in < least:
                least = room_in
        return least


class OutputRoom:
    """Says when the outputs are full, and bounds slices and polls by the windows of the task's consumers.

    It learns how many records each channel gets of those that are taken, so that a filter takes many and a flat_map
    few, and a channel that hardly gets any does not make slices small.

    Args:
        writers: the outputs of the task.
    """

    def __init__(self, writers: Sequence[RecordWriter]) -> None:
        self._partitions = [writer.partition for writer in writers]
        bounded = [w for w in writers if any(sub.window is not None for sub in w.partition.subpartitions)]
        self._outputs = [_OutputShares(writer) for writer in bounded]
        self._recent = 0.0
        self._last = 0

    def is_full(self) -> bool:
        """Return whether an output has no room, so that the task must stop."""
        return any(partition.is_full for partition in self._partitions)

    def is_flooded(self) -> bool:
        """Return whether an output has no room even for the records in front of an unaligned barrier."""
        return any(partition.is_flooded for partition in self._partitions)

    def rows(self, wanted: int) -> int:
        """Return how many of `wanted` records (>= 1) to take now, at least 1."""
        if not self._outputs:
            return wanted
        taken = self._recent = self._recent * _FORGET + self._last
        self._last = 0
        for output in self._outputs:
            room = output.rows(taken)
            if room is not None and room < wanted:
                wanted = max(1, int(room))
        return wanted

    def count_taken(self, rows: int) -> None:
        """Count records that were taken."""
        self._last = rows
