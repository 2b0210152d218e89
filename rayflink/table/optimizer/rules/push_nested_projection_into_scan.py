"""Reads only the fields of rows that are used further up.

Source: apache/flink PushProjectIntoTableSourceScanRule, whose nested projections become columns of their own; here a
row stays a row, of fewer fields.

Example:

    SELECT bid.price FROM events

Without the rule:

    Calc(select=[.field(bid, price) AS price])
    +- TableSourceScan(table=[[events, project=[bid]]], fields=[bid])

With the rule:

    Calc(select=[.field(bid, price) AS price])
    +- TableSourceScan(table=[[events, project=[bid.price]]], fields=[bid])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from ...plan.logical import Filter, Project, Relation, Scan, Schema, WatermarkAssigner
from ...plan.typed import Call, Column, Expr
from ...types import DataType, Root

Fields: TypeAlias = "dict[str, Fields] | None"
"""The used fields of a row, by name, with what is used of each; None: all of a value."""
_NULL_TESTS = ("IS NULL", "IS NOT NULL")


def push_nested_projection_into_scan(plan: Relation) -> Relation:
    """Leave out fields of a scan's rows that no expression above it reads."""
    return plan.mapped(_narrowed)


def with_equal_fields(plans: Sequence[Relation]) -> list[Relation]:
    """Return the plans with the same fields in all scans of a table: those that one of them reads."""
    scans = [relation for plan in plans for relation in plan.walk() if isinstance(relation, Scan)]
    by_name: dict[tuple[tuple[str, ...], str], DataType] = {}
    differ = False
    for scan in scans:
        for column in scan.schema:
            known = by_name.setdefault((scan.path, column.name), column.type)
            by_name[scan.path, column.name] = _united(known, column.type)
            differ = differ or known != column.type
    if not differ:
        return list(plans)

    def widened(relation: Relation) -> Relation:
        scan = _scan_below(relation)
        if scan is None:
            return relation
        kinds = {column.name: by_name[scan.path, column.name] for column in scan.schema if column.type.fields}
        changed = any(kinds.get(column.name, column.type) != column.type for column in scan.schema)
        return _reading(relation, scan, kinds) if changed else relation

    return [plan.mapped(widened) for plan in plans]


def _narrowed(relation: Relation) -> Relation:
    scan = _scan_below(relation)
    if scan is None or not any(column.type.fields for column in scan.schema):
        return relation
    used: dict[int, Fields] = {}
    step = relation
    while not isinstance(step, Scan):
        for expr in _exprs(step):
            _add_used(expr, used)
        [step] = step.inputs
    kinds = {
        column.name: _with_fields(column.type, used[index])
        for index, column in enumerate(scan.schema)
        if index in used and column.type.fields
    }
    if all(kinds.get(column.name, column.type) == column.type for column in scan.schema):
        return relation
    return _reading(relation, scan, kinds)


def _scan_below(relation: Relation) -> Scan | None:
    """Return the scan whose rows a projection reads, with filters and watermarks between them; None: there is none."""
    if not isinstance(relation, Project):
        return None
    below = relation.input
    while isinstance(below, Filter | WatermarkAssigner):
        below = below.input
    return below if isinstance(below, Scan) else None


def _exprs(step: Relation) -> tuple[Expr, ...]:
    if isinstance(step, Project):
        return step.exprs
    if isinstance(step, WatermarkAssigner):
        return step.expression, step.column(step.time)
    assert isinstance(step, Filter)
    return (step.condition,)


def _path(expr: Expr) -> tuple[int, tuple[str, ...]] | None:
    """Return the number of a column and the names of fields within each other; None: it is another expression."""
    if isinstance(expr, Column):
        return expr.index, ()
    if not isinstance(expr, Call) or expr.function.name != ".field":
        return None
    inner = _path(expr.args[0])
    return None if inner is None else (inner[0], (*inner[1], expr.options[0]))


def _add_used(expr: Expr, used: dict[int, Fields]) -> None:
    """Add the fields that an expression reads."""
    if isinstance(expr, Call) and expr.function.name in _NULL_TESTS and expr.args[0].type.fields:
        path = _path(expr.args[0])
        if path is not None:  # no field is needed to know whether a row is there
            _add_path(*path, {}, used)
            return
    path = _path(expr)
    if path is not None:
        _add_path(*path, None, used)
        return
    for part in expr.inputs:
        _add_used(part, used)


def _add_path(index: int, names: Sequence[str], fields: Fields, used: dict[int, Fields]) -> None:
    for name in reversed(names):
        fields = {name: fields}
    used[index] = _both(used[index], fields) if index in used else fields


def _both(left: Fields, right: Fields) -> Fields:
    """Return the fields of two uses."""
    if left is None or right is None:
        return None
    both = dict(left)
    for name, fields in right.items():
        both[name] = _both(both[name], fields) if name in both else fields
    return both


def _with_fields(kind: DataType, fields: Fields) -> DataType:
    """Return a row type with some of its fields; at least with the first."""
    if fields is None or kind.root is not Root.ROW:
        return kind
    subset = [field for field in kind.fields if field.name in fields] or list(kind.fields[:1])
    inner = [replace(field, type=_with_fields(field.type, fields.get(field.name))) for field in subset]
    return replace(kind, fields=tuple(inner))


def _united(left: DataType, right: DataType) -> DataType:
    """Return a row type with the fields of two that come from one."""
    if left == right or left.root is not Root.ROW:
        return left
    more = {field.name: field for field in right.fields}
    fields = [
        replace(field, type=_united(field.type, more.pop(field.name).type)) if field.name in more else field
        for field in left.fields
    ]
    return replace(left, fields=(*fields, *more.values()))


def _reading(relation: Relation, scan: Scan, kinds: Mapping[str, DataType]) -> Relation:
    """Return a projection over a scan whose columns have other fields; the same if the source gives no others."""
    source = scan.source.narrowed(kinds)
    if source is None:
        return relation
    return _over(relation, replace(scan, schema=_retyped(scan.schema, kinds), source=source), kinds)


def _over(step: Relation, scan: Scan, kinds: Mapping[str, DataType]) -> Relation:
    if isinstance(step, Scan):
        return scan

    def changed(part: Expr) -> Expr:
        if isinstance(part, Column):
            return replace(part, type=scan.schema[part.index].type)
        if isinstance(part, Call) and part.function.name == ".field":
            field = part.args[0].type.field(part.options[0])
            assert field is not None, f"{part} reads a field that is left out"
            return replace(part, type=field.type.as_nullable(part.type.is_nullable))
        return part

    [below] = step.inputs
    over = step.with_inputs([_over(below, scan, kinds)])
    if isinstance(over, Project):
        return replace(over, exprs=tuple(expr.mapped(changed) for expr in over.exprs))
    schema = _retyped(over.schema, kinds)
    if isinstance(over, WatermarkAssigner):
        return replace(over, schema=schema, expression=over.expression.mapped(changed))
    assert isinstance(over, Filter)
    return replace(over, schema=schema, condition=over.condition.mapped(changed))


def _retyped(schema: Schema, kinds: Mapping[str, DataType]) -> Schema:
    return tuple(replace(column, type=kinds.get(column.name, column.type)) for column in schema)


__all__ = ["push_nested_projection_into_scan", "with_equal_fields"]
