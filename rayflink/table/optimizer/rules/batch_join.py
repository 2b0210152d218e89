"""Joins of a query over whole tables wait for the ends of both sides."""

from __future__ import annotations

from ...plan.joins import Join
from ...plan.logical import Relation
from ..join_keys import as_before, equalities, keyed


def batch_join(plan: Relation) -> Relation:
    """Join in batch mode."""
    return plan.mapped(_joined)


def _joined(one: Relation) -> Relation:
    if not isinstance(one, Join) or not one.is_whole:
        return one
    found = equalities(one)
    return as_before(one, keyed(one, found.pairs, found.rest))


__all__ = ["batch_join"]
