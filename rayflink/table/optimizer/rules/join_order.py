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

    def _step(self, one: int, other: int) -> float:
        """Return the selectivity of one join."""
        if self._are_joined(one, other, by_equation=True):
            return self.rows_of(one | other)
        return max(self.rows_of(one | other), self.rows_of(one) * self.rows_of(other))

    def rows_of(self, tables: int) -> float:
        """Return the rows of a set of tables, however they are joined."""
        found = self._rows_of.get(tables)
        if found is None:
            found = 1.0
            for at, rows in enumerate(self.rows):
                if tables >> at & 1:
                    found *= rows
            for one in self.conditions:
                if one.over & tables == one.over:
                    found *= one.share
            self._rows_of[tables] = found
        return found

    def _ordered(self, tables: int) -> Order:
        numbers = [at for at in range(len(self.rows)) if tables >> at & 1]
        return self._greedy(list(numbers)) if len(numbers) > self.most else self._dynamic(tables)

    def _dynamic(self, tables: int) -> Order:
        """Return all ways to divide each connected set into two connected ones."""
        found: dict[int, tuple[float, Order]] = {1 << at: (0.0, at) for at in range(len(self.rows)) if tables >> at & 1}
        part = 0
        while part != tables:
            part = (part - tables) & tables  # the next set in the order of numbers: behind all of its parts
            if part in found:
                continue
            least, rest = part & -part, part & (part - 1)
            best: tuple[float, int, int] | None = None
            other = rest
            while other:
                one = part ^ other
                if one & least and one in found and other in found and self._are_joined(one, other):
                    cost = found[one][0] + found[other][0] + self._step(one, other)
                    if best is None or cost < best[0]:
                        best = cost, one, other
                other = (other - 1) & rest
            if best is not None:
                cost, one, other = best
                found[part] = cost, self._joined(found[one][1], found[other][1])
        return found[tables][1]

    def _greedy(self, orders: list[Order], is_crossed: bool = False) -> Order:
        """Return the two whose join is the smallest, again and again."""
        left = [(tables_of(one), one) for one in orders]
        while len(left) > 1:
            pairs = [
                (self._step(one, other), at, beside)
                for at, (one, _) in enumerate(left)
                for beside, (other, _) in enumerate(left[:at])
                if is_crossed or self._are_joined(one, other)
            ]
            _, at, beside = min(pairs)
            (other, second), (one, first) = left.pop(at), left.pop(beside)
            left.append((one | other, self._joined(first, second)))
        return left[0][1]

    def _joined(self, one: Order, other: Order) -> Order:
        is_larger = self.rows_of(tables_of(other)) > self.rows_of(tables_of(one))
        return (other, one) if is_larger else (one, other)

    def _are_joined(self, one: int, other: int, by_equation: bool = False) -> bool:
        both = one | other
        return any(
            c.over & both == c.over and c.over & one and c.over & other and c.is_equation >= by_equation
            for c in self.conditions
        )

    def _components(self) -> list[int]:
        """Return the sets of tables that conditions on two of them hold together."""
        found = [1 << at for at in range(len(self.rows))]
        for over in (one.over for one in self.conditions if one.over.bit_count() == 2):
            whole = [part for part in found if part & over]
            found = [part for part in found if not part & over]
            joined = 0
            for part in whole:
                joined |= part
            found.append(joined)
        return sorted(found)


def tables_of(order: Order) -> int:
    """Return the set of the tables of an order, a bit for each."""
    return 1 << order if isinstance(order, int) else tables_of(order[0]) | tables_of(order[1])


__all__ = ["Condition", "JoinOrder", "Order", "tables_of"]
