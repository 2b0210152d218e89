"""Stores the rows of joins of streams by a unique key, where a side has one, instead of by all their columns.

A row then replaces the one with its key. Where the pairs of a row replace those of the row before it, all of them,
its input may leave that one out.

Source: apache/flink JoinInputSideSpec, FlinkChangelogModeInferenceProgram.

Example:

    SELECT page, n FROM visits JOIN (SELECT id, COUNT(*) AS n FROM payments GROUP BY id) AS p ON visits.id = p.id

Without the rule:

    Calc(select=[page, n])
    +- Join(joinType=[InnerJoin], where=[id = id], select=[id, page, id0, n], leftInputSpec=[NoUniqueKey],
         rightInputSpec=[NoUniqueKey])
       :- Exchange(distribution=[hash[id]])
       :  +- TableSourceScan(table=[[visits]], fields=[id, page])
       +- Exchange(distribution=[hash[id]])
          +- Calc(select=[id, EXPR$0 AS n])
             +- GroupAggregate(groupBy=[id], select=[id, COUNT(*) AS EXPR$0])
                +- Exchange(distribution=[hash[id]])
                   +- TableSourceScan(table=[[payments, project=[id]]], fields=[id])

With the rule:

    Calc(select=[page, n])
    +- Join(joinType=[InnerJoin], where=[id = id], select=[id, page, id0, n], leftInputSpec=[NoUniqueKey],
         rightInputSpec=[JoinKeyContainsUniqueKey])
       :- Exchange(distribution=[hash[id]])
       :  +- TableSourceScan(table=[[visits]], fields=[id, page])
       +- Exchange(distribution=[hash[id]])
          +- Calc(select=[id, EXPR$0 AS n])
             +- GroupAggregate(groupBy=[id], select=[id, COUNT(*) AS EXPR$0])
                +- Exchange(distribution=[hash[id]])
                   +- TableSourceScan(table=[[payments, project=[id]]], fields=[id])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....plan.changelog import Change
from ....plan.joins import JoinKind, StreamJoin
from ....plan.logical import Relation
from ....plan.multi_joins import MultiJoin
from ....plan.upsert_keys import upsert_keys


def store_by_unique_key(plan: Relation) -> Relation:
    """Give each join of streams the unique keys of its sides."""
    return plan.mapped(_stored)


def _stored(node: Relation) -> Relation:
    if isinstance(node, MultiJoin):
        unique = tuple(_unique_key(side, keys) for side, keys in zip(node.inputs, node.keys, strict=True))
        is_plain = node.is_inner and not node.exprs_of_rows
        return replace(node, unique=unique, is_upsert=is_plain and _may_replace(node.inputs, unique, node.keys))
    if not isinstance(node, StreamJoin):
        return node
    left, right = (
        _unique_key(side, keys) for side, keys in zip(node.inputs, (node.keys.left, node.keys.right), strict=True)
    )
    join = replace(node, unique=(left, right))
    return replace(join, is_upsert=_takes_upserts(join))


def _unique_key(side: Relation, keys: Sequence[int]) -> tuple[int, ...]:
    """Return a unique key within the join's key, else one that has it, else the shortest; (): there is none."""
    unique = [tuple(sorted(key)) for key in upsert_keys(side) if key]
    joined = set(keys)
    return min(unique, key=lambda key: (not set(key) <= joined, not joined <= set(key), len(key), key), default=())


def _takes_upserts(join: StreamJoin) -> bool:
    """Return whether the rows that replace others may come without these.

    So they may where the unique key has the columns of the join's key, and no other condition decides about pairs.
    """
    if join.kind is not JoinKind.INNER or join.condition is not None:
        return False
    return _may_replace(join.inputs, join.unique, (join.keys.left, join.keys.right))


def _may_replace(sides: Sequence[Relation], unique: Sequence[Sequence[int]], keys: Sequence[Sequence[int]]) -> bool:
    """Return whether each side that changes rows has them by a unique key with the columns that are equal in a pair."""
    return all(
        Change.UPDATE not in _changes(side) or (len(key) > 0 and set(columns) <= set(key))
        for side, key, columns in zip(sides, unique, keys, strict=True)
    )


def _changes(relation: Relation) -> Change:
    return relation.gives_changes([_changes(below) for below in relation.inputs])


__all__ = ["store_by_unique_key"]
