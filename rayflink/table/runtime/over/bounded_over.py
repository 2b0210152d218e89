"""Functions OVER the rows around each row of whole tables, which are sorted first.

A partition is worked at once, and many small ones together; the largest one has to fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ...plan.over import Frame, Length
from ..aggregates.aggregates import Aggregate
from ..aggregates.own_aggregates import OwnAggregates
from ..aggregates.reductions import to_arrow, to_numpy
from ..keyed_state.frame_memory import FrameMemory
from ..keyed_state.frame_snapshots import one_batch
from ..ranks.bounded_operator import BoundedOperator
from ..ranks.ordering import OrderKey, order_numbers
from ..ranks.sorted_rows import SortedRows
from .frame_aggregates import FrameAggregates
from .frame_spans import PartitionRows, Spans, spans_of
from .over_spec import OverSpec, RowFunction

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .frame_spans import Numbers

_DAY_MS = 86_400_000
_UNITS_A_MS = {"s": Decimal("0.001"), "ms": Decimal(1), "us": Decimal(1000), "ns": Decimal(1_000_000)}
_SHORT_DIGITS = 18
"""Decimals of this many digits fit into 64 bits."""


class OverRows:
    """Adds to each row of a table the results of functions over its frame; a `BoundedRows`.

    Args:
        spec: the functions.
        schema: of the result: the columns that come in, then the results.
    """

    def __init__(self, spec: OverSpec, schema: pa.Schema) -> None:
        self._spec, self._schema = spec, schema
        self._partition: list[OrderKey] = [(key, False, True) for key in spec.partition]
        self._sorted = SortedRows([*self._partition, *spec.order])
        self._aggregates = FrameAggregates(spec.aggregates, spec.columns)

    def open(self, memory: FrameMemory) -> None:
        self._sorted.open(memory)

    def add(self, rows: pa.RecordBatch) -> None:
        self._sorted.add(rows)

    def results(self) -> Iterator[pa.RecordBatch]:
        pending: list[pa.RecordBatch] = []
        """Rows of the partition that has not ended yet."""
        for block in self._sorted:
            starts = self._starts(block, pending)
            if not len(starts):
                pending.append(block)
                continue
            if starts[-1]:
                pending.append(block.slice(0, int(starts[-1])))
            if pending:
                yield self._computed(one_batch(pending))
            pending = [block.slice(int(starts[-1]))]
        if pending:
            yield self._computed(one_batch(pending))

    def _starts(self, block: pa.RecordBatch, before: Sequence[pa.RecordBatch]) -> Numbers:
        """Return the rows of a block with which a partition begins; the first one may go on with that before it."""
        rows = block
        if before:
            last = before[-1]
            rows = one_batch([last.slice(last.num_rows - 1), block])
        is_new = _is_new(rows, self._partition)
        is_new = is_new[1:] if before else np.append(True, is_new[1:])
        return np.flatnonzero(is_new)

    def _computed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return whole partitions with their results."""
        spec = self._spec
        codes = np.cumsum(_is_new(rows, self._partition)) - 1
        is_peer = ~_is_new(rows, spec.order)
        partitions = PartitionRows.of(codes, is_peer)
        spans = self._spans(rows, partitions)
        aggregates = iter(self._aggregates.results(rows.columns, codes, spans))
        places = Places(rows, partitions, spans)
        results = [next(aggregates) if isinstance(function, Aggregate) else places.result(function)
                   for function in spec.functions]  # fmt: skip
        columns = [column if column.type == field.type else column.cast(field.type)
                   for column, field in zip([*rows.columns, *results], self._schema, strict=True)]  # fmt: skip
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _spans(self, rows: pa.RecordBatch, partitions: PartitionRows) -> Spans:
        frame = self._spec.frame
        if frame.by_rows or not (frame.first or frame.last):
            return spans_of(frame, partitions, None)
        [(column, down, _)] = self._spec.order
        distances, classes, scaled = distances_of(rows.column(column), down, frame)
        is_new = np.append(True, (np.diff(partitions.codes) != 0) | (np.diff(classes) != 0))
        apart = partitions._replace(codes=np.cumsum(is_new) - 1)  # a value is in no distance from NULL and NaN
        starts, stops = spans_of(scaled, apart, distances)
        has_no_distance = classes != 0  # bounds of NULL and NaN are the first and the last of these
        if frame.first is not None:
            starts = np.where(has_no_distance, partitions.peers_begin, starts)
        if frame.last is not None:
            stops = np.where(has_no_distance, partitions.peers_end, stops)
        return Spans(starts, stops)


def _is_new(rows: pa.RecordBatch, keys: Sequence[OrderKey]) -> NDArray[np.bool_]:
    """Return which rows differ from the one before them in some columns, as the sort compares these: bool[n]."""
    is_new = np.zeros(rows.num_rows, dtype=np.bool_)
    for numbers in order_numbers(rows.columns, keys):
        is_new[1:] |= np.diff(numbers) != 0
    return is_new


def distances_of(values: pa.Array, down: bool, frame: Frame) -> tuple[NDArray[Any], Numbers, Frame]:
    """Return values as numbers that ascend with them, which of them are NULL or NaN, and the frame in their unit.

    Returns: numbers, float64[n] or int64[n]; 0, 1 for NULL and 2 for NaN, int64[n]; the frame.
    """
    classes = np.where(values.is_valid().to_numpy(zero_copy_only=False), 0, 1)
    kind, unit = values.type, Decimal(1)
    if types.is_floating(kind) or (types.is_decimal(kind) and kind.precision > _SHORT_DIGITS):
        numbers: NDArray[Any] = to_numpy(values.cast(pa.float64())).astype(np.float64)
        classes = np.where((classes == 0) & np.isnan(numbers), 2, classes)
    elif types.is_decimal(kind):
        words = np.frombuffer(values.buffers()[1], dtype="<i8")
        numbers = words[2 * values.offset : 2 * (values.offset + len(values)) : 2].astype(np.int64)
        unit = Decimal(10) ** kind.scale
    else:
        numbers = to_numpy(values).astype(np.int64)
        if types.is_date32(kind):
            numbers = numbers * _DAY_MS
        elif types.is_timestamp(kind) or types.is_time(kind):
            unit = _UNITS_A_MS[kind.unit]
    bounds = [None if bound is None else _scaled(bound, unit) for bound in (frame.first, frame.last)]
    if any(isinstance(bound, float) for bound in bounds):
        numbers = numbers.astype(np.float64)
    if down:
        numbers = ~numbers if numbers.dtype.kind == "i" else -numbers  # ~n is -n - 1, which all of 64 bits have
    numbers = np.where(classes == 0, numbers, numbers.dtype.type(0))
    return numbers, classes, replace(frame, first=bounds[0], last=bounds[1])


def _scaled(bound: Length, unit: Decimal) -> int | float:
    """Return a bound in a unit: a whole number where it is one."""
    value = Decimal(str(bound)) * unit
    return int(value) if value == int(value) else float(value)


class Places:
    """The places of rows in their partitions, and the rows at other places.

    Args:
        rows: in the order of their partitions.
        partitions: where partitions and rows of equal order begin and end.
        spans: the frame of each row.
    """

    def __init__(self, rows: pa.RecordBatch, partitions: PartitionRows, spans: Spans) -> None:
        self._rows, self._partitions, self._spans = rows, partitions, spans
        self._numbers = np.arange(rows.num_rows) - partitions.begins
        self._sizes = partitions.ends - partitions.begins

    def result(self, function: RowFunction) -> pa.Array:
        """Return the results of a function."""
        if function.argument is not None:
            return self._of_other_rows(function)
        return to_arrow(np.ascontiguousarray(self._place(function)), function.result)

    def _place(self, function: RowFunction) -> NDArray[Any]:
        partitions, sizes = self._partitions, self._sizes
        ranks = partitions.peers_begin - partitions.begins
        results: NDArray[Any]
        match function.name:
            case "ROW_NUMBER":
                results = self._numbers + 1
            case "RANK":
                results = ranks + 1
            case "DENSE_RANK":
                runs = np.cumsum(partitions.peers_begin == np.arange(len(sizes)))
                results = runs - runs[partitions.begins] + 1
            case "PERCENT_RANK":
                results = np.divide(ranks, sizes - 1, out=np.zeros(len(sizes)), where=sizes > 1)
            case "CUME_DIST":
                results = (partitions.peers_end - partitions.begins) / sizes
            case name:
                assert name == "NTILE", f"{name} is computed elsewhere"
                results = self._parts(function.number).astype(np.int32)
        return results

    def _parts(self, count: int) -> Numbers:
        """Return numbers of parts that are about equally large, the first ones larger by a row."""
        least, more = self._sizes // count, self._sizes % count
        in_larger = more * (least + 1)
        behind = more + (self._numbers - in_larger) // np.maximum(least, 1)
        parts: Numbers = np.where(self._numbers < in_larger, self._numbers // (least + 1), behind) + 1
        return parts

    def _of_other_rows(self, function: RowFunction) -> pa.Array:
        rows = np.arange(self._rows.num_rows)
        if function.name == "NTH_VALUE":
            wanted, first, stop = self._spans.starts + (function.number - 1), self._spans.starts, self._spans.stops
        else:
            wanted = rows + (function.number if function.name == "LEAD" else -function.number)
            first, stop = self._partitions.begins, self._partitions.ends
        is_there = (wanted >= first) & (wanted < stop)
        assert function.argument is not None, f"{function.name} reads a column"
        column = self._rows.column(function.argument)
        values = column.take(pa.array(np.where(is_there, wanted, 0), mask=~is_there))
        if function.default is None:
            return values
        return pc.if_else(pa.array(is_there), values, self._rows.column(function.default))


def bounded_over(spec: OverSpec, schema: pa.Schema) -> BoundedOperator:
    """Return an operator that adds to each row of a table the results over its frame, partitioned by the key.

    Args:
        spec: the functions.
        schema: of the result: the columns that come in, then the results.
    """
    return BoundedOperator(OverRows(spec, schema), OwnAggregates(spec.functions))


__all__ = ["OverRows", "Places", "bounded_over", "distances_of"]
