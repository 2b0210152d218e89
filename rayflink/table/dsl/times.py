"""Functions of times, and lengths of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ..parsing.dialect import Interval
from ..parsing.program_nodes import Value, WindowPart
from .expression_text import Property, T, Written, call_tree, to_expression, tree_of
from .units import TimeIntervalUnit

if TYPE_CHECKING:
    from ..expression import Expression


class Length:
    """An interval of this many units.

    Args:
        unit: in capitals.
    """

    def __init__(self, unit: str) -> None:
        self._unit, self.__doc__ = unit, f"This many times one {unit.lower()}, as an interval."

    def __get__(self, owner: Written[Any] | None, kind: type) -> Any:
        if owner is None:
            return self
        tree = tree_of(owner)
        if isinstance(tree, Value) and isinstance(tree.this.value, int):
            return to_expression(Interval(this=str(tree.this.value), unit=self._unit))
        return to_expression(exp.Mul(this=exp.Paren(this=tree), expression=Interval(this="1", unit=self._unit)))


class Part:
    """A column of the group window whose name this is.

    Args:
        part: START, END, ROWTIME or PROCTIME.
        about: what it is.
    """

    def __init__(self, part: str, about: str) -> None:
        self._part, self.__doc__ = part, about

    def __get__(self, owner: Written[Any] | None, kind: type) -> Any:
        return self if owner is None else to_expression(WindowPart(this=tree_of(owner), part=self._part))


class Times(Written[T]):
    """Methods of expressions of times, and of numbers of time units.

    >>> from rayflink.table.expressions import lit
    >>> lit(10).minutes
    Interval(10, MINUTE)
    """

    year = Length("YEAR")
    years = Length("YEAR")
    quarter = Length("QUARTER")
    quarters = Length("QUARTER")
    month = Length("MONTH")
    months = Length("MONTH")
    week = Length("WEEK")
    weeks = Length("WEEK")
    day = Length("DAY")
    days = Length("DAY")
    hour = Length("HOUR")
    hours = Length("HOUR")
    minute = Length("MINUTE")
    minutes = Length("MINUTE")
    second = Length("SECOND")
    seconds = Length("SECOND")
    milli = Length("MILLISECOND")
    millis = Length("MILLISECOND")

    start = Part("START", "Begin of the window of this name.")
    end = Part("END", "End of the window of this name, the first time behind it.")
    rowtime = Part("ROWTIME", "Event time of the window of this name: its last millisecond.")
    proctime = Part("PROCTIME", "Processing time of the window of this name.")

    to_date = Property("TO_DATE", "The date of a text.")
    to_timestamp = Property("TO_TIMESTAMP", "The timestamp of a text.")

    @property
    def to_time(self) -> Expression[Any]:
        """Return the time of day of a text."""
        from ..types import DataTypes

        return self._call("CAST", DataTypes.TIME())

    def extract(self, time_interval_unit: TimeIntervalUnit) -> Expression[int]:
        """Return a part of a time."""
        return to_expression(call_tree("EXTRACT", exp.Var(this=time_interval_unit.name), self))

    def floor(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression[T]:
        """Return a number or a time rounded down."""
        return self._rounded("FLOOR", time_interval_unit)

    def ceil(self, time_interval_unit: TimeIntervalUnit | None = None) -> Expression[T]:
        """Return a number or a time rounded up."""
        return self._rounded("CEIL", time_interval_unit)

    def _rounded(self, name: str, unit: TimeIntervalUnit | None) -> Expression[T]:
        return self._call(name, None if unit is None else exp.Var(this=unit.name))
