"""The step that joins rows with the versions of a table by event time."""

from __future__ import annotations

from rayflink.datastream.streams.stream_builder import StreamBuilder
from rayflink.operators.factory import Factory

from ..conversion.arrow_columns import arrow_schema
from ..errors import SqlError
from ..plan.changelog import Change
from ..plan.lineage import lineage, rows_of
from ..plan.temporal_joins import TemporalJoin
from ..runtime.joins.join_rows import JoinSide, JoinSpec
from ..runtime.joins.temporal_join import TemporalJoinOperator, TemporalJoinSpec
from ..runtime.key_columns import columns_key
from .translation import Translation, hash_partition, line_with_ttl


def translate_temporal_join(translation: Translation, plan: TemporalJoin) -> StreamBuilder:
    """Join rows with the versions of the right side that hold at their times.

    Raises:
        SqlError: rows of the left side change.
    """
    if translation.changes(plan.left) & (Change.UPDATE | Change.DELETE):
        problem = "the table on the left of FOR SYSTEM_TIME AS OF has rows that change"
        raise SqlError(problem, "join rows that only come, for example before they are aggregated", "", plan.place)
    sides = plan.inputs
    keys = [plan.required_distribution(index) or () for index in (0, 1)]
    names = [[side.names[column] for column in own] for side, own in zip(sides, keys, strict=True)]
    identities = [f"{rows_of(side, own)} at {lineage(side, time)}"
                  for side, own, time in zip(sides, keys, plan.times, strict=True)]  # fmt: skip
    uniques = (), (*keys[1], plan.times[1])
    left, right = (
        JoinSide(arrow_schema(side.schema), own, own, identity, unique)
        for side, own, identity, unique in zip(sides, keys, identities, uniques, strict=True)
    )
    result = arrow_schema(plan.schema)
    join = JoinSpec(plan.kind, left, right, plan.keys.nulls_match, plan.condition, result, translation.session)
    ttl_ms = translation.settings.state_ttl_ms
    factory = Factory(TemporalJoinOperator, TemporalJoinSpec(join, plan.times, ttl_ms))
    rows, versions = (hash_partition(translation.stream(side), own) for side, own in zip(sides, names, strict=True))
    step = rows.add_two_input_operator(
        versions, "TemporalJoin", factory, (columns_key(names[0]), columns_key(names[1])),
        f"temporal join: {' with '.join(identities)}",
    )  # fmt: skip
    return step.set_description(line_with_ttl(plan.explain_line(), ttl_ms))


__all__ = ["translate_temporal_join"]
