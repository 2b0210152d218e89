"""The step that follows the first rows of each key of a stream."""

from __future__ import annotations

from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..errors import SqlError
from ..plan.changelog import Change
from ..plan.lineage import all_of, rows_of
from ..plan.ranks import Rank
from ..runtime.upserts.top_operator import MiniBatchTopRowsOperator, TopRowsOperator
from ..runtime.upserts.top_rows import TopSpec
from ..types import Root
from .physical_groups import mini_batch_limits
from .translation import Translation, add_keyed_operator, hash_partition, line_with_ttl


def translate_top_rows(translation: Translation, plan: Rank) -> StreamBuilder:
    """Change the first rows of each key with each batch of rows, or with each mini-batch.

    Raises:
        ConfigError: mini-batches are enabled, and their size or latency is not set.
        SqlError: rows may be taken back, and cannot be compared.
    """
    assert plan.last is not None
    below, ttl_ms, limits = plan.input, translation.ttl_ms(plan), mini_batch_limits(translation)
    retracts = bool(translation.changes(below) & (Change.UPDATE | Change.DELETE))
    if retracts:
        _ensure_rows_can_be_found(plan)
    order = all_of(below, (column for column, _, _ in plan.keys)) or "arrival"
    identity = f"{rows_of(below, plan.partition)}, ordered by {order}"
    spec = TopSpec(
        tuple(column.type.to_arrow() for column in below.schema), plan.partition, plan.keys, plan.first, plan.last,
        retracts, ttl_ms, translation.wants_before(plan), identity,
    )  # fmt: skip
    schema, names = arrow_schema(plan.schema), [below.names[column] for column in plan.partition]
    factory = Factory(TopRowsOperator, spec, schema)
    if limits is not None:
        factory = Factory(MiniBatchTopRowsOperator, spec, schema, limits)
    rows = hash_partition(translation.stream(below), names)
    step = add_keyed_operator(rows, "Rank", factory, names, f"first rows: {identity}")
    return step.set_description(line_with_ttl(plan.explain_line(), ttl_ms))


def _ensure_rows_can_be_found(plan: Rank) -> None:
    """Check that rows which are taken back can be found by their values.

    Raises:
        SqlError: they cannot be compared.
    """
    for column in plan.input.schema:
        if column.type.items or column.type.root is Root.ROW:
            problem = f"ROW_NUMBER() over rows that may be taken back: {column.name!r} of type {column.type} cannot be "
            raise SqlError(f"{problem}compared", "select a part of it, or CAST it to STRING", "", plan.place)


__all__ = ["translate_top_rows"]
