"""Computes with the constant to which a filter says that a column is equal, in place of the column.

So a CASE by the kind of a row has the branch of that kind alone, and columns of the others are not read. Only integers,
booleans and strings are replaced: of other types two values may be equal and yet differ, as 0.0 and -0.0.

Source: apache/calcite ReduceExpressionsRule, which uses the predicates of its input.

Example:

    SELECT CASE WHEN kind = 2 THEN bid.price ELSE bid.auction END AS n FROM events WHERE kind = 2

Without the rule:

    Calc(select=[CASE(kind = 2, .field(bid, price), .field(bid, auction)) AS n], where=[kind = 2])
    +- TableSourceScan(table=[[events, project=[kind, bid.auction, bid.price]]], fields=[kind, bid])

With the rule:

    Calc(select=[.field(bid, price) AS n], where=[kind = 2])
    +- TableSourceScan(table=[[events, project=[kind, bid.price]]], fields=[kind, bid])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...plan.logical import Filter, Project, Relation
from ...plan.typed import Call, Column, Expr, Literal, Session
from ...types import Root
from ..conditions import parts_of
from .fold_constants import folded

_EXACT = (Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT, Root.BOOLEAN, Root.VARCHAR)
"""The types of which equal values are the same."""


def propagate_constants(plan: Relation, session: Session) -> Relation:
    """Replace columns in the calls of a projection by the constants to which the filter below it compares them."""
    return plan.mapped(lambda relation: _changed(relation, session))


def _changed(relation: Relation, session: Session) -> Relation:
    if not isinstance(relation, Project) or not isinstance(relation.input, Filter):
        return relation
    known = _known_columns(relation.input.condition)
    if not known:
        return relation

    def change(part: Expr) -> Expr:
        return known.get(part.index, part) if isinstance(part, Column) else part

    exprs = tuple(
        folded(expr.mapped(change), session) if isinstance(expr, Call) else expr for expr in relation.exprs
    )
    return relation if exprs == relation.exprs else replace(relation, exprs=exprs)


def _known_columns(condition: Expr) -> Mapping[int, Literal]:
    """Return the constants to which columns are equal where a condition is true, by the number of the column."""
    known: dict[int, Literal] = {}
    for part in parts_of(condition):
        if isinstance(part, Call) and part.function.name == "=":
            left, right = part.args
            if isinstance(left, Literal):
                left, right = right, left
            if isinstance(left, Column) and isinstance(right, Literal) and _is_exact(left, right):
                known[left.index] = Literal(left.type, right.value)
    return known


def _is_exact(column: Column, literal: Literal) -> bool:
    if column.type.root not in _EXACT or literal.value is None:
        return False
    return column.type.nullable() == literal.type.nullable() or (column.type.is_text and literal.type.is_text)


__all__ = ["propagate_constants"]
