"""Reads and computes only the columns that are used further up.

Source: apache/calcite RelFieldTrimmer.

Example:

    SELECT id FROM visits

Without the rule:

    Calc(select=[id])
    +- TableSourceScan(table=[[visits]], fields=[id, page])

With the rule:

    TableSourceScan(table=[[visits, project=[id]]], fields=[id])
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from ...plan.groups import GroupAggregate
from ...plan.logical import (
    AggregateCall,
    Filter,
    Project,
    Relation,
    Scan,
    Schema,
    Sort,
    WatermarkAssigner,
    WindowAggregate,
    WindowTable,
)
from ...plan.typed import Column, Expr

Places = dict[int, int]
"""Number of a column -> its number among those that are left."""


def push_projection_into_scan(plan: Relation) -> Relation:
    """Leave out columns of scans, projections and what is between, that nothing above needs."""
    return _narrowed(plan, range(len(plan.schema)))[0]


def columns_of(*exprs: Expr) -> list[int]:
    """Return numbers of the columns that expressions read."""
    return [one.index for expr in exprs for one in expr.walk() if isinstance(one, Column)]


def moved(expr: Expr, places: Places) -> Expr:
    """Return the expression over columns that stand elsewhere."""
    return expr.mapped(lambda one: replace(one, index=places[one.index]) if isinstance(one, Column) else one)


def _narrowed(one: Relation, needed: Iterable[int]) -> tuple[Relation, Places]:
    """Return the relation with at least these of its columns, in their order."""
    wanted = set(needed)
    if isinstance(one, Scan):
        return _scan(one, wanted)
    if isinstance(one, Project):
        kept = sorted(wanted) or [0]
        exprs = [one.exprs[at] for at in kept]
        below, places = _narrowed(one.input, columns_of(*exprs))
        schema = tuple(one.schema[at] for at in kept)
        made = replace(one, schema=schema, input=below, exprs=tuple(moved(expr, places) for expr in exprs))
        return made, {at: number for number, at in enumerate(kept)}
    if isinstance(one, Filter):
        below, places = _narrowed(one.input, {*wanted, *columns_of(one.condition)})
        return replace(one, schema=_left(one, places), input=below, condition=moved(one.condition, places)), places
    if isinstance(one, WatermarkAssigner):
        below, places = _narrowed(one.input, {*wanted, one.time, *columns_of(one.expression)})
        time, expression = places[one.time], moved(one.expression, places)
        return replace(one, schema=_left(one, places), input=below, time=time, expression=expression), places
    if isinstance(one, Sort):
        below, places = _narrowed(one.input, {*wanted, *(at for at, _, _ in one.keys)})
        keys = tuple((places[at], down, first) for at, down, first in one.keys)
        return replace(one, schema=_left(one, places), input=below, keys=keys), places
    if isinstance(one, WindowTable):
        return _window_table(one, wanted)
    if isinstance(one, WindowAggregate):
        return _aggregate(one), _all(one)
    if isinstance(one, GroupAggregate):
        used = {*one.grouping, *(at for call in one.calls for at in used_by(call))}
        below, places = _narrowed(one.input, used or {0})
        grouping = tuple(places[at] for at in one.grouping)
        calls = tuple(moved_call(call, places) for call in one.calls)
        return replace(one, input=below, grouping=grouping, calls=calls), _all(one)
    inputs = [_narrowed(below, range(len(below.schema)))[0] for below in one.inputs]
    return (one.with_inputs(inputs) if inputs else one), _all(one)


def _all(one: Relation) -> Places:
    return {at: at for at in range(len(one.schema))}


def _left(one: Relation, places: Places) -> Schema:
    return tuple(one.schema[at] for at in sorted(places))


def _scan(one: Scan, wanted: Collection[int]) -> tuple[Relation, Places]:
    kept = sorted(wanted) or [0]
    source = one.source.projected([one.names[at] for at in kept]) if len(kept) < len(one.schema) else None
    if source is None:
        return one, _all(one)
    schema = tuple(one.schema[at] for at in kept)
    return replace(one, schema=schema, source=source), {at: number for number, at in enumerate(kept)}


def _window_table(one: WindowTable, wanted: set[int]) -> tuple[Relation, Places]:
    width = len(one.input.schema)
    below, places = _narrowed(
        one.input, {*(at for at in wanted if at < width), one.windowing.time, *one.windowing.partition}
    )
    added = range(width, len(one.schema))
    found = {**places, **{at: len(places) + number for number, at in enumerate(added)}}
    time, partition = places[one.windowing.time], tuple(places[at] for at in one.windowing.partition)
    windowing = replace(one.windowing, time=time, partition=partition)
    return replace(one, schema=_left(one, found), input=below, windowing=windowing), found


def _aggregate(one: WindowAggregate) -> Relation:
    used = {*one.grouping, *(at for call in one.calls for at in used_by(call)), *(one.bounds or ())}
    if one.windowing is not None:
        used |= {one.windowing.time, *one.windowing.partition}
    below, places = _narrowed(one.input, used)
    windowing = one.windowing
    if windowing is not None:
        partition = tuple(places[at] for at in windowing.partition)
        windowing = replace(windowing, time=places[windowing.time], partition=partition)
    bounds = None if one.bounds is None else (places[one.bounds[0]], places[one.bounds[1]])
    return replace(
        one, input=below, grouping=tuple(places[at] for at in one.grouping),
        calls=tuple(moved_call(call, places) for call in one.calls), windowing=windowing, bounds=bounds,
    )  # fmt: skip


def used_by(call: AggregateCall) -> tuple[int, ...]:
    """Return numbers of the columns that an aggregate reads."""
    return call.arguments if call.filter is None else (*call.arguments, call.filter)


def moved_call(call: AggregateCall, places: Places) -> AggregateCall:
    """Return the aggregate of columns that stand elsewhere."""
    filtered = None if call.filter is None else places[call.filter]
    return replace(call, arguments=tuple(places[at] for at in call.arguments), filter=filtered)
