"""The step that puts rows into the order of their event times."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..plan.logical import Relation, order_text
from ..plan.over import UNTIL_ROW
from ..runtime.over.over_operator import OverOperator
from ..runtime.over.over_spec import OverSpec
from .translation import add_keyed_operator, hash_partition

__all__ = ["time_sort"]


def time_sort(
    rows: StreamBuilder, below: Relation, partition: Sequence[int], keys: Sequence[tuple[int, bool, bool]],
    identity: str,
) -> StreamBuilder:  # fmt: skip
    """Emit the rows of each partition in an order, as far as the watermark has passed; later ones are dropped.

    Args:
        rows: of the relation.
        below: the relation.
        partition: numbers of the columns by which rows are partitioned; (): all rows are one partition.
        keys: the order, which begins with an event time that ascends.
        identity: of the state.
    """
    fields: list[pa.Field] = list(arrow_schema(below.schema))
    kinds, names = tuple(field.type for field in fields), [below.names[key] for key in partition]
    spec = OverSpec(kinds, tuple(partition), tuple(keys), UNTIL_ROW, (), True, 0, identity)
    sort = Factory(OverOperator, spec, fields, pa.schema(fields))
    step = add_keyed_operator(hash_partition(rows, names), "TimeSort", sort, names, f"order of time: {identity}")
    return step.set_description(f"TimeSort(orderBy=[{order_text(below.names, keys)}])")
