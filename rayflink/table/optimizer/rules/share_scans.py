"""A table that several parts of a program read is read once, with the columns of all of them.

Source: apache/flink ScanReuser.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...plan.logical import Attribute, Project, Relation, Scan, TimePart, WatermarkAssigner
from ...plan.typed import Column
from .merge_projections_and_filters import inlined, merge_projections_and_filters


def share_scans(plans: Sequence[Relation]) -> list[Relation]:
    """Scans of a table that differ in their columns alone become one, with a projection on it each."""
    widened = _widened({one for plan in plans for one in plan.walk() if isinstance(one, Scan)})
    if not widened:
        return list(plans)

    def change(one: Relation) -> Relation:
        if isinstance(one, Scan) and one in widened:
            wide = widened[one]
            exprs = tuple(wide.column(wide.names.index(name)) for name in one.names)
            return Project(one.schema, wide, exprs)
        return _watermark_below(one) if isinstance(one, WatermarkAssigner) else one

    return [merge_projections_and_filters(plan.mapped(change)) for plan in plans]


def _widened(scans: set[Scan]) -> dict[Scan, Scan]:
    """Return, for each scan that is not alone, the scan with the columns of all."""
    found: dict[Scan, Scan] = {}
    by_path: dict[tuple[str, ...], list[Scan]] = {}
    for one in scans:
        by_path.setdefault(one.path, []).append(one)
    for path, same in by_path.items():
        columns = {column.name: column for one in sorted(same, key=_breadth) for column in one.schema}
        by_source: dict[Any, list[Scan]] = {}
        for one in same:
            by_source.setdefault(one.source.projected(list(columns)), []).append(one)
        for source, alike in by_source.items():
            if source is not None and len(alike) > 1:
                wide = Scan(tuple(columns.values()), path, source)
                found.update({one: wide for one in alike if one != wide})
    return found


def _breadth(one: Scan) -> tuple[int, list[str]]:
    """Return a sort key by which the scan that reads most comes first."""
    return -len(one.schema), one.names


def _watermark_below(one: WatermarkAssigner) -> Relation:
    """Watermarks are made of the table, before columns are left out."""
    narrow = one.input
    if not isinstance(narrow, Project) or not all(isinstance(expr, Column) for expr in narrow.exprs):
        return one
    time = narrow.exprs[one.time]
    assert isinstance(time, Column)
    below = narrow.input
    schema: list[Attribute] = list(below.schema)
    schema[time.index] = replace(schema[time.index], part=TimePart.ROWTIME)
    expression = inlined(one.expression, narrow.exprs)
    made = WatermarkAssigner(tuple(schema), below, time.index, expression, place=one.place)
    return Project(one.schema, made, narrow.exprs)
