"""The memory that the caches of one backend share, the bounds of each, and when they make room."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .row_cache import RowCache

_SAMPLE_ENTRIES = 64
"""Most entries between two whose size is estimated."""
_SAMPLE_BYTES = 4096
_HOT_SHARE = 0.9
"""Part of the budget that the hot generations fill before they become cold."""


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """Bounds of a cache beside its memory; tests lower them to meet each often.

    Args:
        evict_entries: number of cold entries that are written and dropped at a time.
        growth_entries: number of entries that come into the caches before cold ones are dropped.
        max_tombstones: number of deleted keys beyond which their rows are deleted.
        max_stored_namespaces: number of namespaces up to which a cache remembers which of them have rows.
    """

    evict_entries: int = 4096
    growth_entries: int = 1024
    max_tombstones: int = 4096
    max_stored_namespaces: int = 100_000


@dataclass(frozen=True, slots=True)
class BudgetStatistics:
    """The memory that several caches share."""

    budget_bytes: int
    """Bytes that all of them may take now."""
    estimated_bytes: int
    """Bytes that they take, as estimated from samples."""
    caches: int
    """Number of the caches."""


class CacheBudget:
    """Bytes that several caches share.

    Args:
        budget_bytes: returns how many bytes there are now; called again and again.
        limits: bounds of each cache.
    """

    def __init__(self, budget_bytes: Callable[[], int], limits: CacheLimits | None = None) -> None:
        self._budget_bytes = budget_bytes
        self.limits = limits or CacheLimits()
        self.caches: list[RowCache] = []
        """The caches that share the budget."""

    def add(self, cache: RowCache) -> None:
        """Let one more cache take from the budget."""
        self.caches.append(cache)

    def sample_interval(self) -> int:
        """Return the number of entries after which a cache samples a size and makes room: fewer in a small budget."""
        return max(1, min(_SAMPLE_ENTRIES, self._budget_bytes() // _SAMPLE_BYTES))

    def statistics(self) -> BudgetStatistics:
        """Return the present counts."""
        used = int(sum(cache.estimated_bytes for cache in self.caches))
        return BudgetStatistics(self._budget_bytes(), used, len(self.caches))

    def make_room(self) -> None:
        """Evict cold entries as the hot generations grow, and rotate the caches when those fill the budget.

        For each byte that comes in, two cold ones are evicted, so that both generations together never take more than
        at the last rotation, and nothing is left of the cold ones at the next. A pinned cache is left alone.
        """
        caches = [cache for cache in self.caches if not cache.pinned]
        if sum(max(0, cache.usage.growth) for cache in caches) >= self.limits.growth_entries:
            surplus = 0.0
            for cache in caches:
                surplus += 2 * max(0, cache.usage.growth) * cache.usage.entry_bytes
                cache.usage.restart_growth()
            for cache in caches:
                surplus -= cache.evict(surplus)
        if sum(cache.estimated_bytes for cache in self.caches) > self._budget_bytes() * _HOT_SHARE:
            for cache in caches:
                cache.rotate()


__all__ = ["CacheBudget", "CacheLimits"]
