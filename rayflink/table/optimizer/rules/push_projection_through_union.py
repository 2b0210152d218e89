"""Merges nested unions and pushes projections into the sides of a union.

Example:

    SELECT id FROM (SELECT * FROM visits UNION ALL SELECT * FROM customers)

Without the rule:

    Calc(select=[id])
    +- Union(all=[true], union=[id, page])
       :- TableSourceScan(table=[[visits]], fields=[id, page])
       +- TableSourceScan(table=[[customers]], fields=[id, name])

With the rule:

    Union(all=[true], union=[id])
    :- TableSourceScan(table=[[visits, project=[id]]], fields=[id])
    +- TableSourceScan(table=[[customers, project=[id]]], fields=[id])
"""

from __future__ import annotations

from dataclasses import replace

from ...plan.logical import Project, Relation, Union
from ...plan.typed import Column
from ..conditions import is_movable


def push_projection_through_union(plan: Relation) -> Relation:
    """Merge Union of Union, and push Project over Union down, so that each side reads only the columns it needs."""
    return plan.mapped(_changed)


def _changed(one: Relation) -> Relation:
    if isinstance(one, Union):
        sides: list[Relation] = []
        for side in one.sources:
            inner = isinstance(side, Union) and [at.type for at in side.schema] == [at.type for at in one.schema]
            sides += side.inputs if inner else [side]
        return one if len(sides) == len(one.sources) else replace(one, sources=tuple(sides))
    if isinstance(one, Project) and isinstance(one.input, Union) and all(map(is_movable, one.exprs)):
        return _changed(Union(one.schema, tuple(_of_side(one, side) for side in one.input.sources), place=one.place))
    return one


def _of_side(one: Project, side: Relation) -> Relation:
    exprs = tuple(
        expr.mapped(lambda inner: side.column(inner.index) if isinstance(inner, Column) else inner)
        for expr in one.exprs
    )  # fmt: skip
    return Project(one.schema, side, exprs)
