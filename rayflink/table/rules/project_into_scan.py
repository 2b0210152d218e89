"""A source reads only the columns that are used."""

from __future__ import annotations

from dataclasses import replace

from ..logical import Filter, Project, Relation, Scan, WatermarkAssigner
from ..typed import Column, Expr


def project_into_scan(plan: Relation) -> Relation:
    """Leave out columns of a scan that nothing above it needs, through filters and watermarks in between."""
    return plan.mapped(_narrowed)


def _narrowed(one: Relation) -> Relation:
    if not isinstance(one, Project):
        return one
    steps: list[Relation] = []
    below = one.input
    while isinstance(below, (Filter, WatermarkAssigner)):
        steps.append(below)
        below = below.input
    if not isinstance(below, Scan):
        return one
    needed = {column for expr in one.exprs for column in columns_of(expr)}
    for step in steps:
        if isinstance(step, Filter):
            needed |= set(columns_of(step.condition))
        elif isinstance(step, WatermarkAssigner):
            needed |= {step.time, *columns_of(step.expression)}
    if len(needed) == len(below.schema):
        return one
    kept = sorted(needed) or [0]
    source = below.source.projected([below.schema[at].name for at in kept])
    if source is None:
        return one
    found: Relation = Scan(tuple(below.schema[at] for at in kept), below.path, source, place=below.place)
    places = {at: number for number, at in enumerate(kept)}
    for step in reversed(steps):
        schema = tuple(step.schema[at] for at in kept)
        if isinstance(step, Filter):
            found = replace(step, schema=schema, input=found, condition=moved(step.condition, places))
        elif isinstance(step, WatermarkAssigner):
            expression = moved(step.expression, places)
            found = replace(step, schema=schema, input=found, time=places[step.time], expression=expression)
    return replace(one, input=found, exprs=tuple(moved(expr, places) for expr in one.exprs))


def columns_of(expr: Expr) -> list[int]:
    """Numbers of the columns that an expression reads."""
    return [one.index for one in expr.walk() if isinstance(one, Column)]


def moved(expr: Expr, places: dict[int, int]) -> Expr:
    """The expression over columns that stand elsewhere."""
    return expr.mapped(lambda one: replace(one, index=places[one.index]) if isinstance(one, Column) else one)
