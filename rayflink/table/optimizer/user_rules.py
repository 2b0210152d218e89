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
        new_plan = plan.mapped(partial(_changed, rule))
        if new_plan is plan or new_plan == plan:
            return plan
        plan = new_plan
        if sum(1 for _ in plan.walk()) > most:
            raise SqlError(f"rule {name_of(rule)!r} made the plan grow to more than {most} relations", remedy)
    raise SqlError(f"rule {name_of(rule)!r} still changes the plan after {MOST_PASSES} passes over it", remedy)


def _changed(rule: OwnRule, relation: Relation) -> Relation:
    if isinstance(relation, Sink):
        return relation
    name = name_of(rule)
    try:
        result = rule(relation)
    except Exception as error:  # a user's rule may raise anything
        problem = f"rule {name!r} raised {described(error)}"
        raise SqlError(
            problem, f"correct it, or leave it out; it was given {relation.explain_line()}", "", relation.place
        ) from error
    if result is relation:
        return relation
    wrong = _wrong(relation, result)
    if wrong is not None:
        remedy = f"give the relation itself, or one with the same columns; it was given {relation.explain_line()}"
        raise SqlError(f"rule {name!r} gave {wrong}", remedy, "", relation.place)
    return result


def _wrong(relation: Relation, result: object) -> str | None:
    """Return the problem with the result of a rule; None: there is none."""
    if not isinstance(result, Relation):
        return f"{result!r}, which is no relation"
    if isinstance(result, Sink):
        return "a sink in a query"
    other = _other_columns(relation.schema, result.schema)
    if other is not None:
        return other
    known = {id(part) for part in relation.walk()}
    for part in result.walk():
        if id(part) not in known and (problem := _unsound(part)) is not None:
            return f"{part.explain_line()}, in which {problem}"
    return None


def _other_columns(wanted: Schema, schema: Schema) -> str | None:
    if len(schema) != len(wanted):
        return f"{len(schema)} columns instead of {len(wanted)}"
    for old, new in zip(wanted, schema, strict=True):
        if old.name != new.name:
            return f"a column {new.name!r} instead of {old.name!r}"
        if _describe(old) != _describe(new):
            return f"column {new.name!r} as {_describe(new)} instead of {_describe(old)}"
    return None


def _describe(column: Attribute) -> str:
    """Return a column's type, and what it has to do with time."""
    part = "" if column.part is None else f" *{column.part.value.upper()}*"
    windows = "" if column.windowing is None else f" of {column.windowing.describe_without_time()}"
    return f"{column.type}{part}{windows}"


def _unsound(node: Relation) -> str | None:
    """Why a relation cannot be run on its inputs."""
    columns = [column for below in node.inputs for column in below.schema]
    for expr in node.exprs_of_rows:
        for part in expr.walk():
            if isinstance(part, Column) and not _is_there(part, columns):
                return f"column {part.index} of type {part.type} is read, and its inputs have {_shown(columns)}"
    match node:
        case Filter() | Sort() if node.schema != node.input.schema:
            return "the columns are not those of its input"
        case Filter() | Join() if node.condition.type.root is not Root.BOOLEAN:
            return f"the condition is of type {node.condition.type}"
        case Project() if not _same_types(node.exprs, node.schema):
            return "the expressions have not the types of the columns"
        case Values() if any(len(row) != len(node.schema) for row in node.rows):
            return f"a row has not {len(node.schema)} values"
        case Join() if not _same_types(joined_schema(node.left.schema, node.right.schema, node.kind), node.schema):
            return "the columns are not those of both sides"
        case Union() if not all(_same_types(side.schema, node.schema) for side in node.sources):
            return "the columns of an input have other types"
        case Sort() | GroupAggregate():
            used = [index for index, _, _ in node.keys] if isinstance(node, Sort) else node.grouping
            return next(
                (f"column {index} is read, which is not there" for index in used if index >= len(columns)), None
            )
    return None


def _is_there(column: Column, columns: Sequence[Attribute]) -> bool:
    return 0 <= column.index < len(columns) and _same(column.type, columns[column.index].type)


def _same_types(columns: Sequence[Expr | Attribute], wanted: Schema) -> bool:
    return len(columns) == len(wanted) and all(_same(a.type, b.type) for a, b in zip(columns, wanted, strict=True))


def _same(left: DataType, right: DataType) -> bool:
    return left.nullable() == right.nullable()


def _shown(columns: Sequence[Attribute]) -> str:
    return ", ".join(f"{index} {column.name} {column.type}" for index, column in enumerate(columns)) or "none"


__all__ = ["MOST_GROWTH", "MOST_PASSES", "applied"]
