"""The order of joins that is chosen is the best one without cross products."""

from __future__ import annotations

import math
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.table.optimizer.join_order import Condition, JoinOrder, Order, tables_of


def all_orders(tables: frozenset[int]) -> list[Order]:
    if len(tables) == 1:
        return list(tables)
    first, *rest = sorted(tables)
    found: list[Order] = []
    for size in range(len(rest)):
        for beside in combinations(rest, size):
            left = frozenset({first, *beside})
            found += [(a, b) for a in all_orders(left) for b in all_orders(tables - left)]
    return found


def is_crossed(order: Order, conditions: list[Condition]) -> bool:
    """Whether a join of it has no condition."""
    if isinstance(order, int):
        return False
    one, other = map(tables_of, order)
    joins = any(c.over & (one | other) == c.over and c.over & one and c.over & other for c in conditions)
    return not joins or any(is_crossed(side, conditions) for side in order)


@st.composite
def joined_tables(draw: st.DrawFn) -> tuple[list[float], list[Condition]]:
    """Tables that conditions on two hold together, and more conditions."""
    count = draw(st.integers(2, 5))
    rows = [float(draw(st.integers(1, 1000))) for _ in range(count)]
    shares = st.sampled_from([1.0, 0.5, 0.1, 0.01, 0.001])
    equal = st.booleans()
    held = [Condition(1 << at | 1 << draw(st.integers(0, at - 1)), draw(shares), draw(equal)) for at in range(1, count)]
    more = st.builds(Condition, st.integers(3, 2**count - 1).filter(lambda over: over.bit_count() > 1), shares, equal)
    return rows, [*held, *draw(st.lists(more, max_size=3))]


@given(joined_tables())
@settings(max_examples=60, deadline=None)
def test_no_other_order_without_cross_products_costs_less(made):
    rows, conditions = made
    choice = JoinOrder(rows, conditions, most=12)
    best = choice.best()
    others = [one for one in all_orders(frozenset(range(len(rows)))) if not is_crossed(one, conditions)]
    assert not is_crossed(best, conditions)
    assert math.isclose(choice.cost(best), min(map(choice.cost, others)), rel_tol=1e-9)


@given(joined_tables())
@settings(max_examples=60, deadline=None)
def test_of_too_many_tables_each_is_joined_once_and_by_a_condition(made):
    rows, conditions = made
    best = JoinOrder(rows, conditions, most=1).best()
    assert tables_of(best) == 2 ** len(rows) - 1 and not is_crossed(best, conditions)


def test_a_join_by_which_all_pairs_are_looked_at_comes_late():
    conditions = [Condition(0b011, 0.001, False), Condition(0b110, 0.1), Condition(0b101, 0.1)]
    assert JoinOrder([100.0, 200.0, 50.0], conditions, 12).best() == ((0, 2), 1)


def test_the_smaller_side_is_the_right_one():
    assert JoinOrder([5.0, 900.0], [Condition(3, 0.1)], 12).best() == (1, 0)
    assert JoinOrder([900.0, 5.0], [Condition(3, 0.1)], 12).best() == (0, 1)


def test_tables_that_no_condition_joins_are_joined_at_the_end():
    conditions = [Condition(0b0101, 0.001), Condition(0b1010, 0.001)]
    best = JoinOrder([100.0, 10.0, 100.0, 10.0], conditions, 12).best()
    assert best == ((0, 2), (1, 3))


def test_a_star_and_a_ring_of_twelve_tables_are_ordered_whole():
    star = [Condition(1 | 1 << at, 1 / at) for at in range(1, 12)]
    best = JoinOrder([1e6, *(10.0 * at for at in range(1, 12))], star, 12).best()
    assert not is_crossed(best, star)
    ring = [Condition(1 << at | 1 << (at + 1) % 12, 0.01) for at in range(12)]
    assert tables_of(JoinOrder([100.0] * 12, ring, 12).best()) == 2**12 - 1
