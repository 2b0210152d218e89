"""The state of MATCH_RECOGNIZE stays within its bounds: waiting rows go to files, last rows expire."""

from __future__ import annotations

from collections import Counter

import pytest

from rayflink.common.managed_memory import Allowance, MemoryManager
from rayflink.table.runtime.keyed_state import frame_memory
from rayflink.table.runtime.ranks.first_of_key import EXPIRED
from rayflink.testing import OperatorHarness, at, wm

from .match_cases import matching, row, rows, values_of

PAIRS = (
    "ORDER BY ts, n MEASURES A.n AS low, B.n AS high, B.ts AS ts, COUNT(*) AS size "
    "PATTERN (A B) WITHIN INTERVAL '1' SECOND DEFINE B AS B.n > PREV(B.n)"
)
FALLS = "ORDER BY ts MEASURES PREV(A.n) AS before, A.n AS n PATTERN (A) DEFINE A AS A.n < PREV(A.n)"


def counted(harness: OperatorHarness, name: str) -> int:
    return sum(value for key, value in harness.metrics.snapshot().items() if key.endswith(name))


@pytest.mark.slow
@pytest.mark.parametrize("words", [37, 1])
def test_rows_that_wait_go_to_files_where_memory_is_short(tmp_path, monkeypatch, words):
    monkeypatch.setattr(frame_memory, "STEP_BYTES", 256)
    monkeypatch.setattr(frame_memory, "LEAST_BYTES", 256)
    memory, most = MemoryManager(1 << 30), 4096

    def matches(folder: str) -> tuple[Counter, int]:
        operators = []

        def small():
            operator = matching(PAIRS)()
            setup = operator.setup

            def set_up(ctx):
                ctx.managed_memory, ctx.spill_folder = Allowance(memory, "task", most), folder
                setup(ctx)

            operator.setup = set_up
            operators.append(operator)
            return operator

        harness, found = OperatorHarness(small), []
        for number in range(40):
            start = number * 100
            values = [(place * 7 % words, (place + number) ** 2 % 11, place * 13 % 400) for place in range(30)]
            harness.give(rows(*(row(f"w{word}", n, start + ms) for word, n, ms in values)))
            assert not folder or operators[-1]._waiting._size <= most
            if number % 10 == 9:
                harness.give(wm(start - 150))
            if number == 20:
                found += values_of(harness.take())
                harness = harness.restore(small, harness.snapshot())
        harness.give(wm(10_000))
        found += values_of(harness.take())
        spilled = counted(harness, frame_memory.SPILLED_BYTES)
        harness.close()
        return Counter(found), spilled

    expected, _ = matches("")
    found, spilled = matches(str(tmp_path))
    assert found == expected and len(found) > 100
    assert spilled > 5 * most and memory.used == 0 and not list(tmp_path.iterdir())


def test_the_last_rows_of_a_key_expire():
    harness = OperatorHarness(matching(FALLS, ttl_ms=1_000))
    harness.give(rows(row("a", 9, 1), row("b", 9, 1)))
    harness.give(wm(1))
    harness.give(at(600))
    harness.give(rows(row("b", 8, 2)))
    harness.give(wm(2))
    restored = harness.restore(matching(FALLS, ttl_ms=1_000), harness.snapshot())
    restored.give(at(1_200))
    [operator] = restored.operators
    assert list(operator._before.snapshot()) == [("b",)]
    restored.give(rows(row("a", 1, 3), row("b", 7, 3)))
    restored.give(wm(3))
    assert values_of(restored.take()) == [("b", 8, 7)]
    assert counted(restored, EXPIRED) == 1


def test_last_rows_of_a_job_without_a_time_to_live_count_as_of_the_restore():
    harness = OperatorHarness(matching(FALLS))
    harness.give(rows(row("a", 9, 1)))
    harness.give(wm(1))
    snapshot = harness.snapshot()
    for ms, found in ((999, [("a", 9, 1)]), (1_999, [])):
        restored = harness.restore(matching(FALLS, ttl_ms=1_000), snapshot)
        restored.give(at(ms))
        restored.give(rows(row("a", 1, 2)))
        restored.give(wm(2))
        assert values_of(restored.take()) == found
