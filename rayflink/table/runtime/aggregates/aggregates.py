"""SQL's aggregate functions as the runtime knows them: what they are of, and which type results."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rayflink.common.errors import InvalidTypesError

from ...plan.type_rules import TEXT
from ...types import MOST_DIGITS, DataType, DataTypes, Root
from ...user_functions.aggregate_kernels import UserAggregation

_LEAST_SCALE = 6


class AggregateKind(Enum):
    """An aggregate function; the value is its name in SQL."""

    COUNT = "COUNT"
    SUM = "SUM"
    AVG = "AVG"
    MIN = "MIN"
    MAX = "MAX"
    FIRST_VALUE = "FIRST_VALUE"
    LAST_VALUE = "LAST_VALUE"
    VAR_POP = "VAR_POP"
    VAR_SAMP = "VAR_SAMP"
    STDDEV_POP = "STDDEV_POP"
    STDDEV_SAMP = "STDDEV_SAMP"
    COLLECT = "COLLECT"
    LISTAGG = "LISTAGG"
    ARRAY_AGG = "ARRAY_AGG"
    PERCENTILE = "PERCENTILE"
    USER = ".user"
    """A function of the user's own."""


MOMENTS = (AggregateKind.VAR_POP, AggregateKind.VAR_SAMP, AggregateKind.STDDEV_POP, AggregateKind.STDDEV_SAMP)
"""Kinds that are made of count, mean and squares of differences."""
_OF_NUMBERS = (AggregateKind.SUM, AggregateKind.AVG, *MOMENTS)
_SELECTING = (AggregateKind.MIN, AggregateKind.MAX, AggregateKind.FIRST_VALUE, AggregateKind.LAST_VALUE)


@dataclass(frozen=True)
class Aggregate:
    """An aggregate function over a column; nulls are left out, but of ARRAY_AGG and of the user's functions.

    Args:
        kind: the function.
        argument: number of the input's column; None: COUNT of rows.
        result: type of the result, as `result_type` gives it.
        filter: number of a boolean column; rows where it is not true are left out. None: all rows count.
        distinct: equal values count once.
        separator: of LISTAGG.
        percentages: of PERCENTILE, within [0, 1]; an array of them gives an array.
        user: the call of a function of the user's own.
    """

    kind: AggregateKind
    argument: int | None
    result: DataType
    filter: int | None = None
    distinct: bool = False
    separator: str = ","
    percentages: tuple[float, ...] = ()
    user: UserAggregation | None = None


def result_type(kind: AggregateKind, argument: DataType | None = None, is_filtered: bool = False) -> DataType:
    """Return the type of an aggregate function's result, as in Flink: SUM and AVG of whole numbers stay in their type.

    >>> print(result_type(AggregateKind.AVG, DataTypes.DECIMAL(10, 2)), result_type(AggregateKind.COUNT))
    DECIMAL(38, 6) BIGINT NOT NULL

    Args:
        argument: type of the argument; None where there is none.
        is_filtered: whether a FILTER may leave no row.
    Raises:
        InvalidTypesError: the function is not defined for values of that type.
    """
    if kind is AggregateKind.COUNT:
        return DataTypes.BIGINT(False)
    if argument is None:
        raise InvalidTypesError(f"{kind.value} has no argument", "give it a column")
    nullable = argument.is_nullable or is_filtered
    if kind is AggregateKind.COLLECT:
        return DataTypes.MULTISET(argument, False)
    if kind is AggregateKind.ARRAY_AGG:
        return DataTypes.ARRAY(argument)
    if kind is AggregateKind.LISTAGG:
        if not argument.is_text:
            raise InvalidTypesError(f"LISTAGG of {argument}", "cast its argument to STRING")
        return TEXT.as_nullable(nullable)
    if kind is AggregateKind.PERCENTILE:
        return DataTypes.DOUBLE()
    if kind in _SELECTING:
        if kind in (AggregateKind.MIN, AggregateKind.MAX) and not _has_order(argument):
            raise InvalidTypesError(f"{kind.value} of {argument}", "its values have no order; aggregate a part of them")
        return argument.as_nullable(nullable)
    assert kind in _OF_NUMBERS
    if not argument.is_numeric:
        raise InvalidTypesError(f"{kind.value} of {argument}", "cast its argument to a number")
    result = argument
    if argument.root is Root.DECIMAL:
        scale = argument.scale if kind is AggregateKind.SUM else max(_LEAST_SCALE, argument.scale)
        result = DataTypes.DECIMAL(MOST_DIGITS, scale)
    return result.as_nullable(nullable or kind in (AggregateKind.VAR_SAMP, AggregateKind.STDDEV_SAMP))


def _has_order(kind: DataType) -> bool:
    return not kind.items and kind.root not in (Root.ROW, Root.RAW, Root.NULL)


__all__ = ["MOMENTS", "Aggregate", "AggregateKind", "result_type"]
