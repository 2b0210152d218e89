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
from ...plan.multi_joins import MultiJoin, multi_joined_schema
from ...plan.temporal_joins import TemporalJoin
from ...plan.typed import Column
from .push_projection_into_scan import columns_of, moved


def push_projection_through_join(plan: Relation) -> Relation:
    """Narrow the joins below a Project, with or without a Filter between them; later joins come first."""
    plan = _narrowed(plan)
    inputs = tuple(push_projection_through_join(below) for below in plan.inputs)
    same = all(new is old for new, old in zip(inputs, plan.inputs, strict=True))
    return plan if same else plan.with_inputs(inputs)


def _narrowed(relation: Relation) -> Relation:
    if isinstance(relation, KeyedJoin) and relation.kind.is_of_left:
        return _narrowed_sides(relation, set(range(len(relation.schema))))[0]
    if not isinstance(relation, Project):
        return relation
    between = relation.input if isinstance(relation.input, Filter) else None
    join = between.input if between is not None else relation.input
    if not isinstance(join, KeyedJoin | MultiJoin):
        return relation
    needed = {index for expr in relation.exprs for index in columns_of(expr)}
    if between is not None:
        needed |= set(columns_of(between.condition))
    narrow_join: Relation
    narrow_join, places = (
        _narrowed_inputs(join, needed) if isinstance(join, MultiJoin) else _narrowed_sides(join, needed)
    )
    if narrow_join is join:
        return relation
    below: Relation = narrow_join
    if between is not None:
        condition = moved(between.condition, places)
        below = replace(between, schema=narrow_join.schema, input=narrow_join, condition=condition)
    return replace(relation, input=below, exprs=tuple(moved(expr, places) for expr in relation.exprs))


def _narrowed_sides(join: KeyedJoin, needed: set[int]) -> tuple[KeyedJoin, dict[int, int]]:
    """Return the join of fewer columns, and where those of its result are."""
    width = join.width
    if join.condition is not None:
        needed = needed | set(columns_of(join.condition))
    left = {index for index in needed if index < width} | set(join.keys.left)
    right = {index - width for index in needed if index >= width} | set(join.keys.right)
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
        left=tuple(own_places[index] for index in join.keys.left),
        right=tuple(other_places[index] for index in join.keys.right),
    )
    both = {**own_places, **{index + width: place + len(own.schema) for index, place in other_places.items()}}
    condition = None if join.condition is None else moved(join.condition, both)
    schema = joined_schema(own.schema, other.schema, join.kind)
    narrow_join = replace(join, schema=schema, left=own, right=other, keys=keys, condition=condition)
    if isinstance(narrow_join, WindowJoin):
        (start, end), (other_start, other_end) = narrow_join.left_bounds, narrow_join.right_bounds
        left_bounds = own_places[start], own_places[end]
        right_bounds = other_places[other_start], other_places[other_end]
        narrow_join = replace(narrow_join, left_bounds=left_bounds, right_bounds=right_bounds)
    if isinstance(narrow_join, IntervalJoin):
        interval = narrow_join.interval
        times = replace(interval, left=own_places[interval.left], right=other_places[interval.right])
        narrow_join = replace(narrow_join, interval=times)
    if isinstance(narrow_join, TemporalJoin):
        return replace(narrow_join, times=(own_places[narrow_join.times[0]], other_places[narrow_join.times[1]])), both
    return narrow_join, both


def _narrowed_inputs(join: MultiJoin, needed: set[int]) -> tuple[MultiJoin, dict[int, int]]:
    """Return the same of a join of several inputs."""
    needed = needed | set(columns_of(*join.exprs_of_rows))
    relations: list[Relation] = []
    keys: list[tuple[int, ...]] = []
    places: dict[int, int] = {}
    start = 0
    for number, relation in enumerate(join.relations):
        before = join.starts[number]
        own = {index - before for index in needed if before <= index < join.starts[number + 1]}
        narrow, own_places = with_columns(relation, own | set(join.keys[number]))
        places |= {before + index: start + place for index, place in own_places.items()}
        keys.append(tuple(own_places[index] for index in join.keys[number]))
        relations.append(narrow)
        start += len(narrow.schema)
    if all(narrow is relation for narrow, relation in zip(relations, join.relations, strict=True)):
        return join, {}
    steps = tuple(
        step if step.condition is None else replace(step, condition=moved(step.condition, places))
        for step in join.steps
    )
    schema = multi_joined_schema(relations, steps)
    return replace(join, schema=schema, relations=tuple(relations), steps=steps, keys=tuple(keys)), places


def with_columns(side: Relation, wanted: set[int]) -> tuple[Relation, dict[int, int]]:
    """Return the relation with the wanted columns alone, and where each stands; the same one where it has no others."""
    indexes = sorted(wanted) or [0]
    places = {index: number for number, index in enumerate(indexes)}
    if len(indexes) == len(side.schema):
        return side, places
    schema = tuple(side.schema[index] for index in indexes)
    if isinstance(side, Project):
        return replace(side, schema=schema, exprs=tuple(side.exprs[index] for index in indexes)), places
    exprs = tuple(Column(side.schema[index].type, index, side.schema[index].name) for index in indexes)
    return Project(schema, side, exprs), places


__all__ = ["push_projection_through_join", "with_columns"]
