"""Replaces the parts of a plan that cannot give rows by an empty relation, so that nothing is read.

Source: apache/calcite PruneEmptyRules.

Example:

    SELECT id FROM orders WHERE 1 > 2

Without the rule:

    Calc(select=[id], where=[false])
    +- TableSourceScan(table=[[orders, project=[id]]], fields=[id])

With the rule:

    Values(tuples=[[]])
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

from ...plan.logical import (
    Filter,
    Project,
    Relation,
    Sort,
    Union,
    Values,
    WatermarkAssigner,
    WindowAggregate,
    WindowTable,
)
from ...plan.typed import Call, Column, Expr, Literal
from ...types import Root
from ..conditions import parts_of

_OF_ROWS = (Filter, Project, Sort, WatermarkAssigner, WindowAggregate, WindowTable)
"""Steps that give no rows when none come."""
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "="}


def prune_empty(plan: Relation) -> Relation:
    """Filters that pass nothing become no rows, and so do the steps above them."""
    return plan.mapped(_pruned)


def _pruned(relation: Relation) -> Relation:
    nothing = Values(relation.schema, ())
    if isinstance(relation, Filter) and _passes_nothing(relation.condition):
        return nothing
    if isinstance(relation, _OF_ROWS) and _is_empty(relation.input):
        return nothing
    if isinstance(relation, Union) and any(map(_is_empty, relation.sources)):
        left = [side for side in relation.sources if not _is_empty(side)]
        if len(left) > 1:
            return relation.with_inputs(left)
        return _under(relation, left[0]) if left else nothing
    return relation


def _is_empty(relation: Relation) -> bool:
    return isinstance(relation, Values) and not relation.rows


def _under(union: Relation, side: Relation) -> Relation:
    """Return the rows of a side as the columns of the whole."""
    if side.schema == union.schema:
        return side
    return Project(union.schema, side, tuple(side.column(index) for index in range(len(union.schema))))


def _passes_nothing(condition: Expr) -> bool:
    if isinstance(condition, Literal):
        return condition.value is not True
    ranges: dict[int, _Range] = {}
    for part in parts_of(condition):
        if isinstance(part, Literal) and part.value is not True:
            return True
        compared = _compared(part)
        if compared is not None:
            column, sign, value = compared
            if not ranges.setdefault(column.index, _Range()).take(sign, value):
                return True
    return False


def _compared(part: Expr) -> tuple[Column, str, Any] | None:
    """Return a column, a sign and a constant; IS NULL has the constant None."""
    if not isinstance(part, Call):
        return None
    name, args = part.function.name, part.args
    if name == "IS NULL" and isinstance(args[0], Column):
        return args[0], name, None
    if name not in _MIRRORED:
        return None
    left, right = args
    if isinstance(left, Literal) and isinstance(right, Column):
        left, right, name = right, left, _MIRRORED[name]
    if isinstance(left, Column) and isinstance(right, Literal) and _has_order(left, right):
        return left, name, right.value
    return None


def _has_order(column: Column, literal: Literal) -> bool:
    """Return whether SQL compares the column with the constant as Python does, which it does not for strings."""
    if column.type.is_numeric:
        return type(literal.value) in (int, Decimal) and column.type.root not in (Root.FLOAT, Root.DOUBLE)
    same = column.type.root is literal.type.root
    return same and type(literal.value) in (datetime.date, datetime.datetime)


class _Range:
    """The values that a column may have."""

    def __init__(self) -> None:
        self._low: Any = None
        self._high: Any = None
        self._open_low = self._open_high = self._is_null = self._is_compared = False

    def take(self, sign: str, value: Any) -> bool:
        """Add a condition, and return whether a value is left."""
        if sign == "IS NULL":
            self._is_null = True
        else:
            self._is_compared = True
            if sign in (">", ">=", "=") and (self._low is None or (value, sign == ">") > (self._low, self._open_low)):
                self._low, self._open_low = value, sign == ">"
            if sign in ("<", "<=", "=") and self._is_lower(value, sign == "<"):
                self._high, self._open_high = value, sign == "<"
        if self._is_null and self._is_compared:
            return False
        if self._low is None or self._high is None or self._low < self._high:
            return True
        return bool(self._low == self._high) and not self._open_low and not self._open_high

    def _is_lower(self, value: Any, is_open: bool) -> bool:
        if self._high is None or value < self._high:
            return True
        return bool(value == self._high) and is_open
