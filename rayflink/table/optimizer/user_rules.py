"""Applies rules that users wrote, and reports errors in their results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rayflink.common.errors import described

from ..errors import SqlError
from ..plan.groups import GroupAggregate
from ..plan.joins import Join, joined_schema
from ..plan.logical import Attribute, Filter, Project, Relation, Schema, Sink, Sort, Union, Values
from ..plan.typed import Column, Expr
from ..types import DataType, Root
from .phases import name_of
from .planner_config import OwnRule

MOST_PASSES = 100
"""The largest number of times that a rule may change a plan."""
MOST_GROWTH = (4, 200)
"""A rule may make a plan this many times as large, and that many relations more: one that doubles it would not end."""


def applied(rule: OwnRule, plan: Relation) -> Relation:
    """Return the plan with each relation changed by the rule, until it changes none.

    Raises:
        SqlError: the rule fails, gives other columns, what cannot be run, or comes to no end.
    """
    remedy = "let it return the relation itself where there is nothing left to change"
    most = MOST_GROWTH[0] * sum(1 for _ in plan.walk()) + MOST_GROWTH[1]
    for _ in range(MOST_PASSES):
        found = plan.mapped(partial(_changed, rule))
        if found is plan or found == plan:
            return plan
        plan = found
        if sum(1 for _ in plan.walk()) > most:
            raise SqlError(f"rule {name_of(rule)!r} made the plan grow to more than {most} relations", remedy)
    raise SqlError(f"rule {name_of(rule)!r} still changes the plan after {MOST_PASSES} passes over it", remedy)


def _changed(rule: OwnRule, one: Relation) -> Relation:
    if isinstance(one, Sink):
        return one
    name = name_of(rule)
    try:
        found = rule(one)
    except Exception as error:  # a user's rule may raise anything
        problem = f"rule {name!r} raised {described(error)}"
        raise SqlError(
            problem, f"correct it, or leave it out; it was given {one.explain_line()}", "", one.place
        ) from error
    if found is one:
        return one
    wrong = _wrong(one, found)
    if wrong is not None:
        remedy = f"give the relation itself, or one with the same columns; it was given {one.explain_line()}"
        raise SqlError(f"rule {name!r} gave {wrong}", remedy, "", one.place)
    return found


def _wrong(one: Relation, found: object) -> str | None:
    """Return the problem with the result of a rule; None: there is none."""
    if not isinstance(found, Relation):
        return f"{found!r}, which is no relation"
    if isinstance(found, Sink):
        return "a sink in a query"
    other = _other_columns(one.schema, found.schema)
    if other is not None:
        return other
    known = {id(part) for part in one.walk()}
    for part in found.walk():
        if id(part) not in known and (found_wrong := _unsound(part)) is not None:
            return f"{part.explain_line()}, in which {found_wrong}"
    return None


def _other_columns(wanted: Schema, found: Schema) -> str | None:
    if len(found) != len(wanted):
        return f"{len(found)} columns instead of {len(wanted)}"
    for old, new in zip(wanted, found, strict=True):
        if old.name != new.name:
            return f"a column {new.name!r} instead of {old.name!r}"
        if _describe(old) != _describe(new):
            return f"column {new.name!r} as {_describe(new)} instead of {_describe(old)}"
    return None


def _describe(one: Attribute) -> str:
    """Return a column's type, and what it has to do with time."""
    part = "" if one.part is None else f" *{one.part.value.upper()}*"
    windows = "" if one.windowing is None else f" of {one.windowing.describe_without_time()}"
    return f"{one.type}{part}{windows}"


def _unsound(one: Relation) -> str | None:
    """Why a relation cannot be run on its inputs."""
    columns = [column for below in one.inputs for column in below.schema]
    for expr in one.exprs_of_rows:
        for part in expr.walk():
            if isinstance(part, Column) and not _is_there(part, columns):
                return f"column {part.index} of type {part.type} is read, and its inputs have {_shown(columns)}"
    match one:
        case Filter() | Sort() if one.schema != one.input.schema:
            return "the columns are not those of its input"
        case Filter() | Join() if one.condition.type.root is not Root.BOOLEAN:
            return f"the condition is of type {one.condition.type}"
        case Project() if not _same_types(one.exprs, one.schema):
            return "the expressions have not the types of the columns"
        case Values() if any(len(row) != len(one.schema) for row in one.rows):
            return f"a row has not {len(one.schema)} values"
        case Join() if not _same_types(joined_schema(one.left.schema, one.right.schema, one.kind), one.schema):
            return "the columns are not those of both sides"
        case Union() if not all(_same_types(side.schema, one.schema) for side in one.sources):
            return "the columns of an input have other types"
        case Sort() | GroupAggregate():
            used = [at for at, _, _ in one.keys] if isinstance(one, Sort) else one.grouping
            return next((f"column {at} is read, which is not there" for at in used if at >= len(columns)), None)
    return None


def _is_there(column: Column, columns: Sequence[Attribute]) -> bool:
    return 0 <= column.index < len(columns) and _same(column.type, columns[column.index].type)


def _same_types(found: Sequence[Expr | Attribute], wanted: Schema) -> bool:
    return len(found) == len(wanted) and all(_same(a.type, b.type) for a, b in zip(found, wanted, strict=True))


def _same(one: DataType, other: DataType) -> bool:
    return one.nullable() == other.nullable()


def _shown(columns: Sequence[Attribute]) -> str:
    return ", ".join(f"{at} {one.name} {one.type}" for at, one in enumerate(columns)) or "none"


__all__ = ["MOST_GROWTH", "MOST_PASSES", "applied"]
