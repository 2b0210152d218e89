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


def _changed(one: Relation) -> Relation:
    if isinstance(one, Project) and isinstance(one.input, Values):
        row = tuple(expr.value for expr in one.exprs if isinstance(expr, Literal))
        if len(row) == len(one.exprs):
            return Values(one.schema, (row,) * len(one.input.rows), place=one.place)
    if isinstance(one, Union) and all(isinstance(side, Values) for side in one.sources):
        sides = [side for side in one.sources if isinstance(side, Values)]
        if all(_arrow_types(side) == _arrow_types(one) for side in sides):
            return Values(one.schema, tuple(row for side in sides for row in side.rows), place=one.place)
    return one


def _arrow_types(one: Relation) -> list[object]:
    return [column.type.to_arrow() for column in one.schema]
