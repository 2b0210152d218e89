"""The planner's own rules, by the phase in which they are applied.

Each is a function of a plan; its name is the function's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ..plan.logical import Relation
from .rules.batch_join import batch_join
from .rules.broadcast_join import broadcast_join
from .rules.constant_rows import constant_rows
from .rules.drop_unread_watermarks import drop_unread_watermarks
from .rules.drop_watermarks import drop_watermarks
from .rules.fold_constants import fold_constants
from .rules.joins_of_streams.multi_join import multi_join
from .rules.joins_of_streams.store_by_unique_key import store_by_unique_key
from .rules.joins_of_streams.stream_join import stream_join
from .rules.joins_with_tables.recognize_lookup_join import recognize_lookup_join
from .rules.joins_with_tables.recognize_temporal_join import recognize_temporal_join
from .rules.merge_projections_and_filters import merge_projections_and_filters
from .rules.one_phase_aggregate import one_phase_aggregate
from .rules.propagate_constants import propagate_constants
from .rules.prune_empty import prune_empty
from .rules.push_filter_down import push_filter_down
from .rules.push_filter_into_scan import push_filter_into_scan
from .rules.push_filter_through_join import push_filter_through_join
from .rules.push_limit_into_scan import push_limit_into_scan
from .rules.push_nested_projection_into_scan import push_nested_projection_into_scan
from .rules.push_projection_into_scan import push_projection_into_scan
from .rules.push_projection_into_unnest import push_projection_into_unnest
from .rules.push_projection_through_join import push_projection_through_join
from .rules.push_projection_through_union import push_projection_through_union
from .rules.ranks.push_filter_into_rank import push_filter_into_rank
from .rules.ranks.push_projection_through_rank import push_projection_through_rank
from .rules.ranks.rank_into_deduplicate import rank_into_deduplicate
from .rules.ranks.rank_into_window_rank import rank_into_window_rank
from .rules.recognize_interval_join import recognize_interval_join
from .rules.recognize_window_join import recognize_window_join
from .rules.reorder_joins import reorder_joins
from .rules.split_distinct import split_distinct
from .rules.two_phase_groups import two_phase_groups
from .rules.window_into_aggregate import window_into_aggregate

Rule: TypeAlias = Callable[..., Relation]

NORMALIZE, LOGICAL, PHYSICAL, SOURCES = "normalize", "logical", "physical", "sources"
PHASES: Mapping[str, tuple[Rule, ...]] = {
    NORMALIZE: (fold_constants, prune_empty, drop_watermarks),
    LOGICAL: (merge_projections_and_filters, push_filter_through_join, push_filter_down),
    PHYSICAL: (
        push_filter_into_rank,
        rank_into_window_rank,
        rank_into_deduplicate,
        push_projection_through_union,
        reorder_joins,
        merge_projections_and_filters,
        recognize_temporal_join,
        recognize_lookup_join,
        recognize_window_join,
        recognize_interval_join,
        batch_join,
        stream_join,
        merge_projections_and_filters,
        multi_join,
        rank_into_deduplicate,
        window_into_aggregate,
        merge_projections_and_filters,
        split_distinct,
        fold_constants,
        merge_projections_and_filters,
        prune_empty,
        constant_rows,
    ),
    SOURCES: (
        drop_unread_watermarks,
        merge_projections_and_filters,
        push_filter_down,
        propagate_constants,
        push_filter_into_scan,
        push_projection_through_join,
        push_projection_through_rank,
        merge_projections_and_filters,
        push_projection_into_unnest,
        merge_projections_and_filters,
        push_projection_into_scan,
        merge_projections_and_filters,
        push_nested_projection_into_scan,
        push_limit_into_scan,
        store_by_unique_key,
        broadcast_join,
        one_phase_aggregate,
        two_phase_groups,
    ),
}
"""The rules in their order; those of `logical` are repeated until the plan no longer changes, at most ten times."""
NEEDED = frozenset(
    {
        "push_filter_into_rank",
        "recognize_interval_join",
        "recognize_lookup_join",
        "recognize_temporal_join",
        "batch_join",
        "push_projection_into_unnest",
        "rank_into_deduplicate",
        "rank_into_window_rank",
        "recognize_window_join",
        "stream_join",
    }
)
"""Rules without which some queries cannot run."""
STREAM_ONLY = frozenset(
    {"drop_unread_watermarks", "multi_join", "store_by_unique_key", "stream_join", "two_phase_groups"}
)
BATCH_ONLY = frozenset({"broadcast_join", "drop_watermarks", "one_phase_aggregate", "reorder_joins"})


def name_of(rule: Rule) -> str:
    """Return the name of a rule.

    >>> name_of(merge_projections_and_filters)
    'merge_projections_and_filters'
    """
    return getattr(rule, "__name__", type(rule).__name__)


__all__ = [
    "BATCH_ONLY", "LOGICAL", "NEEDED", "NORMALIZE", "PHASES", "PHYSICAL", "SOURCES", "STREAM_ONLY", "Rule", "name_of",
]  # fmt: skip
