"""The state of functions OVER rows stays within its bounds, and late rows are counted."""

from __future__ import annotations

import random

import pytest

from rayflink.common.managed_memory import Allowance, MemoryManager
from rayflink.common.metrics.metric_names import NUM_LATE_RECORDS_DROPPED
from rayflink.state.errors import SnapshotMismatch
from rayflink.table.plan.over import Frame
from rayflink.table.runtime.keyed_state import frame_memory
from rayflink.table.runtime.ranks.first_of_key import EXPIRED
from rayflink.testing import OperatorHarness, at, wm

from ..groups.group_cases import agg, same
from .over_cases import ALL_BEFORE, UNTIL_ROW, WORD, N, Over, OverModel, X, lag, row, rows, values_of

FUNCTIONS = (agg("SUM", N), agg("MAX", WORD), agg("SUM", X), agg("COUNT", N, distinct=True))


def place(values):
    """Return the place of a row among all: rows come in order of time, in parts by key where memory is short."""
    return values[X]


def metric(harness: OperatorHarness, name: str) -> int:
    return sum(value for key, value in harness.metrics.snapshot().items() if key.endswith(name))


@pytest.mark.slow
@pytest.mark.parametrize("frame", [UNTIL_ROW, Frame(True, -4, 0), Frame(False, -700, 0)], ids=str)
def test_rows_and_state_go_to_files_where_memory_is_short(tmp_path, monkeypatch, frame):
    monkeypatch.setattr(frame_memory, "STEP_BYTES", 256)
    monkeypatch.setattr(frame_memory, "LEAST_BYTES", 256)
    memory, chance, over = MemoryManager(1 << 30), random.Random(3), Over(FUNCTIONS, frame)

    def small():
        for operator in (operators := over.operators()):
            operator.setup = lambda ctx, setup=operator.setup: set_up(ctx, setup)
        return operators

    def set_up(ctx, setup):
        ctx.managed_memory, ctx.spill_folder = Allowance(memory, ctx.operator_id, 4096), str(tmp_path)
        setup(ctx)

    harness, model = OperatorHarness(small), OverModel(over)
    for number in range(20):
        start = number * 200
        times = [start + chance.randrange(1, 400) for _ in range(60)]
        part = [row(f"word {chance.randrange(60)}", chance.randrange(9), ms, chance.random()) for ms in times]
        model.waiting += part
        harness.give(rows(*part))
        if number % 5 == 4:
            harness.give(wm(start))
            results, wanted = values_of(harness.take()), list(model.advance(start))
            assert same(sorted(results, key=place), sorted(wanted, key=place))
        if number == 12:
            harness = harness.restore(small, harness.snapshot())
    spilled = metric(harness, frame_memory.SPILLED_BYTES)
    harness.close()
    assert spilled > 4 * 4096 and memory.used == 0 and not list(tmp_path.glob("*.arrow"))


def test_late_rows_and_keys_whose_time_is_over_are_counted():
    over = Over((agg("COUNT"),), ALL_BEFORE, ttl_ms=10)
    with OperatorHarness(over.operators) as harness:
        harness.give(rows(row("a", 1, 1), row("b", 1, 1)))
        harness.give(wm(5))
        harness.give(rows(row("a", 1, 5), row("a", 1, 6), row("a", 1, 2)))
        assert metric(harness, NUM_LATE_RECORDS_DROPPED) == 2
        harness.give(at(30))
        harness.give(wm(6))
        assert values_of(harness.take())[-1][-1] == 1
        assert metric(harness, EXPIRED) == 2


def test_state_of_other_functions_or_frames_is_refused():
    harness = OperatorHarness(Over((lag(N, 2),)).operators)
    harness.give(rows(row("a", 1, 1)))
    harness.give(wm(1))
    snapshot = harness.snapshot()
    for other in (Over((lag(N, 3),)), Over((agg("SUM", N),)), Over((lag(N, 2),), keys=(N,))):
        with pytest.raises(SnapshotMismatch):
            harness.restore(other.operators, snapshot)
    harness.close()
