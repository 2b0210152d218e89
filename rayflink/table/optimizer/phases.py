"""The planner's own rules, by the phase in which they are applied.

Each is a function of a plan; its name is the function's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ..plan.logical import Relation
from .rules.batch_join import join_of_whole_tables
from .rules.broadcast_join import broadcast_join
from .rules.constant_rows import constant_rows
from .rules.drop_watermarks import forget_watermarks
from .rules.fold_constants import fold_constants
from .rules.merge_projections_and_filters import merge_steps
from .rules.one_phase_aggregate import one_phase
from .rules.prune_empty import prune_empty
from .rules.push_filter_down import filter_down
from .rules.push_filter_into_rank import filter_into_rank
from .rules.push_filter_into_scan import filter_into_scan
from .rules.push_filter_through_join import filter_below_join
from .rules.push_limit_into_scan import limit_into_scan
from .rules.push_projection_into_scan import project_into_scan
from .rules.push_projection_into_unnest import project_into_unnest
from .rules.push_projection_through_join import project_below_join
from .rules.push_projection_through_rank import project_below_rank
from .rules.push_projection_through_union import project_through_union
from .rules.rank_into_deduplicate import rank_into_deduplicate
from .rules.rank_into_window_rank import rank_into_window_rank
from .rules.recognize_interval_join import interval_join
from .rules.recognize_window_join import window_join
from .rules.reorder_joins import reorder_joins
from .rules.split_distinct import split_distinct
from .rules.window_into_aggregate import window_into_aggregate

Rule: TypeAlias = Callable[..., Relation]

NORMALIZE, LOGICAL, PHYSICAL, SOURCES = "normalize", "logical", "physical", "sources"
PHASES: Mapping[str, tuple[Rule, ...]] = {
    NORMALIZE: (fold_constants, prune_empty, forget_watermarks),
    LOGICAL: (merge_steps, filter_below_join, filter_down),
    PHYSICAL: (
        filter_into_rank,
        rank_into_window_rank,
        rank_into_deduplicate,
        project_through_union,
        reorder_joins,
        merge_steps,
        window_join,
        interval_join,
        join_of_whole_tables,
        merge_steps,
        window_into_aggregate,
        merge_steps,
        split_distinct,
        fold_constants,
        merge_steps,
        prune_empty,
        constant_rows,
    ),
    SOURCES: (
        filter_into_scan,
        project_below_join,
        project_below_rank,
        merge_steps,
        project_into_unnest,
        merge_steps,
        project_into_scan,
        merge_steps,
        limit_into_scan,
        broadcast_join,
        one_phase,
    ),
}
"""In their order; those of `logical` again and again, until the plan stays as it is."""
NEEDED = frozenset(
    {
        "filter_into_rank",
        "interval_join",
        "join_of_whole_tables",
        "project_into_unnest",
        "rank_into_deduplicate",
        "rank_into_window_rank",
        "window_join",
    }
)
"""Without these, queries of which they make what can be run are errors."""
BATCH_ONLY = frozenset({"broadcast_join", "forget_watermarks", "one_phase", "reorder_joins"})


def name_of(rule: Rule) -> str:
    """What a rule is called.

    >>> name_of(merge_steps)
    'merge_steps'
    """
    return getattr(rule, "__name__", type(rule).__name__)


__all__ = ["BATCH_ONLY", "LOGICAL", "NEEDED", "NORMALIZE", "PHASES", "PHYSICAL", "SOURCES", "Rule", "name_of"]
