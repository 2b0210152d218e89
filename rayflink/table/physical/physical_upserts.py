"""The steps that follow the last row of each key."""

from __future__ import annotations

from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..plan.lineage import rows_of
from ..plan.logical import length_text
from ..plan.upserts import ChangelogNormalize
from ..runtime.upserts.last_row_operators import LastRowOperator
from ..runtime.upserts.last_rows import LastRowSpec
from .translation import Translation, add_keyed_operator, hash_partition


def translate_normalize(translation: Translation, plan: ChangelogNormalize) -> StreamBuilder:
    """Remember the last row of each key, and emit what changes it."""
    names, ttl_ms = [plan.names[column] for column in plan.key], translation.ttl_ms(plan)
    identity = f"last of {rows_of(plan.input, plan.key)}"
    columns = tuple(column.type.to_arrow() for column in plan.input.schema)
    spec = LastRowSpec(columns, plan.key, ttl_ms, translation.wants_before(plan), identity)
    rows = hash_partition(translation.stream(plan.input), names)
    factory = Factory(LastRowOperator, spec, arrow_schema(plan.schema))
    step = add_keyed_operator(rows, "ChangelogNormalize", factory, names, identity)
    line = plan.explain_line()
    return step.set_description(f"{line[:-1]}, stateTtl=[{length_text(ttl_ms)}])" if ttl_ms else line)


__all__ = ["translate_normalize"]
