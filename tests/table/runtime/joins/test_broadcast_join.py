"""Joins where every subtask has the small side, whichever side comes first, in blocks and within their memory."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.managed_memory import Allowance, MemoryManager
from rayflink.table.optimizer.rules.broadcast_join import _SMALL
from rayflink.table.plan.joins import JoinKind
from rayflink.table.runtime.joins import broadcast_join
from rayflink.table.runtime.joins.broadcast_join import BroadcastJoinOperator
from rayflink.table.runtime.keyed_state import frame_memory
from rayflink.testing import OperatorHarness, in2
from rayflink.testing.elements import Record

from .join_cases import joined, left, matches, right, spec

WAYS = [(kind, small) for kind, sides in _SMALL.items() for small in sides]
words = st.tuples(st.none() | st.integers(0, 4), st.sampled_from(["a", "b", None]), st.just(0), st.just(10))
pieces = st.lists(st.lists(words, min_size=1, max_size=5), max_size=4)


def worked(operator, lefts, rights, first: int) -> Counter[str]:
    """The rows that come of pieces of both sides, all of one first."""
    harness = OperatorHarness(operator, 2)
    for side in (first, 1 - first):
        for piece in (lefts, rights)[side]:
            harness.give(in2(right(*piece)) if side else left(*piece))
        harness.end_input(side)
    found = Counter(repr(one) for one in harness.take() if isinstance(one, Record))
    harness.close()
    return found


def wanted(kind: JoinKind, lefts, rights) -> Counter[str]:
    own, others = ([one for piece in side for one in piece] for side in (lefts, rights))
    pairs = [(at, beside) for (at, one), (beside, other) in product(enumerate(own), enumerate(others))
             if matches(one, other)]  # fmt: skip
    return Counter(map(repr, joined(kind, own, others, pairs)))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "small"), WAYS)
@given(lefts=pieces, rights=pieces, first=st.integers(0, 1))
@settings(max_examples=25, deadline=None)
def test_the_rows_are_those_of_all_pairs(kind, small, lefts, rights, first):
    found = worked(lambda: BroadcastJoinOperator(spec(kind), small), lefts, rights, first)
    assert found == wanted(kind, lefts, rights)


def test_rows_are_given_before_the_end_once_the_small_side_is_whole(monkeypatch):
    monkeypatch.setattr(broadcast_join, "BLOCK_ROWS", 2)
    harness = OperatorHarness(lambda: BroadcastJoinOperator(spec(JoinKind.INNER), 1), 2)
    harness.give(left((1, "a", 0, 10), (1, "a", 0, 10), (1, "a", 0, 10)))
    harness.give(in2(right((5, "a", 0, 10))))
    assert not harness.take()
    harness.end_input(1)
    assert len(harness.take()) == 3
    harness.give(left((1, "a", 0, 10)))
    assert not harness.take()  # too few for a block
    harness.give(left((1, "a", 0, 10)))
    assert len(harness.take()) == 2


def test_rows_that_wait_for_the_small_side_go_to_files(tmp_path, monkeypatch):
    monkeypatch.setattr(frame_memory, "STEP_BYTES", 256)
    monkeypatch.setattr(frame_memory, "LEAST_BYTES", 256)
    memory, files = MemoryManager(1 << 30), []
    written = frame_memory.FrameMemory.written

    class Small(BroadcastJoinOperator):
        def setup(self, ctx):
            ctx.managed_memory, ctx.spill_folder = Allowance(memory, "task", 4096), str(tmp_path)
            super().setup(ctx)

    def counted(self, given):
        files.append(1)
        return written(self, given)

    monkeypatch.setattr(frame_memory.FrameMemory, "written", counted)
    many = [[(at % 5, "ab"[at % 2], 0, 10) for at in range(40)] for _ in range(20)]
    few = [[(3, "a", 0, 10), (4, None, 0, 10)]]
    assert worked(lambda: Small(spec(JoinKind.LEFT), 1), many, few, 0) == wanted(JoinKind.LEFT, many, few)
    assert len(files) > 3 and memory.used == 0 and not list(tmp_path.iterdir())
