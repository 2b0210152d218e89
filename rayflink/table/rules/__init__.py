"""Rewrites of logical plans, one a file; each gives a plan with the same rows."""

from __future__ import annotations

from ..logical import Relation
from .filter_below_join import filter_below_join
from .filter_into_rank import filter_into_rank
from .join_of_whole_tables import join_of_whole_tables
from .merge_steps import merge_steps
from .project_below_join import project_below_join
from .project_below_rank import project_below_rank
from .project_into_scan import project_into_scan
from .project_into_unnest import project_into_unnest
from .rank_into_window_rank import rank_into_window_rank
from .window_into_aggregate import window_into_aggregate
from .window_join import window_join

RULES = (
    merge_steps,
    filter_below_join,
    merge_steps,
    filter_below_join,
    filter_into_rank,
    rank_into_window_rank,
    window_join,
    join_of_whole_tables,
    merge_steps,
    window_into_aggregate,
    merge_steps,
    project_below_join,
    project_below_rank,
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
