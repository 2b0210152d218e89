"""The frames of rows as spans of rows that lie partition by partition, and values folded over spans."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ...plan.over import Frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

_MOST_PACKED = 1 << 62
Parts: TypeAlias = "tuple[NDArray[Any], ...]"
"""Columns of the values that are folded together, such as counts, means and squares."""


class PartitionRows(NamedTuple):
    """Rows in the order of their partitions and within these.

    Args:
        codes: the partition of each row, ascending: int64[n].
        begins, ends: the first row of its partition, and the one behind the last.
        peers_begin, peers_end: the first row with equal values of the order in its partition, and the one behind the
            last.
    """

    codes: Numbers
    begins: Numbers
    ends: Numbers
    peers_begin: Numbers
    peers_end: Numbers

    @classmethod
    def of(cls, codes: Numbers, is_peer_of_previous: NDArray[np.bool_]) -> PartitionRows:
        """Return rows of partitions.

        Args:
            codes: the partition of each row, ascending.
            is_peer_of_previous: whether it has the values of the order of the row before it: bool[n].
        """
        is_first = np.ones(len(codes), dtype=np.bool_)
        is_first[1:] = codes[1:] != codes[:-1]
        return cls(codes, *_runs(is_first), *_runs(is_first | ~is_peer_of_previous))


def _runs(is_first: NDArray[np.bool_]) -> tuple[Numbers, Numbers]:
    """Return the first row of each row's run, and the one behind its last."""
    starts = np.flatnonzero(is_first)
    sizes = np.diff(np.append(starts, len(is_first)))
    return np.repeat(starts, sizes), np.repeat(starts + sizes, sizes)


class Spans(NamedTuple):
    """A span of rows for each row: from `starts` on, up to and without `stops`; both int64[n]."""

    starts: Numbers
    stops: Numbers

    @property
    def sizes(self) -> Numbers:
        """Return the number of rows of each."""
        return self.stops - self.starts

    def take(self, rows: Numbers) -> Spans:
        """Return those of some rows."""
        return Spans(self.starts[rows], self.stops[rows])


def spans_of(frame: Frame, rows: PartitionRows, distances: NDArray[Any] | None, chosen: Numbers | None = None) -> Spans:
    """Return the frames of rows.

    Args:
        distances: of each row, ascending in a partition, by which bounds of RANGE are measured; None: it has none.
        chosen: the rows whose frames are wanted; None: all.
    """
    places = np.arange(len(rows.codes)) if chosen is None else chosen
    begins, ends = rows.begins[places], rows.ends[places]
    starts = begins if frame.first is None else _bound(frame, rows, distances, places, is_last=False)
    stops = ends if frame.last is None else _bound(frame, rows, distances, places, is_last=True)
    starts, stops = np.clip(starts, begins, ends), np.clip(stops, begins, ends)
    return Spans(starts, np.maximum(starts, stops))


def _bound(
    frame: Frame, rows: PartitionRows, distances: NDArray[Any] | None, places: Numbers, is_last: bool
) -> Numbers:
    """Return the first row of frames, or with `is_last` the one behind their last."""
    offset = frame.last if is_last else frame.first
    if frame.by_rows and offset is not None:
        result: Numbers = places + (int(offset) + is_last)
        return result
    if not offset:
        return (rows.peers_end if is_last else rows.peers_begin)[places]
    assert distances is not None and offset is not None, "RANGE with a length uses one value"
    length = offset if isinstance(offset, int) else float(offset)
    return _places_in_partitions(rows.codes, distances, places, length, is_last)


def _places_in_partitions(
    codes: Numbers, distances: NDArray[Any], places: Numbers, offset: float, is_right: bool
) -> Numbers:
    """Return the first row of the partition of each row that is as far behind it as `offset`, or farther; with
    `is_right` the first that is farther.
    """
    if distances.dtype.kind == "i":
        least, offset = int(distances.min()), int(offset)
        room = int(distances.max()) - least + abs(offset) + 1
        if (int(codes[-1]) + 1) * 2 * room < _MOST_PACKED:
            near = distances - least
            packed = codes * (2 * room) + near
            wanted = codes[places] * (2 * room) + np.clip(near[places] + offset, -1, room)
            # one that is before all rows of a partition is behind those of the partition before
            firsts: Numbers = np.searchsorted(packed, wanted, "right" if is_right else "left").astype(np.int64)
            return firsts
    count, wanted_codes, beyond = len(codes), codes[places], np.zeros(len(places), dtype=np.int8)
    wanted_values: NDArray[Any]
    if distances.dtype.kind == "i":
        wanted_values, beyond = _moved(distances[places], int(offset))
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            wanted_values = distances[places] + offset
    values = np.concatenate([distances, wanted_values])
    tags = np.concatenate([np.full(count, not is_right, dtype=np.int8), is_right + 2 * beyond])
    order = np.lexsort((tags, values, np.concatenate([codes, wanted_codes])))
    is_row = order < count
    result = np.empty(len(places), dtype=np.int64)
    result[order[~is_row] - count] = np.cumsum(is_row)[~is_row]
    return result


def _moved(numbers: Numbers, offset: int) -> tuple[Numbers, NDArray[np.int8]]:
    """Return whole numbers and an offset added up, and 1 where this is above all of 64 bits, -1 where it is below."""
    least, most = -(1 << 63), (1 << 63) - 1
    beyond = (numbers > max(most - offset, least - 1)).astype(np.int8) - (numbers < min(least - offset, most + 1))
    sums = (numbers.astype(np.uint64) + np.uint64(offset % (1 << 64))).astype(np.int64)
    return np.where(beyond > 0, most, np.where(beyond < 0, least, sums)), beyond


def fold_spans(
    spans: Spans, values: Parts, nothing: tuple[Any, ...], merge: Callable[[Parts, Parts], Parts]
) -> Parts:
    """Return the values of each span merged, in an order of merging that depends on the size of the span alone.

    A span is cut into blocks whose sizes are powers of two, the smallest first. Blocks of all rows double in each step,
    so that the time is that of rows times the logarithm of the longest span.

    >>> spans = Spans(np.array([0, 1]), np.array([3, 1]))
    >>> [best] = fold_spans(spans, (np.array([4, 7, 5]),), (0,), lambda a, b: (np.maximum(a[0], b[0]),))
    >>> best.tolist()
    [7, 0]

    Args:
        values: of each row.
        nothing: of a span without rows.
        merge: merges the values of rows with those of the rows behind them.
    """
    sizes, places = spans.sizes, spans.starts.copy()
    results = tuple(np.full(len(places), value, part.dtype) for value, part in zip(nothing, values, strict=True))
    most, step = int(sizes.max()) if len(sizes) else 0, 1
    while step <= most:
        rows = np.flatnonzero(sizes & step)
        if len(rows):
            blocks = tuple(part[places[rows]] for part in values)
            merged = merge(tuple(part[rows] for part in results), blocks)
            for part, changed in zip(results, merged, strict=True):
                part[rows] = changed
            places[rows] += step
        if 2 * step <= most:
            values = merge(tuple(part[:-step] for part in values), tuple(part[step:] for part in values))
        step *= 2
    return results


__all__ = ["PartitionRows", "Spans", "fold_spans", "spans_of"]
