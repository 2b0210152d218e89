"""GROUP BY over a stream, under every hardship and beside a model that goes row by row."""

from __future__ import annotations

import random
import tempfile
from decimal import Decimal

import pytest

from rayflink.table.plan.groups import MiniBatch
from rayflink.testing import OperatorHarness, at, verify, wm

from .group_cases import (
    AFTER,
    BEFORE,
    BY_WORD,
    DELETE,
    EVERY,
    INSERT,
    LISTED,
    OK,
    WORD,
    Change,
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

COUNTS = Groups((agg("COUNT"), agg("SUM", N)))
TOGETHER = MiniBatch(1000, 100)


def random_changes(chance: random.Random, count: int, retracts: bool) -> list[Change]:
    """Rows that come, and with `retracts` some that are taken back."""
    present: list[tuple] = []
    changes: list[Change] = []
    for _ in range(count):
        if retracts and present and chance.random() < 0.45:
            changes.append((chance.choice([BEFORE, DELETE]), present.pop(chance.randrange(len(present)))))
            continue
        word, n, x = (chance.choice(values) for values in ("abcd", [None, 1, 2, 3, -5, 7], [None, 1.0, 2.5, -3.5]))
        amount = chance.choice([None, Decimal("1.25"), Decimal("-3.10"), Decimal("9.99")])
        present.append((chance.choice([word, None]), n, x, amount, chance.random() < 0.7))
        changes.append((chance.choice([INSERT, AFTER]) if retracts else INSERT, present[-1]))
    return changes


@pytest.mark.slow
@pytest.mark.parametrize("mini_batch", [None, TOGETHER])
@pytest.mark.parametrize("retracts", [False, True])
@pytest.mark.parametrize("keys", [(WORD,), (), (D, OK), (X, N)])
def test_every_change_is_that_of_the_model(keys, retracts, mini_batch):
    chance = random.Random(f"{keys}{retracts}{mini_batch}")
    for _ in range(3):
        chosen = tuple(chance.sample(EVERY + LISTED, chance.randint(0, 7)))
        groups = Groups(chosen, keys, retracts, with_before=chance.random() < 0.7, mini_batch=mini_batch)
        model, changes = GroupModel(groups), random_changes(chance, 90, retracts)
        with OperatorHarness(groups.operators) as harness:
            for number in range(0, len(changes), 30):
                part = changes[number : number + 30]
                harness.give(batch(part))
                harness.give(at(1000 * (number + 1)))
                found, wanted = changes_of(harness.take()), model.add(part, mini_batch is not None)
                assert [kind for kind, _ in found] == [kind for kind, _ in wanted]
                assert same([values for _, values in found], [values for _, values in wanted])


def test_a_snapshot_leaves_no_files_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with OperatorHarness(COUNTS.operators) as harness:
        harness.give(come(row("a", 1)))
        taken = harness.snapshot()
        assert list(tmp_path.iterdir()) == []
    with OperatorHarness(COUNTS.operators, restore=[taken]) as harness:
        harness.give(come(row("a", 2)))
        assert changes_of(harness.take())[-1] == (AFTER, ("a", 2, 3))


def test_moments_behind_a_row_do_not_depend_on_rows_behind_it():
    with OperatorHarness(Groups((agg("VAR_POP", X),)).operators) as harness:
        harness.give(come(row("a", x=2.25), row("a", x=7.0), row("a", x=1e15)))
        shown = [values[1] for kind, values in changes_of(harness.take()) if kind is not BEFORE]
    assert shown == pytest.approx([0.0, 5.640625, 2e30 / 9])


@pytest.mark.slow
def test_rows_change_their_groups_one_by_one():
    out = COUNTS.out
    verify(
        COUNTS.operators,
        elements=[come(row("a", 1), row("b", 2), row("a", 3)), come(row(None, 4), row("a", None)), come(row("b", 1))],
        then=[
            out(INSERT, "a", 1, 1), out(INSERT, "b", 1, 2), out(BEFORE, "a", 1, 1), out(AFTER, "a", 2, 4),
            out(INSERT, None, 1, 4), out(BEFORE, "a", 2, 4), out(AFTER, "a", 3, 4),
            out(BEFORE, "b", 1, 2), out(AFTER, "b", 2, 3),
        ],
        key=BY_WORD,
    )  # fmt: skip


@pytest.mark.slow
def test_a_group_goes_with_its_last_row():
    groups = Groups((agg("MAX", N), agg("COUNT", N, distinct=True)), retracts=True)
    out = groups.out
    verify(
        groups.operators,
        elements=[
            come(row("a", 1), row("a", 5), row("b", 2)),
            batch([(BEFORE, row("a", 5)), (AFTER, row("a", 1)), (DELETE, row("b", 2)), (DELETE, row("c", 2))]),
            batch([(DELETE, row("a", 1)), (DELETE, row("a", 1)), (INSERT, row("a", 7))]),
        ],
        then=[
            out(INSERT, "a", 1, 1), out(BEFORE, "a", 1, 1), out(AFTER, "a", 5, 2), out(INSERT, "b", 2, 1),
            out(BEFORE, "a", 5, 2), out(AFTER, "a", 1, 1), out(DELETE, "b", 2, 1),
            out(DELETE, "a", 1, 1), out(INSERT, "a", 7, 1),
        ],
        key=BY_WORD,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.spec("G14", "joins-and-aggregations", "R17")
def test_a_group_is_forgotten_when_no_row_came_for_the_time_to_live():
    groups = Groups((agg("COUNT"),), ttl_ms=10)
    out = groups.out
    verify(
        groups.operators,
        elements=[
            come(row("a"), row("b")), at(6), come(row("a")), at(12), come(row("a"), row("b")), at(30), come(row("a"))
        ],
        then=[
            out(INSERT, "a", 1), out(INSERT, "b", 1), out(BEFORE, "a", 1), out(AFTER, "a", 2),
            out(BEFORE, "a", 2), out(AFTER, "a", 3), out(INSERT, "b", 1), out(INSERT, "a", 1),
        ],
        key=BY_WORD,
    )  # fmt: skip


def test_a_mini_batch_shows_one_change_of_a_group():
    groups = Groups(COUNTS.aggregates, mini_batch=MiniBatch(4, 100))
    with OperatorHarness(groups.operators) as harness:
        harness.give(come(row("a", 1), row("a", 2)))
        harness.give(wm(7))
        assert not harness.take()
        harness.give(at(100))
        assert harness.take() == [groups.out(INSERT, "a", 2, 3), wm(7)]
        harness.give(come(row("b", 1), row("a", 2), row("a", 3)))
        harness.give(come(row("b", 4)))
        assert harness.take() == [
            groups.out(INSERT, "b", 2, 5), groups.out(BEFORE, "a", 2, 3), groups.out(AFTER, "a", 4, 8),
        ]  # fmt: skip


def test_without_the_row_before_an_update_is_one_row():
    groups = Groups(COUNTS.aggregates, with_before=False)
    with OperatorHarness(groups.operators) as harness:
        harness.give(come(row("a", 1), row("a", 2)))
        assert harness.take() == [groups.out(INSERT, "a", 1, 1), groups.out(AFTER, "a", 2, 3)]


def test_a_result_that_stays_is_not_shown_unless_groups_expire():
    for ttl_ms, shown in ((0, 1), (10, 3)):
        groups = Groups((agg("MAX", N),), ttl_ms=ttl_ms)
        with OperatorHarness(groups.operators) as harness:
            harness.give(come(row("a", 5), row("a", 2)))
            assert len(harness.take()) == shown
