"""Results of rows that come in the order of time, from what is stored of the rows before them.

Each class computes some of the functions. Its state is a row of columns for each key, nulls where none is stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...plan.over import Frame
from ..aggregates.aggregates import Aggregate
from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import to_arrow, to_numpy
from ..groups.group_accumulators import GroupAccumulators
from ..groups.running_sums import numbers_or_zero
from ..groups.segments import Segments
from ..keyed_state.frame_memory import Columns
from ..keyed_state.key_rows import take_rows
from .frame_aggregates import FrameAggregates
from .frame_spans import PartitionRows, Spans, spans_of
from .over_spec import RowFunction

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .frame_spans import Numbers


class OrderedRows(NamedTuple):
    """Rows in the order of their keys, and of time within these.

    Args:
        batch: the columns.
        times: int64[n].
        segments: the rows of each key.
        horizon: rows of this time and later ones may be in the frame of a row that is still to come.
    """

    batch: pa.RecordBatch
    times: Numbers
    segments: Segments
    horizon: int

    @property
    def is_peer_of_previous(self) -> NDArray[np.bool_]:
        """Return which rows have the time of the row before them: bool[n]."""
        is_peer = np.zeros(len(self.times), dtype=np.bool_)
        is_peer[1:] = self.times[1:] == self.times[:-1]
        return is_peer

    @property
    def partitions(self) -> PartitionRows:
        """Return where partitions and rows of equal times begin and end."""
        return PartitionRows.of(self.segments.codes, self.is_peer_of_previous)


class RunningResults(ABC):
    """Some of the functions of an OVER step over a stream."""

    types: Sequence[pa.DataType]
    """Types of the columns of the state."""

    @abstractmethod
    def run(self, base: Columns, rows: OrderedRows) -> tuple[Columns, Columns]:
        """Return the results of each row, and the state behind each segment.

        Args:
            base: the state before each segment.
        """

    @abstractmethod
    def describe(self) -> str:
        """Describe the state without column numbers, which differ between plans."""

    def stored_rows(self, state: Columns) -> int:
        """Return the number of rows that the state of some keys contains."""
        return 0


class RunningAggregates(RunningResults):
    """Aggregates of all rows of a key up to each.

    Args:
        aggregates: what is computed.
        kinds: types of the input's columns; behind them come the weights of DISTINCT values.
        with_peers: rows of equal time have the result behind the last of them.
    """

    def __init__(self, aggregates: Sequence[Aggregate], kinds: Sequence[pa.DataType], with_peers: bool) -> None:
        self._accumulators, self._with_peers = GroupAccumulators(aggregates, kinds, False), with_peers
        self.types = self._accumulators.types

    def describe(self) -> str:
        return f"{self._accumulators.describe()} of all rows before"

    def run(self, base: Columns, rows: OrderedRows) -> tuple[Columns, Columns]:
        weights = np.ones(len(rows.times), dtype=np.int64)
        results, state = self._accumulators.run(base, rows.batch, weights, rows.segments, False)
        if self._with_peers:
            results = take_rows(results, rows.partitions.peers_end - 1)
        return results, state


class RunningRanks(RunningResults):
    """Numbers of rows: ROW_NUMBER, RANK and DENSE_RANK.

    Args:
        functions: which of them.
        with_peers: rows of equal time have equal ranks; else each has its own.
    """

    types = (pa.int64(), pa.int64())

    def __init__(self, functions: Sequence[RowFunction], with_peers: bool) -> None:
        self._names, self._with_peers = [function.name for function in functions], with_peers

    def describe(self) -> str:
        return "numbers of rows and of times"

    def run(self, base: Columns, rows: OrderedRows) -> tuple[Columns, Columns]:
        segments = rows.segments
        numbers = segments.sums(np.ones(len(rows.times), dtype=np.int64), numbers_or_zero(base[0]))
        is_new = ~rows.is_peer_of_previous if self._with_peers else np.ones(len(numbers), dtype=np.bool_)
        is_new[segments.starts] = True
        dense = segments.sums(is_new.astype(np.int64), numbers_or_zero(base[1]))
        ranks = numbers[rows.partitions.peers_begin] if self._with_peers else numbers
        by_name = {"ROW_NUMBER": numbers, "RANK": ranks, "DENSE_RANK": dense}
        state = [to_arrow(column[segments.lasts], pa.int64()) for column in (numbers, dense)]
        return [to_arrow(by_name[name], pa.int64()) for name in self._names], state


class RowsBefore(RunningResults):
    """Aggregates of frames that begin at a distance before each row, and LAG: the last rows of each key are stored.

    Args:
        functions: aggregates of the frame, LAG, and NTH_VALUE of the frame.
        kinds: types of the input's columns.
        frame: of the functions that depend on one; None: none does.
    """

    def __init__(
        self, functions: Sequence[Aggregate | RowFunction], kinds: Sequence[pa.DataType], frame: Frame | None
    ) -> None:  # fmt: skip
        self._frame = frame
        self._columns = sorted({column for function in functions for column in _columns_of(function)})
        places = {column: place for place, column in enumerate(self._columns)}
        self._functions = [_moved(function, places) for function in functions]
        aggregates = [function for function in self._functions if isinstance(function, Aggregate)]
        self._kinds = [kinds[column] for column in self._columns] or [pa.bool_()]
        """Types of the columns that are stored, a column of nulls where none is read."""
        self._aggregates = FrameAggregates(aggregates, self._kinds)
        offsets = [function.number for function in functions if isinstance(function, RowFunction)]
        self._has_times = frame is not None and not frame.by_rows
        """Whether rows are stored by their times, else the last ones by number."""
        by_frame = [-int(frame.first)] if frame is not None and frame.by_rows and frame.first is not None else []
        self._most = max([*offsets, *by_frame], default=0)
        stored = [*self._kinds, *([pa.int64()] if self._has_times else [])]
        self.types = [pa.large_list(kind) for kind in stored]

    def describe(self) -> str:
        return f"the rows before, {self._frame}" if self._has_times else f"the last {self._most} rows"

    def stored_rows(self, state: Columns) -> int:
        return len(state[0].flatten())

    def run(self, base: Columns, rows: OrderedRows) -> tuple[Columns, Columns]:
        segments = rows.segments
        layout = _Layout.of(base[0], segments)
        fresh = [rows.batch.column(column) for column in self._columns] or [pa.nulls(segments.rows, pa.bool_())]
        if self._has_times:
            fresh.append(pa.array(rows.times))
        columns = layout.joined(base, fresh)
        codes = np.repeat(np.arange(len(segments)), layout.sizes)
        times = to_numpy(columns[-1]) if self._has_times else None
        is_peer = np.zeros(len(codes), dtype=np.bool_)
        if times is not None:
            is_peer[1:] = times[1:] == times[:-1]
        partitions = PartitionRows.of(codes, is_peer)
        spans = None
        if self._frame is not None:
            spans = spans_of(self._frame, partitions, times, layout.places)
        results = self._results(columns, partitions, spans, layout.places, rows)
        return results, layout.last_rows(columns, self._first_stored(layout, times, codes, rows.horizon))

    def _first_stored(
        self, layout: _Layout, times: Numbers | None, codes: Numbers, horizon: int
    ) -> Numbers:  # fmt: skip
        """Return the first row of each key that a later frame may reach."""
        if times is None:
            last: Numbers = np.maximum(layout.starts, layout.starts + layout.sizes - self._most)
            return last
        reached: Numbers = layout.starts + np.bincount(codes[times < horizon], minlength=len(layout.starts))
        return reached

    def _results(
        self, columns: Columns, partitions: PartitionRows, spans: Spans | None, places: Numbers, rows: OrderedRows
    ) -> Columns:  # fmt: skip
        aggregates = iter(())
        if spans is not None:
            aggregates = iter(self._aggregates.results(columns[: len(self._kinds)], partitions.codes, spans))
        results: Columns = []
        for function in self._functions:
            if isinstance(function, Aggregate):
                results.append(next(aggregates))
                continue
            assert function.argument is not None, f"{function.name} reads a column"
            wanted = places - function.number
            is_there = wanted >= partitions.begins[places]
            if function.name == "NTH_VALUE":
                assert spans is not None, "NTH_VALUE is of a frame"
                wanted = spans.starts + (function.number - 1)
                is_there = wanted < spans.stops
            values = columns[function.argument].take(pa.array(np.where(is_there, wanted, 0), mask=~is_there))
            if function.default is not None:
                values = pc.if_else(pa.array(is_there), values, rows.batch.column(function.default))
            results.append(values)
        return results


def _columns_of(function: Aggregate | RowFunction) -> list[int]:
    """Return the columns that are read of rows before."""
    filter_ = function.filter if isinstance(function, Aggregate) else None
    return [column for column in (function.argument, filter_) if column is not None]


def _moved(function: Aggregate | RowFunction, places: dict[int, int]) -> Aggregate | RowFunction:
    """Return the function over columns that stand elsewhere."""
    argument = None if function.argument is None else places[function.argument]
    if isinstance(function, Aggregate):
        filter_ = None if function.filter is None else places[function.filter]
        return replace(function, argument=argument, filter=filter_)
    return replace(function, argument=argument)


class _Layout(NamedTuple):
    """The rows of each key that are stored, and behind them those that come.

    Args:
        starts: the first row of each key.
        sizes: the number of its rows.
        stored: the number of those that were stored.
        places: of the rows that come.
    """

    starts: Numbers
    sizes: Numbers
    stored: Numbers
    places: Numbers

    @classmethod
    def of(cls, lists: pa.Array, segments: Segments) -> _Layout:
        """Return the layout of rows.

        Args:
            lists: the stored rows of each key, null where none are.
        """
        stored = to_numpy(pc.fill_null(pc.list_value_length(lists), 0)).astype(np.int64)
        sizes = stored + (segments.stops - segments.starts)
        starts = np.cumsum(sizes) - sizes
        places = (starts + stored - segments.starts)[segments.codes] + np.arange(segments.rows)
        return cls(starts, sizes, stored, places)

    def joined(self, base: Columns, fresh: Columns) -> Columns:
        """Return the columns of all rows in their order."""
        count = int(self.stored.sum())
        if not count:
            return fresh
        order = np.empty(int(self.sizes.sum()), dtype=np.int64)
        order[self.places] = count + np.arange(len(self.places))
        begins = np.cumsum(self.stored) - self.stored
        order[np.arange(count) + np.repeat(self.starts - begins, self.stored)] = np.arange(count)
        stored = [lists.flatten() for lists in base]
        return take_rows(concatenated([stored, fresh]), order)

    def last_rows(self, columns: Columns, firsts: Numbers) -> Columns:
        """Return lists of the rows of each key from one on."""
        sizes = self.starts + self.sizes - firsts
        offsets = np.append(0, np.cumsum(sizes))
        places = np.arange(int(offsets[-1])) + np.repeat(firsts - offsets[:-1], sizes)
        lists = pa.array(offsets, pa.int64())
        return [pa.LargeListArray.from_arrays(lists, column) for column in take_rows(columns, places)]


__all__ = ["OrderedRows", "RowsBefore", "RunningAggregates", "RunningRanks", "RunningResults"]
