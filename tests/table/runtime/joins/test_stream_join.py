"""Joins of streams: beside a model of Flink's operators that goes row by row, under every hardship, and in bounds."""

from __future__ import annotations

import random

import pytest

from rayflink.common.managed_memory import Allowance, MemoryManager
from rayflink.table.plan.joins import JoinKind
from rayflink.table.runtime.joins import join_changes
from rayflink.table.runtime.joins.join_pairs import Matches
from rayflink.table.runtime.joins.stream_join import StreamJoinOperator
from rayflink.table.runtime.keyed_state import frame_memory
from rayflink.table.runtime.keyed_state.keyed_multiset import RowForm
from rayflink.testing import OperatorHarness, at, in2, verify
from rayflink.testing.elements import Record

from .stream_join_cases import (
    AFTER,
    BEFORE,
    BY_WORD,
    DELETE,
    INSERT,
    StreamJoinCase,
    StreamJoinModel,
    batch,
    cases,
    ensure_equal,
    random_changes,
)


def run(case, harness, chance, by_phase=True):
    model, now = StreamJoinModel(case), 0
    alive = ([], [])
    for size in (3, 20, 1, 40, 12, 30, 2):
        for side in chance.choice([(0, 1), (1, 0)]):
            now += chance.choice([0, 5, 9])
            harness.give(at(now))
            changes = random_changes(chance, case.forms[side], alive[side], size)
            expected = list(model.add(changes, side, now))
            harness.give(batch(changes) if side == 0 else in2(batch(changes, 1)))
            changed = [record for record in harness.take() if isinstance(record, Record)]
            ensure_equal(changed, expected, by_phase)
        harness = harness.restore(case, harness.snapshot())
    harness.close()


@pytest.mark.spec("R22", "semi-anti", "ttl")
@pytest.mark.slow
@pytest.mark.spec("G14", "joins-and-aggregations")
@pytest.mark.parametrize("kind", JoinKind)
def test_every_change_is_that_of_the_model(kind):
    for case in cases(kind):
        run(case, OperatorHarness(case, 2), random.Random(str(case)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", JoinKind)
def test_pairs_come_in_blocks_and_state_goes_to_files(kind, monkeypatch, tmp_path):
    monkeypatch.setattr(join_changes, "BLOCK_PAIRS", 3)
    monkeypatch.setattr(frame_memory, "STEP_BYTES", 256)
    monkeypatch.setattr(frame_memory, "LEAST_BYTES", 256)
    mapped, memory, files = frame_memory.FrameMemory.mapped, MemoryManager(512), [0]
    setup = StreamJoinOperator.setup

    def with_little_memory(self, ctx):
        ctx.managed_memory, ctx.spill_folder = Allowance(memory, "join", 512), str(tmp_path)
        setup(self, ctx)

    def counted(self, shape, dtype):
        files[0] += 1
        return mapped(self, shape, dtype)

    monkeypatch.setattr(StreamJoinOperator, "setup", with_little_memory)
    monkeypatch.setattr(frame_memory.FrameMemory, "mapped", counted)
    for case in cases(kind)[::3]:
        run(case, OperatorHarness(case, 2), random.Random(str(case)), by_phase=False)
    assert files[0] and not memory.used and not list(tmp_path.glob("*.arrow"))


def test_blocks_of_pairs_are_bounded():
    case = StreamJoinCase(JoinKind.INNER, (RowForm.APPENDED, RowForm.APPENDED))
    sizes = []
    pairs = Matches.pairs

    def counted(matches, block):
        for rows, stored in pairs(matches, block):
            sizes.append(len(rows))
            yield rows, stored

    with pytest.MonkeyPatch.context() as patch, OperatorHarness(case, 2) as harness:
        patch.setattr(Matches, "pairs", counted)
        patch.setattr(join_changes, "BLOCK_PAIRS", 100)
        harness.give(batch([(INSERT, ("a", number, 1)) for number in range(50)]))
        harness.give(in2(batch([(INSERT, ("a", number, 1)) for number in range(30)], 1)))
        assert len(harness.take()) == 1500
        assert sizes == [100] * 15


CHANGES = [
    [(INSERT, ("a", 1, 1)), (INSERT, ("b", 2, 2)), (INSERT, (None, 3, 3))],
    [(INSERT, ("a", 7, 5)), (INSERT, ("c", 8, 5)), (INSERT, (None, 9, 9))],
    [(BEFORE, ("b", 2, 2)), (AFTER, ("c", 2, 2)), (INSERT, ("a", 4, 4))],
    [(DELETE, ("a", 7, 5)), (INSERT, ("b", 7, 5))],
    [(DELETE, ("a", 4, 4)), (DELETE, ("a", 1, 1))],
]
"""Of the left and the right side in turn."""


@pytest.mark.spec("R22", "changes")
@pytest.mark.slow
@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.FULL, JoinKind.ANTI])
def test_a_join_survives_every_hardship(kind):
    case = StreamJoinCase(kind, (RowForm.UNIQUE, RowForm.COUNTED), True)
    model, given, then = StreamJoinModel(case), [], []
    for number, changes in enumerate(CHANGES):
        given.append(in2(batch(changes, 1)) if number % 2 else batch(changes))
        then += [record for parts in model.add(changes, number % 2) for part in parts for record in part]
    verify(case, given, then, BY_WORD)


def test_state_of_a_join_of_another_form_is_refused():
    case = StreamJoinCase(JoinKind.INNER, (RowForm.UNIQUE, RowForm.COUNTED))
    with OperatorHarness(case, 2) as harness:
        harness.give(batch(CHANGES[0]))
        snapshot = harness.snapshot()
        other = StreamJoinCase(JoinKind.INNER, (RowForm.COUNTED, RowForm.COUNTED))
        with pytest.raises(Exception, match="other keys or values; keep the query"):
            harness.restore(other, snapshot)
