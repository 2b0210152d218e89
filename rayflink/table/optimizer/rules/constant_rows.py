"""Replaces computations on constant rows by the values themselves.

Example:

    SELECT 1 AS n UNION ALL SELECT 2

Without the rule:

    Union(all=[true], union=[n])
    :- Calc(select=[1 AS n])
    :  +- Values(tuples=[[{  }]])
    +- Calc(select=[2 AS EXPR$0])
       +- Values(tuples=[[{  }]])

With the rule:

    Values(tuples=[[{ 1 }, { 2 }]])
"""

from __future__ import annotations

from ...plan.logical import Project, Relation, Union, Values
from ...plan.typed import Literal


def constant_rows(plan: Relation) -> Relation:
    """Replace a Project of literals over Values, and a Union of Values, by Values."""
    return plan.mapped(_changed)


def _changed(relation: Relation) -> Relation:
    if isinstance(relation, Project) and isinstance(relation.input, Values):
        row = tuple(expr.value for expr in relation.exprs if isinstance(expr, Literal))
        if len(row) == len(relation.exprs):
            return Values(relation.schema, (row,) * len(relation.input.rows), place=relation.place)
    if isinstance(relation, Union) and all(isinstance(side, Values) for side in relation.sources):
        sides = [side for side in relation.sources if isinstance(side, Values)]
        if all(_arrow_types(side) == _arrow_types(relation) for side in sides):
            return Values(relation.schema, tuple(row for side in sides for row in side.rows), place=relation.place)
    return relation


def _arrow_types(relation: Relation) -> list[object]:
    return [column.type.to_arrow() for column in relation.schema]
