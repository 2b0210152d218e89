"""Base classes of user functions that aggregate rows, with PyFlink's names."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

from rayflink.user_types import UserValue

from .function_classes import UserDefinedFunction

if TYPE_CHECKING:
    from ..types import DataType

T = TypeVar("T")
ACC = TypeVar("ACC")
_OVERRIDE = "override it"


class ImperativeAggregateFunction(UserDefinedFunction, Generic[T, ACC]):
    """A function of the values of many rows, which go into an accumulator one row after the other.

    An accumulator is any value that can be pickled; it is stored with its group between batches.
    """

    @abstractmethod
    def create_accumulator(self) -> ACC:
        """Return the accumulator of no rows."""

    @abstractmethod
    def accumulate(self, accumulator: ACC, *args: UserValue) -> None:
        """Add the values of a row to an accumulator."""

    def retract(self, accumulator: ACC, *args: UserValue) -> None:
        """Take back the values of a row that were added; only called where rows of the input change."""
        raise RuntimeError(f"{type(self).__name__} has no method retract; {_OVERRIDE}")

    def merge(self, accumulator: ACC, accumulators: Iterable[ACC]) -> None:
        """Add what other accumulators contain to one of them.

        A function without it works on all rows of a window at its end; one with it, on rows as they come.
        """
        raise RuntimeError(f"{type(self).__name__} has no method merge; {_OVERRIDE}")

    def get_result_type(self) -> DataType | str:
        """Return the type of its results; asked for where `udaf` or `udtaf` has no `result_type`."""
        raise RuntimeError(f"{type(self).__name__} has no method get_result_type; {_OVERRIDE}")

    def get_accumulator_type(self) -> DataType | str:
        """Return the type of accumulators; not asked for: they are pickled as they are."""
        raise RuntimeError(f"{type(self).__name__} has no method get_accumulator_type; {_OVERRIDE}")


class AggregateFunction(ImperativeAggregateFunction[T, ACC]):
    """A function that makes one value of many rows.

    >>> class Span(AggregateFunction):
    ...     def create_accumulator(self):
    ...         return []
    ...
    ...     def accumulate(self, accumulator, n):
    ...         accumulator[:] = [min([n, *accumulator]), max([n, *accumulator])]
    ...
    ...     def get_value(self, accumulator):
    ...         return accumulator[1] - accumulator[0] if accumulator else None
    >>> from rayflink.table import DataTypes, EnvironmentSettings, TableEnvironment
    >>> from rayflink.table.udf import udaf
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    >>> _ = t_env.get_config().set_string("execution.target", "local")
    >>> t_env.create_temporary_function("span", udaf(Span(), result_type=DataTypes.BIGINT()))
    >>> list(t_env.execute_sql("SELECT span(n) FROM (VALUES (3), (9), (5)) AS t(n)").collect())
    [<Row(6)>]
    """

    @abstractmethod
    def get_value(self, accumulator: ACC) -> T | None:
        """Return the result for an accumulator; called whenever a result is shown, which may be early."""


class TableAggregateFunction(ImperativeAggregateFunction[T, ACC]):
    """A function that makes rows of many rows, called by `flat_aggregate`.

    >>> class Top2(TableAggregateFunction):
    ...     def create_accumulator(self):
    ...         return []
    ...
    ...     def accumulate(self, accumulator, n):
    ...         accumulator[:] = sorted([n, *accumulator], reverse=True)[:2]
    ...
    ...     def emit_value(self, accumulator):
    ...         for place, n in enumerate(accumulator):
    ...             yield place, n
    >>> from rayflink.table import DataTypes, EnvironmentSettings, TableEnvironment
    >>> from rayflink.table.expressions import col
    >>> from rayflink.table.udf import udtaf
    >>> top2 = udtaf(Top2(), result_type=DataTypes.ROW([("place", DataTypes.INT()), ("n", DataTypes.BIGINT())]))
    >>> t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    >>> _ = t_env.get_config().set_string("execution.target", "local")
    >>> numbers = t_env.from_elements([("a", 3), ("a", 9), ("b", 5), ("a", 4)], ["k", "v"])
    >>> best = numbers.group_by(col("k")).flat_aggregate(top2(col("v"))).select(col("k"), col("place"), col("n"))
    >>> sorted(tuple(row) for row in best.execute().collect())
    [('a', 0, 9), ('a', 1, 4), ('b', 0, 5)]
    """

    @abstractmethod
    def emit_value(self, accumulator: ACC) -> Iterable[T]:
        """Return the rows for an accumulator: tuples or Rows, or values where they have one column."""


__all__ = ["AggregateFunction", "ImperativeAggregateFunction", "TableAggregateFunction"]
