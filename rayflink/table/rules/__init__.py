"""Rewrites of logical plans, one a file; each gives a plan with the same rows."""

from __future__ import annotations

from ..logical import Relation
from .filter_below_join import filter_below_join
from .join_of_whole_tables import join_of_whole_tables
from .merge_steps import merge_steps
from .project_below_join import project_below_join
from .project_into_scan import project_into_scan
from .project_into_unnest import project_into_unnest
from .window_into_aggregate import window_into_aggregate
from .window_join import window_join

RULES = (
    merge_steps,
    filter_below_join,
    merge_steps,
    filter_below_join,
    window_join,
    join_of_whole_tables,
    merge_steps,
    window_into_aggregate,
    merge_steps,
    project_below_join,
    merge_steps,
    project_into_unnest,
    merge_steps,
    project_into_scan,
    merge_steps,
)
"""In the order in which they are applied."""


def optimized(plan: Relation) -> Relation:
    """The plan after all rules."""
    for rule in RULES:
        plan = rule(plan)
    return plan


__all__ = ["RULES", "optimized"]
