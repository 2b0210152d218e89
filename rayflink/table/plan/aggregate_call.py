"""Calls of aggregate functions in the logical plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..types import DataType
from .typed import Function


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate function of columns.

    Args:
        name: in capitals.
        arguments: numbers of columns; of a user's function one, which has several arguments as its fields.
        filter: number of a column of truth values: only rows where it is true count.
        distinct: each value once.
        options: constants, such as a separator; of a user's function its arguments, None for those in the column and
            a constant in a tuple.
        function: the user's own; None: a built-in function.
    """

    name: str
    arguments: tuple[int, ...]
    type: DataType
    filter: int | None = None
    distinct: bool = False
    options: tuple[Any, ...] = ()
    function: Function | None = None

    def describe(self, names: Sequence[str]) -> str:
        """Return the call as EXPLAIN shows it."""
        arguments = ", ".join(names[index] for index in self.arguments) or "*"
        if self.function is not None:
            constants = [repr(option[0]) for option in self.options if option is not None]
            columns = [arguments] if len(constants) < len(self.options) else []
            arguments = ", ".join([*columns, *constants])
        filtered = f" FILTER {names[self.filter]}" if self.filter is not None else ""
        return f"{self.name}({'DISTINCT ' if self.distinct else ''}{arguments}){filtered}"


__all__ = ["AggregateCall"]
