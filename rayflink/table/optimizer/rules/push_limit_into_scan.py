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

from dataclasses import replace

from ...plan.logical import Project, Relation, Scan, Sort, Union, WatermarkAssigner


def push_limit_into_scan(plan: Relation) -> Relation:
    """Push a LIMIT without an order through projections and watermarks, and into each side of a union."""
    return plan.mapped(_pushed)


def _pushed(one: Relation) -> Relation:
    if not isinstance(one, Sort) or one.keys or one.limit is None:
        return one
    return one.with_inputs([_limited(one.input, one.offset + one.limit)])


def _limited(one: Relation, rows: int) -> Relation:
    if isinstance(one, (Project, Union, WatermarkAssigner)):
        return one.with_inputs([_limited(below, rows) for below in one.inputs])
    if not isinstance(one, Scan):
        return one
    source = one.source.limited(rows)
    return one if source is None else replace(one, source=source)
