"""Rewrites of logical plans, one a file; each gives a plan with the same rows."""

from __future__ import annotations

from typing import Any

from ..logical import Relation
from ..typed import Session
from .fold_constants import fold_constants
from .own_rules import applied
from .phases import BATCH_ONLY, LOGICAL, PHASES, Rule, name_of
from .planner_config import PlannerConfig
from .share_scans import share_scans
from .split_distinct import split_distinct

MOST_ROUNDS = 10
"""So often the rules of the logical phase are applied one after the other."""


def optimized(
    plan: Relation,
    session: Session,
    is_batch: bool = False,
    config: PlannerConfig | None = None,
    distinct_buckets: int = 0,
) -> Relation:
    """The plan after all rules.

    Args:
        session: in which constants are computed.
        is_batch: the tables are read to their ends.
        config: says which rules; None: the planner's own.
        distinct_buckets: into how many DISTINCT aggregates of streams are split; 0: they are not.

    Raises:
        SqlError: a rule of the user's own is wrong.
    """
    chosen = PlannerConfig() if config is None else config
    given: dict[Rule, dict[str, Any]] = {
        fold_constants: {"session": session},
        split_distinct: {"buckets": 0 if is_batch else distinct_buckets},
    }

    def once(plan: Relation, rule: Rule, is_own: bool) -> Relation:
        if is_own:
            return applied(rule, plan)
        if not is_batch and name_of(rule) in BATCH_ONLY:
            return plan
        return rule(plan, **given.get(rule, {}))

    for phase in PHASES:
        for _ in range(MOST_ROUNDS if phase == LOGICAL else 1):
            before = plan
            for rule, is_own in chosen.rules(phase):
                plan = once(plan, rule, is_own)
            if plan is before or plan == before:
                break
    return plan


__all__ = ["PlannerConfig", "optimized", "share_scans"]
