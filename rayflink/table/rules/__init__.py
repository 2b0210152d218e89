"""Rewrites of logical plans, one a file; each gives a plan with the same rows."""

from __future__ import annotations

from functools import partial

from ..logical import Relation
from ..typed import Session
from .constant_rows import constant_rows
from .filter_below_join import filter_below_join
from .filter_down import filter_down
from .filter_into_rank import filter_into_rank
from .filter_into_scan import filter_into_scan
from .fold_constants import fold_constants
from .forget_watermarks import forget_watermarks
from .interval_join import interval_join
from .join_of_whole_tables import join_of_whole_tables
from .limit_into_scan import limit_into_scan
from .merge_steps import merge_steps
from .project_below_join import project_below_join
from .project_below_rank import project_below_rank
from .project_into_scan import project_into_scan
from .project_into_unnest import project_into_unnest
from .project_through_union import project_through_union
from .prune_empty import prune_empty
from .rank_into_window_rank import rank_into_window_rank
from .share_scans import share_scans
from .window_into_aggregate import window_into_aggregate
from .window_join import window_join

LOWERING = (
    merge_steps,
    filter_below_join,
    filter_down,
    merge_steps,
    filter_below_join,
    filter_down,
    filter_into_rank,
    rank_into_window_rank,
    project_through_union,
    window_join,
    interval_join,
    join_of_whole_tables,
    merge_steps,
    window_into_aggregate,
    merge_steps,
)
"""In the order in which they are applied, after constants were computed."""
SIMPLIFYING = (merge_steps, prune_empty, constant_rows)
"""Behind a second look at constants: steps have met by now."""
PUSHING = (
    filter_into_scan,
    project_below_join,
    project_below_rank,
    merge_steps,
    project_into_unnest,
    merge_steps,
    project_into_scan,
    merge_steps,
    limit_into_scan,
)
"""Into the sources, at the end."""


def optimized(plan: Relation, session: Session, is_batch: bool = False) -> Relation:
    """The plan after all rules.

    Args:
        session: in which constants are computed.
        is_batch: the tables are read to their ends.
    """
    fold = partial(fold_constants, session=session)
    forget = (forget_watermarks,) if is_batch else ()
    for rule in (fold, prune_empty, *forget, *LOWERING, fold, *SIMPLIFYING, *PUSHING):
        plan = rule(plan)
    return plan


__all__ = ["LOWERING", "PUSHING", "SIMPLIFYING", "optimized", "share_scans"]
