"""The settings of the physical planner."""

from __future__ import annotations

from dataclasses import dataclass

from rayflink.common.config_options import ConfigOption
from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options
from rayflink.common.options.registry import (
    NonDeterministicUpdates,
    NotNullEnforcer,
    SinkKeyedShuffle,
    TypeLengthEnforcer,
)
from rayflink.user_types import UserValue

from ..plan.groups import MiniBatch
from ..plan.logical import Relation, Scan, Sink
from ..runtime.async_answers import AsyncCallSettings

OPTIONS: tuple[ConfigOption[UserValue], ...] = (
    options.AGG_PHASE_STRATEGY, options.REUSE_SUB_PLAN, options.REUSE_SOURCE, options.SOURCE_IDLE_TIMEOUT,
    options.NOT_NULL_ENFORCER, options.TYPE_LENGTH_ENFORCER, options.STATE_TTL, options.MINI_BATCH,
    options.MINI_BATCH_SIZE, options.MINI_BATCH_LATENCY, options.ASYNC_LOOKUP_CAPACITY, options.ASYNC_LOOKUP_TIMEOUT,
    options.ASYNC_LOOKUP_OUTPUT, options.NON_DETERMINISTIC_UPDATES, options.KEYED_SHUFFLE, options.ASYNC_SCALAR_CALLS,
    options.ASYNC_SCALAR_TIMEOUT, options.ASYNC_SCALAR_RETRY, options.ASYNC_SCALAR_ATTEMPTS, options.ASYNC_SCALAR_DELAY,
    options.ASYNC_TABLE_CALLS, options.ASYNC_TABLE_TIMEOUT, options.ASYNC_TABLE_RETRY, options.ASYNC_TABLE_ATTEMPTS,
    options.ASYNC_TABLE_DELAY,
)  # fmt: skip
"""The options that `PlannerSettings.of` reads."""


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

    @classmethod
    def of(cls, configuration: Configuration, is_batch: bool) -> PlannerSettings:
        """Return the settings of a configuration."""
        get = configuration.get
        has_mini_batch = get(options.MINI_BATCH) and not is_batch
        return cls(
            two_phase=get(options.AGG_PHASE_STRATEGY) is not options.AggPhaseStrategy.ONE_PHASE,
            reuse_plans=get(options.REUSE_SUB_PLAN),
            reuse_sources=get(options.REUSE_SOURCE),
            idle_timeout_ms=get(options.SOURCE_IDLE_TIMEOUT).to_millis(),
            not_null=get(options.NOT_NULL_ENFORCER),
            type_length=get(options.TYPE_LENGTH_ENFORCER),
            state_ttl_ms=get(options.STATE_TTL).to_millis(),
            mini_batch=MiniBatch(get(options.MINI_BATCH_SIZE), get(options.MINI_BATCH_LATENCY).to_millis())
            if has_mini_batch else None,
            lookups=AsyncLookups(
                get(options.ASYNC_LOOKUP_CAPACITY), get(options.ASYNC_LOOKUP_TIMEOUT).to_millis(),
                get(options.ASYNC_LOOKUP_OUTPUT) is options.LookupOutput.ALLOW_UNORDERED,
            ),
            async_scalars=AsyncCallSettings(
                "table.exec.async-scalar", get(options.ASYNC_SCALAR_CALLS),
                get(options.ASYNC_SCALAR_TIMEOUT).to_millis(),
                _retries(get(options.ASYNC_SCALAR_RETRY), get(options.ASYNC_SCALAR_ATTEMPTS)),
                get(options.ASYNC_SCALAR_DELAY).to_millis(),
            ),
            async_tables=AsyncCallSettings(
                "table.exec.async-table", get(options.ASYNC_TABLE_CALLS),
                get(options.ASYNC_TABLE_TIMEOUT).to_millis(),
                _retries(get(options.ASYNC_TABLE_RETRY), get(options.ASYNC_TABLE_ATTEMPTS)),
                get(options.ASYNC_TABLE_DELAY).to_millis(),
            ),
            nondeterministic_updates=get(options.NON_DETERMINISTIC_UPDATES),
            keyed_shuffle=get(options.KEYED_SHUFFLE),
        )  # fmt: skip

    def reuses(self, plan: Relation) -> bool:
        """Return whether a relation that occurs twice is translated once."""
        if not self.reuse_plans or isinstance(plan, Sink):
            return False
        return plan.is_repeatable and (self.reuse_sources or not isinstance(plan, Scan))


def _retries(strategy: options.AsyncRetry, attempts: int) -> int:
    """Return how often a call that fails is repeated."""
    return attempts if strategy is options.AsyncRetry.FIXED_DELAY else 0


__all__ = ["OPTIONS", "AsyncLookups", "PlannerSettings"]
