"""Words for tests of the user's aggregate functions: functions that compute what built-in ones do."""

from __future__ import annotations

from typing import Any

from rayflink.table.runtime.aggregates.aggregates import Aggregate, AggregateKind
from rayflink.table.types import DataType, DataTypes
from rayflink.table.udf import AggregateFunction
from rayflink.table.user_functions.aggregate_kernels import AggregateKernel, Template, UserAggregation


class Sum(AggregateFunction):
    """SUM and COUNT of values that are not null, in one list."""

    def create_accumulator(self) -> list[int]:
        return [0, 0]

    def accumulate(self, accumulator: list[int], *args: int | None) -> None:
        value = args[0]
        if value is not None:
            accumulator[0] += value
            accumulator[1] += 1

    def retract(self, accumulator: list[int], *args: int | None) -> None:
        value = args[0]
        if value is not None:
            accumulator[0] -= value
            accumulator[1] -= 1

    def get_value(self, accumulator: list[int]) -> int | None:
        return accumulator[0] if accumulator[1] else None


class MergingSum(Sum):
    """The same, with merge."""

    def merge(self, accumulator: list[int], accumulators: Any) -> None:
        for other in accumulators:
            accumulator[0] += other[0]
            accumulator[1] += other[1]


class Values(AggregateFunction):
    """All values and nulls, in the order in which they came, as the list that is the accumulator itself."""

    def create_accumulator(self) -> list[int | None]:
        return []

    def accumulate(self, accumulator: list[int | None], *args: int | None) -> None:
        accumulator.append(args[0])

    def retract(self, accumulator: list[int | None], *args: int | None) -> None:
        accumulator.remove(args[0])

    def get_value(self, accumulator: list[int | None]) -> list[int | None] | None:
        return accumulator or None


def user(
    function: Any, argument: int, result: DataType | None = None, kind: str = "general", template: Template = (None,),
    **how: Any,
) -> Aggregate:  # fmt: skip
    """A call of a function over a column."""
    result = result or DataTypes.BIGINT()
    call = UserAggregation(AggregateKernel(function, kind, type(function).__name__), template, result)
    return Aggregate(AggregateKind.USER, argument, result, user=call, **how)
