"""The operators that give the first row of each key of a stream."""

from __future__ import annotations

from rayflink.operators.factory import Factory

from .arrow_columns import arrow_schema
from .groups import GroupAggregate
from .lineage import all_of, rows_of
from .physical_ranks import row_of
from .ranks import Deduplicate
from .runtime.earliest_rows import EarliestRows
from .runtime.first_rows import FirstRows


def distinct_rows(plan: GroupAggregate, ttl_ms: int) -> tuple[Factory, str]:
    """What makes the operator, and what it keeps, as text; each row of a key prolongs its time."""
    of = f"distinct {all_of(plan.input, plan.grouping)}"
    keys = plan.grouping
    return Factory(FirstRows, row_of(plan.input), keys, keys, arrow_schema(plan.schema), ttl_ms, True, of), of


def deduplicated(plan: Deduplicate, ttl_ms: int) -> tuple[Factory, str]:
    """The same of whole rows; a key's time goes on from its first one."""
    row, schema = row_of(plan.input), arrow_schema(plan.schema)
    if plan.is_event_time:
        time = plan.keys[0][0]
        of = f"first of {rows_of(plan.input, plan.partition)}, in the order of column {time}"
        return Factory(EarliestRows, row, plan.partition, time, schema, ttl_ms, of), of
    of = f"first by {all_of(plan.input, plan.partition) or 'nothing'}"
    given = tuple(range(len(plan.input.schema)))
    return Factory(FirstRows, row, plan.partition, given, schema, ttl_ms, False, of), of


__all__ = ["deduplicated", "distinct_rows"]
