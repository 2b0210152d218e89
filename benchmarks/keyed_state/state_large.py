"""How much `state_large` measures, and under which caps: the same for ours and the peer."""

from __future__ import annotations

from dataclasses import dataclass

KEYS = 50_000_000
WARM_SECONDS = 15.0
WINDOW_SECONDS = 60.0
MANAGED_MB = 512
"""Of RocksDB: memtables, blocks in cache, and what stands before them."""
PAGE_CACHE_MB = 64


@dataclass(frozen=True)
class Size:
    """How many keys, and how long: a warm-up and the window that is measured."""

    keys: int = KEYS
    warm_seconds: float = WARM_SECONDS
    window_seconds: float = WINDOW_SECONDS
