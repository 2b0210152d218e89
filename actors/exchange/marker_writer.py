"""Sends latency markers from one task to the next."""

from __future__ import annotations

from rayflink.common.records.batches import Element, LatencyMarker

from .writer import RecordWriter


class MarkerWriter:
    """A record writer that sends each latency marker, behind the records before it, on one channel instead of on all.

    Sent on all it would multiply with every exchange. The channels take turns. A blocking partition gets none: it
    would tell how long a file waited for its reader.

    Args:
        writer: takes everything else.
        first: the channel of the first marker; producers that begin differently spread theirs.
    """

    def __init__(self, writer: RecordWriter, first: int = 0) -> None:
        self._writer = writer
        self._turn = first

    def write(self, element: Element) -> None:
        """Write an element."""
        if not isinstance(element, LatencyMarker):
            self._writer.write(element)
            return
        partition = self._writer.partition
        if not partition.blocking:
            self._writer.flush()
            channels = partition.subpartitions
            channels[self._turn % len(channels)].add(element)
            self._turn += 1
