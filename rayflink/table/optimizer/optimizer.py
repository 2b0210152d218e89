"""Applies the rules to a plan, phase by phase."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from rayflink.common.options import registry as options

from ..plan.logical import Relation
from ..plan.typed import Session
from .estimates import Estimates
from .phases import BATCH_ONLY, LOGICAL, PHASES, STREAM_ONLY, Rule, name_of
from .planner_config import PlannerConfig
from .rules.broadcast_join import broadcast_join
from .rules.drop_unread_watermarks import drop_unread_watermarks
from .rules.fold_constants import fold_constants
from .rules.joins_of_streams.multi_join import multi_join
from .rules.one_phase_aggregate import one_phase_aggregate
from .rules.propagate_constants import propagate_constants
from .rules.reorder_joins import reorder_joins
from .rules.split_distinct import split_distinct
from .rules.two_phase_groups import two_phase_groups
from .user_rules import applied

MOST_ROUNDS = 10
"""The largest number of passes over the rules of the logical phase."""
MOST_BUSHY = 14
"""Tables of which all orders are looked at, at most: of one more it takes three times as long."""


@dataclass(frozen=True)
class RuleSettings:
    """Settings of the optimizer.

    Args:
        is_batch: the tables are read to their ends.
        config: says which rules.
        reorders_joins: the order of inner joins is chosen by their rows.
        most_bushy: tables of which all orders are looked at.
        most_broadcast_bytes: of the small side of a join that is sent to all subtasks; below 0: none is.
        phases: how whole groups are aggregated.
        distinct_buckets: into how many DISTINCT aggregates of streams are split; 0: they are not.
        has_mini_batch: rows of streams wait to be aggregated together.
        merges_joins: joins of streams with a common key are run in one step.
        drops_watermarks: watermarks that no step reads are left out.
        tables_with_readers: tables whose watermarks other plans read.
    """

    is_batch: bool = False
    config: PlannerConfig = PlannerConfig()
    reorders_joins: bool = False
    most_bushy: int = 12
    most_broadcast_bytes: int = -1
    phases: options.AggPhaseStrategy = options.AggPhaseStrategy.AUTO
    distinct_buckets: int = 0
    has_mini_batch: bool = False
    merges_joins: bool = False
    drops_watermarks: bool = True
    tables_with_readers: frozenset[tuple[str, ...]] = frozenset()


def optimized(plan: Relation, session: Session, settings: RuleSettings | None = None) -> Relation:
    """Return the plan after all rules.

    Args:
        session: in which constants are computed.

    Raises:
        SqlError: a rule of the user's own is wrong.
    """
    settings = settings or RuleSettings()
    bound = _bound(session, settings)

    def once(plan: Relation, rule: Rule, is_own: bool) -> Relation:
        if is_own:
            return applied(rule, plan)
        if name_of(rule) in (STREAM_ONLY if settings.is_batch else BATCH_ONLY):
            return plan
        return bound.get(rule, rule)(plan)

    for phase in PHASES:
        for _ in range(MOST_ROUNDS if phase == LOGICAL else 1):
            before = plan
            for rule, is_own in settings.config.rules(phase):
                plan = once(plan, rule, is_own)
            if plan is before or plan == before:
                break
    return plan


def _bound(session: Session, settings: RuleSettings) -> Mapping[Rule, Callable[[Relation], Relation]]:
    """Return the rules that ask for more than a plan."""
    estimates, most = Estimates(), min(settings.most_bushy, MOST_BUSHY)
    reorder = partial(reorder_joins, estimates=estimates, most_bushy=most)
    return {
        multi_join: partial(multi_join, is_enabled=settings.merges_joins),
        drop_unread_watermarks: partial(
            drop_unread_watermarks, is_enabled=settings.drops_watermarks, read_elsewhere=settings.tables_with_readers
        ),
        fold_constants: partial(fold_constants, session=session),
        propagate_constants: partial(propagate_constants, session=session),
        broadcast_join: partial(broadcast_join, estimates=estimates, most_bytes=settings.most_broadcast_bytes),
        one_phase_aggregate: partial(one_phase_aggregate, estimates=estimates, strategy=settings.phases),
        split_distinct: partial(split_distinct, buckets=settings.distinct_buckets),
        two_phase_groups: partial(
            two_phase_groups, has_mini_batch=settings.has_mini_batch, strategy=settings.phases,
            splits=settings.distinct_buckets > 0,
        ),
        reorder_joins: reorder if settings.reorders_joins else _as_it_is,
    }


def _as_it_is(plan: Relation) -> Relation:
    return plan


__all__ = ["RuleSettings", "optimized"]
