"""The memory budget that the caches of one backend share, and when they make room in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .row_cache import RowCache

_SAMPLED = 64
"""One of so many entries is weighed."""
_SAMPLED_BYTES = 4096
_GROWN = 1024
"""Entries that come before cold ones are dropped."""
_HOT_SHARE = 0.9
"""Part of the budget that the hot generations fill before they become cold."""


class CacheBudget:
    """A number of bytes that several caches share.

    Args:
        limit: how many there are now; asked again and again.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._caches: list[RowCache] = []

    def add(self, cache: RowCache) -> None:
        """Let one more cache take from the budget."""
        self._caches.append(cache)

    def entries_between_looks(self) -> int:
        """Return after how many entries a cache should ask for room: fewer where there is hardly any."""
        return max(1, min(_SAMPLED, self._limit() // _SAMPLED_BYTES))

    def keep(self) -> None:
        """Make room: the cold generations shrink as the hot ones grow, and change places with them in time.

        For each byte that came in two cold ones go, so that both together never have more than at the last change of
        places, and nothing is left of the cold ones at the next. A cache that has lent a dict is left alone.
        """
        caches = [cache for cache in self._caches if not cache.lent]
        if sum(max(0, cache.grown) for cache in caches) >= _GROWN:
            surplus = 0.0
            for cache in caches:
                surplus += 2 * max(0, cache.grown) * cache.entry_bytes
                cache.grown = 0
            for cache in caches:
                surplus -= cache.shrink(surplus)
        if sum(cache.estimated_bytes for cache in self._caches) > self._limit() * _HOT_SHARE:
            for cache in caches:
                cache.rotate()


__all__ = ["CacheBudget"]
