"""Merges consecutive projections and filters into one of each.

Example:

    SELECT id FROM (SELECT id, price FROM orders WHERE price > 9) WHERE id < 7

Without the rule:

    Calc(select=[id])
    +- Calc(select=[id], where=[(price > 9) AND (id < 7)])
       +- TableSourceScan(table=[[orders, filter=[price > 9, id < 7], project=[id, price]]], fields=[id, price])

With the rule:

    Calc(select=[id], where=[(price > 9) AND (id < 7)])
    +- TableSourceScan(table=[[orders, filter=[price > 9, id < 7], project=[id, price]]], fields=[id, price])
"""

from __future__ import annotations

from dataclasses import replace

from ...plan.logical import Filter, Project, Relation
from ...plan.typed import Call, Column, Expr, Literal, named


def merge_projections_and_filters(plan: Relation) -> Relation:
    """Merge Project over Project and Filter over Filter, and swap Filter over Project."""
    return plan.mapped(_merged)


def _merged(relation: Relation) -> Relation:
    if isinstance(relation, Project):
        if isinstance(relation.input, Project) and is_cheap(relation.exprs, relation.input.exprs):
            exprs = tuple(inlined(expr, relation.input.exprs) for expr in relation.exprs)
            return _merged(Project(relation.schema, relation.input.input, exprs))
        if _is_identity(relation):
            return relation.input
    if isinstance(relation, Filter):
        if isinstance(relation.input, Filter):
            both = Call(relation.condition.type, named("AND"), (relation.input.condition, relation.condition))
            return _merged(Filter(relation.schema, relation.input.input, both))
        if isinstance(relation.input, Project) and is_cheap((relation.condition,), relation.input.exprs):
            below = relation.input
            condition = inlined(relation.condition, below.exprs)
            filtered = _merged(Filter(below.input.schema, below.input, condition))
            return replace(below, input=filtered)
        if isinstance(relation.condition, Literal) and relation.condition.value is True:
            return relation.input
    return relation


def _is_identity(project: Project) -> bool:
    same = all(isinstance(expr, Column) and expr.index == index for index, expr in enumerate(project.exprs))
    return same and len(project.exprs) == len(project.input.schema) and project.schema == project.input.schema


def inlined(expr: Expr, below: tuple[Expr, ...]) -> Expr:
    """Replace the columns in an expression by the expressions that compute them."""
    return expr.mapped(lambda part: below[part.index] if isinstance(part, Column) else part)


def is_cheap(above: tuple[Expr, ...], below: tuple[Expr, ...]) -> bool:
    """Return whether inlining computes nothing twice, and nothing that gives another value each time."""
    uses = [0] * len(below)
    for expr in above:
        for part in expr.walk():
            if isinstance(part, Column):
                uses[part.index] += 1
    return all(count <= 1 or not isinstance(expr, Call) for count, expr in zip(uses, below, strict=True)) and not any(
        isinstance(part, Call) and not part.function.is_deterministic for expr in below for part in expr.walk()
    )
