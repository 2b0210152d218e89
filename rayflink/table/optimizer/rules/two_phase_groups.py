"""Aggregates groups of streams in two phases where rows wait for mini-batches anyway, and shares DISTINCT values.

The first phase adds up the rows of a mini-batch where they are, so that a group with many rows does not load one
subtask. `table.optimizer.distinct-agg.split.enabled` finds the values of DISTINCT aggregates by group and value.

Source: apache/flink TwoStageOptimizedAggregateRule, SplitAggregateRule.

Example, with `table.exec.mini-batch.enabled` = `true`:

    SELECT id, COUNT(*) AS n FROM orders GROUP BY id

Without the rule:

    Calc(select=[id, EXPR$0 AS n])
    +- GroupAggregate(groupBy=[id], select=[id, COUNT(*) AS EXPR$0])
       +- Exchange(distribution=[hash[id]])
          +- TableSourceScan(table=[[orders, project=[id]]], fields=[id])

With the rule:

    Calc(select=[id, EXPR$0 AS n])
    +- GlobalGroupAggregate(groupBy=[id], select=[id, COUNT(*) AS EXPR$0])
       +- Exchange(distribution=[hash[id]])
          +- LocalGroupAggregate(groupBy=[id], select=[id, COUNT(*) AS EXPR$0])
             +- TableSourceScan(table=[[orders, project=[id]]], fields=[id])
"""

from __future__ import annotations

from dataclasses import replace

from rayflink.common.options.registry import AggPhaseStrategy

from ...plan.groups import GroupAggregate
from ...plan.logical import Relation


def two_phase_groups(plan: Relation, has_mini_batch: bool, strategy: AggPhaseStrategy, splits: bool) -> Relation:
    """Choose the phases in which groups of streams are aggregated.

    Args:
        has_mini_batch: rows wait to be aggregated together.
        strategy: ONE_PHASE leaves the first phase out.
        splits: values of DISTINCT aggregates are found by group and value.
    """
    is_two_phase = has_mini_batch and strategy is not AggPhaseStrategy.ONE_PHASE

    def chosen(relation: Relation) -> Relation:
        if not isinstance(relation, GroupAggregate) or not relation.calls:
            return relation
        is_split = splits and relation.is_splittable
        may_merge = relation.is_mergeable and (is_split or not relation.distinct_arguments)
        has_local_phase = is_two_phase and may_merge
        return replace(relation, has_local_phase=has_local_phase, splits_distinct=is_split)

    return plan.mapped(chosen)


__all__ = ["two_phase_groups"]
