"""Replaces the first or last row of each key in the order of a time attribute by a deduplication.

Only rows that come and stay have a first one that is final. Where rows change later, or where the time is that of one
side of a join of streams, the first row is the Top-N with one row, which changes with them. By processing time that is
the order in which rows come: the column itself has another value when a row is taken back.

Source: apache/flink RankUtil.isDeduplication, FLINK-34702.

Example:

    SELECT id FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY product ORDER BY ts) AS n FROM orders)
    WHERE n = 1

Without the rule:

    Calc(select=[id])
    +- Rank(rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=1], partitionBy=[product], orderBy=[ts ASC],
         select=[id, product, ts, ROW_NUMBER])
       +- Exchange(distribution=[hash[product]])
          +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
             +- TableSourceScan(table=[[orders, project=[id, product, ts]]], fields=[id, product, ts])

With the rule:

    Calc(select=[id])
    +- Deduplicate(keep=[FirstRow], key=[product], order=[ROWTIME])
       +- Exchange(distribution=[hash[product]])
          +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
             +- TableSourceScan(table=[[orders, project=[id, product, ts]]], fields=[id, product, ts])
"""

from __future__ import annotations

from dataclasses import replace

from ....binding.expressions import call
from ....plan.changelog import Change, changes_of
from ....plan.logical import Attribute, Project, Relation, TimePart
from ....plan.ranks import Deduplicate, Rank, WindowRank
from ....plan.typed import Expr, Literal
from ....plan.upsert_keys import upsert_key
from ....plan.upserts import ChangelogNormalize, UpsertMaterialize
from ....types import DataTypes
from ..joins_of_streams.stream_join import is_joined


def rank_into_deduplicate(plan: Relation) -> Relation:
    """Replace a Rank for the single first row by time in a stream: by descending time it is the last one.

    It is applied before joins are recognized and again behind that, when it is known which steps change their rows.
    """
    return plan.mapped(_single)


def _single(node: Relation) -> Relation:
    if not isinstance(node, Rank) or isinstance(node, WindowRank) or node.is_whole or node.last is None:
        return node
    if len(node.keys) != 1:
        return node
    index, is_descending, _ = node.keys[0]
    time, is_single = node.input.schema[index], (node.first, node.last) == (1, 1)
    has_changes = bool(changes_of(node.input) & (Change.UPDATE | Change.DELETE))
    if has_changes and time.part is TimePart.PROCTIME and index not in node.partition:
        return _by_arrival(node, is_descending)
    if not is_single or (not time.is_time and not isinstance(node, Deduplicate)):
        return node
    if has_changes or not time.is_time or is_joined(node.input, index):
        return Rank(node.schema, node.input, node.partition, node.keys, 1, 1, place=node.place)
    if isinstance(node, Deduplicate):
        return node
    return Deduplicate(
        node.schema, node.input, node.partition, node.keys, 1, 1, keeps_last=is_descending, place=node.place
    )


def _by_arrival(node: Rank, is_descending: bool) -> Relation:
    """Return the first or the last rows of each key in the order in which rows come, of rows that change."""
    below = node.input
    clocks = {
        index for index, column in enumerate(below.schema)
        if column.part is TimePart.PROCTIME and index not in node.partition
    }  # fmt: skip
    schema = tuple(_without_time(column) if index in clocks else column for index, column in enumerate(below.schema))
    exprs: list[Expr] = [
        Literal(column.type, None) if index in clocks else below.column(index) for index, column in enumerate(schema)
    ]
    is_last_row = is_descending and (node.first, node.last) == (1, 1)
    if is_last_row:
        chosen: Relation = _last_row(schema, below, exprs, node)
    else:
        timeless = Project(schema, below, tuple(exprs))
        numbered = (*schema, node.schema[node.number])
        chosen = Rank(
            numbered, timeless, node.partition, (), node.first, node.last, newest_first=is_descending, place=node.place
        )
    now = call("PROCTIME", (), node.place)
    shown: list[Expr] = [now if index in clocks else chosen.column(index) for index in range(len(schema))]
    number = Literal(node.schema[node.number].type, 1) if is_last_row else chosen.column(node.number)
    return Project(node.schema, chosen, (*shown, number), place=node.place)


def _last_row(schema: tuple[Attribute, ...], below: Relation, exprs: list[Expr], node: Rank) -> Relation:
    """Return of each key of `node` the row that came last, and the one before it when that is taken back.

    Where all rows have one key it is a constant column behind the others.
    """
    partition = node.partition
    if not partition:
        zero = Literal(DataTypes.TINYINT(False), 0)
        partition, schema = (len(schema),), (*schema, Attribute("key", zero.type))
        exprs = [*exprs, zero]
    timeless = Project(schema, below, tuple(exprs))
    compared = upsert_key(timeless) or tuple(range(len(schema)))
    last = UpsertMaterialize(schema, timeless, partition, compared, place=node.place)
    return ChangelogNormalize(schema, last, partition, place=node.place)


def _without_time(column: Attribute) -> Attribute:
    return replace(column, type=column.type.nullable(), part=None)


__all__ = ["rank_into_deduplicate"]
