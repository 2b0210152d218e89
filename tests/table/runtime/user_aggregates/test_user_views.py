"""Views in accumulators: their entries are state of their own, and what programs see of them is what is in memory."""

from __future__ import annotations

import random
from dataclasses import dataclass
from decimal import Decimal

import pytest

from rayflink.table.data_view import ListView, MapView
from rayflink.table.runtime.groups import user_views
from rayflink.table.runtime.groups.group_operators import StreamGroupOperator
from rayflink.table.types import DataTypes
from rayflink.table.udf import AggregateFunction
from rayflink.table.user_functions.stored_views import Nothing, Views, entry_of
from rayflink.testing import OperatorHarness, verify

from ..groups.group_cases import AFTER, BEFORE, BY_WORD, DELETE, INSERT, Groups, N, batch, changes_of, come, row
from ..groups.test_stream_groups import random_changes
from .user_cases import user

ARRAY = DataTypes.ARRAY(DataTypes.BIGINT())


@dataclass
class State:
    """An accumulator, as programs write them."""

    counts: MapView
    values: ListView
    rows: int = 0


class Present(AggregateFunction):
    """The values that are present, sorted, and then those that came since there was a 7, in their order."""

    def create_accumulator(self):
        return State(MapView(), ListView())

    def accumulate(self, accumulator, n):
        n = -1 if n is None else n
        accumulator.rows += 1
        accumulator.counts[n] = (accumulator.counts[n] or 0) + 1
        if n == 7:
            accumulator.values.clear()
        accumulator.values.add(n)

    def retract(self, accumulator, n):
        n = -1 if n is None else n
        accumulator.rows -= 1
        accumulator.counts[n] -= 1
        if not accumulator.counts[n]:
            keys = accumulator.counts.keys()
            for key in keys:
                if key == n:
                    keys.remove()

    def get_value(self, accumulator):
        return [*sorted(accumulator.counts), *accumulator.values, len(list(accumulator.counts.items()))]


class InMemory(Present):
    """The same, with collections that are no views."""

    def create_accumulator(self):
        return State(_InMemoryMap(), _InMemoryList())


class _InMemoryMap(dict):
    def __getitem__(self, key):
        return self.get(key)

    def keys(self):
        return MapView.keys(self)

    def _entries(self):
        return self

    def remove(self, key):
        del self[key]


class _InMemoryList(list):
    add = list.append


@pytest.mark.slow
@pytest.mark.parametrize("most_at_hand", [0, 3])
def test_groups_are_those_of_collections_in_memory(most_at_hand, monkeypatch):
    monkeypatch.setattr(user_views, "MOST_AT_HAND", most_at_hand)
    monkeypatch.setattr(user_views, "MOST_A_ROW", 1 if most_at_hand else 0)
    chance = random.Random(most_at_hand)
    groups, shown = Groups((user(Present(), N, ARRAY), user(InMemory(), N, ARRAY)), retracts=True), 0
    with OperatorHarness(groups.operators) as harness:
        for _ in range(6):
            harness.give(batch(random_changes(chance, 25, True)))
            for _, (_, with_views, in_memory) in changes_of(harness.take()):
                shown += 1
                assert with_views == in_memory
    assert shown > 40


@pytest.mark.slow
def test_views_survive_every_hardship():
    groups = Groups((user(Present(), N, ARRAY),), retracts=True)
    out = groups.out
    verify(
        groups.operators,
        elements=[
            come(row("a", 2), row("a", 7)),
            batch([(BEFORE, row("a", 2)), (DELETE, row("a", 7)), (INSERT, row("a", 3))]),
        ],
        then=[
            out(INSERT, "a", [2, 2, 1]), out(BEFORE, "a", [2, 2, 1]), out(AFTER, "a", [2, 7, 7, 2]),
            out(BEFORE, "a", [2, 7, 7, 2]), out(AFTER, "a", [7, 7, 1]), out(DELETE, "a", [7, 7, 1]),
            out(INSERT, "a", [3, 3, 1]),
        ],
        key=BY_WORD,
    )  # fmt: skip


@pytest.mark.slow
def test_a_change_writes_the_entries_that_it_changes_and_they_go_with_their_group():
    class Counts(Present):
        def get_value(self, accumulator):
            return [accumulator.rows, accumulator.counts[5]]

    groups = Groups((user(Counts(), N, ARRAY),), retracts=True)
    with OperatorHarness(groups.operators) as harness:
        [operator] = [one for one in harness.operators if isinstance(one, StreamGroupOperator)]
        table = next(table for table in operator.stored.tables if len(table.key_types) == 3)
        put: list[int] = []
        table.put, inner = lambda rows, *others: (put.append(len(rows)), inner(rows, *others)), table.put
        harness.give(come(*(row("a", n) for n in range(2000))))  # more than are read at once for a row
        assert len(table) == 2000 + 1993  # the list was cleared by the 7
        harness.give(come(row("a", 5)))
        assert changes_of(harness.take())[-1] == (AFTER, ("a", [2001, 2]))
        assert (put, len(table)) == ([1], 2000 + 1994)
        harness.give(batch([(DELETE, row("a", n)) for n in (*range(2000), 5)]))
        assert changes_of(harness.take())[-1][0] is DELETE
        assert len(table) == 0


def test_a_view_that_is_replaced_leaves_no_entries_behind():
    entries = {}

    class Stored(Nothing):
        def entry(self, view, entry):
            return entries.get((view, entry))

        def entries(self, view):
            return {entry: value for (number, entry), value in entries.items() if number == view}

    def changed(views, accumulator):
        data, changes = views.dump(accumulator)
        for change in changes:
            entries[change.view, change.entry] = change.value
            if change.value is None:
                del entries[change.view, change.entry]
        return data

    first = [MapView(), ListView()]
    first[0]["a"] = 1
    first[1].add_all([1, 2])
    data = changed(Views(Stored()), first)
    assert len(entries) == 3
    views = Views(Stored())
    second = views.load(data)
    assert (second[0]["a"], list(second[1]), second[0].is_empty()) == (1, [1, 2], False)
    second[0] = MapView()
    second[0]["b"] = 2
    data = changed(views, second)
    assert len(entries) == 3
    third = Views(Stored()).load(data)
    assert list(third[0].items()) == [("b", 2)] and third[0] != MapView() and third[1] == second[1]


def test_equal_keys_are_one_entry():
    word = "".join(["te", "a"])
    assert entry_of((word, word)) == entry_of(("tea", "".join(["t", "ea"])))
    assert len({entry_of(key) for key in (2, 2.0, Decimal("2.00"), "2", (2,), (2.0,), None, 2.5, float("inf"))}) == 6
