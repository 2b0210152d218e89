"""Repeats only the used columns of a row beside the elements of its collection.

Example, in batch mode:

    SELECT id, tag FROM orders CROSS JOIN UNNEST(tags) AS t (tag)

Without the rule:

    Calc(select=[id, tag])
    +- Correlate(invocation=[UNNEST(tags)], select=[id, product, price, tags, ts, tag], joinType=[INNER])
       +- TableSourceScan(table=[[orders]], fields=[id, product, price, tags, ts])

With the rule:

    Correlate(invocation=[UNNEST(tags)], select=[id, tag], joinType=[INNER])
    +- TableSourceScan(table=[[orders, project=[id, tags]]], fields=[id, tags])
"""

from __future__ import annotations

from dataclasses import replace

from ...plan.logical import Filter, Project, Relation, Unnest
from .push_projection_into_scan import columns_of, moved


def push_projection_into_unnest(plan: Relation) -> Relation:
    """Remove unused columns from Project over Filter over Unnest; they are not computed below either."""
    return plan.mapped(_narrowed)


def _narrowed(one: Relation) -> Relation:
    if not isinstance(one, Project):
        return one
    filters: list[Filter] = []
    below = one.input
    while isinstance(below, Filter):
        filters.append(below)
        below = below.input
    if not isinstance(below, Unnest):
        return one
    exprs = (*one.exprs, *(step.condition for step in filters))
    needed = {column for expr in exprs for column in columns_of(expr)}
    width = len(below.kept)
    given = [at for at in range(len(below.schema)) if at in needed or at >= width]
    if len(given) == len(below.schema):
        return one
    kept = tuple(below.kept[at] for at in given if at < width)
    found: Relation = _reading_less(replace(below, schema=tuple(below.schema[at] for at in given), kept=kept))
    places = {at: number for number, at in enumerate(given)}
    for step in reversed(filters):
        found = Filter(found.schema, found, moved(step.condition, places), place=step.place)
    return replace(one, input=found, exprs=tuple(moved(expr, places) for expr in one.exprs))


def _reading_less(one: Unnest) -> Unnest:
    """Return the same over the columns that it reads alone."""
    below = one.input
    read = sorted({*one.kept, *columns_of(one.collection)})
    if not read or len(read) == len(below.schema):
        return one
    places = {at: number for number, at in enumerate(read)}
    columns = tuple(below.column(at) for at in read)
    input = Project(tuple(below.schema[at] for at in read), below, columns)
    kept = tuple(places[at] for at in one.kept)
    return replace(one, input=_narrowed(input), kept=kept, collection=moved(one.collection, places))
