"""Conditions as parts that are joined by AND, and which columns each part reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from ..parsing.chains import join_in_pairs
from ..plan.logical import Filter, Relation
from ..plan.typed import Call, Expr, Literal, named
from ..types import DataTypes
from .rules.push_projection_into_scan import columns_of


def parts_of(condition: Expr) -> list[Expr]:
    """Return the conditions that are joined by AND; none for TRUE."""
    if isinstance(condition, Call) and condition.function.name == "AND":
        return [part for arg in condition.args for part in parts_of(arg)]
    if isinstance(condition, Literal) and condition.value is True:
        return []
    return [condition]


def all_of(parts: Sequence[Expr]) -> Expr | None:
    """Join conditions by AND; None where there are none."""
    if not parts:
        return None
    return join_in_pairs(parts, _both) if len(parts) > _MANY else reduce(_both, parts)


_MANY = 32


def _both(left: Expr, right: Expr) -> Expr:
    kind = DataTypes.BOOLEAN().as_nullable(left.type.is_nullable or right.type.is_nullable)
    return Call(kind, named("AND"), (left, right))


def always(parts: Sequence[Expr]) -> Expr:
    """Return the same, TRUE where there are none."""
    return all_of(parts) or Literal(DataTypes.BOOLEAN(False), True)


def filtered(relation: Relation, parts: Sequence[Expr]) -> Relation:
    """Return the rows for which all are true."""
    condition = all_of(parts)
    return relation if condition is None else Filter(relation.schema, relation, condition)


def reads_only(expr: Expr, columns: Iterable[int]) -> bool:
    """Return whether it reads no other columns, and some."""
    indexes = set(columns_of(expr))
    return bool(indexes) and indexes <= set(columns)


def is_movable(expr: Expr) -> bool:
    """Return whether it gives the same wherever it is computed."""
    return all(part.function.is_deterministic for part in expr.walk() if isinstance(part, Call))


__all__ = ["all_of", "always", "filtered", "is_movable", "parts_of", "reads_only"]
