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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from ...plan.logical import Filter, Project, Relation, Scan, Schema, WatermarkAssigner
from ...plan.scan_abilities import FieldPushDown, NarrowColumn
from ...plan.typed import Call, Column, Expr
from ...types import DataType, RowType

Fields: TypeAlias = "dict[str, Fields] | None"
"""The used fields of a row, by name, with what is used of each; None: all of a value."""
_NULL_TESTS = ("IS NULL", "IS NOT NULL")


def push_nested_projection_into_scan(plan: Relation) -> Relation:
    """Leave out fields of a scan's rows that no expression above it reads."""
    return _over_scans(plan, _narrowed)


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

    def widened(projection: Project, scan: Scan) -> Relation:
        kinds = {column.name: by_name[scan.path, column.name] for column in scan.schema if column.type.fields}
        changed = any(kinds.get(column.name, column.type) != column.type for column in scan.schema)
        return _reading(projection, scan, kinds) if changed else projection

    return [_over_scans(plan, widened) for plan in plans]


def _over_scans(plan: Relation, change: Callable[[Project, Scan], Relation]) -> Relation:
    """Return the plan with the uppermost projections over scans (see `_scan_below`) replaced by `change` of them."""
    scan = _scan_below(plan)
    if scan is not None:
        assert isinstance(plan, Project)
        return change(plan, scan)
    inputs = [_over_scans(relation, change) for relation in plan.inputs]
    same = all(new is old for new, old in zip(inputs, plan.inputs, strict=True))
    return plan if same else plan.with_inputs(inputs)


def _narrowed(relation: Project, scan: Scan) -> Relation:
    if not any(column.type.fields for column in scan.schema):
        return relation
    used: dict[int, Fields] = dict.fromkeys(range(len(relation.schema)))
    step: Relation = relation
    while not isinstance(step, Scan):
        used = _used_below(step, used)
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
    """Return the scan whose rows a projection reads, with projections, filters and watermarks between them; None: there
    is none.
    """
    if not isinstance(relation, Project):
        return None
    below = relation.input
    while isinstance(below, Project | Filter | WatermarkAssigner):
        below = below.input
    return below if isinstance(below, Scan) else None


def _used_below(step: Relation, used: Mapping[int, Fields]) -> dict[int, Fields]:
    """Return what is used of the columns of a step's input, given what is used of its own."""
    below: dict[int, Fields] = {}
    if isinstance(step, Project):
        for index, expr in enumerate(step.exprs):
            path = _path(expr)
            if path is not None and index in used:
                _add_path(*path, used[index], below)
            else:
                _add_used(expr, below)
        return below
    below = dict(used)
    if isinstance(step, WatermarkAssigner):
        _add_used(step.expression, below)
        _add_used(step.column(step.time), below)
    else:
        assert isinstance(step, Filter)
        _add_used(step.condition, below)
    return below


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
    if fields is None or not isinstance(kind, RowType):
        return kind
    subset = [field for field in kind.fields if field.name in fields] or list(kind.fields[:1])
    return kind.with_fields([field.with_type(_with_fields(field.type, fields.get(field.name))) for field in subset])


def _united(left: DataType, right: DataType) -> DataType:
    """Return a row type with the fields of two that come from one."""
    if left == right or not isinstance(left, RowType):
        return left
    more = {field.name: field for field in right.fields}
    fields = [
        field.with_type(_united(field.type, more.pop(field.name).type)) if field.name in more else field
        for field in left.fields
    ]
    return left.with_fields([*fields, *more.values()])


def _reading(relation: Project, scan: Scan, kinds: Mapping[str, DataType]) -> Relation:
    """Return a projection over a scan whose columns have other fields; the same if the source gives no others."""
    source = scan.source.narrowed(kinds)
    if source is None:
        return relation
    ability = FieldPushDown(tuple(NarrowColumn(name, kind) for name, kind in kinds.items()))
    return _over(relation, scan.with_ability(source, ability, _retyped(scan.schema, kinds)))


def _over(step: Relation, scan: Scan) -> Relation:
    """Return a step over a scan whose columns have other fields, with the types that follow from them."""
    if isinstance(step, Scan):
        return scan
    [below] = step.inputs
    input_ = _over(below, scan)

    def changed(part: Expr) -> Expr:
        if isinstance(part, Column):
            return replace(part, type=input_.schema[part.index].type)
        if isinstance(part, Call) and part.function.name == ".field":
            field = part.args[0].type.field(part.options[0])
            assert field is not None, f"{part} reads a field that is left out"
            return replace(part, type=field.type.as_nullable(part.type.is_nullable))
        return part

    over = step.with_inputs([input_])
    if isinstance(over, Project):
        exprs = tuple(expr.mapped(changed) for expr in over.exprs)
        kinds = [expr.type for expr in exprs]
    else:
        kinds = [column.type for column in input_.schema]
    schema = tuple(
        replace(column, type=kind) if column.type.fields else column
        for column, kind in zip(over.schema, kinds, strict=True)
    )
    if isinstance(over, Project):
        return replace(over, schema=schema, exprs=exprs)
    if isinstance(over, WatermarkAssigner):
        return replace(over, schema=schema, expression=over.expression.mapped(changed))
    assert isinstance(over, Filter)
    return replace(over, schema=schema, condition=over.condition.mapped(changed))


def _retyped(schema: Schema, kinds: Mapping[str, DataType]) -> Schema:
    return tuple(replace(column, type=kinds.get(column.name, column.type)) for column in schema)


__all__ = ["push_nested_projection_into_scan", "with_equal_fields"]
