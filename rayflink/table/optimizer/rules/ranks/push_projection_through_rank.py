"""Gives a ranking only the columns that are read by it or by the steps after it.

Example:

    SELECT id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY product ORDER BY ts) AS n FROM orders)
    WHERE n = 1

Without the rule:

    Calc(select=[id])
    +- Deduplicate(keep=[FirstRow], key=[product], order=[ROWTIME])
       +- Exchange(distribution=[hash[product]])
          +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
             +- TableSourceScan(table=[[orders]], fields=[id, product, price, tags, ts])

With the rule:

    Calc(select=[id])
    +- Deduplicate(keep=[FirstRow], key=[product], order=[ROWTIME])
       +- Exchange(distribution=[hash[product]])
          +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
             +- TableSourceScan(table=[[orders, project=[id, product, ts]]], fields=[id, product, ts])
"""

from __future__ import annotations

from dataclasses import replace

from ....plan.logical import Filter, Project, Relation
from ....plan.ranks import Rank, WindowRank
from ..push_projection_into_scan import columns_of, moved
from ..push_projection_through_join import with_columns


def push_projection_through_rank(plan: Relation) -> Relation:
    """Narrow the rankings below a Project, with or without a Filter between them; later ones come first."""
    plan = _narrowed(plan)
    inputs = tuple(push_projection_through_rank(below) for below in plan.inputs)
    same = all(new is old for new, old in zip(inputs, plan.inputs, strict=True))
    return plan if same else plan.with_inputs(inputs)


def _narrowed(relation: Relation) -> Relation:
    if not isinstance(relation, Project):
        return relation
    between = relation.input if isinstance(relation.input, Filter) else None
    rank = between.input if between is not None else relation.input
    if not isinstance(rank, Rank):
        return relation
    needed = {*columns_of(*relation.exprs), *rank.partition, *(key[0] for key in rank.keys)}
    if between is not None:
        needed |= set(columns_of(between.condition))
    below, places = with_columns(rank.input, needed - {rank.number})
    if below is rank.input:
        return relation
    places[rank.number] = len(below.schema)
    new_input: Relation = _of_columns(rank, below, places)
    if between is not None:
        condition = moved(between.condition, places)
        new_input = replace(between, schema=new_input.schema, input=new_input, condition=condition)
    return replace(relation, input=new_input, exprs=tuple(moved(expr, places) for expr in relation.exprs))


def _of_columns(rank: Rank, below: Relation, places: dict[int, int]) -> Rank:
    """Return the rank over `below`, with the numbers that its columns have there."""
    narrow_rank = replace(
        rank,
        schema=(*below.schema, rank.schema[-1]),
        input=below,
        partition=tuple(places[index] for index in rank.partition),
        keys=tuple((places[index], down, nulls_first) for index, down, nulls_first in rank.keys),
    )
    if isinstance(narrow_rank, WindowRank):
        start, end = narrow_rank.bounds
        narrow_rank = replace(narrow_rank, bounds=(places[start], places[end]))
    return narrow_rank


__all__ = ["push_projection_through_rank"]
