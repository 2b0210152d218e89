"""Row groups of Parquet files that hold no wanted row, according to their statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow.parquet

_STATED = frozenset({"NONE", "INT", "STRING", "DATE", "TIMESTAMP"})
"""Parquet's types whose least and greatest values are those of Python."""
_MAY_HOLD: dict[str, Callable[[Any, Any, Any], bool]] = {
    "=": lambda low, high, value: low <= value <= high,
    "<": lambda low, high, value: low < value,
    "<=": lambda low, high, value: low <= value,
    ">": lambda low, high, value: high > value,
    ">=": lambda low, high, value: high >= value,
}


@dataclass(frozen=True)
class Wanted:
    """A condition on a column.

    Args:
        sign: =, <, <=, > or >= a value, IN several, IS NULL, or IS NOT NULL.
        values: one; of IN several; of the last two none.
    """

    column: str
    sign: str
    values: tuple[Any, ...] = ()

    def __str__(self) -> str:
        literals = [f"'{value}'" if isinstance(value, str) else str(value) for value in self.values]
        shown = f"({', '.join(literals)})" if self.sign == "IN" else "".join(literals)
        return f"{self.column} {self.sign} {shown}".rstrip()

    def may_be_in(self, statistics: pyarrow.parquet.Statistics) -> bool:
        """Return whether a row group may hold a wanted row; True where that is not known.

        Args:
            statistics: of its column, as pyarrow reports them; None: there are none.
        """
        if statistics is None:
            return True
        if self.sign == "IS NULL":
            return not statistics.has_null_count or statistics.null_count > 0
        if statistics.has_null_count and not statistics.num_values:
            return False
        if self.sign == "IS NOT NULL" or not statistics.has_min_max or statistics.logical_type.type not in _STATED:
            return True
        sign = "=" if self.sign == "IN" else self.sign
        try:
            low, high = statistics.min, statistics.max
            known = bool(low == low and high == high)  # not NaN
            return not known or any(_MAY_HOLD[sign](low, high, value) for value in self.values)
        except (TypeError, ValueError, ImportError):  # the file has another type than the table
            return True


@dataclass(frozen=True)
class RowGroupFilter:
    """Conditions that all hold for a wanted row."""

    conditions: tuple[Wanted, ...] = ()

    def renamed(self, names: Mapping[str, str]) -> RowGroupFilter:
        """Return the conditions on the columns of a file.

        Args:
            names: column -> its name in the file; conditions on others say nothing about the file's row groups.
        """
        return RowGroupFilter(
            tuple(
                replace(condition, column=names[condition.column])
                for condition in self.conditions
                if condition.column in names
            )
        )

    def __call__(self, group: pyarrow.parquet.RowGroupMetaData) -> bool:
        """Return whether a row group, as pyarrow describes it, may hold a wanted row."""
        if not self.conditions:
            return True
        columns = {column.path_in_schema: column for column in map(group.column, range(group.num_columns))}
        return all(
            condition.column not in columns or condition.may_be_in(columns[condition.column].statistics)
            for condition in self.conditions
        )


__all__ = ["RowGroupFilter", "Wanted"]
