"""Joins with the versions of a table, under every hardship, beside a model, restored at another parallelism."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.records.batches import ArrowBatch
from rayflink.common.records.row_kinds import with_kinds
from rayflink.common.types import RowKind
from rayflink.table.plan.joins import JoinKind
from rayflink.table.runtime.joins import temporal_join as temporal_joins
from rayflink.table.runtime.joins.temporal_join import TemporalJoinOperator, TemporalJoinSpec
from rayflink.testing import OperatorHarness, in2, verify, wm
from rayflink.testing.elements import Columns, Record, columns

from .join_cases import BY_WORD, LESS, pair, spec, timed, timed2

MOST = 2**63 - 1
KINDS = [JoinKind.INNER, JoinKind.LEFT]


def temporal_join(kind: JoinKind, less: bool = False, ttl_ms: int = 0) -> Any:
    """Return a factory of the join by word: `ts` is the time of the left side, `ts0` that of the right one."""
    join = spec(kind, LESS if less else None)
    join = replace(join, right=replace(join.right, unique=(1, 0)))
    return lambda: TemporalJoinOperator(TemporalJoinSpec(join, (3, 0), ttl_ms))


def row(number: int | None, word: str | None, time: int) -> Any:
    return number, word, time, time


def versions(*values: tuple[int | None, str | None, int, RowKind]) -> Columns:
    """Return changes of the right side: number, word, time, kind."""
    rows = timed2(*(value[:3] for value in values)).batch.data
    kinds = np.array([value[3].value for value in values], dtype=np.int8)
    return columns(ArrowBatch(with_kinds(rows, kinds) if kinds.any() else rows))


NEW, OLD, NOW, GONE = RowKind
GIVEN = [
    in2(versions((1, "a", 0, NEW), (2, "b", 3, NEW), (7, None, 0, NEW))), timed((1, "a", 5), (2, "a", 12)),
    timed((3, "b", 2)), in2(versions((1, "a", 0, OLD), (3, "a", 10, NOW))), in2(wm(11)),
    timed((4, "a", 10), (5, "c", 4), (6, None, 4)), wm(11),
    in2(versions((2, "b", 15, GONE), (4, "a", 20, NOW), (5, "a", 20, NOW))),
    timed((7, "b", 14), (8, "b", 16), (9, "a", 25)), wm(18), in2(wm(18)), in2(versions((6, "b", 30, NEW))),
    timed((0, "b", 30)), wm(MOST), in2(wm(MOST)),
]  # fmt: skip
FIRST = [(row(3, "b", 2), None), (row(5, "c", 4), None), (row(6, None, 4), None),
         (row(1, "a", 5), row(1, "a", 0)), (row(4, "a", 10), row(3, "a", 10))]  # fmt: skip
SECOND = [(row(2, "a", 12), row(3, "a", 10)), (row(7, "b", 14), row(2, "b", 3)), (row(8, "b", 16), None)]
THIRD = [(row(9, "a", 25), row(5, "a", 20)), (row(0, "b", 30), row(6, "b", 30))]


@pytest.mark.spec("R25", "version")
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_each_row_is_joined_with_the_version_of_its_time(kind):
    def shown(rows: list[Any]) -> list[Record]:
        return [pair(*one) for one in rows if one[1] is not None or kind is JoinKind.LEFT]

    then = [*shown(FIRST), wm(11), *shown(SECOND), wm(18), *shown(THIRD), wm(MOST)]
    verify(temporal_join(kind), GIVEN, then, BY_WORD)


@pytest.mark.spec("R25", "removed")
def test_versions_that_no_row_can_ask_for_are_removed():
    with OperatorHarness(temporal_join(JoinKind.INNER), 2) as harness:
        [operator] = harness.operators
        table = operator._versions.side.rows.table
        harness.give(in2(versions(*((n, "a", n, NEW) for n in range(50)), (1, "b", 1, NEW), (1, "b", 2, GONE))))
        assert len(table) == 52
        harness.give(wm(40))
        harness.give(in2(wm(40)))
        assert len(table) == 10
        harness.give(wm(60))
        harness.give(in2(wm(60)))
        assert len(table) == 1


@dataclass
class Model:
    """A join with versions row by row: a version holds until the next one of its word."""

    kind: JoinKind
    less: bool
    versions: dict[tuple[str, int], int | None] = field(default_factory=dict)
    waiting: list[Any] = field(default_factory=list)

    def advance(self, watermark: int) -> list[Record]:
        due = sorted((one for one in self.waiting if one[3] <= watermark), key=lambda one: one[3])
        self.waiting = [one for one in self.waiting if one[3] > watermark]
        return [record for one in due for record in self._joined(one)]

    def _joined(self, one: Any) -> list[Record]:
        times = [time for word, time in self.versions if word == one[1] and time <= one[3]]
        number = self.versions[one[1], max(times)] if times else None
        is_met = number is not None and (not self.less or (one[0] is not None and one[0] < number))
        if is_met:
            return [pair(one, row(number, one[1], max(times)))]
        return [pair(one, None)] if self.kind is JoinKind.LEFT else []


rows = st.lists(
    st.tuples(st.none() | st.integers(0, 4), st.sampled_from(["a", "b", None]), st.integers(0, 60)), max_size=6
)
steps = st.lists(st.tuples(st.sampled_from(["left", "right"]), rows) | st.integers(1, 25), max_size=14)


@pytest.mark.spec("R25", "watermark")
@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(steps, st.sampled_from(KINDS), st.booleans(), st.integers(0, 13))
def test_any_rows_are_joined_as_the_model_does(steps, kind, less, restored_at):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(temporal_joins, "BLOCK_PAIRS", 3)
        factory, model, watermark, number = temporal_join(kind, less), Model(kind, less), 0, 100
        harness = OperatorHarness(factory, 2)
        for place, step in enumerate(steps):
            if place == restored_at:
                harness = harness.restore(factory, harness.snapshot())
            if isinstance(step, int):
                watermark += step
                harness.give(wm(watermark))
                harness.give(in2(wm(watermark)))
                found = [one for one in harness.take() if isinstance(one, Record)]
                assert found == model.advance(watermark)
                continue
            side, values = step
            values = [(n, word, time + watermark + 1) for n, word, time in values]  # rows come before the watermark
            if not values:
                continue
            if side == "left":
                model.waiting += [row(*value) for value in values]
                harness.give(timed(*values))
                continue
            changes = []
            for n, word, time in values:
                number += 1
                changes.append((number, word, time, GONE if n is None else NOW))
                if word is not None:
                    model.versions[word, time] = None if n is None else number
            harness.give(in2(versions(*changes)))
        harness.close()
