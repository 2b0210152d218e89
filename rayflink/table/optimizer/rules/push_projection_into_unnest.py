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


def _narrowed(relation: Relation) -> Relation:
    if not isinstance(relation, Project):
        return relation
    filters: list[Filter] = []
    below = relation.input
    while isinstance(below, Filter):
        filters.append(below)
        below = below.input
    if not isinstance(below, Unnest):
        return relation
    exprs = (*relation.exprs, *(step.condition for step in filters))
    needed = {column for expr in exprs for column in columns_of(expr)}
    width = len(below.row_columns)
    indexes = [index for index in range(len(below.schema)) if index in needed or index >= width]
    if len(indexes) == len(below.schema):
        return relation
    row_columns = tuple(below.row_columns[index] for index in indexes if index < width)
    schema = tuple(below.schema[index] for index in indexes)
    new_input: Relation = _reading_less(replace(below, schema=schema, row_columns=row_columns))
    places = {index: number for number, index in enumerate(indexes)}
    for step in reversed(filters):
        new_input = Filter(new_input.schema, new_input, moved(step.condition, places), place=step.place)
    return replace(relation, input=new_input, exprs=tuple(moved(expr, places) for expr in relation.exprs))


def _reading_less(unnest: Unnest) -> Unnest:
    """Return the same over the columns that it reads alone."""
    below = unnest.input
    read = sorted({*unnest.row_columns, *columns_of(unnest.collection)})
    if not read or len(read) == len(below.schema):
        return unnest
    places = {index: number for number, index in enumerate(read)}
    columns = tuple(below.column(index) for index in read)
    input = Project(tuple(below.schema[index] for index in read), below, columns)
    row_columns = tuple(places[index] for index in unnest.row_columns)
    return replace(unnest, input=_narrowed(input), row_columns=row_columns, collection=moved(unnest.collection, places))
