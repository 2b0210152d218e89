"""Statistics that a table has without being read; the planner estimates by them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any


@dataclass(frozen=True)
class ColumnStatistics:
    """Statistics of a column; None: unknown.

    Args:
        low, high: least and greatest value, see `as_number`.
        nulls: share of the rows where it is NULL.
        distinct: how many values it has.
        width: bytes of a value.
    """

    low: float | None = None
    high: float | None = None
    nulls: float | None = None
    distinct: float | None = None
    width: float | None = None

    def __str__(self) -> str:
        nulls = None if self.nulls is None else round(self.nulls, 3)
        described = {"min": self.low, "max": self.high, "nulls": nulls, "distinct": self.distinct}
        return ", ".join(f"{name} {value:.15g}" for name, value in described.items() if value is not None)


@dataclass(frozen=True)
class TableStatistics:
    """Statistics of a table; None: unknown.

    Args:
        rows: how many it has.
        how: where that is from.
        columns: by name.
    """

    rows: float
    how: str
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)


def as_number(value: Any) -> float | None:
    """Return a value as a number in the order of its type, times in milliseconds since 1970. None: it has no order.

    >>> as_number(Decimal("1.5")), as_number(datetime.date(1970, 1, 2)), as_number("a")
    (1.5, 86400000.0, None)
    """
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        number = float(value)
        return number if number - number == 0 else None  # finite
    if isinstance(value, datetime.datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=datetime.timezone.utc)
        return moment.timestamp() * 1000
    if isinstance(value, datetime.date):
        return float((value - datetime.date(1970, 1, 1)).days * 86_400_000)
    return None


def merge_statistics(parts: list[tuple[float, ColumnStatistics]]) -> ColumnStatistics:
    """Combine the statistics of parts of a column, each with its number of rows; unknown in one part is unknown in all.

    >>> print(merge_statistics([(1, ColumnStatistics(1, 2, 0.0)), (3, ColumnStatistics(0, 1, 0.5))]))
    min 0, max 2, nulls 0.375
    """
    rows = sum(count for count, _ in parts) or 1.0
    with_values = [(count, statistics) for count, statistics in parts if statistics.nulls != 1]
    lows, highs = ([getattr(statistics, name) for _, statistics in with_values] for name in ("low", "high"))

    def mean(name: str) -> float | None:
        values = [(count, getattr(statistics, name)) for count, statistics in parts]
        return None if any(value is None for _, value in values) else sum(n * value for n, value in values) / rows

    return ColumnStatistics(
        None if not lows or None in lows else min(lows),
        None if not highs or None in highs else max(highs),
        mean("nulls"),
        None,
        mean("width"),
    )


__all__ = ["ColumnStatistics", "TableStatistics", "as_number", "merge_statistics"]
