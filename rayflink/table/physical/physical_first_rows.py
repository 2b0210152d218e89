"""The steps that give the first row of each key of a stream."""

from __future__ import annotations

from typing import TypeAlias

from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..plan.groups import GroupAggregate
from ..plan.lineage import all_of, lineage, rows_of
from ..plan.ranks import Deduplicate
from ..runtime.ranks.earliest_rows import earliest_rows
from ..runtime.ranks.first_rows import first_rows
from .translation import Translation, add_keyed_operator, hash_partition, line_with_ttl, row_type

FirstRowsPlan: TypeAlias = GroupAggregate | Deduplicate
"""A GROUP BY or DISTINCT of a stream without aggregates, or ROW_NUMBER() = 1."""


def translate_first_rows(translation: Translation, plan: FirstRowsPlan) -> StreamBuilder:
    """Give the first row of each key, and remember the keys."""
    keys = plan.grouping if isinstance(plan, GroupAggregate) else plan.partition
    names = [plan.input.names[key] for key in keys]
    ttl_ms = translation.ttl_ms(plan)
    factory, state_identity = _operator(plan, ttl_ms)
    partitioned = hash_partition(translation.stream(plan.input), names)
    step = add_keyed_operator(partitioned, type(plan).__name__, factory, names, state_identity)
    return step.set_description(line_with_ttl(plan.explain_line(), ttl_ms))


def _operator(plan: FirstRowsPlan, ttl_ms: int) -> tuple[Factory, str]:
    """Return the factory of the operator, and its state identity.

    Each row of a group prolongs its time; that of a key whose rows are numbered runs from the first row on.
    """
    row, schema, below = row_type(plan.input), arrow_schema(plan.schema), plan.input
    if isinstance(plan, GroupAggregate):
        state_identity = f"distinct {all_of(below, plan.grouping)}"
        factory = Factory(first_rows, row, plan.grouping, plan.grouping, schema, ttl_ms, True, state_identity)
        return factory, state_identity
    if plan.is_event_time:
        time = plan.keys[0][0]
        state_identity = f"first of {rows_of(below, plan.partition)}, in the order of {lineage(below, time)}"
        return Factory(earliest_rows, row, plan.partition, time, schema, ttl_ms, state_identity), state_identity
    state_identity = f"first by {all_of(below, plan.partition) or 'nothing'}"
    columns = tuple(range(len(below.schema)))
    return Factory(first_rows, row, plan.partition, columns, schema, ttl_ms, False, state_identity), state_identity


__all__ = ["translate_first_rows"]
