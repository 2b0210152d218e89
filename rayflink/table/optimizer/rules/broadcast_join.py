"""Sends the small side of a join of whole tables to all subtasks; the rows of the other side stay where they are.

Source: apache/flink BatchPhysicalHashJoinRule, BatchPhysicalNestedLoopJoinRule.

Example, in batch mode:

    SELECT name, page FROM visits JOIN customers ON customers.id = visits.id

Without the rule:

    Calc(select=[name, page])
    +- HashJoin(joinType=[InnerJoin], where=[id = id], select=[id, page, id0, name])
       :- Exchange(distribution=[hash[id]])
       :  +- TableSourceScan(table=[[visits]], fields=[id, page])
       +- Exchange(distribution=[hash[id]])
          +- TableSourceScan(table=[[customers]], fields=[id, name])

With the rule:

    Calc(select=[name, page])
    +- HashJoin(joinType=[InnerJoin], where=[id = id], select=[id, page, id0, name], isBroadcast=[true],
         build=[right])
       :- TableSourceScan(table=[[visits]], fields=[id, page])
       +- Exchange(distribution=[broadcast])
          +- TableSourceScan(table=[[customers]], fields=[id, name])
"""

from __future__ import annotations

from dataclasses import fields

from ...plan.joins import BroadcastJoin, JoinKind, KeyedJoin
from ...plan.logical import Relation
from ..estimates import Estimates

_SMALL = {
    JoinKind.INNER: (1, 0),
    JoinKind.LEFT: (1,),
    JoinKind.RIGHT: (0,),
    JoinKind.SEMI: (1,),
    JoinKind.ANTI: (1,),
}
"""The sides whose rows are in no result where they match none, so that each subtask may have all."""


def broadcast_join(plan: Relation, estimates: Estimates, most_bytes: int) -> Relation:
    """Joins of whole tables.

    Args:
        estimates: says how large a side is.
        most_bytes: of a side that is sent to all; below 0: none is.
    """

    def chosen(relation: Relation) -> Relation:
        if type(relation) is not KeyedJoin:
            return relation
        sides = enumerate(_SMALL.get(relation.kind, ()))
        known = [(estimates.bytes(relation.inputs[side]), number, side) for number, side in sides
                 if estimates.of(relation.inputs[side]).is_known]  # fmt: skip
        size, _, small = min(known, default=(0.0, 0, 0))
        if not known or size > most_bytes:
            return relation
        same = {field.name: getattr(relation, field.name) for field in fields(relation)}
        return BroadcastJoin(**same, small=small)

    return plan.mapped(chosen) if most_bytes >= 0 else plan


__all__ = ["broadcast_join"]
