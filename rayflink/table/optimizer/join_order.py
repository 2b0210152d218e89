"""Chooses the order in which tables are joined, so that as few rows as possible are made on the way.

Source: P. Selinger et al., Access Path Selection in a Relational Database Management System: the best order of each
set of tables is made of the best ones of two parts; and L. Fegaras, A New Heuristic for Optimizing Large Queries:
where the tables are too many for that, the two whose join is the smallest are joined first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Order: TypeAlias = "int | tuple[Order, Order]"
"""The number of a table, or a join of two; the right side is the smaller one."""


@dataclass(frozen=True)
class Condition:
    """A condition between tables.

    Args:
        over: a bit for each table whose columns it reads.
        share: of the pairs that pass.
        is_equation: the partners of a row are found by it; else all pairs are looked at.
    """

    over: int
    share: float
    is_equation: bool = True


@dataclass
class JoinOrder:
    """Chooses the order.

    Args:
        rows: of each table.
        conditions: between two and more of them.
        most: this many tables are ordered by looking at all orders without cross products.
    """

    rows: Sequence[float]
    conditions: Sequence[Condition]
    most: int
    _rows_of: dict[int, float] = field(default_factory=dict)

    def best(self) -> Order:
        """Return the order that costs least; tables that no condition joins are joined at the end."""
        parts = [self._ordered(part) for part in self._components()]
        return self._greedy(parts, is_crossed=True)

    def cost(self, order: Order) -> float:
        """Return the rows of all joins of an order together, and pairs that are looked at in vain."""
        if isinstance(order, int):
            return 0.0
        return self._step(*map(tables_of, order)) + self.cost(order[0]) + self.cost(order[1])

    def _step(self, left: int, right: int) -> float:
        """Return the selectivity of one join."""
        if self._are_joined(left, right, by_equation=True):
            return self.rows_of(left | right)
        return max(self.rows_of(left | right), self.rows_of(left) * self.rows_of(right))

    def rows_of(self, tables: int) -> float:
        """Return the rows of a set of tables, however they are joined."""
        row_count = self._rows_of.get(tables)
        if row_count is None:
            row_count = 1.0
            for table, rows in enumerate(self.rows):
                if tables >> table & 1:
                    row_count *= rows
            for condition in self.conditions:
                if condition.over & tables == condition.over:
                    row_count *= condition.share
            self._rows_of[tables] = row_count
        return row_count

    def _ordered(self, tables: int) -> Order:
        numbers = [table for table in range(len(self.rows)) if tables >> table & 1]
        return self._greedy(list(numbers)) if len(numbers) > self.most else self._dynamic(tables)

    def _dynamic(self, tables: int) -> Order:
        """Return all ways to divide each connected set into two connected ones."""
        orders: dict[int, tuple[float, Order]] = {
            1 << table: (0.0, table) for table in range(len(self.rows)) if tables >> table & 1
        }
        part = 0
        while part != tables:
            part = (part - tables) & tables  # the next set in the order of numbers: behind all of its parts
            if part in orders:
                continue
            least, rest = part & -part, part & (part - 1)
            best: tuple[float, int, int] | None = None
            right = rest
            while right:
                left = part ^ right
                if left & least and left in orders and right in orders and self._are_joined(left, right):
                    cost = orders[left][0] + orders[right][0] + self._step(left, right)
                    if best is None or cost < best[0]:
                        best = cost, left, right
                right = (right - 1) & rest
            if best is not None:
                cost, left, right = best
                orders[part] = cost, self._joined(orders[left][1], orders[right][1])
        return orders[tables][1]

    def _greedy(self, orders: list[Order], is_crossed: bool = False) -> Order:
        """Return the two whose join is the smallest, again and again."""
        left = [(tables_of(order), order) for order in orders]
        while len(left) > 1:
            pairs = [
                (self._step(tables, others), position, beside)
                for position, (tables, _) in enumerate(left)
                for beside, (others, _) in enumerate(left[:position])
                if is_crossed or self._are_joined(tables, others)
            ]
            _, position, beside = min(pairs)
            (others, second), (tables, first) = left.pop(position), left.pop(beside)
            left.append((tables | others, self._joined(first, second)))
        return left[0][1]

    def _joined(self, left: Order, right: Order) -> Order:
        is_larger = self.rows_of(tables_of(right)) > self.rows_of(tables_of(left))
        return (right, left) if is_larger else (left, right)

    def _are_joined(self, left: int, right: int, by_equation: bool = False) -> bool:
        both = left | right
        return any(
            c.over & both == c.over and c.over & left and c.over & right and c.is_equation >= by_equation
            for c in self.conditions
        )

    def _components(self) -> list[int]:
        """Return the sets of tables that conditions on two of them hold together."""
        components = [1 << table for table in range(len(self.rows))]
        for over in (condition.over for condition in self.conditions if condition.over.bit_count() == 2):
            whole = [part for part in components if part & over]
            components = [part for part in components if not part & over]
            joined = 0
            for part in whole:
                joined |= part
            components.append(joined)
        return sorted(components)


def tables_of(order: Order) -> int:
    """Return the set of the tables of an order, a bit for each."""
    return 1 << order if isinstance(order, int) else tables_of(order[0]) | tables_of(order[1])


__all__ = ["Condition", "JoinOrder", "Order", "tables_of"]
