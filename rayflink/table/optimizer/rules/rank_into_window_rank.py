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

from ...plan.logical import Filter, Project, Relation, TimePart, WindowTable
from ...plan.ranks import Rank, WindowRank
from ...plan.typed import Column


def rank_into_window_rank(plan: Relation) -> Relation:
    """Replace a Rank that is partitioned by both window bounds and limited to a number, in streams."""
    return plan.mapped(_windowed)


def _windowed(one: Relation) -> Relation:
    if type(one) is not Rank or one.last is None or one.is_whole:
        return one
    parts = {one.input.schema[at].part: at for at in reversed(one.partition)}
    if TimePart.WINDOW_START not in parts or TimePart.WINDOW_END not in parts:
        return one
    is_deduplicated = one.last == 1 and len(one.keys) == 1 and _is_event_time(one.input, one.keys[0][0])
    return WindowRank(
        one.schema, one.input, one.partition, one.keys, one.first, one.last, False,
        (parts[TimePart.WINDOW_START], parts[TimePart.WINDOW_END]),
        is_deduplicated, is_deduplicated and one.keys[0][1], place=one.place,
    )  # fmt: skip


def _is_event_time(relation: Relation, at: int) -> bool:
    """Return whether a column is the event time, or was it before rows were put into windows."""
    if relation.schema[at].is_event_time:
        return True
    if isinstance(relation, Project):
        expr = relation.exprs[at]
        return isinstance(expr, Column) and _is_event_time(relation.input, expr.index)
    if isinstance(relation, (Filter, Rank)):
        return at < len(relation.input.schema) and _is_event_time(relation.input, at)
    return isinstance(relation, WindowTable) and relation.windowing.is_event_time and at == relation.windowing.time


__all__ = ["rank_into_window_rank"]
