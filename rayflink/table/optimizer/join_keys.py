"""The parts of a join's condition that say that a value of one side is equal to one of the other: its keys.

A key that is no column becomes one before the join, in the type of both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..binding.expressions import cast
from ..plan.joins import Join, KeyedJoin, Keys, joined_schema
from ..plan.logical import Attribute, Project, Relation
from ..plan.type_rules import common_type
from ..plan.typed import Call, Column, Expr
from ..types import Root
from .conditions import all_of, is_movable, parts_of, reads_only
from .rules.push_projection_into_scan import moved


@dataclass(frozen=True)
class Pair:
    """Two values that are equal, each over the columns of its side."""

    left: Expr
    right: Expr
    nulls_match: bool


@dataclass(frozen=True)
class Equalities:
    """The condition of a join.

    Args:
        pairs: what is equal.
        rest: what else is to be true, over the columns of both sides.
    """

    pairs: tuple[Pair, ...]
    rest: tuple[Expr, ...]


def equalities(join: Join) -> Equalities:
    """Return the keys of a join, and the rest of its condition."""
    pairs: list[Pair] = []
    rest: list[Expr] = []
    for part in parts_of(join.condition):
        found = _pair(part, join)
        if found is None:
            rest.append(part)
        else:
            pairs.append(found)
    return Equalities(tuple(pairs), tuple(rest))


def _pair(part: Expr, join: Join) -> Pair | None:
    if not isinstance(part, Call) or part.function.name not in ("=", "IS NOT DISTINCT FROM") or not is_movable(part):
        return None
    own = range(join.width)
    other = range(join.width, join.width + len(join.right.schema))
    places = {at: number for number, at in enumerate(other)}
    one, two = part.args
    if reads_only(two, own) and reads_only(one, other):
        one, two = two, one
    if not (reads_only(one, own) and reads_only(two, other)) or _type_of(one, two) is None:
        return None
    return Pair(one, moved(two, places), part.function.name != "=")


def _type_of(one: Expr, two: Expr) -> object:
    kind = common_type([one.type, two.type])
    return None if kind is None or kind.root in (Root.MAP, Root.MULTISET, Root.ROW, Root.ARRAY) else kind


def keyed(join: Join, pairs: Sequence[Pair], rest: Sequence[Expr]) -> KeyedJoin:
    """Return the join by these keys; it may have more columns, see `as_before`."""
    left, left_keys = _with_keys(join.left, [one.left for one in pairs], [one.right for one in pairs])
    right, right_keys = _with_keys(join.right, [one.right for one in pairs], [one.left for one in pairs])
    shift = len(left.schema) - join.width
    places = {at: at + (shift if at >= join.width else 0) for at in range(join.width + len(join.right.schema))}
    condition = all_of([moved(part, places) for part in rest])
    keys = Keys(left_keys, right_keys, tuple(one.nulls_match for one in pairs))
    schema = joined_schema(left.schema, right.schema, join.kind)
    return KeyedJoin(schema, left, right, join.kind, keys, condition, place=join.place)


def as_before(join: Join, made: KeyedJoin) -> Relation:
    """Return the columns of a join as they were before columns were added for its keys."""
    if len(made.schema) == len(join.schema):
        return made
    shift = len(made.left.schema) - join.width
    places = [at + (shift if at >= join.width else 0) for at in range(len(join.schema))]
    return Project(join.schema, made, tuple(made.column(at) for at in places))


def _with_keys(side: Relation, own: Sequence[Expr], others: Sequence[Expr]) -> tuple[Relation, tuple[int, ...]]:
    """Return a side with a column for each key, and their numbers."""
    exprs: list[Expr] = [side.column(at) for at in range(len(side.schema))]
    schema = list(side.schema)
    numbers: list[int] = []
    for one, other in zip(own, others, strict=True):
        kind = common_type([one.type, other.type])
        assert kind is not None
        if isinstance(one, Column) and one.type.to_arrow() == kind.to_arrow():
            numbers.append(one.index)
            continue
        wanted = kind.as_nullable(one.type.is_nullable)
        value = one if one.type.to_arrow() == kind.to_arrow() else cast(one, wanted)
        numbers.append(len(exprs))
        schema.append(Attribute(f"$key{len(exprs)}", wanted))
        exprs.append(value)
    if len(exprs) == len(side.schema):
        return side, tuple(numbers)
    return Project(tuple(schema), side, tuple(exprs)), tuple(numbers)


__all__ = ["Equalities", "Pair", "as_before", "equalities", "keyed"]
