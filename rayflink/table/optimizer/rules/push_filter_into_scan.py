"""Lets a source skip rows that the filter above it would drop.

Only where no watermarks are made of its rows: these must not depend on what a query asks for.

Source: apache/flink PushFilterIntoTableSourceScanRule.

Example, in batch mode:

    SELECT id FROM orders WHERE price > 9

Without the rule:

    Calc(select=[id], where=[price > 9])
    +- TableSourceScan(table=[[orders, project=[id, price]]], fields=[id, price])

With the rule:

    Calc(select=[id], where=[price > 9])
    +- TableSourceScan(table=[[orders, filter=[price > 9], project=[id, price]]], fields=[id, price])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...plan.logical import Filter, Relation, Scan
from ...plan.lookup_joins import LookupJoin
from ...plan.scan_abilities import FilterPushDown
from ...plan.typed import Column, Expr
from ...plan.upsert_keys import upsert_names
from ..conditions import all_of, filtered, is_movable, parts_of


def push_filter_into_scan(plan: Relation) -> Relation:
    """Push a Filter into the Scan below it; conditions that the source does not evaluate stay above it."""
    return plan.mapped(_pushed)


def _pushed(relation: Relation) -> Relation:
    if isinstance(relation, LookupJoin) and relation.where is not None:
        pushed = _into_scan(relation.table, parts_of(relation.where))
        return relation if pushed is None else replace(relation, table=pushed[0], where=all_of(pushed[1]))
    if not isinstance(relation, Filter) or not isinstance(relation.input, Scan):
        return relation
    if upsert_names(relation.input):
        return relation  # a row that passes may replace one that does not
    pushed = _into_scan(relation.input, parts_of(relation.condition))
    return relation if pushed is None else filtered(*pushed)


def _into_scan(scan: Scan, conditions: Sequence[Expr]) -> tuple[Scan, list[Expr]] | None:
    """Return the scan of fewer rows, and the conditions that are left; None: it takes none."""
    offered = [condition for condition in conditions if is_movable(condition)]

    def of_scan(expr: Expr) -> Expr:
        return replace(expr, name=scan.names[expr.index]) if isinstance(expr, Column) else expr

    conditions_of_scan = [condition.mapped(of_scan) for condition in offered]
    result = scan.source.filtered(conditions_of_scan) if offered else None
    if result is None:
        return None
    source, left = result
    ability = FilterPushDown(tuple(conditions_of_scan), tuple(left))
    others = [condition for condition in conditions if not is_movable(condition)]
    return scan.with_ability(source, ability), [*left, *others]
