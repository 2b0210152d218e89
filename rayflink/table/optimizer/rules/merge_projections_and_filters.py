"""Merges consecutive projections and filters into one of each.

Example:

    SELECT id FROM (SELECT id, price FROM orders WHERE price > 9) WHERE id < 7

Without the rule:

    Calc(select=[id])
    +- Calc(select=[id], where=[(price > 9) AND (id < 7)])
       +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
          +- TableSourceScan(table=[[orders, project=[id, price, ts]]], fields=[id, price, ts])

With the rule:

    Calc(select=[id], where=[(price > 9) AND (id < 7)])
    +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
       +- TableSourceScan(table=[[orders, project=[id, price, ts]]], fields=[id, price, ts])
"""

from __future__ import annotations

from dataclasses import replace

from ...plan.logical import Filter, Project, Relation
from ...plan.typed import Call, Column, Expr, Literal, named


def merge_projections_and_filters(plan: Relation) -> Relation:
    """Merge Project over Project and Filter over Filter, and swap Filter over Project."""
    return plan.mapped(_merged)


def _merged(one: Relation) -> Relation:
    if isinstance(one, Project):
        if isinstance(one.input, Project) and is_cheap(one.exprs, one.input.exprs):
            exprs = tuple(inlined(expr, one.input.exprs) for expr in one.exprs)
            return _merged(Project(one.schema, one.input.input, exprs))
        if _is_identity(one):
            return one.input
    if isinstance(one, Filter):
        if isinstance(one.input, Filter):
            both = Call(one.condition.type, named("AND"), (one.input.condition, one.condition))
            return _merged(Filter(one.schema, one.input.input, both))
        if isinstance(one.input, Project) and is_cheap((one.condition,), one.input.exprs):
            below = one.input
            condition = inlined(one.condition, below.exprs)
            filtered = _merged(Filter(below.input.schema, below.input, condition))
            return replace(below, input=filtered)
        if isinstance(one.condition, Literal) and one.condition.value is True:
            return one.input
    return one


def _is_identity(one: Project) -> bool:
    same = all(isinstance(expr, Column) and expr.index == at for at, expr in enumerate(one.exprs))
    return same and len(one.exprs) == len(one.input.schema) and one.schema == one.input.schema


def inlined(expr: Expr, below: tuple[Expr, ...]) -> Expr:
    """Replace the columns in an expression by the expressions that compute them."""
    return expr.mapped(lambda one: below[one.index] if isinstance(one, Column) else one)


def is_cheap(above: tuple[Expr, ...], below: tuple[Expr, ...]) -> bool:
    """Return whether inlining computes nothing twice, and nothing that gives another value each time."""
    uses = [0] * len(below)
    for expr in above:
        for one in expr.walk():
            if isinstance(one, Column):
                uses[one.index] += 1
    return all(count <= 1 or not isinstance(expr, Call) for count, expr in zip(uses, below, strict=True)) and not any(
        isinstance(one, Call) and not one.function.is_deterministic for expr in below for one in expr.walk()
    )
