"""The operators that give the first row of each key of a stream."""

from __future__ import annotations

from rayflink.common.options.option_types import DURATION
from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..plan.groups import GroupAggregate
from ..plan.lineage import all_of, lineage, rows_of
from ..plan.logical import length_text
from ..plan.ranks import Deduplicate
from ..runtime.ranks.earliest_rows import EarliestRows
from ..runtime.ranks.first_rows import FirstRows
from .physical_ranks import row_of

FirstOfKeys = GroupAggregate | Deduplicate


def keys_of(plan: FirstOfKeys) -> tuple[int, ...]:
    """Return numbers of the columns of the key."""
    return plan.grouping if isinstance(plan, GroupAggregate) else plan.partition


def ttl_of(plan: FirstOfKeys, ttl_ms: int) -> int:
    """Return how long a key is known, in milliseconds; `ttl_ms` is `table.exec.state.ttl`; 0: for ever."""
    hinted = plan.ttl if isinstance(plan, GroupAggregate) else None
    return ttl_ms if hinted is None else DURATION.read(hinted[1]).to_millis()


def explain_line(plan: FirstOfKeys, ttl_ms: int) -> str:
    """Return the plan's line for EXPLAIN, with the time for which a key is known."""
    return f"{plan.explain_line()[:-1]}, stateTtl=[{length_text(ttl_ms)}])" if ttl_ms else plan.explain_line()


def first_of_keys(plan: FirstOfKeys, ttl_ms: int) -> tuple[Factory, str]:
    """Return the factory of the operator, and its state identity.

    Each row of a group prolongs its time; that of a key whose rows are numbered goes on from the first one.
    """
    row, schema, below = row_of(plan.input), arrow_schema(plan.schema), plan.input
    if isinstance(plan, GroupAggregate):
        state_identity = f"distinct {all_of(below, plan.grouping)}"
        factory = Factory(FirstRows, row, plan.grouping, plan.grouping, schema, ttl_ms, True, state_identity)
        return factory, state_identity
    if plan.is_event_time:
        time = plan.keys[0][0]
        state_identity = f"first of {rows_of(below, plan.partition)}, in the order of {lineage(below, time)}"
        return Factory(EarliestRows, row, plan.partition, time, schema, ttl_ms, state_identity), state_identity
    state_identity = f"first by {all_of(below, plan.partition) or 'nothing'}"
    columns = tuple(range(len(below.schema)))
    return Factory(FirstRows, row, plan.partition, columns, schema, ttl_ms, False, state_identity), state_identity


__all__ = ["explain_line", "first_of_keys", "keys_of", "ttl_of"]
