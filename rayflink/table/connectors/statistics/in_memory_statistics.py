"""Statistics of columns in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .table_statistics import ColumnStatistics, TableStatistics, as_number

if TYPE_CHECKING:
    import pyarrow

MOST_ROWS = 1 << 16
"""Rows by which columns are judged; where there are more, this many that are drawn."""


def statistics_of(table: pyarrow.Table) -> TableStatistics:
    """Return the number of rows, and what some of them tell of the columns."""
    import numpy
    import pyarrow

    rows, seen = table.num_rows, table
    if rows > MOST_ROWS:  # drawn by the same seed each time: each n-th row could be one of a kind
        sample = numpy.random.default_rng(0).integers(0, rows, MOST_ROWS)
        seen = table.take(pyarrow.array(numpy.unique(sample)))
    columns = {name: _column(seen.column(index), rows) for index, name in enumerate(table.column_names)}
    return TableStatistics(float(rows), "counted", columns)


def _column(values: pyarrow.ChunkedArray, rows: int) -> ColumnStatistics:
    from pyarrow import compute, types

    seen, kind = len(values), values.type
    if not seen:
        return ColumnStatistics(nulls=0.0, distinct=0.0)
    nulls, width = values.null_count / seen, values.nbytes / seen
    is_number = (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)) and kind.bit_width != 16
    is_counted = is_number or types.is_temporal(kind) or types.is_boolean(kind) or (
        types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind)
    )  # fmt: skip
    if not is_counted or types.is_interval(kind):  # Arrow has no kernel for others
        return ColumnStatistics(nulls=nulls, width=width)
    distinct = float(compute.count_distinct(values).as_py())
    if rows > seen and distinct > seen / 2:  # more rows have more values
        distinct *= rows / seen
    low, high = _range(values) if is_number or types.is_date(kind) or types.is_timestamp(kind) else (None, None)
    return ColumnStatistics(low, high, nulls, distinct, width)


def _range(values: pyarrow.ChunkedArray) -> tuple[float | None, float | None]:
    """Return the least and the greatest value; of days and times as milliseconds, as far as they may be from 1970."""
    import pyarrow
    from pyarrow import compute, types

    scale = 1.0
    if types.is_date32(values.type):
        values, scale = values.cast(pyarrow.int32()), 86_400_000.0
    elif types.is_temporal(values.type):
        scale = 1.0 if types.is_date64(values.type) else _MILLISECONDS[values.type.unit]
        values = values.cast(pyarrow.int64())
    bounds = [as_number(bound.as_py()) for bound in compute.min_max(values).values()]
    low, high = (None if bound is None else bound * scale for bound in bounds)
    return low, high


_MILLISECONDS = {"s": 1000.0, "ms": 1.0, "us": 1e-3, "ns": 1e-6}

__all__ = ["MOST_ROWS", "statistics_of"]
