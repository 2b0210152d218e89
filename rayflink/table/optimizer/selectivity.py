"""Estimates the share of rows that a condition passes, by the statistics of their columns.

Source: P. Selinger et al., Access Path Selection in a Relational Database Management System, table 1; the shares where
nothing is known are those of Calcite's RelMdUtil.guessSelectivity.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..connectors.statistics.table_statistics import ColumnStatistics, as_number
from ..plan.typed import Call, Column, Expr, Literal
from .conditions import parts_of

EQUAL, OTHER, NULL = 0.15, 0.5, 0.1
"""Where nothing is known: of an equation, of another condition, of IS NULL."""
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "<>": "<>"}

Columns = Sequence[ColumnStatistics]


def selectivity(condition: Expr, columns: Columns) -> float:
    """Return the share of the rows for which a condition is true, in [0, 1].

    Args:
        columns: of the rows.
    """
    share, ranges = 1.0, dict[int, ColumnStatistics]()
    for part in parts_of(condition):
        compared = _compared(part)
        if compared is None or columns[compared[0]].low is None or compared[1] not in _BOUNDS:
            share *= _share(part, columns)
        else:  # those of one column are one range
            index, sign, value = compared
            known = ranges.get(index, columns[index])
            ranges[index] = _bounded(known, sign, value)
    for index, left in ranges.items():
        share *= _not_null(columns[index]) * _part(left, columns[index])
    return share


def narrowed(condition: Expr, columns: Columns) -> list[ColumnStatistics]:
    """Return the statistics of the columns of the rows for which a condition is true."""
    statistics = list(columns)
    for part in parts_of(condition):
        compared = _compared(part)
        if compared is not None:
            index, sign, value = compared
            statistics[index] = replace(_bounded(statistics[index], sign, value), nulls=0.0)
            if sign == "=":
                statistics[index] = replace(statistics[index], distinct=1.0)
        elif isinstance(part, Call) and part.function.name == "IS NOT NULL" and isinstance(part.args[0], Column):
            statistics[part.args[0].index] = replace(statistics[part.args[0].index], nulls=0.0)
    return statistics


_BOUNDS = frozenset({"<", "<=", ">", ">="})


def _share(part: Expr, columns: Columns) -> float:
    if isinstance(part, Literal):
        return 1.0 if part.value is True else 0.0
    if isinstance(part, Column):
        return OTHER
    assert isinstance(part, Call)
    name, args = part.function.name, part.args
    if name == "AND":
        return selectivity(part, columns)
    if name == "OR":
        return _any(selectivity(arg, columns) for arg in args)
    if name == "NOT":
        return 1 - selectivity(args[0], columns)
    column = columns[args[0].index] if args and isinstance(args[0], Column) else None
    if name in ("IS NULL", "IS NOT NULL"):
        nulls = NULL if column is None or column.nulls is None else column.nulls
        return nulls if name == "IS NULL" else 1 - nulls
    if name == "IN" and column is not None:
        constants = len(args) - 1 + sum(map(len, part.options))
        return min(1.0, constants * _equal(column))
    if name not in _MIRRORED:
        return OTHER
    compared = _compared(part)
    if name not in ("=", "<>"):
        return OTHER if column is None else OTHER * _not_null(column)
    if compared is not None:
        index, _, value = compared
        share = 0.0 if _is_outside(columns[index], value) else _equal(columns[index])
    else:
        both = [columns[arg.index].distinct for arg in args if isinstance(arg, Column)]
        known = [count for count in both if count is not None]
        share = 1 / max(1.0, *known) if len(known) == 2 else EQUAL
    return share if name == "=" else 1 - share


def _any(shares: Iterable[float]) -> float:
    left = 1.0
    for share in shares:
        left *= 1 - share
    return 1 - left


def _compared(part: Expr) -> tuple[int, str, float | None] | None:
    """Return the number of a column, a sign, and the constant with which it is compared."""
    if not isinstance(part, Call) or part.function.name not in _MIRRORED:
        return None
    (left, right), sign = part.args, part.function.name
    if isinstance(left, Literal) and isinstance(right, Column):
        left, right, sign = right, left, _MIRRORED[sign]
    if not (isinstance(left, Column) and isinstance(right, Literal)):
        return None
    value = as_number(right.value)
    return (left.index, sign, value) if value is not None or sign in ("=", "<>") else None


def _bounded(column: ColumnStatistics, sign: str, value: float | None) -> ColumnStatistics:
    """Narrow a column's range."""
    low, high = column.low, column.high
    if low is None or high is None or value is None or sign == "<>":
        return column
    if sign in (">", ">=", "="):
        low = max(low, value)
    if sign in ("<", "<=", "="):
        high = min(high, value)
    return replace(column, low=low, high=high)


def _part(left: ColumnStatistics, whole: ColumnStatistics) -> float:
    """Return the share of a range."""
    assert left.low is not None and left.high is not None and whole.low is not None and whole.high is not None
    if left.low > left.high:
        return 0.0
    if whole.low == whole.high:
        return 1.0
    share = (left.high - left.low) / (whole.high - whole.low)
    return max(share, 1 / max(1.0, whole.distinct or 1 / EQUAL)) if share < 1 else 1.0


def _equal(column: ColumnStatistics) -> float:
    return EQUAL if column.distinct is None else _not_null(column) / max(1.0, column.distinct)


def _not_null(column: ColumnStatistics) -> float:
    return 1.0 if column.nulls is None else 1 - column.nulls


def _is_outside(column: ColumnStatistics, value: float | None) -> bool:
    if value is None or column.low is None or column.high is None:
        return False
    return not column.low <= value <= column.high


__all__ = ["EQUAL", "OTHER", "narrowed", "selectivity"]
