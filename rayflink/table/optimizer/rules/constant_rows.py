"""Rows of constants are values, without a step that computes them."""

from __future__ import annotations

from ...plan.logical import Project, Relation, Union, Values
from ...plan.typed import Literal


def constant_rows(plan: Relation) -> Relation:
    """Project of literals over Values, and Union of Values."""
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
