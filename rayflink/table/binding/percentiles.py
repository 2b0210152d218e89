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
    bound = [binder.bind(one) for one in arguments]
    if len(bound) not in (2, 3):
        raise SqlError(f"PERCENTILE of {len(bound)} arguments", f"write {USAGE}", "", place)
    value, asked = bound[:2]
    is_array = asked.type.root is Root.ARRAY
    of = asked.type.items[0] if is_array else asked.type
    wrong = not value.type.is_numeric or not of.is_numeric or asked.type.is_nullable or of.is_nullable
    if wrong or any(not one.type.is_integer for one in bound[2:]):
        kinds = ", ".join(str(one.type) for one in bound)
        raise SqlError(f"PERCENTILE does not take ({kinds})", f"write {USAGE}, percentages without NULL", "", place)
    percentages = _constants(asked, is_array)
    kind = DataTypes.ARRAY(DataTypes.DOUBLE()) if is_array else DataTypes.DOUBLE()
    number = cast(value, DataTypes.DOUBLE().as_nullable(value.type.is_nullable))
    if len(bound) == 2:
        return Percentile(number, None, percentages, kind)
    if distinct:
        raise SqlError("PERCENTILE(DISTINCT ...) with a frequency", "leave one of them out", "", place)
    times = cast(bound[2], DataTypes.BIGINT().as_nullable(bound[2].type.is_nullable))
    there = call("AND", [call("IS NOT NULL", [value], place), call(">", [times, _ZERO], place)], place)
    return Percentile(call("ROW", [number, times], place), there, percentages, kind)


def _constants(asked: Expr, is_array: bool) -> tuple[float, ...]:
    """Return the percentages.

    Raises:
        SqlError: they depend on rows, or one is none.
    """
    if any(isinstance(one, Column) for one in asked.walk()):
        remedy = "write numbers: of a column Flink takes those of some row"
        raise SqlError("the percentage of PERCENTILE is a column", remedy, "", asked.place)
    try:
        found = Evaluation([], 1, Session("UTC")).column(asked)[0].as_py()
    except RowError as error:
        raise SqlError(str(error), "write numbers within [0, 1]", "", asked.place) from error
    percentages = tuple(map(float, found if is_array else [found]))
    wrong = [one for one in percentages if not 0 <= one <= 1]
    if wrong:
        raise SqlError(f"a percentage of PERCENTILE is {wrong[0]}", "wanted is one within [0, 1]", "", asked.place)
    return percentages


__all__ = ["Percentile", "percentile"]
