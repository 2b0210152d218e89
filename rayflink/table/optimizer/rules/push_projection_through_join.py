"""Gives a join only the columns that are read by it or by the steps after it.

Example, in batch mode:

    SELECT name FROM customers JOIN visits ON customers.id = visits.id

Without the rule:

    Calc(select=[name])
    +- HashJoin(joinType=[InnerJoin], where=[id = id], select=[id, name, id0, page], isBroadcast=[true],
         build=[left])
       :- Exchange(distribution=[broadcast])
       :  +- TableSourceScan(table=[[customers]], fields=[id, name])
       +- TableSourceScan(table=[[visits]], fields=[id, page])

With the rule:

    Calc(select=[name])
    +- HashJoin(joinType=[InnerJoin], where=[id = id], select=[id, name, id0], isBroadcast=[true], build=[left])
       :- Exchange(distribution=[broadcast])
       :  +- TableSourceScan(table=[[customers]], fields=[id, name])
       +- TableSourceScan(table=[[visits, project=[id]]], fields=[id])
"""

from __future__ import annotations

from dataclasses import replace

from ...plan.joins import IntervalJoin, KeyedJoin, WindowJoin, joined_schema
from ...plan.logical import Filter, Project, Relation
from ...plan.temporal_joins import TemporalJoin
from ...plan.typed import Column
from .push_projection_into_scan import columns_of, moved


def push_projection_through_join(plan: Relation) -> Relation:
    """Narrow the joins below a Project, with or without a Filter between them; later joins come first."""
    plan = _narrowed(plan)
    inputs = tuple(push_projection_through_join(one) for one in plan.inputs)
    same = all(new is old for new, old in zip(inputs, plan.inputs, strict=True))
    return plan if same else plan.with_inputs(inputs)


def _narrowed(one: Relation) -> Relation:
    if isinstance(one, KeyedJoin) and one.kind.is_of_left:
        return _narrowed_sides(one, set(range(len(one.schema))))[0]
    if not isinstance(one, Project):
        return one
    between = one.input if isinstance(one.input, Filter) else None
    join = between.input if between is not None else one.input
    if not isinstance(join, KeyedJoin):
        return one
    needed = {at for expr in one.exprs for at in columns_of(expr)}
    if between is not None:
        needed |= set(columns_of(between.condition))
    made, places = _narrowed_sides(join, needed)
    if made is join:
        return one
    below: Relation = made
    if between is not None:
        below = replace(between, schema=made.schema, input=made, condition=moved(between.condition, places))
    return replace(one, input=below, exprs=tuple(moved(expr, places) for expr in one.exprs))


def _narrowed_sides(join: KeyedJoin, needed: set[int]) -> tuple[KeyedJoin, dict[int, int]]:
    """Return the join of fewer columns, and where those of its result are."""
    width = join.width
    if join.condition is not None:
        needed = needed | set(columns_of(join.condition))
    left = {at for at in needed if at < width} | set(join.keys.left)
    right = {at - width for at in needed if at >= width} | set(join.keys.right)
    if isinstance(join, WindowJoin):
        left, right = left | set(join.left_bounds), right | set(join.right_bounds)
    if isinstance(join, IntervalJoin):
        left, right = left | {join.interval.left}, right | {join.interval.right}
    if isinstance(join, TemporalJoin):
        left, right = left | {join.times[0]}, right | {join.times[1]}
    own, own_places = with_columns(join.left, left)
    other, other_places = with_columns(join.right, right)
    if own is join.left and other is join.right:
        return join, {}
    keys = replace(
        join.keys,
        left=tuple(own_places[at] for at in join.keys.left),
        right=tuple(other_places[at] for at in join.keys.right),
    )
    both = {**own_places, **{at + width: place + len(own.schema) for at, place in other_places.items()}}
    condition = None if join.condition is None else moved(join.condition, both)
    schema = joined_schema(own.schema, other.schema, join.kind)
    made = replace(join, schema=schema, left=own, right=other, keys=keys, condition=condition)
    if isinstance(made, WindowJoin):
        (start, end), (other_start, other_end) = made.left_bounds, made.right_bounds
        left_bounds = own_places[start], own_places[end]
        right_bounds = other_places[other_start], other_places[other_end]
        made = replace(made, left_bounds=left_bounds, right_bounds=right_bounds)
    if isinstance(made, IntervalJoin):
        interval = made.interval
        times = replace(interval, left=own_places[interval.left], right=other_places[interval.right])
        made = replace(made, interval=times)
    if isinstance(made, TemporalJoin):
        return replace(made, times=(own_places[made.times[0]], other_places[made.times[1]])), both
    return made, both


def with_columns(side: Relation, wanted: set[int]) -> tuple[Relation, dict[int, int]]:
    """Return the relation with the wanted columns alone, and where each stands; the same one where it has no others."""
    kept = sorted(wanted) or [0]
    places = {at: number for number, at in enumerate(kept)}
    if len(kept) == len(side.schema):
        return side, places
    schema = tuple(side.schema[at] for at in kept)
    if isinstance(side, Project):
        return replace(side, schema=schema, exprs=tuple(side.exprs[at] for at in kept)), places
    exprs = tuple(Column(side.schema[at].type, at, side.schema[at].name) for at in kept)
    return Project(schema, side, exprs), places


__all__ = ["push_projection_through_join", "with_columns"]
