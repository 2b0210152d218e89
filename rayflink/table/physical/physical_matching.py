"""The step that matches row patterns."""

from __future__ import annotations

from dataclasses import replace

from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..plan.lineage import all_of, rows_of
from ..plan.logical import Values
from ..plan.matching import MatchRecognize
from ..runtime.matching.match_operator import MatchOperator
from .translation import Translation, add_keyed_operator, hash_partition, line_with_ttl, row_type


def translate_match(translation: Translation, plan: MatchRecognize) -> StreamBuilder:
    """Match the rows of each partition in the order of their times."""
    below = plan.input
    names = [below.names[index] for index in plan.partition]
    order = all_of(below, (index for index, _, _ in plan.order))
    identity = f"{plan.pattern} in {rows_of(below, plan.partition)}, ordered by {order}"
    alone = replace(plan, input=Values(below.schema, ()))
    ttl_ms = translation.settings.state_ttl_ms if any(field.back for field in plan.fields) else 0
    row, schema = row_type(below), arrow_schema(plan.schema)
    factory = Factory(MatchOperator, alone, row, schema, translation.session, identity, ttl_ms)
    rows = hash_partition(translation.stream(below), names)
    step = add_keyed_operator(rows, "Match", factory, names, identity)
    return step.set_description(line_with_ttl(plan.explain_line(), ttl_ms))


__all__ = ["translate_match"]
