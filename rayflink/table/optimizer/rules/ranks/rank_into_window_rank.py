"""Numbers rows within windows, so that the numbers are final when the window ends.

Source: apache/flink StreamPhysicalWindowRankRule, StreamPhysicalWindowDeduplicateRule.

Example:

    SELECT id, n FROM (SELECT id, ROW_NUMBER() OVER (
        PARTITION BY window_start, window_end ORDER BY price) AS n
      FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)))
    WHERE n <= 2

Without the rule:

    Calc(select=[id, ROW_NUMBER AS n])
    +- Rank(rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=2], partitionBy=[window_start, window_end],
         orderBy=[price ASC], select=[id, price, window_start, window_end, ROW_NUMBER])
       +- Exchange(distribution=[hash[window_start, window_end]])
          +- Calc(select=[id, price, window_start, window_end])
             +- WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[1 min])])
                +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
                   +- TableSourceScan(table=[[orders, project=[id, price, ts]]], fields=[id, price, ts])

With the rule:

    Calc(select=[id, ROW_NUMBER AS n])
    +- GlobalWindowRank(window=[win_start=[window_start], win_end=[window_end]], rankType=[ROW_NUMBER],
         rankRange=[rankStart=1, rankEnd=2], orderBy=[price ASC], select=[id, price, window_start, window_end,
         ROW_NUMBER])
       +- Exchange(distribution=[single])
          +- LocalWindowRank(window=[win_start=[window_start], win_end=[window_end]], rankType=[ROW_NUMBER],
               rankRange=[rankStart=1, rankEnd=2], orderBy=[price ASC], select=[id, price, window_start,
               window_end, ROW_NUMBER])
             +- Calc(select=[id, price, window_start, window_end])
                +- WindowTableFunction(window=[TUMBLE(time_col=[ts], size=[1 min])])
                   +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
                      +- TableSourceScan(table=[[orders, project=[id, price, ts]]], fields=[id, price, ts])
"""

from __future__ import annotations

from ....plan.logical import Filter, Project, Relation, TimePart, WindowTable
from ....plan.ranks import Rank, WindowRank
from ....plan.typed import Column


def rank_into_window_rank(plan: Relation) -> Relation:
    """Replace a Rank that is partitioned by both window bounds and limited to a number, in streams."""
    return plan.mapped(_windowed)


def _windowed(node: Relation) -> Relation:
    if type(node) is not Rank or node.last is None or node.is_whole:
        return node
    parts = {node.input.schema[index].part: index for index in reversed(node.partition)}
    if TimePart.WINDOW_START not in parts or TimePart.WINDOW_END not in parts:
        return node
    is_deduplicated = node.last == 1 and len(node.keys) == 1 and _is_event_time(node.input, node.keys[0][0])
    return WindowRank(
        node.schema, node.input, node.partition, node.keys, node.first, node.last,
        newest_first=is_deduplicated and node.keys[0][1],
        bounds=(parts[TimePart.WINDOW_START], parts[TimePart.WINDOW_END]),
        is_deduplicated=is_deduplicated, place=node.place,
    )  # fmt: skip


def _is_event_time(relation: Relation, index: int) -> bool:
    """Return whether a column is the event time, or was it before rows were put into windows."""
    if relation.schema[index].is_event_time:
        return True
    if isinstance(relation, Project):
        expr = relation.exprs[index]
        return isinstance(expr, Column) and _is_event_time(relation.input, expr.index)
    if isinstance(relation, (Filter, Rank)):
        return index < len(relation.input.schema) and _is_event_time(relation.input, index)
    return isinstance(relation, WindowTable) and relation.windowing.is_event_time and index == relation.windowing.time


__all__ = ["rank_into_window_rank"]
