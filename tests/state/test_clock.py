"""Clocks: the machine's, and one moved by hand."""

from __future__ import annotations

import time

import pytest

from rayflink.state.clock import Clock, ManualClock, SystemClock


def test_the_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock(1_000)
    assert (clock.now_ms(), clock.monotonic()) == (1_000, 0.0)
    clock.advance(1_500)
    assert (clock.now_ms(), clock.monotonic()) == (2_500, 1.5)
    with pytest.raises(ValueError, match="not by -1"):
        clock.advance(-1)


def test_the_system_clock_tells_the_machines_time() -> None:
    clock = SystemClock()
    before = time.time()
    assert before * 1000 - 1 <= clock.now_ms() <= time.time() * 1000 + 1
    assert clock.monotonic() <= clock.monotonic()


def test_both_are_clocks() -> None:
    assert isinstance(SystemClock(), Clock) and isinstance(ManualClock(), Clock)
