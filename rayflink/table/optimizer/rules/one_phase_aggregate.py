"""Aggregates whole tables in one phase where a local phase would hardly reduce the number of rows.

Source: apache/flink AggregatePhaseStrategy.

Example, in batch mode:

    SELECT id, COUNT(*) AS n FROM visits GROUP BY id

Without the rule:

    Calc(select=[id, EXPR$0 AS n])
    +- GlobalGroupAggregate(groupBy=[id], select=[id, COUNT(*) AS EXPR$0])
       +- Exchange(distribution=[hash[id]])
          +- LocalGroupAggregate(groupBy=[id], select=[id, COUNT(*) AS EXPR$0])
             +- TableSourceScan(table=[[visits, project=[id]]], fields=[id])

With the rule:

    Calc(select=[id, EXPR$0 AS n])
    +- GroupAggregate(groupBy=[id], select=[id, COUNT(*) AS EXPR$0])
       +- Exchange(distribution=[hash[id]])
          +- TableSourceScan(table=[[visits, project=[id]]], fields=[id])
"""

from __future__ import annotations

from dataclasses import replace

from rayflink.common.options.registry import AggPhaseStrategy

from ...plan.groups import GroupAggregate
from ...plan.logical import Relation
from ..estimates import Estimates

MANY = 0.5
"""Share of the rows; with more groups than this, rows are partitioned without a local phase."""


def one_phase_aggregate(plan: Relation, estimates: Estimates, strategy: AggPhaseStrategy) -> Relation:
    """Aggregates of whole tables.

    Args:
        estimates: says how many groups there are.
        strategy: AUTO uses that.
    """

    def chosen(relation: Relation) -> Relation:
        if not isinstance(relation, GroupAggregate) or strategy is AggPhaseStrategy.TWO_PHASE:
            return relation
        if strategy is AggPhaseStrategy.AUTO and not _is_vain(relation, estimates):
            return relation
        return replace(relation, is_one_phase=True)

    return plan.mapped(chosen)


def _is_vain(aggregate: GroupAggregate, estimates: Estimates) -> bool:
    return (
        bool(aggregate.grouping)
        and estimates.knows_groups(aggregate)
        and estimates.groups(aggregate) > MANY * estimates.of(aggregate.input).rows
    )


__all__ = ["one_phase_aggregate"]
