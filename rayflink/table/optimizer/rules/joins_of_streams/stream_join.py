"""Joins streams without windows or bounds of time: the rows of both sides stay in the state of the join.

Times of the sides are ordinary columns behind it, as rows are joined with those that came long before.

Source: apache/flink StreamPhysicalJoinRule.

Example:

    SELECT name, page FROM customers JOIN visits ON customers.id = visits.id

Without the rule:

    SqlError: a join without windows or bounds of time keeps all rows of both sides for ever

With the rule:

    Calc(select=[name, page])
    +- Join(joinType=[InnerJoin], where=[id = id], select=[id, name, id0, page], leftInputSpec=[NoUniqueKey],
         rightInputSpec=[NoUniqueKey])
       :- Exchange(distribution=[hash[id]])
       :  +- TableSourceScan(table=[[customers]], fields=[id, name])
       +- Exchange(distribution=[hash[id]])
          +- TableSourceScan(table=[[visits]], fields=[id, page])
"""

from __future__ import annotations

from dataclasses import replace

from ....errors import SqlError
from ....plan.joins import IntervalJoin, Join, StreamJoin, WindowJoin
from ....plan.logical import Filter, Project, Relation, WindowAggregate, WindowTable
from ....plan.matching import MatchRecognize
from ....plan.process_tables import ProcessTable
from ....plan.ranks import WindowRank
from ....plan.typed import Column
from ...join_keys import as_before, equalities, keyed


def stream_join(plan: Relation) -> Relation:
    """Turn each join of streams that no other rule has recognized into one that stores the rows of both sides.

    Raises:
        SqlError: windows, or another step that follows time, are behind such a join.
    """
    joined = plan.mapped(_joined)
    if joined is not plan:
        for node in joined.walk():
            _ensure_own_times(node)
    return joined


def _joined(node: Relation) -> Relation:
    if type(node) is not Join or node.is_whole:
        return node
    equal = equalities(node)
    join = keyed(node, equal.pairs, equal.rest)
    schema = tuple(replace(column, part=None, windowing=None) for column in join.schema)
    stream = StreamJoin(
        schema, join.left, join.right, join.kind, join.keys, join.condition, node.ttls,
        is_hinted=node.is_hinted, place=node.place,
    )  # fmt: skip
    return as_before(node, stream)


def _ensure_own_times(node: Relation) -> None:
    """Check that a step that follows time has times that no join has made ordinary columns."""
    columns: list[tuple[Relation, int]] = []
    match node:
        case WindowTable():
            columns.append((node.input, node.windowing.time))
        case WindowAggregate():
            columns.append(
                (node.input, node.windowing.time if node.windowing is not None else (node.bounds or (0,))[0])
            )
        case IntervalJoin():
            columns += [(node.left, node.interval.left), (node.right, node.interval.right)]
        case WindowJoin():
            columns += [(node.left, node.left_bounds[0]), (node.right, node.right_bounds[0])]
        case WindowRank():
            columns.append((node.input, node.bounds[0]))
        case MatchRecognize() if not node.is_whole:
            columns.append((node.input, node.order[0][0]))
        case ProcessTable():
            pairs = zip(node.relations, node.tables, strict=True)
            columns += [(below, table.time) for below, table in pairs if table.time is not None]
    for relation, column in columns:
        if is_joined(relation, column):
            name, kind = relation.names[column], relation.schema[column].type.nullable()
            problem = f"{name!r} is no time attribute behind a join without windows or bounds of time, whose rows may "
            problem += "come at any time"
            remedy = "go by windows before the join, or bound the times of both: a.ts BETWEEN b.ts - INTERVAL '1' HOUR "
            remedy += f"AND b.ts; to group by the values alone write CAST({name} AS {kind})"
            raise SqlError(problem, remedy, "", node.place)


def is_joined(relation: Relation, column: int) -> bool:
    """Return whether a column is one of a join of streams below."""
    match relation:
        case Project():
            expr = relation.exprs[column]
            return isinstance(expr, Column) and is_joined(relation.input, expr.index)
        case Filter():
            return is_joined(relation.input, column)
    return isinstance(relation, StreamJoin)


__all__ = ["is_joined", "stream_join"]
