"""Describes an OVER step: functions, their frame, and the rows that they are of."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ...plan.over import Frame
from ..aggregates.aggregates import Aggregate
from ..ranks.ordering import OrderKey


@dataclass(frozen=True)
class RowFunction:
    """A function of the place of a row among those of its partition, or of another row there.

    Args:
        name: in SQL.
        result: type of the results.
        argument: number of the column that is read of the other row; None: the function reads none.
        number: of rows away (LAG, LEAD), of the row in the frame from 1 (NTH_VALUE), of parts (NTILE).
        default: number of the column that stands in where there is no such row; None: null does.
    """

    name: str
    result: pa.DataType
    argument: int | None = None
    number: int = 1
    default: int | None = None


@dataclass(frozen=True)
class OverSpec:
    """The functions of an OVER step.

    Args:
        columns: types of the input's columns.
        partition: numbers of the columns by which rows are divided; none: all are together.
        order: of the rows in a partition; of a stream by one time, which ascends.
        frame: of the functions that depend on one.
        functions: each gives a column.
        is_event_time: rows of a stream wait for the watermark; else they are worked as they come.
        ttl_ms: how long a key of a stream is known of which no row comes; 0: for ever.
        state_identity: which rows of the query the state belongs to.
    """

    columns: tuple[pa.DataType, ...]
    partition: tuple[int, ...]
    order: tuple[OrderKey, ...]
    frame: Frame
    functions: tuple[Aggregate | RowFunction, ...]
    is_event_time: bool = True
    ttl_ms: int = 0
    state_identity: str = ""

    @property
    def aggregates(self) -> list[Aggregate]:
        """Return the aggregates among the functions."""
        return [function for function in self.functions if isinstance(function, Aggregate)]


__all__ = ["OverSpec", "RowFunction"]
