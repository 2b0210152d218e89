"""PERCENTILE(value, percentage [, frequency])."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import SqlError
from ..parsing.statements import Tree
from ..plan.typed import Column, Evaluation, Expr, Literal, RowError, Session
from ..types import DataType, DataTypes, Root
from .expressions import ExpressionBinder, call, cast, place_of

_ZERO = Literal(DataTypes.BIGINT(False), 0)
USAGE = "PERCENTILE(number, percentage or array of percentages [, frequency])"


@dataclass(frozen=True)
class Percentile:
    """A percentile that a query asks for.

    Args:
        argument: a DOUBLE, or a row of one and how often it counts.
        counts: whether a row counts; None: where its value is not NULL.
        percentages: within [0, 1].
        type: of the result.
    """

    argument: Expr
    counts: Expr | None
    percentages: tuple[float, ...]
    type: DataType


def percentile(binder: ExpressionBinder, arguments: list[Tree], distinct: bool, tree: Tree) -> Percentile:
    """Return the call of these arguments.

    Raises:
        SqlError: they are others, or a percentage is no constant within [0, 1].
    """
    place = place_of(tree)
    bound = [binder.bind(argument) for argument in arguments]
    if len(bound) not in (2, 3):
        raise SqlError(f"PERCENTILE has {len(bound)} arguments", f"write {USAGE}", "", place)
    value, percentages_expr = bound[:2]
    is_array = percentages_expr.type.root is Root.ARRAY
    percentage_type = percentages_expr.type.items[0] if is_array else percentages_expr.type
    are_numbers = value.type.is_numeric and percentage_type.is_numeric
    are_not_null = not percentages_expr.type.is_nullable and not percentage_type.is_nullable
    if not (are_numbers and are_not_null and all(frequency.type.is_integer for frequency in bound[2:])):
        kinds = ", ".join(str(argument.type) for argument in bound)
        raise SqlError(f"PERCENTILE does not take ({kinds})", f"write {USAGE}, percentages without NULL", "", place)
    percentages = _constants(percentages_expr, is_array)
    kind = DataTypes.ARRAY(DataTypes.DOUBLE()) if is_array else DataTypes.DOUBLE()
    number = cast(value, DataTypes.DOUBLE().as_nullable(value.type.is_nullable))
    if len(bound) == 2:
        return Percentile(number, None, percentages, kind)
    if distinct:
        raise SqlError("PERCENTILE(DISTINCT ...) does not take a frequency", "remove one of the two", "", place)
    times = cast(bound[2], DataTypes.BIGINT().as_nullable(bound[2].type.is_nullable))
    there = call("AND", [call("IS NOT NULL", [value], place), call(">", [times, _ZERO], place)], place)
    return Percentile(call("ROW", [number, times], place), there, percentages, kind)


def _constants(expr: Expr, is_array: bool) -> tuple[float, ...]:
    """Return the percentages.

    Raises:
        SqlError: they depend on rows, or one is none.
    """
    if any(isinstance(part, Column) for part in expr.walk()):
        remedy = "write constants: of a column Flink uses the value of an arbitrary row"
        raise SqlError("the percentage of PERCENTILE is a column", remedy, "", expr.place)
    try:
        value = Evaluation([], 1, Session("UTC")).column(expr)[0].as_py()
    except RowError as error:
        raise SqlError(str(error), "write numbers within [0, 1]", "", expr.place) from error
    percentages = tuple(map(float, value if is_array else [value]))
    outside = [percentage for percentage in percentages if not 0 <= percentage <= 1]
    if outside:
        raise SqlError(f"a percentage of PERCENTILE is {outside[0]}", "write numbers within [0, 1]", "", expr.place)
    return percentages


__all__ = ["Percentile", "percentile"]
