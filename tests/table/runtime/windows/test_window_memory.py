"""State that does not fit into its managed memory: files, parts, and the same results."""

from __future__ import annotations

from collections import Counter

import pytest

from rayflink.common.managed_memory import Allowance, MemoryManager
from rayflink.table.runtime.keyed_state import frame_memory
from rayflink.table.runtime.windows import session_store, slice_store, sliced_windows
from rayflink.table.runtime.windows.aggregate_firing import AggregateFiring
from rayflink.table.runtime.windows.window_operators import one_phase_window_aggregate, session_window_aggregate
from rayflink.testing import OperatorHarness

from .window_cases import WORD, N, aggregate, by_word, hop, rows, session, tumble

AGGREGATES = aggregate("COUNT"), aggregate("SUM", N), aggregate("COUNT", N, distinct=True), aggregate("MIN", WORD)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(slice_store, "LEAST_WEIGHT", 50)
    monkeypatch.setattr(session_store, "LEAST_WEIGHT", 50)
    monkeypatch.setattr(frame_memory, "STEP_BYTES", 256)
    monkeypatch.setattr(frame_memory, "LEAST_BYTES", 256)


def with_memory(make, size: int, folder: str, memory: MemoryManager):
    """What makes the same operator with a bounded memory."""

    def bounded(*arguments):
        operator = make(*arguments)
        setup = operator.setup

        def bounded_setup(ctx):
            ctx.managed_memory, ctx.spill_folder = Allowance(memory, "task", size), folder
            setup(ctx)

        operator.setup = bounded_setup
        return operator

    return bounded


def told(harness: OperatorHarness, metric: str) -> int:
    """The value of a metric of the operator."""
    [value] = [value for name, value in harness.metrics.snapshot().items() if name.split(".")[-1] == metric]
    return value


def worked(factory, snapshots=False):
    harness = OperatorHarness(factory)
    found = []
    for number in range(60):
        values = [(f"word {at * 7 % 90}", at % 11, number + at % 13) for at in range(number, number + 40)]
        harness.give(rows(*values))
        harness.advance_watermark(number - 3)
        if snapshots and number % 10 == 9:
            found += harness.output_values()
            harness = harness.restore(factory, harness.snapshot())
    harness.advance_watermark(1000)
    found += harness.output_values()
    held = harness.operators[0].contents.memory.reserved
    is_short = harness.operators[0].contents.memory.limit is not None
    assert (told(harness, "spilledBytes") > 0) is is_short
    harness.close()
    return Counter(tuple(value) for value in found), held


@pytest.mark.slow
@pytest.mark.parametrize("window", [tumble(), hop(), session(9)], ids=["tumble", "hop", "session"])
@pytest.mark.parametrize("snapshots", [False, True])
def test_results_are_those_of_a_state_in_memory(tmp_path, small, window, snapshots):
    aggregation = by_word(window, *AGGREGATES)
    operator = session_window_aggregate if window.gap_ms else one_phase_window_aggregate
    wanted, _ = worked(lambda: operator(aggregation))
    memory = MemoryManager(1 << 30)
    limited = with_memory(operator, 4096, str(tmp_path / "spill"), memory)
    files = []
    written = frame_memory.FrameMemory.written

    def counted(self, pieces):
        files.append(written(self, pieces))
        assert self.reserved <= 4096
        return files[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frame_memory.FrameMemory, "written", counted)
        found, _ = worked(lambda: limited(aggregation), snapshots)
    assert found == wanted
    assert len(files) > 3
    assert list((tmp_path / "spill").iterdir()) == []
    assert memory.used == 0


def test_memory_is_given_back_when_windows_have_fired(tmp_path, small):
    aggregation = by_word(tumble(), *AGGREGATES)
    memory = MemoryManager(1 << 30)
    make = with_memory(one_phase_window_aggregate, 1 << 30, str(tmp_path), memory)
    harness = OperatorHarness(lambda: make(aggregation))
    harness.give(rows(*((f"word {at}", at, at % 10) for at in range(500))))
    assert memory.used > 10_000
    assert told(harness, "stateMemory") == memory.used
    harness.advance_watermark(9)
    harness.give(rows(("a", 1, 20)))
    assert memory.used < 1_000
    harness.close()
    assert memory.used == 0


def test_windows_with_many_values_are_worked_one_after_the_other(monkeypatch):
    """A key with a list of values is one row, and much."""
    monkeypatch.setattr(sliced_windows, "FIRING_WEIGHT", 100)
    given, fire = [], AggregateFiring.fire
    counted = lambda self, windows, store: given.append(len(windows)) or fire(self, windows, store)  # noqa: E731
    monkeypatch.setattr(AggregateFiring, "fire", counted)
    harness = OperatorHarness(lambda: one_phase_window_aggregate(by_word(hop(), aggregate("COUNT", N, distinct=True))))
    harness.give(rows(*(("a", value, time) for time in range(60) for value in range(90))))
    harness.advance_watermark(10_000)
    assert len(given) > 4 and max(given) <= 2
    assert {tuple(value)[1] for value in harness.output_values()} == {90}
    harness.close()
