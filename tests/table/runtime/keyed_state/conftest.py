"""Pages and blocks of keyed state so small that few rows fill many."""

from __future__ import annotations

import pytest

from rayflink.table.runtime.keyed_state import frame_memory, key_index, key_rows


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pages of a few rows, and blocks of fewer."""
    monkeypatch.setattr(key_index, "BUCKETS", 4)
    monkeypatch.setattr(key_index, "PLACES", 32)
    monkeypatch.setattr(key_index, "PAGE_BYTES", 256)
    monkeypatch.setattr(key_rows, "BLOCK_BITS", 3)
    monkeypatch.setattr(key_rows, "BLOCK_ROWS", 8)
    monkeypatch.setattr(frame_memory, "STEP_BYTES", 256)
    monkeypatch.setattr(frame_memory, "LEAST_BYTES", 256)
