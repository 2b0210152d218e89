"""The first row of each key, in the order of a time attribute, is known without those that come later.

Source: apache/flink RankUtil.isDeduplication.
"""

from __future__ import annotations

from ...plan.logical import Relation
from ...plan.ranks import Deduplicate, Rank


def rank_into_deduplicate(plan: Relation) -> Relation:
    """Rank of the one first row by ascending time, in streams."""
    return plan.mapped(_first)


def _first(one: Relation) -> Relation:
    if type(one) is not Rank or one.is_whole or (one.first, one.last) != (1, 1) or len(one.keys) != 1:
        return one
    at, is_descending, _ = one.keys[0]
    if is_descending or not one.input.schema[at].is_time:
        return one
    return Deduplicate(one.schema, one.input, one.partition, one.keys, 1, 1, place=one.place)


__all__ = ["rank_into_deduplicate"]
