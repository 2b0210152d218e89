"""Rows with the bounds of their windows: TUMBLE, HOP and CUMULATE as tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rayflink.common.records.batches import ArrowBatch, Batch, Element
from rayflink.operators.base import Operator

from ...plan.logical import Windowing, WindowKind
from ...plan.typed import Session
from .input_rows import NoTimeError
from .zone_shift import instant_of, local_times

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from numpy.typing import NDArray


class WindowTableOperator(Operator):
    """Adds window_start, window_end and window_time; a row stands there once for each of its windows.

    Args:
        windowing: not of sessions.
        schema: of the result, whose last three columns these are.
        session: its zone says when days begin, where the time is an instant.
    """

    def __init__(self, windowing: Windowing, schema: pyarrow.Schema, session: Session) -> None:
        self._windowing, self._schema, self._session = windowing, schema, session

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        if len(batch):
            yield ArrowBatch(self._add_windows(batch.data))

    def _add_windows(self, data: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        import numpy
        import pyarrow

        windowing = self._windowing
        rows, starts, ends = windows_of(self._times(data), windowing)
        if len(rows) != data.num_rows or windowing.kind is not WindowKind.TUMBLE:
            data = data.take(pyarrow.array(rows))
        last = numpy.asarray(ends) - 1
        if windowing.by_local_time:
            distinct, index = numpy.unique(last, return_inverse=True)
            instants = [instant_of(int(local), self._session.zone) for local in distinct]  # a few windows
            last = numpy.array(instants, numpy.int64)[index]
        times = [pyarrow.array(part, pyarrow.int64()) for part in (starts, ends, last)]
        kinds = [pyarrow.timestamp("ms", field.type.tz) for field in list(self._schema)[-3:]]
        columns = [column.cast(kind) for column, kind in zip(times, kinds, strict=True)]
        return pyarrow.RecordBatch.from_arrays([*data.columns, *columns], schema=self._schema)

    def _times(self, data: pyarrow.RecordBatch) -> NDArray[np.int64]:
        import numpy
        import pyarrow

        if not self._windowing.is_event_time:
            now = numpy.full(data.num_rows, int(self.ctx.clock.now_ms()), numpy.int64)
            stamps = pyarrow.array(now).cast(pyarrow.timestamp("ms"))
        else:
            column = data.column(self._windowing.time)
            if column.null_count:
                raise NoTimeError(data.schema.names[self._windowing.time])
            stamps = column.cast(pyarrow.timestamp("ms", column.type.tz), safe=False).cast(pyarrow.timestamp("ms"))
        if self._windowing.by_local_time:
            stamps = local_times(stamps, self._session.zone).cast(pyarrow.timestamp("ms"))
        times: NDArray[np.int64] = stamps.cast(pyarrow.int64()).to_numpy(zero_copy_only=False)
        return times


def windows_of(times: NDArray[np.int64], windowing: Windowing) -> tuple[Any, Any, Any]:
    """Return each row's windows: numbers of the rows, and the bounds in epoch milliseconds.

    >>> import numpy
    >>> hop = Windowing(WindowKind.HOP, 10, 5)
    >>> [one.tolist() for one in windows_of(numpy.array([12]), hop)]
    [[0, 0], [5, 10], [15, 20]]
    """
    import numpy

    numbers = numpy.arange(len(times))
    step = windowing.slide_ms or windowing.size_ms
    newest = times - (times - windowing.offset_ms) % step
    if windowing.kind is WindowKind.TUMBLE:
        return numbers, newest, newest + windowing.size_ms
    each = windowing.size_ms // step
    if windowing.kind is WindowKind.HOP:
        starts = (newest[:, None] - step * numpy.arange(each - 1, -1, -1)[None, :]).ravel()
        return numpy.repeat(numbers, each), starts, starts + windowing.size_ms
    first = times - (times - windowing.offset_ms) % windowing.size_ms
    ends = first[:, None] + step * numpy.arange(1, each + 1)[None, :]
    is_inside = ends > times[:, None]
    rows = numpy.broadcast_to(numbers[:, None], ends.shape)[is_inside]
    return rows, first[rows], ends[is_inside]
