"""Gives the calls of asynchronous functions to the steps that can await them: filters and projections."""

from __future__ import annotations

from dataclasses import replace

from ..errors import SqlError
from ..parsing.nesting import deeply
from ..plan.async_steps import awaits
from ..plan.logical import Attribute, Filter, Project, Relation, Unnest
from ..plan.typed import Call, Expr
from .conditions import parts_of


def awaited_in_calcs(plan: Relation) -> Relation:
    """Return a plan in which only filters and projections await functions.

    The rows of an asynchronous table function become a column of a projection below the step that pairs them with the
    row.

    Raises:
        SqlError: another step awaits a function, such as an outer join in its condition.
    """
    if not _awaits_anything(plan):
        return plan
    return deeply(lambda: plan.mapped(_awaited))


def _awaits_anything(plan: Relation) -> bool:
    return any(awaits(expr) for relation in plan.walk() for expr in relation.exprs_of_rows)


def _awaited(relation: Relation) -> Relation:
    if isinstance(relation, Unnest) and awaits(relation.collection):
        return _with_rows_below(relation)
    if isinstance(relation, Project | Filter):
        _ensure_without_watermark(relation)
        return relation
    for expr in relation.exprs_of_rows:
        call = _awaited_call(expr)
        if call is not None:
            problem = f"function {call.function.name} is asynchronous, and {relation.explain_line().split('(')[0]}"
            remedy = "call it in the SELECT or WHERE of a subquery, and use the column that it gives"
            raise SqlError(f"{problem} awaits no function", remedy, "", call.place or relation.place)
    return relation


def _with_rows_below(unnest: Unnest) -> Unnest:
    """Return the same with the collection in a column of its input."""
    below = unnest.input
    columns = (*(below.column(index) for index in range(len(below.schema))), unnest.collection)
    added = Attribute(str(unnest.collection), unnest.collection.type)
    input = Project((*below.schema, added), below, columns, place=unnest.place)
    return replace(unnest, input=input, collection=input.column(len(below.schema)))


def _ensure_without_watermark(relation: Project | Filter) -> None:
    """Refuse awaited conditions and arguments that depend on the watermark: calls are made ahead of it."""
    if isinstance(relation, Filter):
        awaited = [part for part in parts_of(relation.condition) if awaits(part)]
    else:
        parts = (part for expr in relation.exprs for part in expr.walk())
        awaited = [part for part in parts if isinstance(part, Call) and part.function.is_async]
    for expr in awaited:
        calls = (part for part in expr.walk() if isinstance(part, Call))
        if any(call.function.name == "CURRENT_WATERMARK" for call in calls):
            problem = "CURRENT_WATERMARK is in an argument or a condition of an asynchronous function"
            raise SqlError(problem, "compare with it apart; calls are made ahead of watermarks", "", expr.place)


def _awaited_call(expr: Expr) -> Call | None:
    return next((part for part in expr.walk() if isinstance(part, Call) and part.function.is_async), None)


__all__ = ["awaited_in_calcs"]
