"""Joins rows with the versions of a table that hold at their event times.

The right side is a versioned table: it has a primary key, which the condition compares, and an event time. The keys of
the join are that key; what else is compared becomes a condition of the pair.

Source: apache/flink LogicalCorrelateToJoinFromTemporalTableRule.

Example:

    WITH latest AS (
      SELECT id, amount, ts
      FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts DESC) AS n FROM payments) WHERE n = 1)
    SELECT o.product, p.amount FROM orders AS o JOIN latest FOR SYSTEM_TIME AS OF o.ts AS p ON o.id = p.id

Without the rule:

    SqlError: FOR SYSTEM_TIME AS OF a processing time joins Deduplicate(keep=[LastRow], key=[id],
         order=[ROWTIME]), which is no table

With the rule:

    Calc(select=[product, amount])
    +- TemporalJoin(leftTime=[ts], rightTime=[ts], joinType=[InnerJoin], where=[id = id], select=[id, product, ts,
         id0, amount, ts0])
       :- Exchange(distribution=[hash[id]])
       :  +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
       :     +- TableSourceScan(table=[[orders, project=[id, product, ts]]], fields=[id, product, ts])
       +- Exchange(distribution=[hash[id]])
          +- Calc(select=[id, amount, ts])
             +- Deduplicate(keep=[LastRow], key=[id], order=[ROWTIME])
                +- Exchange(distribution=[hash[id]])
                   +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
                      +- TableSourceScan(table=[[payments]], fields=[id, amount, ts])
"""

from __future__ import annotations

from ....errors import SqlError
from ....plan.changelog import Change, changes_of
from ....plan.joins import joined_schema
from ....plan.logical import Filter, Project, Relation, WatermarkAssigner
from ....plan.lookup_joins import SnapshotJoin
from ....plan.temporal_joins import TemporalJoin
from ....plan.typed import Column
from ....plan.upsert_keys import upsert_keys
from ...conditions import parts_of
from ...join_keys import Pair, as_before, equalities, keyed
from .recognize_lookup_join import condition_of


def recognize_temporal_join(plan: Relation) -> Relation:
    """Join by event time with versions of the right side."""
    return plan.mapped(lambda relation: _joined(relation) if isinstance(relation, SnapshotJoin) else relation)


def _joined(join: SnapshotJoin) -> Relation:
    if not join.left.schema[join.time].is_event_time:
        return join
    times = [index for index, column in enumerate(join.right.schema) if column.is_event_time]
    if len(times) != 1:
        problem = f"the table on the right of FOR SYSTEM_TIME AS OF has {len(times)} columns with an event time"
        remedy = "declare WATERMARK FOR one column of it, from which each version holds, and select that column"
        raise SqlError(problem, remedy, "", join.place)
    kinds = [join.left.schema[join.time].type, join.right.schema[times[0]].type]
    if kinds[0].root is not kinds[1].root:
        left, right = (kind.nullable() for kind in kinds)
        problem = f"FOR SYSTEM_TIME AS OF a {left} of a table whose versions hold from a {right}"
        remedy = "let both tables have a WATERMARK FOR columns of one type: CAST one of them in a computed column"
        raise SqlError(problem, remedy, "", join.place)
    pairs = _pairs_of_key(join)
    _ensure_whole_versions(join)
    parts = [condition_of(pair, join) for pair in pairs]
    rest = [part for part in parts_of(join.condition) if part not in parts]
    by_key = keyed(join, pairs, rest)
    schema = joined_schema(by_key.left.schema, by_key.right.schema, by_key.kind)
    result = TemporalJoin(
        schema, by_key.left, by_key.right, by_key.kind, by_key.keys, by_key.condition, (join.time, times[0]),
        place=join.place,
    )  # fmt: skip
    return as_before(join, result)


def _ensure_whole_versions(join: SnapshotJoin) -> None:
    """Refuse a filter of rows that change: where the next version does not pass it, nothing says when one ends."""
    right = join.right
    while isinstance(right, (Project, Filter, WatermarkAssigner)):
        if isinstance(right, Filter) and changes_of(right.input) != Change.INSERT:
            problem = f"the rows on the right of FOR SYSTEM_TIME AS OF change, and are filtered: {right.condition}"
            remedy = "write the condition behind ON, where it is checked on the version that holds then"
            raise SqlError(problem, remedy, "", join.place)
        right = right.input


def _pairs_of_key(join: SnapshotJoin) -> list[Pair]:
    """Return the equalities with the primary key of the right side.

    Raises:
        SqlError: it has none, or a column of it is not compared.
    """
    by_column = {pair.right.index: pair for pair in equalities(join).pairs
                 if isinstance(pair.right, Column) and not pair.nulls_match}  # fmt: skip
    keys = sorted(map(sorted, upsert_keys(join.right)), key=len)
    for key in keys:
        if key and set(key) <= by_column.keys():
            return [by_column[column] for column in key]
    if not keys:
        problem = "the table on the right of FOR SYSTEM_TIME AS OF has no primary key, so its rows have no versions"
        remedy = (
            "declare PRIMARY KEY (...) NOT ENFORCED, or name a view with the last row of each key by "
            "ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) = 1"
        )
        raise SqlError(problem, remedy, "", join.place)
    names = ", ".join(join.right.names[column] for column in keys[0])
    problem = f"the condition of FOR SYSTEM_TIME AS OF does not compare the primary key of the right side: {names}"
    raise SqlError(problem, "let each of these columns be equal to a value of the left side", "", join.place)


__all__ = ["recognize_temporal_join"]
