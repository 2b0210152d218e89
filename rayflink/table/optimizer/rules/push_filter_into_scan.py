"""A source leaves out rows that a filter behind it would.

Only where no watermarks are made of its rows: these must not depend on what a query asks for.

Source: apache/flink PushFilterIntoTableSourceScanRule.
"""

from __future__ import annotations

from dataclasses import replace

from ...plan.logical import Filter, Relation, Scan
from ...plan.typed import Column, Expr
from ..conditions import filtered, is_movable, parts_of


def push_filter_into_scan(plan: Relation) -> Relation:
    """Filter over Scan; what the source does not check itself is left behind it."""
    return plan.mapped(_pushed)


def _pushed(one: Relation) -> Relation:
    if not isinstance(one, Filter) or not isinstance(one.input, Scan):
        return one
    scan = one.input
    conditions = parts_of(one.condition)
    offered = [condition for condition in conditions if is_movable(condition)]

    def of_scan(expr: Expr) -> Expr:
        return replace(expr, name=scan.names[expr.index]) if isinstance(expr, Column) else expr

    found = scan.source.filtered([condition.mapped(of_scan) for condition in offered]) if offered else None
    if found is None:
        return one
    source, left = found
    others = [condition for condition in conditions if not is_movable(condition)]
    return filtered(replace(scan, source=source), [*left, *others])
