"""Rows in events of the binary log, found by columns.

An event has the rows of one statement in one table, one behind the other, and only their values say how long they are.
Many events are walked through together: the first rows of all, then the second rows, and so on. For each column the
places of its values are computed for all of these rows at once, so no Python object stands for a row or a value.

Source: MySQL Internals Manual, "Rows_event"; MariaDB Knowledge Base, "Rows_event_v1/v2".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rayflink.common.types import RowKind

from .mysql_session import MySqlError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

INSERT, UPDATE, DELETE = RowKind.INSERT.value, RowKind.UPDATE_AFTER.value, RowKind.DELETE.value
PADDING = 1024
"""Bytes behind the rows, so that the longest number or bitmap can be read everywhere."""


@dataclass(frozen=True)
class ValueLayout:
    """The number of bytes that the values of a column have in the log.

    Args:
        size: of a value, or of the length before it.
        has_length: the value has its length before it.
    """

    size: int
    has_length: bool = False


@dataclass(frozen=True, slots=True)
class RowsFrame:
    """The rows of one event.

    Args:
        kind: number of INSERT, DELETE, or UPDATE_AFTER for updates, whose rows are pairs.
        transaction: position of the transaction.
    """

    kind: int
    data: bytes
    transaction: int
    moment_ms: int


class BinlogRows:
    """The rows of some events of one table, in the order of the log.

    Args:
        frames: the events.
        layouts: of all columns of the table.

    Attributes:
        data: all rows, uint8[bytes].
        starts, stops: where the values are, int64[columns, rows].
        is_null: bool[columns, rows].
        kinds: of each change, int8[changes].
        old, new: numbers of the rows before and after each change, int64[changes]; -1: there is none.
        frame_of: the number of the event of each change, int64[changes].

    Raises:
        MySqlError: the rows do not end where the events do.
    """

    def __init__(self, frames: Sequence[RowsFrame], layouts: Sequence[ValueLayout]) -> None:
        import numpy

        self._layouts = layouts
        self.data: NDArray[np.uint8] = numpy.frombuffer(
            b"".join([*(frame.data for frame in frames), bytes(PADDING)]), numpy.uint8
        )
        sizes = numpy.fromiter((len(frame.data) for frame in frames), numpy.int64, len(frames))
        frame_kinds = numpy.fromiter((frame.kind for frame in frames), numpy.int8, len(frames))
        ends = numpy.cumsum(sizes)
        position = ends - sizes
        places: list[NDArray[np.int64]] = []
        owners: list[NDArray[np.int64]] = []
        [active] = numpy.nonzero(position < ends)
        while active.size:
            for image in range(2):
                chosen = active if image == 0 else active[frame_kinds[active] == UPDATE]
                if chosen.size:
                    walked, position[chosen] = self._walk(position[chosen])
                    places.append(walked)
                    owners.append(chosen)
            active = active[position[active] < ends[active]]
        if (position != ends).any():
            raise _other_form()
        self._order(places, owners, frame_kinds)

    def _walk(self, position: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Find the values of one row each, and return their places, int64[3, columns, rows], and where the rows end."""
        import numpy

        data, last, width = self.data, len(self.data) - PADDING, len(self._layouts)
        bounds = numpy.empty((3, width, position.size), numpy.int64)
        bitmap = position
        position = numpy.minimum(position + (width + 7) // 8, last)
        for place, layout in enumerate(self._layouts):
            is_null = data[bitmap + place // 8] >> (place % 8) & 1
            if layout.has_length:
                length = data[position].astype(numpy.int64)
                for byte in range(1, layout.size):
                    length |= data[position + byte].astype(numpy.int64) << 8 * byte
                start = position + layout.size * (1 - is_null.astype(numpy.int64))
                stop = start + numpy.where(is_null, 0, length)
            else:
                start, stop = position, position + layout.size * (1 - is_null.astype(numpy.int64))
            if stop.size and stop.max() > last:
                raise _other_form()
            bounds[0, place], bounds[1, place], bounds[2, place] = start, stop, is_null
            position = stop
        return bounds, position

    def _order(
        self, places: list[NDArray[np.int64]], owners: list[NDArray[np.int64]], frame_kinds: NDArray[np.int8]
    ) -> None:
        """Put the rows in the order of the log, and number them."""
        import numpy

        if not places:
            places, owners = [numpy.empty((3, len(self._layouts), 0), numpy.int64)], [numpy.empty(0, numpy.int64)]
        together, owner = numpy.concatenate(places, axis=2), numpy.concatenate(owners)
        order = numpy.argsort(owner, kind="stable")
        together, owner = together[:, :, order], owner[order]
        self.starts, self.stops, self.is_null = together[0], together[1], together[2].astype(bool)
        kinds = frame_kinds[owner]
        first = numpy.flatnonzero(numpy.r_[True, owner[1:] != owner[:-1]]) if owner.size else owner
        counts = numpy.diff(numpy.r_[first, owner.size])
        nth = numpy.arange(owner.size) - numpy.repeat(first, counts)
        [begins] = numpy.nonzero((kinds != UPDATE) | (nth % 2 == 0))
        self.kinds = kinds[begins]
        self.frame_of = owner[begins]
        self.old = numpy.where(self.kinds == INSERT, -1, begins)
        self.new = numpy.where(self.kinds == DELETE, -1, begins + (self.kinds == UPDATE))

    def __len__(self) -> int:
        return int(self.starts.shape[1])


def _other_form() -> MySqlError:
    problem = "an event of the log has rows of another form than the table"
    return MySqlError(problem, "report this with the statement that created the table")


__all__ = ["DELETE", "INSERT", "PADDING", "UPDATE", "BinlogRows", "RowsFrame", "ValueLayout"]
