"""The settings of the physical planner."""

from __future__ import annotations

from dataclasses import dataclass

from rayflink.common.options.registry import (
    NonDeterministicUpdates,
    NotNullEnforcer,
    SinkKeyedShuffle,
    TypeLengthEnforcer,
)

from ..plan.groups import MiniBatch
from ..plan.logical import Relation, Scan, Sink
from ..runtime.async_answers import AsyncCallSettings


@dataclass(frozen=True)
class AsyncLookups:
    """Defaults of lookup joins.

    Args:
        capacity: requests under way at most.
        timeout_ms: for a request with all its repetitions.
        is_unordered: results may leave in another order than rows came.
    """

    capacity: int = 100
    timeout_ms: int = 180_000
    is_unordered: bool = False


@dataclass(frozen=True)
class PlannerSettings:
    """Settings of the translation from plans to steps.

    Args:
        two_phase: aggregate before rows are partitioned as well.
        reuse_plans: compute common parts of the plans once.
        reuse_sources: read tables that occur several times once.
        idle_timeout_ms: a source without rows for this long does not hold event time back; 0: it always does.
        not_null: how NULL is treated in a column that must not be NULL.
        type_length: how strings are treated whose length is not that of their column's type.
        state_ttl_ms: how long unused state without an end of its own is kept; 0: for ever.
        mini_batch: the rows of a stream that are aggregated together; None: each by itself.
        lookups: how lookup joins ask, where no hint says otherwise.
        async_scalars: how asynchronous scalar functions are called.
        async_tables: how asynchronous table functions are called.
        nondeterministic_updates: how a changing row is treated whose result depends on the time.
        keyed_shuffle: before which tables rows are partitioned by their PRIMARY KEY.
    """

    two_phase: bool = True
    reuse_plans: bool = True
    reuse_sources: bool = True
    idle_timeout_ms: int = 0
    not_null: NotNullEnforcer = NotNullEnforcer.ERROR
    type_length: TypeLengthEnforcer = TypeLengthEnforcer.IGNORE
    state_ttl_ms: int = 0
    mini_batch: MiniBatch | None = None
    lookups: AsyncLookups = AsyncLookups()
    async_scalars: AsyncCallSettings = AsyncCallSettings()
    async_tables: AsyncCallSettings = AsyncCallSettings()
    nondeterministic_updates: NonDeterministicUpdates = NonDeterministicUpdates.IGNORE
    keyed_shuffle: SinkKeyedShuffle = SinkKeyedShuffle.AUTO

    def reuses(self, plan: Relation) -> bool:
        """Return whether a relation that occurs twice is translated once."""
        if not self.reuse_plans or isinstance(plan, Sink):
            return False
        return plan.is_repeatable and (self.reuse_sources or not isinstance(plan, Scan))


__all__ = ["AsyncLookups", "PlannerSettings"]
