"""Lets a source stop after the number of rows that LIMIT asks for.

Source: apache/flink PushLimitIntoTableSourceScanRule.

Example, in batch mode:

    SELECT id FROM orders LIMIT 3

Without the rule:

    Limit(offset=[0], fetch=[3], global=[true])
    +- Exchange(distribution=[single])
       +- Limit(offset=[0], fetch=[3], global=[false])
          +- TableSourceScan(table=[[orders, project=[id]]], fields=[id])

With the rule:

    Limit(offset=[0], fetch=[3], global=[true])
    +- Exchange(distribution=[single])
       +- Limit(offset=[0], fetch=[3], global=[false])
          +- TableSourceScan(table=[[orders, project=[id], limit=[3]]], fields=[id])
"""

from __future__ import annotations

from ...plan.logical import Project, Relation, Scan, Sort, Union, WatermarkAssigner
from ...plan.scan_abilities import LimitPushDown


def push_limit_into_scan(plan: Relation) -> Relation:
    """Push a LIMIT without an order through projections and watermarks, and into each side of a union."""
    return plan.mapped(_pushed)


def _pushed(relation: Relation) -> Relation:
    if not isinstance(relation, Sort) or relation.keys or relation.limit is None:
        return relation
    return relation.with_inputs([_limited(relation.input, relation.offset + relation.limit)])


def _limited(relation: Relation, rows: int) -> Relation:
    if isinstance(relation, (Project, Union, WatermarkAssigner)):
        return relation.with_inputs([_limited(below, rows) for below in relation.inputs])
    if not isinstance(relation, Scan):
        return relation
    source = relation.source.limited(rows)
    return relation if source is None else relation.with_ability(source, LimitPushDown(rows))
