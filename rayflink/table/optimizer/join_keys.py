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
        pair = _pair(part, join)
        if pair is None:
            rest.append(part)
        else:
            pairs.append(pair)
    return Equalities(tuple(pairs), tuple(rest))


def is_key(part: Expr, join: Join) -> bool:
    """Return whether a part of a join's condition, or one behind the join, says that values of its sides are equal."""
    return _pair(part, join) is not None


def _pair(part: Expr, join: Join) -> Pair | None:
    if not isinstance(part, Call) or part.function.name not in ("=", "IS NOT DISTINCT FROM") or not is_movable(part):
        return None
    own = range(join.width)
    other = range(join.width, join.width + len(join.right.schema))
    places = {index: number for number, index in enumerate(other)}
    left, right = part.args
    if reads_only(right, own) and reads_only(left, other):
        left, right = right, left
    if not (reads_only(left, own) and reads_only(right, other)) or _type_of(left, right) is None:
        return None
    return Pair(left, moved(right, places), part.function.name != "=")


def _type_of(left: Expr, right: Expr) -> object:
    kind = common_type([left.type, right.type])
    return None if kind is None or kind.root in (Root.MAP, Root.MULTISET, Root.ROW, Root.ARRAY, Root.RAW) else kind


def keyed(join: Join, pairs: Sequence[Pair], rest: Sequence[Expr]) -> KeyedJoin:
    """Return the join by these keys; it may have more columns, see `as_before`."""
    left, left_keys = _with_keys(join.left, [pair.left for pair in pairs], [pair.right for pair in pairs])
    right, right_keys = _with_keys(join.right, [pair.right for pair in pairs], [pair.left for pair in pairs])
    shift = len(left.schema) - join.width
    places = {
        index: index + (shift if index >= join.width else 0) for index in range(join.width + len(join.right.schema))
    }
    condition = all_of([moved(part, places) for part in rest])
    keys = Keys(left_keys, right_keys, tuple(pair.nulls_match for pair in pairs))
    schema = joined_schema(left.schema, right.schema, join.kind)
    return KeyedJoin(schema, left, right, join.kind, keys, condition, place=join.place)


def as_before(join: Join, keyed_join: KeyedJoin) -> Relation:
    """Return the columns of a join as they were before columns were added for its keys."""
    if len(keyed_join.schema) == len(join.schema):
        return keyed_join
    shift = len(keyed_join.left.schema) - join.width
    places = [index + (shift if index >= join.width else 0) for index in range(len(join.schema))]
    return Project(join.schema, keyed_join, tuple(keyed_join.column(index) for index in places))


def _with_keys(side: Relation, own: Sequence[Expr], others: Sequence[Expr]) -> tuple[Relation, tuple[int, ...]]:
    """Return a side with a column for each key, and their numbers."""
    exprs: list[Expr] = [side.column(index) for index in range(len(side.schema))]
    schema = list(side.schema)
    numbers: list[int] = []
    for key, other in zip(own, others, strict=True):
        kind = common_type([key.type, other.type])
        assert kind is not None
        if isinstance(key, Column) and key.type.to_arrow() == kind.to_arrow():
            numbers.append(key.index)
            continue
        wanted = kind.as_nullable(key.type.is_nullable)
        value = key if key.type.to_arrow() == kind.to_arrow() else cast(key, wanted)
        numbers.append(len(exprs))
        schema.append(Attribute(f"$key{len(exprs)}", wanted))
        exprs.append(value)
    if len(exprs) == len(side.schema):
        return side, tuple(numbers)
    return Project(tuple(schema), side, tuple(exprs)), tuple(numbers)


__all__ = ["Equalities", "Pair", "as_before", "equalities", "is_key", "keyed"]
