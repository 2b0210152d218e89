"""Turns a condition on row numbers into bounds of the ranking.

Example, in batch mode:

    SELECT * FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY page ORDER BY id) AS n FROM visits)
    WHERE n <= 2

Without the rule:

    Calc(select=[id, ROW_NUMBER AS n], where=[ROW_NUMBER <= 2])
    +- Rank(rankType=[ROW_NUMBER], rankRange=[rankStart=1], partitionBy=[page], orderBy=[id ASC], select=[id,
         page, ROW_NUMBER])
       +- Exchange(distribution=[hash[page]])
          +- TableSourceScan(table=[[visits]], fields=[id, page])

With the rule:

    Calc(select=[id, ROW_NUMBER AS n])
    +- GlobalRank(rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=2], partitionBy=[page], orderBy=[id
         ASC], select=[id, page, ROW_NUMBER])
       +- Exchange(distribution=[hash[page]])
          +- LocalRank(rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=2], partitionBy=[page],
               orderBy=[id ASC], select=[id, page, ROW_NUMBER])
             +- TableSourceScan(table=[[visits]], fields=[id, page])
"""

from __future__ import annotations

from dataclasses import replace

from ....plan.logical import Filter, Relation
from ....plan.ranks import Rank
from ....plan.typed import Call, Column, Expr, Literal
from ....types import INTEGERS
from ...conditions import all_of, parts_of

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def push_filter_into_rank(plan: Relation) -> Relation:
    """Bound a Rank by the constants that a Filter compares its number with; other conditions stay in the filter."""
    return plan.mapped(_bounded)


def _bounded(relation: Relation) -> Relation:
    if not isinstance(relation, Filter) or not isinstance(relation.input, Rank):
        return relation
    rank, rest = relation.input, []
    for part in parts_of(relation.condition):
        bounds = _bounds(part, rank.number)
        narrowed = None if bounds is None else _narrowed(rank, *bounds)
        if narrowed is None:
            rest.append(part)
        else:
            rank = narrowed
    condition = all_of(rest)
    return rank if condition is None else replace(relation, input=rank, condition=condition)


def _bounds(condition: Expr, number: int) -> tuple[int | None, int | None] | None:
    """(least, greatest) number for which a condition is true; None: it says something else."""
    if not isinstance(condition, Call) or condition.function.name not in _MIRRORED or len(condition.args) != 2:
        return None
    left, right = (_uncast(arg) for arg in condition.args)
    name = condition.function.name
    if isinstance(left, Literal):
        left, right, name = right, left, _MIRRORED[name]
    if not isinstance(left, Column) or left.index != number or not isinstance(right, Literal):
        return None
    value = right.value
    if right.type.root not in INTEGERS or value is None:
        return None
    least = {"=": value, ">": value + 1, ">=": value}.get(name)
    return least, {"=": value, "<": value - 1, "<=": value}.get(name)


def _uncast(expr: Expr) -> Expr:
    """Return a whole number, without its change to a wider one."""
    if isinstance(expr, Call) and expr.function.name == "CAST" and expr.type.root in INTEGERS:
        if expr.args[0].type.root in INTEGERS[: INTEGERS.index(expr.type.root) + 1]:
            return expr.args[0]
    return expr


def _narrowed(rank: Rank, least: int | None, greatest: int | None) -> Rank | None:
    """Return the rows that are left; None: there are none."""
    first = max(rank.first, 1 if least is None else least)
    last = rank.last if greatest is None else min(greatest, greatest if rank.last is None else rank.last)
    return None if last is not None and last < first else replace(rank, first=first, last=last)


__all__ = ["push_filter_into_rank"]
