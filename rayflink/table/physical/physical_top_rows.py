"""The step that follows the first rows of each key of a stream."""

from __future__ import annotations

from collections.abc import Iterable

from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..errors import SqlError
from ..plan.changelog import Change
from ..plan.lineage import all_of, rows_of
from ..plan.logical import Filter, Project, Relation, Union, WatermarkAssigner
from ..plan.ranks import Rank
from ..plan.typed import Column, Place
from ..runtime.upserts.top_operator import MiniBatchTopRowsOperator, TopRowsOperator
from ..runtime.upserts.top_rows import TopSpec
from ..types import Root
from .physical_groups import mini_batch_limits
from .translation import Translation, add_keyed_operator, hash_partition, line_with_ttl


def translate_top_rows(translation: Translation, plan: Rank) -> StreamBuilder:
    """Change the first rows of each key with each batch of rows, or with each mini-batch.

    Raises:
        ConfigError: mini-batches are enabled, and their size or latency is not set.
        SqlError: rows may be taken back, and cannot be found then.
    """
    assert plan.last is not None
    below, ttl_ms, limits = plan.input, translation.ttl_ms(plan), mini_batch_limits(translation)
    retracts = bool(translation.changes(below) & (Change.UPDATE | Change.DELETE))
    if retracts:
        _ensure_order_stays(translation, plan)
        ensure_rows_can_be_found(below, range(len(below.schema)), plan.place)
    order = all_of(below, (column for column, _, _ in plan.keys)) or "arrival"
    order = f"{order}, newest first" if plan.newest_first else order
    identity = f"{rows_of(below, plan.partition)}, ordered by {order}"
    spec = TopSpec(
        tuple(column.type.to_arrow() for column in below.schema), plan.partition, plan.keys, plan.first, plan.last,
        retracts, ttl_ms, translation.wants_before(plan), identity, plan.newest_first,
    )  # fmt: skip
    schema, names = arrow_schema(plan.schema), [below.names[column] for column in plan.partition]
    factory = Factory(TopRowsOperator, spec, schema)
    if limits is not None:
        factory = Factory(MiniBatchTopRowsOperator, spec, schema, limits)
    rows = hash_partition(translation.stream(below), names)
    step = add_keyed_operator(rows, "Rank", factory, names, f"first rows: {identity}")
    return step.set_description(line_with_ttl(plan.explain_line(), ttl_ms))


def _ensure_order_stays(translation: Translation, plan: Rank) -> None:
    """Check that the order is not by the clock: a row would have another time when it is taken back.

    Raises:
        SqlError: it is.
    """
    for column, _, _ in plan.keys:
        if _is_time_of_changes(translation, plan.input, column):
            problem = f"ROW_NUMBER() in the order of the processing time {plan.input.names[column]!r} of rows that may "
            problem += "be taken back: such a row has another time then, and is not found"
            remedy = "order by the time alone, which is the order in which rows come; leave it out behind other "
            remedy += "columns; or compute it before rows change"
            raise SqlError(problem, remedy, "", plan.place)


def _is_time_of_changes(translation: Translation, relation: Relation, column: int) -> bool:
    """Return whether a column is PROCTIME(), computed of rows that may be taken back."""
    match relation:
        case Project():
            expr = relation.exprs[column]
            if isinstance(expr, Column):
                return _is_time_of_changes(translation, relation.input, expr.index)
            changes = translation.changes(relation.input) & (Change.UPDATE | Change.DELETE)
            return bool(changes) and str(expr) == "PROCTIME()"
        case Filter() | WatermarkAssigner() | Union():
            return any(_is_time_of_changes(translation, below, column) for below in relation.inputs)
    return False


def ensure_rows_can_be_found(below: Relation, columns: Iterable[int], place: Place | None) -> None:
    """Check that rows which are taken back can be found by their values.

    Args:
        below: the rows that ROW_NUMBER() numbers.
        columns: numbers of the columns by which they are found.
        place: of ROW_NUMBER() in the query.

    Raises:
        SqlError: they cannot be compared.
    """
    for column in (below.schema[number] for number in columns):
        if column.type.items or column.type.root is Root.ROW:
            problem = f"ROW_NUMBER() over rows that may be taken back: {column.name!r} of type {column.type} cannot be "
            raise SqlError(f"{problem}compared", "select a part of it, or CAST it to STRING", "", place)


__all__ = ["ensure_rows_can_be_found", "translate_top_rows"]
