"""The small side of a join of whole tables is sent to all subtasks, and the rows of the other stay where they are.

Source: apache/flink BatchPhysicalHashJoinRule, BatchPhysicalNestedLoopJoinRule.
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

    def chosen(one: Relation) -> Relation:
        if type(one) is not KeyedJoin:
            return one
        known = [(estimates.bytes(one.inputs[at]), number, at) for number, at in enumerate(_SMALL.get(one.kind, ()))
                 if estimates.of(one.inputs[at]).is_known]  # fmt: skip
        size, _, small = min(known, default=(0.0, 0, 0))
        if not known or size > most_bytes:
            return one
        same = {field.name: getattr(one, field.name) for field in fields(one)}
        return BroadcastJoin(**same, small=small)

    return plan.mapped(chosen) if most_bytes >= 0 else plan


__all__ = ["broadcast_join"]
