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


def _changed(relation: Relation) -> Relation:
    if isinstance(relation, Union):
        sides: list[Relation] = []
        types = [column.type for column in relation.schema]
        for side in relation.sources:
            inner = isinstance(side, Union) and [column.type for column in side.schema] == types
            sides += side.inputs if inner else [side]
        return relation if len(sides) == len(relation.sources) else replace(relation, sources=tuple(sides))
    if isinstance(relation, Project) and isinstance(relation.input, Union) and all(map(is_movable, relation.exprs)):
        sources = tuple(_of_side(relation, side) for side in relation.input.sources)
        return _changed(Union(relation.schema, sources, place=relation.place))
    return relation


def _of_side(project: Project, side: Relation) -> Relation:
    exprs = tuple(
        expr.mapped(lambda inner: side.column(inner.index) if isinstance(inner, Column) else inner)
        for expr in project.exprs
    )  # fmt: skip
    return Project(project.schema, side, exprs)
