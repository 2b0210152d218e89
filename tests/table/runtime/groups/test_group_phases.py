"""GROUP BY over a stream in two phases: parts of mini-batches that are merged, beside a model that goes row by row."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from rayflink.table.plan.groups import MiniBatch
from rayflink.table.runtime.groups.running_sums import GroupRows, RunningMoments
from rayflink.table.runtime.groups.segments import Segments
from rayflink.testing import OperatorHarness, at
from rayflink.testing.elements import columns

from .group_cases import (
    AFTER,
    BEFORE,
    EVERY,
    INSERT,
    WORD,
    D,
    GroupModel,
    Groups,
    N,
    X,
    agg,
    batch,
    changes_of,
    come,
    row,
    same,
)
from .test_stream_groups import random_changes

TOGETHER = MiniBatch(1000, 100)
FOLDED = {"FIRST_VALUE", "LAST_VALUE", "MIN", "MAX"}


@pytest.mark.slow
@pytest.mark.spec("R17")
@pytest.mark.parametrize("retracts", [False, True])
@pytest.mark.parametrize("keys", [(WORD,), (), (D, N)])
def test_merged_parts_give_the_changes_of_the_model(keys, retracts):
    chance = random.Random(f"{keys}{retracts}")
    merging = [one for one in EVERY if not retracts or one.kind.value not in FOLDED]
    for _ in range(4):
        chosen = tuple(chance.sample(merging, chance.randint(0, 7)))
        groups = Groups(chosen, keys, retracts, mini_batch=TOGETHER, is_two_phase=True)
        model, changes = GroupModel(groups), random_changes(chance, 90, retracts)
        with OperatorHarness(groups.operators) as harness:
            for number in range(0, len(changes), 30):
                rows = changes[number : number + 30]
                harness.give(batch(rows[:11]))
                harness.give(batch(rows[11:]))
                harness.give(at(1000 * (number + 1)))
                harness.give(at(1000 * (number + 1) + 100))
                found, wanted = changes_of(harness.take()), model.add(rows, folded=True)
                assert [kind for kind, _ in found] == [kind for kind, _ in wanted]
                assert same([values for _, values in found], [values for _, values in wanted])


def test_a_part_in_which_as_many_rows_go_as_come_changes_the_moments():
    groups = Groups((agg("VAR_POP", X), agg("VAR_POP", X, distinct=True)), (WORD,), True, mini_batch=TOGETHER,
                    is_two_phase=True)  # fmt: skip
    with OperatorHarness(groups.operators) as harness:
        harness.give(come(row("a", x=1.0), row("a", x=3.0), row("a", x=5.0)))
        harness.give(at(1000))
        harness.give(at(1100))
        harness.take()
        harness.give(batch([(BEFORE, row("a", x=3.0)), (AFTER, row("a", x=9.0))]))
        harness.give(at(2000))
        harness.give(at(2100))
        before, after = (pytest.approx(squares / 3) for squares in (8, 32))
        assert changes_of(harness.take()) == [(BEFORE, ("a", before, before)), (AFTER, ("a", after, after))]


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_moments_of_merged_parts_follow_values_that_rise(share):
    moments = RunningMoments(0, None, False, True)
    segments, nothing = Segments(np.array([True])), [pa.nulls(1, kind) for kind in moments.types(pa.float64())]
    state, before = nothing, []
    for number in range(300):
        values = [number * 1e6 + share + away for away in (-1.0, 1.0)]
        changes, before = [*values, *before], values
        weights = np.array([1, 1, -1, -1][: len(changes)])
        rows = GroupRows(pa.array(changes), weights, Segments(np.arange(len(changes)) == 0), True)
        state = moments.merge(state, moments.run(nothing, rows)[1], segments)
    counts, means, squares = (column[0].as_py() for column in moments.shown(state))
    assert (counts, means) == (2, pytest.approx(299e6 + share))
    assert squares == pytest.approx(2, abs=0.1)


def test_state_of_one_phase_restores_in_two_phases():
    one_phase = Groups((agg("SUM", N), agg("VAR_POP", N), agg("MAX", N)), mini_batch=MiniBatch(1, 100))
    two_phase = replace(one_phase, is_two_phase=True)
    local, merging = two_phase.operators()
    with OperatorHarness(one_phase.operators) as harness:
        harness.give(come(row("a", 2)))
        before = harness.snapshot()
        [parts] = local.fold(come(row("a", 4), row("b", 1)).batch.data)
        with harness.restore(lambda: merging, before) as restored:
            restored.give(columns(parts))
            assert changes_of(restored.take()) == [
                (BEFORE, ("a", 2, 0, 2)), (AFTER, ("a", 6, 1, 4)), (INSERT, ("b", 1, 0, 1)),
            ]  # fmt: skip
