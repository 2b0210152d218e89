"""Tables as streams of rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rayflink.common.batches import ArrowBatch, Batch, Element
from rayflink.datastream.streams import DataStream
from rayflink.operators.base import Operator
from rayflink.operators.factory import Factory

from .logical import Relation
from .physical import PhysicalPlanner


class TimesOperator(Operator):
    """Gives rows their event time from a column.

    Args:
        time: its number.
    """

    def __init__(self, time: int) -> None:
        self._time = time

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        import pyarrow

        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        column: Any = batch.data.column(self._time)
        stamps = column.cast(pyarrow.timestamp("ms", column.type.tz), safe=False).cast(pyarrow.int64())
        yield ArrowBatch(batch.data, stamps.to_numpy(zero_copy_only=False))


def to_data_stream(planner: PhysicalPlanner, plan: Relation) -> DataStream:
    """See `StreamTableEnvironment.to_data_stream`."""
    stream = planner.stream(plan)
    time = next((at for at, one in enumerate(plan.schema) if one.is_event_time), None)
    return stream if time is None else stream._one_input("Times", Factory(TimesOperator, time))
