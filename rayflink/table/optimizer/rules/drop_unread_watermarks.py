"""Removes watermarks of streams that no step reads, and thereby columns that only they are computed from.

A step reads them if rows wait for them or expire by them: windows, interval and temporal joins, OVER, patterns, process
table functions, order and first rows by event time. So do CURRENT_WATERMARK, a stream to which rows are converted, a
table whose partitions are complete by event time, and changes with ON CONFLICT. A table that is read once for several
parts of a program keeps its watermarks if one of them reads them.

Example:

    SELECT id FROM orders WHERE price > 9

Without the rule:

    Calc(select=[id], where=[price > 9])
    +- WatermarkAssigner(rowtime=[ts], watermark=[ts])
       +- TableSourceScan(table=[[orders, project=[id, price, ts]]], fields=[id, price, ts])

With the rule:

    Calc(select=[id], where=[price > 9])
    +- TableSourceScan(table=[[orders, filter=[price > 9], project=[id, price]]], fields=[id, price])
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from ...plan.groups import GroupAggregate
from ...plan.joins import StreamJoin
from ...plan.logical import (
    Filter,
    Project,
    Relation,
    Scan,
    Sink,
    Sort,
    Union,
    Unnest,
    Values,
    WatermarkAssigner,
    WindowAggregate,
    WindowTable,
)
from ...plan.lookup_joins import LookupJoin
from ...plan.multi_joins import MultiJoin
from ...plan.op_columns import FromChangelog, ToChangelog
from ...plan.plan_nodes import node_of
from ...plan.ranks import Deduplicate, Rank, WindowRank
from ...plan.typed import Call, Literal
from ...plan.upserts import ChangelogNormalize, NumberCopies

Path: TypeAlias = tuple[str, ...]


def drop_unread_watermarks(
    plan: Relation, is_enabled: bool = True, read_elsewhere: frozenset[Path] = frozenset()
) -> Relation:
    """Make the time attribute a column like any other where no step above reads watermarks.

    Args:
        is_enabled: False: the plan stays as it is.
        read_elsewhere: tables whose watermarks other plans read.
    """
    if not is_enabled:
        return plan
    read = read_elsewhere | tables_with_readers(plan)

    def change(relation: Relation) -> Relation:
        if not isinstance(relation, WatermarkAssigner) or isinstance(relation.expression, Literal):  # the source's own
            return relation
        if any(scan.path in read or scan.source.aligns_watermarks for scan in scans_of(relation)):
            return relation
        return replace(relation.input, schema=relation.schema)

    return plan.mapped(change)


def tables_with_readers(plan: Relation) -> frozenset[Path]:
    """Return the tables whose watermarks a step of the plan reads."""
    return frozenset(_tables_with_readers(plan, False))


def tables_without_watermarks(plan: Relation) -> frozenset[Path]:
    """Return the tables that the plan reads without watermarks."""
    if isinstance(plan, WatermarkAssigner):
        return frozenset()
    own = {plan.path} if isinstance(plan, Scan) else set[Path]()
    return frozenset(own).union(*map(tables_without_watermarks, plan.inputs))


def scans_of(plan: Relation) -> list[Scan]:
    """Return the tables that a plan reads."""
    return [relation for relation in plan.walk() if isinstance(relation, Scan)]


def _tables_with_readers(relation: Relation, is_read: bool) -> Iterator[Path]:
    """Yield the tables of watermarks that are read.

    Args:
        is_read: a step above reads the watermarks of the relation.
    """
    is_read = is_read or reads_watermarks(relation)
    if is_read and isinstance(relation, WatermarkAssigner):
        yield from (scan.path for scan in scans_of(relation))
    for below in relation.inputs:
        yield from _tables_with_readers(below, is_read)


def reads_watermarks(relation: Relation) -> bool:
    """Return whether a step does something else with watermarks than to pass them on."""
    if any(_asks_for_the_watermark(call) for expr in relation.exprs_of_rows for call in expr.walk()):
        return True
    node = node_of(relation)
    match node:
        case Sink():
            waits = node.on_conflict is not None and node.on_conflict.waits
            return waits or bool(node.sink.reads_watermarks)
        case WindowTable():
            return node.windowing.is_event_time
        case WindowAggregate():
            windowing = node.windowing
            if windowing is None and node.bounds is not None:
                windowing = node.input.schema[node.bounds[0]].windowing
            return windowing is None or windowing.is_event_time
        case WindowRank():
            return True
        case Deduplicate() if node.keeps_last:
            return False  # the last row of a key is changed at once, whatever its time
        case Rank() | Sort():
            return any(node.inputs[0].schema[column].is_event_time for column, _, _ in node.keys)
        case (
            Scan() | Values() | WatermarkAssigner() | Project() | Filter() | Unnest() | Union() | GroupAggregate()
            | StreamJoin() | MultiJoin() | LookupJoin() | ToChangelog() | FromChangelog() | ChangelogNormalize()
            | NumberCopies()
        ):  # fmt: skip
            return False
        case _:
            return True  # other joins, OVER and patterns, of which some do


def _asks_for_the_watermark(expr: object) -> bool:
    return isinstance(expr, Call) and expr.function.name == "CURRENT_WATERMARK"


__all__ = ["drop_unread_watermarks", "reads_watermarks", "tables_with_readers", "tables_without_watermarks"]
