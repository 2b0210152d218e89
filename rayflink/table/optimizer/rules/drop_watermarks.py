"""Removes watermarks from batch queries: their windows are complete when the tables end.

Example, in batch mode:

    SELECT id FROM orders WHERE price > 9

Without the rule:

    Calc(select=[id], where=[price > 9])
    +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
       +- TableSourceScan(table=[[orders, project=[id, price, ts]]], fields=[id, price, ts])

With the rule:

    Calc(select=[id], where=[price > 9])
    +- TableSourceScan(table=[[orders, filter=[price > 9], project=[id, price]]], fields=[id, price])
"""

from __future__ import annotations

from dataclasses import replace

from ...plan.logical import Relation, WatermarkAssigner
from ...plan.typed import Literal


def drop_watermarks(plan: Relation) -> Relation:
    """Make the time attribute a column like any other in batch mode, so that filters reach the source."""
    return plan.mapped(_forgotten)


def _forgotten(relation: Relation) -> Relation:
    if not isinstance(relation, WatermarkAssigner) or isinstance(relation.expression, Literal):  # the source's own
        return relation
    below = relation.input
    return replace(below, schema=relation.schema)
