"""Rows in the messages of pgoutput: insertions, updates and deletions of one relation, parsed by columns.

A message of a change has the row after it, the row or the key before it, or both. Many messages are parsed together:
for each column of the relation the places of its values are computed for all rows at once, and a column is taken out of
the joined messages in one go. So no Python object stands for a change or a value.

Source: PostgreSQL documentation, "Logical Replication Message Formats".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rayflink.common.types import RowKind

from .pgoutput import ProtocolError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from numpy.typing import NDArray

_INSERT, _UPDATE, _DELETE = b"IUD"
_NEW, _OLD, _KEY = b"NOK"
_TEXT, _NULL, _UNCHANGED = b"tnu"
_KIND, _MARKER, _FIRST = 25, 30, 31
"""Where in a frame the kind of the message, the marker of its first row, and that row are."""
_LEAST = 33
"""The bytes of a frame that has a row without columns."""


class LoggedRows:
    """The rows of changes of one relation, in the order of the log.

    Rows are numbered over all changes; the row before a change stands directly before the row after it.

    Args:
        frames: of messages I, U and D of the relation.
        columns: how many the relation has.

    Attributes:
        kinds: of each change, int8[changes]: numbers of INSERT, DELETE, and UPDATE_AFTER for an update.
        old: the number of the row before each change, int64[changes]; -1: the log lacks it.
        old_is_key: bool[changes]: the row before has values of the replica identity only, the others are null.
        new: the number of the row after each change, int64[changes]; -1: the row is deleted.

    Raises:
        ProtocolError: a frame is no such message, ends early, or has another number of columns.
    """

    def __init__(self, frames: Sequence[bytes], columns: int) -> None:
        import numpy

        self._frames, self._columns = frames, columns
        self._data = numpy.frombuffer(b"".join([*frames, bytes(8)]), numpy.uint8)
        sizes = numpy.fromiter(map(len, frames), numpy.int64, len(frames))
        ends = numpy.cumsum(sizes)
        begins = ends - sizes
        self._refuse(sizes < _LEAST, "ends early")
        messages, markers = self._data[begins + _KIND], self._data[begins + _MARKER]
        is_update, is_delete, is_new = messages == _UPDATE, messages == _DELETE, markers == _NEW
        self._refuse(~(is_update | is_delete | (messages == _INSERT)), "is no change of a row")
        self._refuse(~(is_new | (markers == _OLD) | (markers == _KEY)), "has a row of an unknown kind")
        self._refuse(is_new & is_delete, "is a deletion without the row before")
        self._refuse(~is_new & (messages == _INSERT), "is an insertion without a new row")
        has_two = is_update & ~is_new
        first = numpy.arange(len(frames)) + numpy.cumsum(has_two) - has_two
        rows = len(frames) + int(has_two.sum())
        self._starts = numpy.zeros((columns, rows), numpy.int32)
        self._stops = numpy.zeros((columns, rows), numpy.int32)
        self._marks = numpy.zeros((columns, rows), numpy.uint8)
        position = self._parse(begins + _FIRST, numpy.arange(len(frames)), first)
        [twice] = numpy.nonzero(has_two)
        second = numpy.minimum(position[twice], len(self._data) - 3)
        self._refuse_some(twice, self._data[second] != _NEW, "is an update without a new row")
        position[twice] = self._parse(second + 1, twice, first[twice] + 1)
        self._refuse(position != ends, "does not end behind its last value")
        self.kinds = numpy.zeros(len(frames), numpy.int8)
        self.kinds[is_update], self.kinds[is_delete] = RowKind.UPDATE_AFTER.value, RowKind.DELETE.value
        self.old = numpy.where(is_new, -1, first)
        self.new = numpy.where(is_delete, -1, first + has_two)
        self.old_is_key = markers == _KEY
        self._is_completed = numpy.zeros(rows, bool)
        self._is_completed[self.new[is_update & (markers == _OLD)]] = True

    def lacks_values(self, place: int) -> bool:
        """Return whether a row has no value of a column: it is stored out of line (TOAST) and was not changed.

        Where the row before has the value, that is used, and nothing is lacking.

        Args:
            place: number of the column in the relation.
        """
        return bool(((self._marks[place] == _UNCHANGED) & ~self._is_completed).any())

    def column(self, place: int, rows: NDArray[np.int64]) -> pyarrow.Array:
        """Return the values of a column in some rows, in the notation of SQL, as binary[n]; NULL is null.

        Args:
            place: number of the column in the relation.
            rows: numbers of the rows.
        """
        import numpy
        import pyarrow

        marks = self._marks[place]
        source = rows - (marks == _UNCHANGED)[rows]  # the row before is the same change's
        edges = numpy.empty(2 * marks.size, numpy.int32)
        edges[0::2], edges[1::2] = self._starts[place], self._stops[place]
        buffers = [None, pyarrow.py_buffer(edges), pyarrow.py_buffer(self._data)]
        values_and_gaps = pyarrow.Array.from_buffers(pyarrow.binary(), max(2 * marks.size - 1, 0), buffers)
        return values_and_gaps.take(pyarrow.array(2 * source, mask=marks[source] != _TEXT))

    def _parse(
        self, position: NDArray[np.int64], frames: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Find the values of a row of each of some frames, and return the positions behind them.

        Args:
            position: of the first byte of each row.
            frames: numbers of the frames, for errors.
            rows: numbers of the rows.
        """
        import numpy

        data, last = self._data, len(self._data) - 5
        numbers = numpy.ndarray((data.size - 3,), ">i4", data, strides=(1,))
        counts = data[position].astype(numpy.int64) << 8 | data[position + 1]
        self._refuse_some(frames, counts != self._columns, f"has a row of other than {self._columns} columns")
        position = position + 2
        for place in range(self._columns):
            position = numpy.minimum(position, last)
            marks = data[position]
            is_text = marks == _TEXT
            known = is_text | (marks == _NULL) | (marks == _UNCHANGED)
            self._refuse_some(frames, ~known, "has a value of an unknown kind, or ends early")
            sizes = numpy.where(is_text, numbers[position + 1].astype(numpy.int64), 0)
            self._refuse_some(frames, sizes < 0, "has a value of a negative length")
            position = position + 1 + 4 * is_text
            stops = numpy.minimum(position + sizes, len(data))
            self._starts[place, rows], self._stops[place, rows], self._marks[place, rows] = position, stops, marks
            position = stops
        return position

    def _refuse(self, bad: NDArray[np.bool_], problem: str) -> None:
        import numpy

        self._refuse_some(numpy.arange(len(self._frames)), bad, problem)

    def _refuse_some(self, frames: NDArray[np.int64], bad: NDArray[np.bool_], problem: str) -> None:
        """Raise an error that shows the first bad one of some frames."""
        if bad.any():
            frame = self._frames[int(frames[bad.argmax()])]
            raise ProtocolError(f"a change of a row {problem}: {frame[:80].hex()}")


__all__ = ["LoggedRows"]
