"""Replaces the first or last row of each key in the order of a time attribute by a deduplication.

Source: apache/flink RankUtil.isDeduplication.

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

from ...plan.logical import Relation
from ...plan.ranks import Deduplicate, Rank


def rank_into_deduplicate(plan: Relation) -> Relation:
    """Replace a Rank for the single first row by time in a stream: by descending time it is the last one."""
    return plan.mapped(_single)


def _single(node: Relation) -> Relation:
    if type(node) is not Rank or node.is_whole or (node.first, node.last) != (1, 1) or len(node.keys) != 1:
        return node
    index, is_descending, _ = node.keys[0]
    if not node.input.schema[index].is_time:
        return node
    return Deduplicate(
        node.schema, node.input, node.partition, node.keys, 1, 1, keeps_last=is_descending, place=node.place
    )


__all__ = ["rank_into_deduplicate"]
