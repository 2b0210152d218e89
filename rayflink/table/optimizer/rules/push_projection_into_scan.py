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

from rayflink.common.errors import assert_never

from ...plan.aggregate_call import AggregateCall
from ...plan.groups import GroupAggregate
from ...plan.joins import Join, KeyedJoin
from ...plan.logical import (
    Filter,
    Project,
    Relation,
    Scan,
    Schema,
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
from ...plan.matching import ClassifierReference, MatchRecognize, Reference
from ...plan.multi_joins import MultiJoin
from ...plan.op_columns import FromChangelog, ToChangelog
from ...plan.over import OverAggregate
from ...plan.plan_nodes import node_of
from ...plan.process_tables import ProcessTable
from ...plan.ranks import Rank
from ...plan.scan_abilities import ColumnPushDown
from ...plan.typed import Column, Expr
from ...plan.upsert_keys import upsert_names
from ...plan.upserts import ChangelogNormalize, NumberCopies, UpsertMaterialize

Places = dict[int, int]
"""Number of a column -> its number among those that are left."""


def push_projection_into_scan(plan: Relation) -> Relation:
    """Leave out columns of scans, projections and what is between, that nothing above needs."""
    return _narrowed(plan, range(len(plan.schema)))[0]


def columns_of(*exprs: Expr) -> list[int]:
    """Return numbers of the columns that expressions read."""
    return [part.index for expr in exprs for part in expr.walk() if isinstance(part, Column)]


def moved(expr: Expr, places: Places) -> Expr:
    """Return the expression over columns that stand elsewhere."""
    return expr.mapped(lambda part: replace(part, index=places[part.index]) if isinstance(part, Column) else part)


def _narrowed(plan: Relation, needed: Iterable[int]) -> tuple[Relation, Places]:
    """Return the relation with at least these of its columns, in their order."""
    node, wanted = node_of(plan), set(needed)
    match node:
        case Scan():
            return _scan(node, wanted)
        case Project():
            return _project(node, wanted)
        case Filter():
            below, places = _narrowed(node.input, {*wanted, *columns_of(node.condition)})
            condition = moved(node.condition, places)
            return replace(node, schema=_left(node, places), input=below, condition=condition), places
        case WatermarkAssigner():
            below, places = _narrowed(node.input, {*wanted, node.time, *columns_of(node.expression)})
            time, expression = places[node.time], moved(node.expression, places)
            return replace(node, schema=_left(node, places), input=below, time=time, expression=expression), places
        case Sort():
            below, places = _narrowed(node.input, {*wanted, *(index for index, _, _ in node.keys)})
            keys = tuple((places[index], down, first) for index, down, first in node.keys)
            return replace(node, schema=_left(node, places), input=below, keys=keys), places
        case WindowTable():
            return _window_table(node, wanted)
        case WindowAggregate():
            return _aggregate(node), _all(node)
        case GroupAggregate():
            return _group_aggregate(node), _all(node)
        case MatchRecognize():
            return _match(node, wanted)
        case LookupJoin():
            return _lookup_join(node, wanted)
        case OverAggregate():
            return _over(node, wanted)
        case Values():
            return node, _all(node)
        case (
            Union() | Unnest() | Join() | KeyedJoin() | MultiJoin() | Rank() | ToChangelog() | FromChangelog()
            | ChangelogNormalize() | UpsertMaterialize() | NumberCopies() | ProcessTable() | Sink()
        ):  # fmt: skip
            inputs = [_narrowed(below, range(len(below.schema)))[0] for below in node.inputs]
            return node.with_inputs(inputs), _all(node)
        case _:
            assert_never(node)


def _project(node: Project, wanted: Collection[int]) -> tuple[Relation, Places]:
    indexes = sorted(wanted) or [0]
    exprs = [node.exprs[index] for index in indexes]
    below, places = _narrowed(node.input, columns_of(*exprs))
    schema = tuple(node.schema[index] for index in indexes)
    narrow = replace(node, schema=schema, input=below, exprs=tuple(moved(expr, places) for expr in exprs))
    return narrow, {index: number for number, index in enumerate(indexes)}


def _over(node: OverAggregate, wanted: Collection[int]) -> tuple[Relation, Places]:
    """Return the wanted functions alone, over the columns that are wanted or read."""
    width = node.width
    numbers = [number for number in range(len(node.calls)) if number + width in wanted] or [0]
    narrow = replace(node, calls=tuple(node.calls[number] for number in numbers))
    below, places = _narrowed(node.input, {*(column for column in wanted if column < width), *narrow.columns_read})
    calls = tuple(
        replace(
            call,
            arguments=tuple(places[column] for column in call.arguments),
            filter=None if call.filter is None else places[call.filter],
        )
        for call in narrow.calls
    )
    moved_node = replace(
        narrow,
        schema=(*below.schema, *(node.schema[width + number] for number in numbers)),
        input=below,
        partition=tuple(places[column] for column in node.partition),
        keys=tuple((places[column], down, first) for column, down, first in node.keys),
        calls=calls,
    )
    behind = {width + number: len(below.schema) + place for place, number in enumerate(numbers)}
    return moved_node, {**places, **behind}


def _match(node: MatchRecognize, wanted: Collection[int]) -> tuple[Relation, Places]:
    """Return the matches with the wanted references alone, over the columns that are read of rows."""
    width = len(node.row_columns)
    columns = sorted(wanted) or [0]
    measures = [node.measures[index - width] for index in columns if index >= width]
    row_columns = [node.row_columns[index] for index in columns if index < width]
    numbers = {
        *(reference.field for reference in (*measures, *node.conditions)
          if not isinstance(reference, ClassifierReference) and reference.field is not None),
        *columns_of(*node.exprs_of_row),
    }  # fmt: skip
    fields = {number: place for place, number in enumerate(sorted(numbers))}
    of_fields = (node.fields[index].column for index in fields)
    used = {*node.partition, *(index for index, _, _ in node.order), *row_columns, *of_fields}
    below, places = _narrowed(node.input, used)
    narrow = replace(
        node, schema=tuple(node.schema[index] for index in columns), input=below,
        partition=tuple(places[index] for index in node.partition),
        order=tuple((places[index], down, first) for index, down, first in node.order),
        definitions=tuple(definition.over_fields(lambda expr: moved(expr, fields)) for definition in node.definitions),
        fields=tuple(replace(node.fields[index], column=places[node.fields[index].column]) for index in fields),
        conditions=tuple(_over_fields(reference, fields) for reference in node.conditions),
        measures=tuple(_over_fields(reference, fields) for reference in measures),
        row_columns=tuple(places[index] for index in row_columns),
    )  # fmt: skip
    return narrow, {index: number for number, index in enumerate(columns)}


def _lookup_join(node: LookupJoin, wanted: Collection[int]) -> tuple[Relation, Places]:
    """Return the join of fewer columns of its input, and of the table that it asks."""
    width = node.width
    used = {*wanted, *(columns_of(node.condition) if node.condition is not None else ())}
    of_keys = columns_of(*(key.value for key in node.keys))
    below, places = _narrowed(node.input, {*(index for index in used if index < width), *of_keys})
    right = sorted(index - width for index in used if index >= width)
    exprs = [node.exprs[index] for index in right]
    table, columns = _scan(node.table, {*columns_of(*exprs, *(() if node.where is None else (node.where,)))})
    both = {**places, **{index + width: len(below.schema) + place for place, index in enumerate(right)}}
    narrow = replace(
        node, schema=_left(node, both), input=below, table=table,
        keys=tuple(replace(key, value=moved(key.value, places)) for key in node.keys),
        where=None if node.where is None else moved(node.where, columns),
        exprs=tuple(moved(expr, columns) for expr in exprs),
        condition=None if node.condition is None else moved(node.condition, both),
    )  # fmt: skip
    return narrow, both


def _over_fields(reference: Reference, places: Places) -> Reference:
    if isinstance(reference, ClassifierReference) or reference.field is None:
        return reference
    return replace(reference, field=places[reference.field])


def _group_aggregate(node: GroupAggregate) -> Relation:
    used = {*node.grouping, *(index for call in node.calls for index in used_by(call))}
    below, places = _narrowed(node.input, used or {0})
    grouping = tuple(places[index] for index in node.grouping)
    calls = tuple(moved_call(call, places) for call in node.calls)
    return replace(node, input=below, grouping=grouping, calls=calls)


def _all(node: Relation) -> Places:
    return {index: index for index in range(len(node.schema))}


def _left(node: Relation, places: Places) -> Schema:
    return tuple(node.schema[index] for index in sorted(places))


def _scan(node: Scan, wanted: Collection[int]) -> tuple[Scan, Places]:
    indexes = sorted({*wanted, *map(node.names.index, upsert_names(node))}) or [0]
    names = tuple(node.names[index] for index in indexes)
    source = node.source.projected(list(names)) if len(indexes) < len(node.schema) else None
    if source is None:
        return node, _all(node)
    schema = tuple(node.schema[index] for index in indexes)
    places = {index: number for number, index in enumerate(indexes)}
    return node.with_ability(source, ColumnPushDown(names), schema), places


def _window_table(node: WindowTable, wanted: set[int]) -> tuple[Relation, Places]:
    width = len(node.input.schema)
    below, places = _narrowed(
        node.input, {*(index for index in wanted if index < width), node.windowing.time, *node.windowing.partition}
    )
    added = range(width, len(node.schema))
    all_places = {**places, **{index: len(places) + number for number, index in enumerate(added)}}
    time, partition = places[node.windowing.time], tuple(places[index] for index in node.windowing.partition)
    windowing = replace(node.windowing, time=time, partition=partition)
    return replace(node, schema=_left(node, all_places), input=below, windowing=windowing), all_places


def _aggregate(node: WindowAggregate) -> Relation:
    used = {*node.grouping, *(index for call in node.calls for index in used_by(call)), *(node.bounds or ())}
    if node.windowing is not None:
        used |= {node.windowing.time, *node.windowing.partition}
    below, places = _narrowed(node.input, used)
    windowing = node.windowing
    if windowing is not None:
        partition = tuple(places[index] for index in windowing.partition)
        windowing = replace(windowing, time=places[windowing.time], partition=partition)
    bounds = None if node.bounds is None else (places[node.bounds[0]], places[node.bounds[1]])
    return replace(
        node, input=below, grouping=tuple(places[index] for index in node.grouping),
        calls=tuple(moved_call(call, places) for call in node.calls), windowing=windowing, bounds=bounds,
    )  # fmt: skip


def used_by(call: AggregateCall) -> tuple[int, ...]:
    """Return numbers of the columns that an aggregate reads."""
    return call.arguments if call.filter is None else (*call.arguments, call.filter)


def moved_call(call: AggregateCall, places: Places) -> AggregateCall:
    """Return the aggregate of columns that stand elsewhere."""
    filtered = None if call.filter is None else places[call.filter]
    return replace(call, arguments=tuple(places[index] for index in call.arguments), filter=filtered)
