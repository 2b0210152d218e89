"""A table that several parts of a program read is read once, with the columns of all of them.

Source: apache/flink ScanReuser.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..plan.logical import Attribute, Project, Relation, Scan, TimePart, WatermarkAssigner
from ..plan.scan_abilities import ColumnPushDown
from ..plan.typed import Column
from .rules.merge_projections_and_filters import inlined, merge_projections_and_filters
from .rules.push_nested_projection_into_scan import with_equal_fields


def share_scans(plans: Sequence[Relation]) -> list[Relation]:
    """Return the plans with one scan for those of a table that differ in their columns alone, and a projection each."""
    plans = with_equal_fields(plans)
    widened = _widened({relation for plan in plans for relation in plan.walk() if isinstance(relation, Scan)})
    if not widened:
        return plans

    def change(relation: Relation) -> Relation:
        if isinstance(relation, Scan) and relation in widened:
            wide = widened[relation]
            exprs = tuple(wide.column(wide.names.index(name)) for name in relation.names)
            return Project(relation.schema, wide, exprs)
        return _watermark_below(relation) if isinstance(relation, WatermarkAssigner) else relation

    return [merge_projections_and_filters(plan.mapped(change)) for plan in plans]


def _widened(scans: set[Scan]) -> dict[Scan, Scan]:
    """Return, for each scan that is not alone, the scan with the columns of all."""
    widened: dict[Scan, Scan] = {}
    by_path: dict[tuple[str, ...], list[Scan]] = {}
    for scan in scans:
        by_path.setdefault(scan.path, []).append(scan)
    for same in by_path.values():
        same.sort(key=_breadth)
        columns = {column.name: column for scan in same for column in scan.schema}
        by_source: dict[Any, list[Scan]] = {}
        for scan in same:
            by_source.setdefault(scan.source.projected(list(columns)), []).append(scan)
        for source, alike in by_source.items():
            if source is not None and len(alike) > 1:
                ability = ColumnPushDown(tuple(columns))
                wide = alike[0].with_ability(source, ability, tuple(columns.values()))
                widened.update({scan: wide for scan in alike if scan != wide})
    return widened


def _breadth(scan: Scan) -> tuple[int, list[str]]:
    """Return a sort key by which the scan that reads most comes first."""
    return -len(scan.schema), scan.names


def _watermark_below(assigner: WatermarkAssigner) -> Relation:
    """Move the assigner of watermarks to the table, below the projection that leaves out columns."""
    narrow = assigner.input
    if not isinstance(narrow, Project) or not all(isinstance(expr, Column) for expr in narrow.exprs):
        return assigner
    time = narrow.exprs[assigner.time]
    assert isinstance(time, Column)
    below = narrow.input
    schema: list[Attribute] = list(below.schema)
    schema[time.index] = replace(schema[time.index], part=TimePart.ROWTIME)
    expression = inlined(assigner.expression, narrow.exprs)
    moved = WatermarkAssigner(tuple(schema), below, time.index, expression, place=assigner.place)
    return Project(assigner.schema, moved, narrow.exprs)
