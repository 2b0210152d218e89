"""Statistics of columns in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .statistics import ColumnStatistics, TableStatistics, as_number

if TYPE_CHECKING:
    import pyarrow

MOST_ROWS = 1 << 16
"""Rows by which columns are judged; where there are more, so many that are drawn."""


def statistics_of(table: pyarrow.Table) -> TableStatistics:
    """The number of rows, and what some of them tell of the columns."""
    import numpy
    import pyarrow

    rows, seen = table.num_rows, table
    if rows > MOST_ROWS:  # drawn by the same seed each time: each n-th row could be one of a kind
        drawn = numpy.random.default_rng(0).integers(0, rows, MOST_ROWS)
        seen = table.take(pyarrow.array(numpy.unique(drawn)))
    columns = {name: _column(seen.column(at), rows) for at, name in enumerate(table.column_names)}
    return TableStatistics(float(rows), "counted", columns)


def _column(values: pyarrow.ChunkedArray, rows: int) -> ColumnStatistics:
    import pyarrow
    from pyarrow import compute

    seen = len(values)
    if not seen:
        return ColumnStatistics(nulls=0.0, distinct=0.0)
    nulls, width = values.null_count / seen, values.nbytes / seen
    kind = values.type
    if pyarrow.types.is_nested(kind) or pyarrow.types.is_interval(kind):
        return ColumnStatistics(nulls=nulls, width=width)
    low = high = None
    if pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) or pyarrow.types.is_decimal(kind) or (
        pyarrow.types.is_date(kind) or pyarrow.types.is_timestamp(kind)
    ):  # fmt: skip
        low, high = (as_number(one.as_py()) for one in compute.min_max(values).values())
    distinct = float(compute.count_distinct(values).as_py())
    if rows > seen and distinct > seen / 2:  # more rows have more values
        distinct *= rows / seen
    return ColumnStatistics(low, high, nulls, distinct, width)


__all__ = ["MOST_ROWS", "statistics_of"]
