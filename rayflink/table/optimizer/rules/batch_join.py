"""Joins whole tables in batch mode: the join waits until both inputs have ended.

Example, in batch mode:

    SELECT name, page FROM customers JOIN visits ON customers.id = visits.id

Without the rule:

    SqlError: a join without windows or bounds of time keeps all rows of both sides for ever

With the rule:

    Calc(select=[name, page])
    +- HashJoin(joinType=[InnerJoin], where=[id = id], select=[id, name, id0, page], isBroadcast=[true],
         build=[left])
       :- Exchange(distribution=[broadcast])
       :  +- TableSourceScan(table=[[customers]], fields=[id, name])
       +- TableSourceScan(table=[[visits]], fields=[id, page])
"""

from __future__ import annotations

from ...plan.joins import Join
from ...plan.logical import Relation
from ..join_keys import as_before, equalities, keyed


def batch_join(plan: Relation) -> Relation:
    """Turn each join of a batch query into one that runs over whole tables."""
    return plan.mapped(_joined)


def _joined(relation: Relation) -> Relation:
    if not isinstance(relation, Join) or not relation.is_whole:
        return relation
    condition = equalities(relation)
    return as_before(relation, keyed(relation, condition.pairs, condition.rest))


__all__ = ["batch_join"]
