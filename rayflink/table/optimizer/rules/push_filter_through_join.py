"""Evaluates conditions on one side of a join below it; those on both sides become part of an inner join.

A side that is kept whole by an outer join is not filtered by the join's own condition, and one that may be missing is
not filtered by a condition behind the join. The versions that a join by event time looks for stay whole: without one
that does not pass, an older one would be found.

Example, in batch mode:

    SELECT name FROM customers JOIN visits ON customers.id = visits.id
    WHERE page = '/1' AND name <> 'c2'

Without the rule:

    Calc(select=[name], where=[(page = '/1') AND (name <> 'c2')])
    +- HashJoin(joinType=[InnerJoin], where=[id = id], select=[id, name, id0, page], isBroadcast=[true],
         build=[left])
       :- Exchange(distribution=[broadcast])
       :  +- TableSourceScan(table=[[customers]], fields=[id, name])
       +- TableSourceScan(table=[[visits]], fields=[id, page])

With the rule:

    Calc(select=[name])
    +- HashJoin(joinType=[InnerJoin], where=[id = id], select=[id, name, id0], isBroadcast=[true], build=[left])
       :- Exchange(distribution=[broadcast])
       :  +- Calc(select=[id, name], where=[name <> 'c2'])
       :     +- TableSourceScan(table=[[customers]], fields=[id, name])
       +- Calc(select=[id], where=[page = '/1'])
          +- TableSourceScan(table=[[visits]], fields=[id, page])
"""

from __future__ import annotations

from dataclasses import replace

from ...plan.async_steps import awaits
from ...plan.joins import Join, JoinKind
from ...plan.logical import Filter, Relation
from ...plan.lookup_joins import SnapshotJoin
from ...plan.typed import Expr
from ..conditions import always, is_movable, parts_of, reads_only
from ..join_keys import is_key
from .push_projection_into_scan import moved


def push_filter_through_join(plan: Relation) -> Relation:
    """Push the conditions of a Filter over a Join, and those of the Join itself, to its sides."""
    return plan.mapped(_pushed)


def _pushed(relation: Relation) -> Relation:
    if isinstance(relation, Join):
        return _awaiting_behind(_own(relation))
    if isinstance(relation, Filter) and isinstance(relation.input, Join):
        return _behind(relation, relation.input)
    return relation


def _own(join: Join) -> Join:
    """Return the condition of the join itself."""
    left: list[Expr] = []
    right: list[Expr] = []
    rest: list[Expr] = []
    into_left = not join.kind.keeps_left and join.kind is not JoinKind.ANTI
    for part in parts_of(join.condition):
        side = _side(part, join)
        if side == 0 and into_left:
            left.append(part)
        elif side == 1 and not join.kind.keeps_right and not _has_versions(join):
            right.append(part)
        else:
            rest.append(part)
    return _with(join, left, right, rest) if left or right else join


def _awaiting_behind(join: Join) -> Relation:
    """Return an inner join with the conditions behind it whose functions are awaited: joins await nothing."""
    parts = parts_of(join.condition)
    behind = [part for part in parts if _is_awaited_behind(part, join)]
    if not behind or join.kind is not JoinKind.INNER:
        return join
    rest = [part for part in parts if all(part is not other for other in behind)]
    return Filter(join.schema, replace(join, condition=always(rest)), always(behind))


def _is_awaited_behind(part: Expr, join: Join) -> bool:
    """Return whether a condition awaits a function of both sides; keys are awaited before the join."""
    return awaits(part) and not is_key(part, join)


def _behind(above: Filter, join: Join) -> Relation:
    """Return a condition behind it."""
    left: list[Expr] = []
    right: list[Expr] = []
    both: list[Expr] = []
    rest: list[Expr] = []
    for part in parts_of(above.condition):
        side = _side(part, join)
        if side == 0 and not join.kind.keeps_right:
            left.append(part)
        elif side == 1 and not join.kind.keeps_left and not _has_versions(join):
            right.append(part)
        elif join.kind is JoinKind.INNER and is_movable(part) and not _is_awaited_behind(part, join):
            both.append(part)
        else:
            rest.append(part)
    if not (left or right or both):
        return above
    new_join = _with(join, left, right, [*parts_of(join.condition), *both])
    return replace(above, input=new_join, condition=always(rest)) if rest else new_join


def _has_versions(join: Join) -> bool:
    """Return whether rows are joined with those that the right side has at an event time."""
    return isinstance(join, SnapshotJoin) and join.left.schema[join.time].is_event_time


def _side(part: Expr, join: Join) -> int | None:
    """Return the side whose columns alone it reads; None: both, or it may not be moved."""
    if not is_movable(part):
        return None
    if reads_only(part, range(join.width)):
        return 0
    width = join.width
    return 1 if reads_only(part, range(width, width + len(join.right.schema))) else None


def _with(join: Join, left: list[Expr], right: list[Expr], condition: list[Expr]) -> Join:
    places = {join.width + index: index for index in range(len(join.right.schema))}
    own = _filtered(join.left, left)
    other = _filtered(join.right, [moved(part, places) for part in right])
    return replace(join, left=own, right=other, condition=always(condition))


def _filtered(relation: Relation, parts: list[Expr]) -> Relation:
    if not parts:
        return relation
    if isinstance(relation, Filter):
        return _filtered(relation.input, [*parts_of(relation.condition), *parts])
    return _pushed(Filter(relation.schema, relation, always(parts)))


__all__ = ["push_filter_through_join"]
