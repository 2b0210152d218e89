"""The steps that compute functions OVER the rows around each row."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..errors import SqlError
from ..plan.aggregate_call import AggregateCall
from ..plan.lineage import all_of, lineage, over_of, rows_of
from ..plan.logical import Schema
from ..plan.over import OF_WHOLE_PARTITIONS, UNTIL_ROW, Frame, OverAggregate
from ..plan.ranks import Rank
from ..runtime.aggregates.aggregates import Aggregate, AggregateKind
from ..runtime.groups.distinct_values import WEIGHT, DistinctValuesOperator
from ..runtime.groups.group_changes import GroupSpec, distinct_arguments
from ..runtime.over.bounded_over import bounded_over
from ..runtime.over.over_operator import OverOperator
from ..runtime.over.over_spec import OverSpec, RowFunction
from ..types import DataTypes
from .physical_groups import aggregates_of, ensure_keeps_no_columns
from .translation import Translation, add_keyed_operator, hash_partition, line_with_ttl

_IN_BATCH = "run the query in batch mode: EnvironmentSettings.in_batch_mode()"


def translate_over(translation: Translation, plan: OverAggregate) -> StreamBuilder:
    """Add to each row the results over the rows of its frame.

    Raises:
        SqlError: it is a row of a stream, and they cannot be computed from rows up to it in the order of time.
    """
    if plan.is_whole:
        return _translate_whole(translation, plan)
    _ensure_stream_has_results(plan)
    below = plan.input
    time = below.schema[plan.keys[0][0]]
    ttl_ms = 0 if plan.frame.reach_ms is not None else translation.settings.state_ttl_ms
    functions = tuple(_function(call, plan.input.schema) for call in plan.calls)
    stored = dict.fromkeys(column for call in plan.calls for column in (*call.arguments, call.filter)
                           if column is not None)  # fmt: skip
    identity = f"{over_of(plan)}: {', '.join(lineage(below, column) for column in stored) or 'rows'}"
    spec = OverSpec(
        tuple(column.type.to_arrow() for column in below.schema), plan.partition, plan.keys, plan.frame, functions,
        time.is_event_time, ttl_ms, identity,
    )  # fmt: skip
    names = [below.names[key] for key in plan.partition]
    rows, weights = hash_partition(translation.stream(below), names), 0
    if plan.frame.first is None:
        rows, weights = _find_distinct_values(rows, spec, plan)
    schema = arrow_schema(plan.schema)
    fields = [*arrow_schema(below.schema), *(pa.field(f"{WEIGHT}{number}", pa.int8()) for number in range(weights))]
    factory = Factory(OverOperator, spec, fields, schema)
    step = add_keyed_operator(rows, "OverAggregate", factory, names, f"over: {rows_of(below)} {identity}")
    return step.set_description(line_with_ttl(plan.explain_line(), ttl_ms))


def _translate_whole(translation: Translation, plan: OverAggregate) -> StreamBuilder:
    """Sort the rows of whole tables, and add results to them at their end."""
    below, schema = plan.input, arrow_schema(plan.schema)
    kinds = tuple(column.type.to_arrow() for column in below.schema)
    functions = tuple(_function(call, below.schema) for call in plan.calls)
    spec = OverSpec(kinds, plan.partition, plan.keys, plan.frame, functions)
    names = [below.names[key] for key in plan.partition]
    rows = hash_partition(translation.stream(below), names)
    step = add_keyed_operator(rows, "OverAggregate", Factory(bounded_over, spec, schema), names)
    return step.set_description(plan.explain_line())


def translate_numbers(translation: Translation, plan: Rank) -> StreamBuilder:
    """Number the rows of a stream in the order of time."""
    call = AggregateCall("ROW_NUMBER", (), DataTypes.BIGINT(False))
    frame = replace(UNTIL_ROW, by_rows=True)
    over = OverAggregate(plan.schema, plan.input, plan.partition, plan.keys, frame, (call,), place=plan.place)
    return translate_over(translation, over)


def is_by_time(plan: Rank | OverAggregate) -> bool:
    """Return whether rows are in the order of one time attribute, which ascends."""
    return len(plan.keys) == 1 and not plan.keys[0][1] and plan.input.schema[plan.keys[0][0]].is_time


def _function(call: AggregateCall, schema: Schema) -> Aggregate | RowFunction:
    if call.function is not None or call.name in [kind.value for kind in AggregateKind]:
        [aggregate] = aggregates_of([call], schema)
        return aggregate
    columns = (*call.arguments, None, None)
    number = int(call.options[0]) if call.options else 1
    return RowFunction(call.name, call.type.to_arrow(), columns[0], number, columns[1])


def _find_distinct_values(rows: StreamBuilder, spec: OverSpec, plan: OverAggregate) -> tuple[StreamBuilder, int]:
    """Add steps that put rows into order and say which bring a new value of a DISTINCT aggregate.

    Returns: the rows, and the number of columns that were added.
    """
    groups = GroupSpec(spec.columns, spec.partition, tuple(spec.aggregates))
    arguments = distinct_arguments(groups)
    below, names = plan.input, [plan.input.names[key] for key in plan.partition]
    if arguments and spec.is_event_time:
        fields = list(arrow_schema(below.schema))
        sort = Factory(OverOperator, replace(spec, functions=()), fields, pa.schema(fields))
        rows = add_keyed_operator(rows, "TimeSort", sort, names, f"order of time: {rows_of(below, plan.partition)}")
        rows.set_description(f"TimeSort(orderBy=[{below.names[plan.keys[0][0]]} ASC])")
    for alike in arguments:
        column = alike[0].column
        conditions = ["" if argument.filter is None else f" where {lineage(below, argument.filter)}"
                      for argument in alike]  # fmt: skip
        described = f"{lineage(below, column)}{' and'.join(conditions)}"
        identity = f"{described} by {all_of(below, spec.partition) or 'nothing'} in order"
        factory = Factory(DistinctValuesOperator, spec.columns, spec.partition, alike, spec.ttl_ms, False, identity)
        step = add_keyed_operator(rows, "DistinctValues", factory, names, f"distinct values: {identity}")
        rows = step.set_description(f"DistinctValues(value=[{below.names[column]}])")
    return rows, sum(map(len, arguments))


# what streams have no result for


def _ensure_stream_has_results(plan: OverAggregate) -> None:
    """Check that results can be computed from the rows up to each, in the order of time.

    Raises:
        SqlError: they cannot.
    """
    place = plan.place
    if not is_by_time(plan):
        order = ", ".join(plan.input.names[column] for column, _, _ in plan.keys)
        problem = f"OVER over a stream is ordered by {order}" if order else "OVER over a stream has no ORDER BY"
        remedy = f"order by one time attribute, ascending: a column with a WATERMARK, or PROCTIME(); or {_IN_BATCH}"
        raise SqlError(problem, remedy, "", place)
    for call in plan.calls:
        if call.name in OF_WHOLE_PARTITIONS:
            remedy = f"{_IN_BATCH}; a stream has the rows before: take LAG" if call.name == "LEAD" else _IN_BATCH
            raise SqlError(f"{call.name} over a stream, whose rows never end", remedy, "", place)
        if call.name == "NTH_VALUE" and plan.frame.first is None:
            remedy = f"bound the frame, as in ROWS BETWEEN 9 PRECEDING AND CURRENT ROW, or {_IN_BATCH}"
            raise SqlError("NTH_VALUE of all rows of a stream", remedy, "", place)
    if plan.frame.first is None:
        ensure_keeps_no_columns(plan.calls, "OVER of all rows of a stream", place)
    _ensure_frame_is_before(plan.frame, plan)


def _ensure_frame_is_before(frame: Frame, plan: OverAggregate) -> None:
    last = frame.last
    if last is None or last > 0 or (last < 0 and frame.first is None) or (frame.first is not None and frame.first > 0):
        remedy = f"let it end with CURRENT ROW, or {_IN_BATCH}"
        raise SqlError(f"a frame {frame} over a stream", remedy, "", plan.place)


__all__ = ["is_by_time", "translate_numbers", "translate_over"]
