"""Values of columns as partial matches keep them: times as whole numbers in their unit, others as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types


def _number_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type of whole numbers that stands for a type of times; None: it is none."""
    if not (types.is_temporal(kind) and kind.bit_width in (32, 64)):
        return None
    return pa.int32() if kind.bit_width == 32 else pa.int64()


def raw_values(column: pa.Array) -> list[Any]:
    """Return the values of a column.

    >>> raw_values(pa.array([1_000, None], pa.timestamp("ms")))
    [1000, None]
    """
    number = _number_type(column.type)
    values: list[Any] = (column if number is None else column.view(number)).to_pylist()
    return values


def raw_column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return a column of values that `raw_values` returned.

    >>> raw_column([1_000, None], pa.timestamp("ms")).type
    TimestampType(timestamp[ms])
    """
    number = _number_type(kind)
    return pa.array(values, kind) if number is None else pa.array(values, number).view(kind)


__all__ = ["raw_column", "raw_values"]
